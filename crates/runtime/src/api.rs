//! What the engine asks of the runtime.

use std::sync::Arc;
use std::time::Duration;

use dataflow::{JobGraph, JobId, JobKind, Split};
use parking_lot::Mutex;
use state::{Inbox, InboxRecord, Published, Storage, TableId, ViewStore};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::committer;
use crate::events::{Events, Request};
use crate::inbox_reader::InboxReader;
use crate::readiness::Readiness;
use crate::recovery::{self, Running};
use crate::saved::Replay;
use crate::source::stored_splits;
use crate::status::Shared;

/// How to run.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// Tasks per vertex and engine threads.
    pub parallelism: usize,
    /// Budget for operators, overlays and exchanges together, in bytes.
    pub memory: usize,
    /// Shortest time between barriers under load.
    pub epoch_min: Duration,
    /// Longest time between barriers under load.
    pub epoch_max: Duration,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
}

/// Sizes that are right for every database; tests make them small.
#[derive(Debug, Clone)]
pub(crate) struct Tuning {
    /// Bytes a channel holds before its sender waits.
    pub(crate) channel_bytes: usize,
    /// Bytes of records decoded at a time.
    pub(crate) chunk_bytes: usize,
    /// Wait before a failed job is first tried again.
    pub(crate) retry_after: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { channel_bytes: CHANNEL_BYTES_MAX, chunk_bytes: 512 << 10, retry_after: Duration::from_secs(1) }
    }
}

/// More does not make an exchange faster.
const CHANNEL_BYTES_MAX: usize = 4 << 20;

impl Tuning {
    /// The sizes for a budget. There are many channels, and a few bytes of a row may become a group
    /// of many.
    fn of_budget(bytes: usize) -> Self {
        let channel_bytes = (bytes / 1024).clamp(CHANNEL_BYTES_MAX / 64, CHANNEL_BYTES_MAX);
        Self { channel_bytes, ..Self::default() }
    }
}

/// A job to run.
#[derive(Debug, Clone)]
pub struct JobDefinition {
    pub id: JobId,
    pub name: String,
    pub kind: JobKind,
    pub graph: JobGraph,
}

/// One DDL statement for the runtime: applied at a barrier and made durable in one checkpoint.
#[derive(Debug, Default)]
pub struct Change {
    /// New jobs, in dependency order.
    pub add: Vec<JobDefinition>,
    /// Jobs to end (their followers must be among them).
    pub drop: Vec<JobId>,
    /// Tables to delete.
    pub drop_tables: Vec<TableId>,
    /// Catalog entries to write (`None` deletes) in the same checkpoint. Keys of the runtime's
    /// own entries start with `runtime/`, the engine's with `catalog/`.
    pub meta: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Reads what was there before it.
    Backfilling,
    Running,
    /// Waiting to be rebuilt after an error.
    Failed,
    /// All its input has ended.
    Finished,
}

/// One line of SHOW JOBS.
#[derive(Debug, Clone)]
pub struct JobStatus {
    pub id: JobId,
    pub name: String,
    pub kind: JobKind,
    pub state: JobState,
    /// Why it failed.
    pub error: Option<String>,
    /// Rows taken in since the start.
    pub rows_in: u64,
    /// Rows sent on since the start.
    pub rows_out: u64,
    /// Late rows since the start.
    pub late_rows: u64,
    /// Rows in `$errors` since the start.
    pub error_rows: u64,
    /// The job's watermark, microseconds.
    pub watermark: dataflow::Watermark,
    /// Bytes of operator memory.
    pub memory: usize,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum RuntimeError {
    /// SQLSTATE 55000.
    #[error("job \"{name}\" has failed: {reason}")]
    JobFailed { name: String, reason: String },
    /// SQLSTATE 57P01.
    #[error("the database is shutting down")]
    ShuttingDown,
    /// What a connector said of files or the like, SQLSTATE 58030.
    #[error("{0}")]
    Connector(String),
    /// SQLSTATE XX000.
    #[error("{0}")]
    Internal(String),
}

/// A running set of jobs over one storage.
pub struct Runtime {
    store: Arc<ViewStore>,
    log: Arc<Inbox>,
    inbox: Arc<InboxReader>,
    events: Arc<Events>,
    shared: Arc<Shared>,
    /// `None` once ended.
    running: Mutex<Option<Running>>,
}

impl Runtime {
    /// Restores and runs `jobs` (in dependency order; empty for a new database) from the last
    /// checkpoint of `storage`, replays the inbox, and starts the epoch clock.
    pub fn start(
        options: RuntimeOptions,
        storage: Storage,
        clock: Arc<dyn Clock>,
        jobs: Vec<JobDefinition>,
    ) -> Result<Self, RuntimeError> {
        let tuning = Tuning::of_budget(options.memory);
        Self::start_tuned(options, storage, clock, jobs, tuning)
    }

