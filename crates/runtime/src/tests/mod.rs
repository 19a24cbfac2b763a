//! The runtime as a whole, over sources in memory and both backends.

mod graphs;
mod jobs;
mod operators;
mod source;
mod tables;
mod time;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use dataflow::JobId;
use state::{Storage, StorageOptions, TableId, TableSchema, ViewRange};
use tempfile::TempDir;

use self::operators::int_rows;
use crate::{Change, Clock, JobDefinition, JobState, Runtime, RuntimeError, RuntimeOptions, Tuning};

/// A clock that stands still unless it is moved.
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A database whose process can crash.
struct Db {
    /// Where `RocksDB` is; else the memory backend outlives the runtime.
    folder: Option<TempDir>,
    storage: Option<Storage>,
    clock: Arc<dyn Clock>,
    jobs: BTreeMap<u32, JobDefinition>,
    runtime: Option<Runtime>,
    tuning: Tuning,
    memory: usize,
}

fn test_clock() -> Arc<dyn Clock> {
    Arc::new(TestClock(AtomicI64::new(1_000_000_000)))
}

impl Db {
    fn new(parallelism: usize) -> Self {
        let tuning = Tuning { retry_after: Duration::from_secs(3600), ..Tuning::default() };
        Self::tuned(parallelism, tuning)
    }

    fn on_disk(parallelism: usize) -> Self {
        let folder = Some(tempfile::tempdir().unwrap());
        Self::with(parallelism, Tuning::default(), folder, test_clock(), 256 << 20)
    }

    fn tuned(parallelism: usize, tuning: Tuning) -> Self {
        Self::with(parallelism, tuning, None, test_clock(), 256 << 20)
    }

    fn with(
        parallelism: usize,
        tuning: Tuning,
        folder: Option<TempDir>,
        clock: Arc<dyn Clock>,
        memory: usize,
    ) -> Self {
        let (storage, runtime, jobs) = (None, None, BTreeMap::new());
        let mut db = Self { folder, storage, clock, jobs, runtime, tuning, memory };
        db.start(parallelism);
        db
    }

    fn start(&mut self, parallelism: usize) {
        let options = RuntimeOptions {
            parallelism,
            memory: self.memory,
            epoch_min: Duration::from_millis(1),
            epoch_max: Duration::from_millis(10),
            checkpoint_interval: Duration::from_millis(20),
        };
        let jobs = self.jobs.values().cloned().collect();
        let path = self.folder.as_ref().map(|folder| folder.path().join("data"));
        let open = || Storage::open(&StorageOptions { path, memory: 64 << 20 }).unwrap();
        let storage = self.storage.get_or_insert_with(open).clone();
        let clock = Arc::clone(&self.clock);
        self.runtime =
            Some(Runtime::start_tuned(options, storage, clock, jobs, self.tuning.clone()).unwrap());
    }

    /// Ends without a checkpoint and starts again from the last one.
    fn crash(&mut self, parallelism: usize) {
        self.runtime = None;
        if self.folder.is_some() {
            self.storage = None;
        }
        self.start(parallelism);
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    fn create(&mut self, job: JobDefinition) {
        self.try_create(job).unwrap();
    }

    fn try_create(&mut self, job: JobDefinition) -> Result<(), RuntimeError> {
        self.jobs.insert(job.id.0, job.clone());
        let change = Change { add: vec![job], ..Change::default() };
        self.runtime().apply(change).blocking_recv().unwrap()
    }

    fn drop_job(&mut self, job: u32) {
        self.jobs.remove(&job);
        let change = Change {
            drop: vec![JobId(job)],
            drop_tables: (0..100).map(|table| TableId(job * 100 + table)).collect(),
            ..Change::default()
        };
        self.runtime().apply(change).blocking_recv().unwrap().unwrap();
    }

    fn flush(&self) {
        self.try_flush().unwrap();
    }

    /// Flushes until it says which job has failed.
    fn wait_for_failure(&self) -> RuntimeError {
        loop {
            if let Err(error) = self.try_flush() {
                return error;
            }
        }
    }

    /// Waits until nothing is failed or behind.
    fn wait_for_health(&self) {
        let is_well = |state| matches!(state, JobState::Running | JobState::Finished);
        while !self.runtime().jobs().iter().all(|job| is_well(job.state)) {
            std::thread::yield_now();
        }
    }

    fn try_flush(&self) -> Result<(), RuntimeError> {
        self.runtime().flush(false).blocking_recv().unwrap()
    }

    /// All rows of a job's view.
    fn view(&self, job: u32) -> Vec<Vec<i64>> {
        let table = self.jobs[&job].graph.view_table().unwrap();
        self.rows(table.table, &table.schema)
    }

    fn rows(&self, table: TableId, schema: &Arc<TableSchema>) -> Vec<Vec<i64>> {
        let published = self.runtime().published();
        let batches = published.scan(table, schema, ViewRange::default(), 100);
        batches.flat_map(|batch| int_rows(&batch.unwrap())).collect()
    }

    fn state(&self, job: u32) -> JobState {
        self.runtime().jobs().into_iter().find(|status| status.id == JobId(job)).unwrap().state
    }
}

/// Counts by key, as the views should have them.
fn counted(keys: impl IntoIterator<Item = Vec<i64>>) -> Vec<Vec<i64>> {
    let mut counts: BTreeMap<Vec<i64>, i64> = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts.into_iter().map(|(key, count)| [key, vec![count]].concat()).collect()
}
