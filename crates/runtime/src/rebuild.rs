//! Rebuilding failed jobs by backfill, with back-off.
//!
//! ```text
//!  failed ── retry_at ─► wiped: a checkpoint deletes what its tables held
//!    ▲                        │ durable
//!    └── fails again ── built anew by the same change as CREATE ─► backfilling ─► running
//! ```
//!
//! A job keeps its table ids: by the time it begins anew they are empty on disk and in memory, and
//! a reader that still looks at the old content holds its own snapshot.
//!
//! A table is the exception: it has no input to be built from but the inbox. It stays as the last
//! checkpoint before its failure holds it, the inbox keeps what came since (see
//! [`Checkpoints::held_sequence`](crate::coordinator::Checkpoints)), and the next start applies it.

use std::time::{Duration, Instant};

use dataflow::{JobId, JobKind};
use state::Epoch;
use tokio::sync::oneshot;

use crate::Change;
use crate::changes::QueuedChange;
use crate::clock::instant;
use crate::coordinator::Coordinator;
use crate::jobs::RunningJob;

/// The wait doubles with every attempt, this often.
const DOUBLINGS_MAX: u32 = 8;
/// A job that has run for so long begins with the shortest wait again.
const TRUSTED_AFTER: Duration = Duration::from_secs(600);

/// When a job is tried again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Retry {
    attempts: u32,
    started: Option<Instant>,
    at: Option<Instant>,
}

impl Retry {
    pub(crate) fn on_start(&mut self) {
        self.started = Some(instant());
        self.at = None;
    }

    pub(crate) fn on_failure(&mut self, shortest: Duration) {
        let now = instant();
        if self.started.is_some_and(|started| now.duration_since(started) >= TRUSTED_AFTER) {
            self.attempts = 0;
        }
        self.at = Some(now + shortest * (1 << self.attempts.min(DOUBLINGS_MAX)));
        self.attempts += 1;
    }
}

/// Jobs whose tables are being wiped, and the checkpoint that does it once it is known.
#[derive(Default)]
pub(crate) struct Wiping {
    jobs: Vec<JobId>,
    epoch: Option<Epoch>,
}

impl Coordinator {
    /// When the next failed job is due, of those that do not wait for another one.
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        let can_begin = |job: &&RunningJob| {
            let upstream = job.definition.graph.upstream_jobs();
            upstream.iter().all(|id| self.jobs.get(id).is_none_or(RunningJob::is_live))
        };
        let waiting = self.failed_jobs().filter(|_| self.wiping.jobs.is_empty()).filter(can_begin);
        waiting.filter_map(|job| job.retry.at).min()
    }

    fn failed_jobs(&self) -> impl Iterator<Item = &RunningJob> {
        self.jobs.values().filter(|job| !job.is_live() && job.definition.kind != JobKind::Table)
    }

    /// Takes failed jobs one step further.
    pub(crate) fn retry_failed(&mut self) {
        if self.wiping.jobs.is_empty() {
            self.wipe_due();
        } else if self.wiping.epoch.is_some_and(|epoch| self.checkpoints.durable >= epoch) {
            self.begin_anew();
        }
    }

    fn wipe_due(&mut self) {
        let now = instant();
        let mut due: Vec<JobId> = Vec::new();
        for job in self.failed_jobs().filter(|job| job.retry.at.is_some_and(|at| at <= now)) {
            let is_there =
                |id: &JobId| due.contains(id) || self.jobs.get(id).is_some_and(RunningJob::is_live);
            if job.definition.graph.upstream_jobs().iter().all(is_there) {
                due.push(job.definition.id);
            }
        }
        for job in due.iter().filter_map(|id| self.jobs.get(id)) {
            let tables = job.all_tables();
            self.store.forget(&tables);
            self.checkpoints.dropped_tables.extend(tables);
            self.checkpoints.is_forced = true;
        }
        self.wiping = Wiping { jobs: due, epoch: None };
    }

    /// A checkpoint is being put together: it wipes what is to be wiped.
    pub(crate) fn note_wiping(&mut self, epoch: Epoch) {
        self.wiping.epoch = self.wiping.epoch.or(Some(epoch));
    }

    fn begin_anew(&mut self) {
        let jobs = std::mem::take(&mut self.wiping).jobs;
        let failed = jobs.iter().filter_map(|id| self.jobs.get(id)).filter(|job| !job.is_live());
        let add: Vec<_> = failed.map(|job| job.definition.clone()).collect();
        let change = Change { add, ..Change::default() };
        // Nobody waits for it.
        let (reply, _) = oneshot::channel();
        self.changes.push(QueuedChange { change, reply, waits_for_jobs: false });
    }

    /// A change could not be prepared: failed jobs in it are tried again later.
    pub(crate) fn put_off(&mut self, change: &Change, reason: &str) {
        for definition in &change.add {
            if let Some(job) = self.jobs.get_mut(&definition.id).filter(|job| !job.is_live()) {
                job.error = Some(reason.to_owned());
                job.retry.on_failure(self.tuning.retry_after);
            }
        }
    }
}