    pub(crate) fn start_tuned(
        options: RuntimeOptions,
        storage: Storage,
        clock: Arc<dyn Clock>,
        jobs: Vec<JobDefinition>,
        tuning: Tuning,
    ) -> Result<Self, RuntimeError> {
        let events = Arc::new(Events::new(options.memory));
        let snapshot = storage.backend.snapshot();
        let store = Arc::new(ViewStore::new(Arc::clone(&snapshot)));
        let inbox = InboxReader::new(snapshot.inbox_sequence(), Arc::clone(&events));
        let shared = Arc::new(Shared::default());
        shared.set_published(snapshot.inbox_sequence());
        let log = Arc::clone(&storage.inbox);
        let runtime = Self {
            store: Arc::clone(&store),
            log,
            inbox: Arc::clone(&inbox),
            events: Arc::clone(&events),
            shared: Arc::clone(&shared),
            running: Mutex::new(None),
        };
        let parts = recovery::Parts { options, tuning, storage, store, clock, events, inbox, shared };
        let replay = Replay::new(snapshot.as_ref(), &jobs)?;
        let (running, later) = recovery::start(parts, jobs)?;
        *runtime.running.lock() = Some(running);
        for job in later {
            let name = job.name.clone();
            let change = Change { add: vec![job], ..Change::default() };
            // One that cannot start now is tried again, as a failed job is.
            if let Err(error) = wait(runtime.apply_unwaited(change)) {
                tracing::warn!(job = %name, %error, "cannot start yet");
            }
        }
        // Only now, because records of tables that are not there are dropped.
        runtime.replay(&replay)?;
        Ok(runtime)
    }

    /// Hands the tables what was acknowledged behind the checkpoint, and waits until it shows.
    fn replay(&self, replay: &Replay) -> Result<(), RuntimeError> {
        let schema_of = |job: u32| replay.schema_of(JobId(job));
        let replayed = self.log.replay(replay.after, &schema_of, &mut |sequence, record| {
            self.inbox.wait_for_room();
            // Records of nothing but dropped tables do not come.
            self.inbox.skip_to(sequence - 1);
            self.inbox.offer(sequence, replay.unapplied(sequence, record));
            Ok(())
        });
        replayed.map_err(|error| RuntimeError::Internal(error.to_string()))?;
        let last = self.log.last_sequence();
        self.inbox.skip_to(last);
        wait(self.wait_for_inbox(last))
    }

    /// Applies a DDL change. The answer comes when it is durable, and (for new jobs) when they
    /// have caught up with what was there before them.
    pub fn apply(&self, change: Change) -> oneshot::Receiver<Result<(), RuntimeError>> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Apply { change, reply, waits_for_jobs: true });
        answer
    }

    /// As [`Self::apply`], but does not wait for new jobs to catch up.
    pub fn apply_unwaited(&self, change: Change) -> oneshot::Receiver<Result<(), RuntimeError>> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Apply { change, reply, waits_for_jobs: false });
        answer
    }

    /// Appends row changes to the inbox and hands them to their tables. Blocks for the fsync:
    /// call it off the network threads. Returns the inbox sequence.
    pub fn write(&self, record: InboxRecord) -> Result<u64, RuntimeError> {
        if !self.inbox.wait_for_room() {
            return Err(RuntimeError::ShuttingDown);
        }
        let appended = self.log.append(&record);
        if let Err(error) = &appended
            && error.is_fatal()
        {
            committer::fatal("append to the inbox", error);
        }
        let sequence = appended.map_err(|error| RuntimeError::Internal(error.to_string()))?;
        self.inbox.offer(sequence, record);
        Ok(sequence)
    }

    /// Answers when an epoch is published that contains the inbox up to `sequence`.
    pub fn wait_for_inbox(&self, sequence: u64) -> oneshot::Receiver<Result<(), RuntimeError>> {
        let (reply, answer) = oneshot::channel();
        if self.shared.published_sequence() >= sequence {
            let _ = reply.send(Ok(()));
        } else {
            self.request(Request::WaitForInbox { sequence, reply });
        }
        answer
    }

    /// FLUSH (semantics.md 19); `durable` waits for the checkpoint too.
    pub fn flush(&self, durable: bool) -> oneshot::Receiver<Result<(), RuntimeError>> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Flush { durable, reply });
        answer
    }

    /// The current instant of all views.
    #[must_use]
    pub fn published(&self) -> Arc<Published> {
        self.store.current()
    }

    /// The current instant of all views, and which jobs it does not show right (semantics 17, 27).
    #[must_use]
    pub fn instant(&self) -> (Arc<Published>, Arc<Readiness>) {
        loop {
            // Rows are published before their job is called ready, and forgotten after it is called
            // failed: an instant read behind this shows every ready job, unless one has failed since.
            let readiness = self.shared.readiness();
            let published = self.store.current();
            if self.shared.readiness().failures == readiness.failures {
                return (published, readiness);
            }
        }
    }

    /// What a source reads, pinned in a checkpoint when its first follower started (semantics 20);
    /// `None`: nobody has followed it yet.
    pub fn pinned_splits(&self, source: JobId) -> Result<Option<Vec<Split>>, RuntimeError> {
        stored_splits(self.published().base.as_ref(), source)
    }

    /// All jobs, by id.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobStatus> {
        self.shared.jobs()
    }

    /// Takes a last checkpoint and ends all threads. Idempotent; also done by `Drop` (without
    /// the checkpoint).
    pub fn shutdown(&self) {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Shutdown(reply));
        // An answer that does not come means that the threads have ended already.
        let _ = answer.blocking_recv();
        self.end();
    }

    /// Ends all threads without a checkpoint, as a crash would: for tests of what a crash leaves.
    pub fn abort(&self) {
        self.events.stop();
        self.end();
    }

    fn request(&self, request: Request) {
        if self.running.lock().is_some() {
            self.events.request(request);
        } else {
            request.refuse();
        }
    }

    fn end(&self) {
        let running = self.running.lock().take();
        if let Some(running) = running {
            running.join();
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.abort();
    }
}

fn wait(answer: oneshot::Receiver<Result<(), RuntimeError>>) -> Result<(), RuntimeError> {
    answer.blocking_recv().unwrap_or(Err(RuntimeError::ShuttingDown))
}
