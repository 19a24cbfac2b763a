//! PLACEHOLDER. What the engine asks of the runtime.

use std::sync::Arc;
use std::time::Duration;

use dataflow::{JobGraph, JobId, JobKind};
use state::{InboxRecord, Published, Storage, TableId};
use tokio::sync::oneshot;

/// Wall time. The only clock below `server` and `connectors`.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970-01-01 UTC.
    fn now(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

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
    /// SQLSTATE XX000 (58030 for I/O).
    #[error("{0}")]
    Internal(String),
}

/// A running set of jobs over one storage.
pub struct Runtime {}

impl Runtime {
    /// Restores and runs `jobs` (in dependency order; empty for a new database) from the last
    /// checkpoint of `storage`, replays the inbox, and starts the epoch clock.
    pub fn start(
        options: RuntimeOptions,
        storage: Storage,
        clock: Arc<dyn Clock>,
        jobs: Vec<JobDefinition>,
    ) -> Result<Self, RuntimeError> {
        let _ = (options, storage, clock, jobs);
        unimplemented!()
    }

    /// Applies a DDL change. The answer comes when it is durable, and (for new jobs) when they
    /// have caught up with what was there before them.
    pub fn apply(&self, change: Change) -> oneshot::Receiver<Result<(), RuntimeError>> {
        let _ = change;
        unimplemented!()
    }

    /// Appends row changes to the inbox and hands them to their tables. Blocks for the fsync:
    /// call it off the network threads. Returns the inbox sequence.
    pub fn write(&self, record: InboxRecord) -> Result<u64, RuntimeError> {
        let _ = record;
        unimplemented!()
    }

    /// Answers when an epoch is published that contains the inbox up to `sequence`.
    pub fn wait_for_inbox(&self, sequence: u64) -> oneshot::Receiver<Result<(), RuntimeError>> {
        let _ = sequence;
        unimplemented!()
    }

    /// FLUSH (semantics.md 19); `durable` waits for the checkpoint too.
    pub fn flush(&self, durable: bool) -> oneshot::Receiver<Result<(), RuntimeError>> {
        let _ = durable;
        unimplemented!()
    }

    /// The current instant of all views.
    #[must_use]
    pub fn published(&self) -> Arc<Published> {
        unimplemented!()
    }

    /// All jobs, by id.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobStatus> {
        unimplemented!()
    }

    /// Takes a last checkpoint and ends all threads. Idempotent; also done by `Drop` (without
    /// the checkpoint).
    pub fn shutdown(&self) {
        unimplemented!()
    }
}
