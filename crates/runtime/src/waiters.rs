//! Sessions that wait for an epoch: DML readers, FLUSH, DDL.

use dataflow::JobId;
use state::Epoch;

use crate::RuntimeError;
use crate::events::Reply;
use crate::source::Reach;

/// A request that is answered when an epoch is there.
pub(crate) struct Waiter {
    pub(crate) reply: Reply,
    /// Positions the epoch must contain.
    pub(crate) sources: Vec<(JobId, Reach)>,
    /// Inbox sequence the epoch must contain.
    pub(crate) inbox: u64,
    /// The epoch, once a barrier behind all of that was injected.
    pub(crate) epoch: Option<Epoch>,
    /// Whether the epoch must be in a durable checkpoint.
    pub(crate) durable: bool,
    /// Jobs that must have caught up; the checkpoint must contain that.
    pub(crate) jobs: Vec<JobId>,
    /// Whether a failed job, any at all, is an answer.
    pub(crate) fails_with_jobs: bool,
}

impl Waiter {
    /// Waits for the inbox up to a sequence.
    pub(crate) fn for_inbox(sequence: u64, reply: Reply) -> Self {
        Self {
            reply,
            sources: Vec::new(),
            inbox: sequence,
            epoch: None,
            durable: false,
            jobs: Vec::new(),
            fails_with_jobs: false,
        }
    }

    /// Waits for a checkpoint and for jobs to catch up.
    pub(crate) fn for_change(epoch: Epoch, jobs: Vec<JobId>, reply: Reply) -> Self {
        Self { epoch: Some(epoch), durable: true, jobs, ..Self::for_inbox(0, reply) }
    }

    /// Answers. A session that has gone does not matter.
    pub(crate) fn answer(self, answer: Result<(), RuntimeError>) {
        let _ = self.reply.send(answer);
    }
}
