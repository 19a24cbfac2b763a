//! What the other threads tell the coordinator.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dataflow::{JobId, Watermark};
use parking_lot::{Condvar, Mutex};
use state::{Epoch, KeyGroupRange, Run, Snapshot, TableChanges, TableId};
use tokio::sync::oneshot;

use crate::exchange::Wake;
use crate::gauge::Gauge;
use crate::side::SideRows;
use crate::{Change, RuntimeError};

/// The answer to a request, when it is there.
pub(crate) type Reply = oneshot::Sender<Result<(), RuntimeError>>;

/// Something a session asks for.
pub(crate) enum Request {
    Apply { change: Change, reply: Reply, waits_for_jobs: bool },
    Flush { durable: bool, reply: Reply },
    WaitForInbox { sequence: u64, reply: Reply },
    Shutdown(Reply),
}

impl Request {
    /// Answers that the database is shutting down.
    pub(crate) fn refuse(self) {
        let (Self::Apply { reply, .. }
        | Self::Flush { reply, .. }
        | Self::WaitForInbox { reply, .. }
        | Self::Shutdown(reply)) = self;
        let _ = reply.send(Err(RuntimeError::ShuttingDown));
    }
}

/// What a task did in an epoch.
pub(crate) struct TaskReport {
    pub(crate) job: JobId,
    pub(crate) vertex: usize,
    pub(crate) epoch: Epoch,
    pub(crate) runs: Vec<(TableId, Run)>,
    pub(crate) changes: Vec<(TableId, KeyGroupRange, TableChanges)>,
    pub(crate) side: Vec<SideRows>,
    pub(crate) watermark: Watermark,
    pub(crate) dirty_bytes: usize,
    pub(crate) clean_bytes: usize,
    pub(crate) wake_at: Option<i64>,
    /// Time spent on the end of the epoch.
    pub(crate) end_nanos: u64,
}

/// Everything that has happened since the coordinator last looked.
#[derive(Default)]
pub(crate) struct Happened {
    pub(crate) requests: VecDeque<Request>,
    pub(crate) reports: Vec<TaskReport>,
    pub(crate) failures: Vec<(JobId, String)>,
    pub(crate) committed: Option<Arc<dyn Snapshot>>,
    /// Rows have come in since the last barrier.
    pub(crate) input: bool,
    /// A source that somebody waits for has nothing more to read for now.
    pub(crate) caught_up: bool,
    /// A split has nothing now and must be looked at again.
    pub(crate) pending: bool,
    /// Tasks hold less again than they may.
    pub(crate) room: bool,
    /// The database is dropped.
    pub(crate) stop: bool,
}

impl Happened {
    fn is_nothing(&self, knows_input: bool) -> bool {
        self.requests.is_empty()
            && self.reports.is_empty()
            && self.failures.is_empty()
            && self.committed.is_none()
            && (knows_input || !self.input)
            && !self.caught_up
            && !self.pending
            && !self.room
            && !self.stop
    }
}

/// The coordinator's mailbox.
#[derive(Default)]
pub(crate) struct Events {
    happened: Mutex<Happened>,
    condvar: Condvar,
    /// Whether `input` is set already, so that sources need not take the lock.
    has_input: AtomicBool,
    /// Whether `pending` has been told already.
    has_pending: AtomicBool,
    /// Whether somebody waits for sources to reach a position.
    is_watched: AtomicBool,
    /// What tasks hold.
    pub(crate) gauge: Gauge,
}

impl Events {
    /// A mailbox of a database whose tasks may hold `budget` bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self { gauge: Gauge::new(budget), ..Self::default() }
    }

    /// A task that held `before` bytes holds `now`.
    pub(crate) fn hold(&self, before: usize, now: usize) {
        self.gauge.set(before, now);
        if now < before && self.gauge.has_room_again() {
            self.tell(|happened| happened.room = true);
        }
    }

    fn tell(&self, tell: impl FnOnce(&mut Happened)) {
        tell(&mut self.happened.lock());
        self.condvar.notify_one();
    }

    pub(crate) fn request(&self, request: Request) {
        self.tell(|happened| happened.requests.push_back(request));
    }

    pub(crate) fn report(&self, report: TaskReport) {
        self.tell(|happened| happened.reports.push(report));
    }

    pub(crate) fn failed(&self, job: JobId, reason: String) {
        self.tell(|happened| happened.failures.push((job, reason)));
    }

    pub(crate) fn committed(&self, snapshot: Arc<dyn Snapshot>) {
        self.tell(|happened| happened.committed = Some(snapshot));
    }

    pub(crate) fn stop(&self) {
        self.tell(|happened| happened.stop = true);
    }

    /// Rows have come in.
    pub(crate) fn input(&self) {
        if !self.has_input.swap(true, Ordering::AcqRel) {
            self.tell(|happened| happened.input = true);
        }
    }

    /// A source has nothing more to read for now.
    pub(crate) fn caught_up(&self) {
        if self.is_watched.load(Ordering::Acquire) {
            self.tell(|happened| happened.caught_up = true);
        }
    }

    /// A split has nothing now.
    pub(crate) fn pending(&self) {
        if !self.has_pending.swap(true, Ordering::AcqRel) {
            self.tell(|happened| happened.pending = true);
        }
    }

    /// All splits are about to be looked at again.
    pub(crate) fn forget_pending(&self) {
        self.has_pending.store(false, Ordering::Release);
    }

    /// Whether the coordinator wants to hear [`Self::caught_up`].
    pub(crate) fn watch(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Release);
    }

    /// A barrier is about to be injected: input from now on is news again.
    pub(crate) fn forget_input(&self) {
        self.happened.lock().input = false;
        self.has_input.store(false, Ordering::Release);
    }

    /// Waits until something happens or `until`. `knows_input`: news of input is no news.
    pub(crate) fn wait(&self, until: Option<Instant>, knows_input: bool) -> Happened {
        let mut happened = self.happened.lock();
        while happened.is_nothing(knows_input) {
            match until {
                Some(until) => {
                    if self.condvar.wait_until(&mut happened, until).timed_out() {
                        break;
                    }
                }
                None => self.condvar.wait(&mut happened),
            }
        }
        let input = happened.input;
        std::mem::replace(&mut *happened, Happened { input, ..Happened::default() })
    }
}

/// A channel whose receiver is nobody in particular.
pub(crate) struct NoWake;

impl Wake for NoWake {
    fn wake(&self) {}
}
