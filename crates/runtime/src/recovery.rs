//! Starting: from the last checkpoint to running threads.
//!
//! ```text
//!  snapshot ─► source positions, split logs ─► pumps ┐
//!           ─► job entries: restored, new, failed ───┼─► tasks ─► threads ─► inbox replay
//!           ─► clock, inbox sequence ────────────────┘
//! ```

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dataflow::{JobId, Watermark};
use state::{Snapshot, Storage, ViewStore};

use crate::changes::ChangeQueue;
use crate::clock::{Clock, instant};
use crate::committer;
use crate::coordinator::{Checkpoints, Coordinator};
use crate::events::Events;
use crate::inbox_reader::InboxReader;
use crate::jobs::{Builder, Built, RunningJob, internal};
use crate::meta::{self, ValueReader};
use crate::pacing::Pacing;
use crate::polling::Polling;
use crate::rebuild::{Retry, Wiping};
use crate::saved::{Saved, VERSION, applied};
use crate::status::Shared;
use crate::worker::{Mailbox, Worker};
use crate::{JobDefinition, RuntimeError, RuntimeOptions, Tuning};

/// What a database runs on.
pub(crate) struct Parts {
    pub(crate) options: RuntimeOptions,
    pub(crate) tuning: Tuning,
    pub(crate) storage: Storage,
    pub(crate) store: Arc<ViewStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: Arc<Events>,
    pub(crate) inbox: Arc<InboxReader>,
    pub(crate) shared: Arc<Shared>,
}

/// The threads of a database.
pub(crate) struct Running {
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn join(self) {
        for thread in self.threads {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Jobs by what the last checkpoint says about them, each in dependency order.
struct Sorted {
    /// Their state is there; with each, whether its entry may stay.
    restored: Vec<(JobDefinition, bool)>,
    /// To be rebuilt, and why.
    failed: Vec<(JobDefinition, String)>,
    /// Not there yet.
    later: Vec<JobDefinition>,
}

fn sort(snapshot: &dyn Snapshot, jobs: Vec<JobDefinition>) -> Result<Sorted, RuntimeError> {
    let mut sorted = Sorted { restored: Vec::new(), failed: Vec::new(), later: Vec::new() };
    for job in jobs {
        let is_missing = |id: &JobId| sorted.failed.iter().any(|(failed, _)| failed.id == *id);
        let saved = Saved::of(snapshot, &job)?;
        // What is built on a job that is rebuilt is rebuilt too: it would count rows twice.
        if job.graph.upstream_jobs().iter().any(is_missing) && !matches!(saved, Saved::Failed(_)) {
            sorted.failed.push((job, "a job that it follows is rebuilt".to_owned()));
            continue;
        }
        match saved {
            Saved::Restored => sorted.restored.push((job, true)),
            Saved::Held => sorted.restored.push((job, false)),
            Saved::New => sorted.later.push(job),
            Saved::Failed(reason) => {
                tracing::warn!(job = %job.name, %reason, "rebuilding by backfill");
                sorted.failed.push((job, reason));
            }
        }
    }
    Ok(sorted)
}

/// Starts the threads and the jobs that the checkpoint holds. Returns also the jobs it does not
/// know: they begin anew, as if just created.
pub(crate) fn start(
    parts: Parts,
    jobs: Vec<JobDefinition>,
) -> Result<(Running, Vec<JobDefinition>), RuntimeError> {
    let snapshot = parts.storage.backend.snapshot();
    let Sorted { restored, failed, later } = sort(snapshot.as_ref(), jobs)?;
    let (commits, checkpoints) = sync_channel(1);
    let mailboxes: Vec<Arc<Mailbox>> =
        (0..parts.options.parallelism).map(|_| Arc::new(Mailbox::default())).collect();
    let mut coordinator = Coordinator {
        pacing: Pacing::new(&parts.options, instant()),
        options: parts.options,
        tuning: parts.tuning,
        storage: parts.storage.clone(),
        store: Arc::clone(&parts.store),
        clock: parts.clock,
        events: Arc::clone(&parts.events),
        mailboxes: mailboxes.clone(),
        inbox: parts.inbox,
        commits,
        shared: parts.shared,
        jobs: BTreeMap::new(),
        next_task: 0,
        failures: 0,
        epoch: snapshot.epoch(),
        published: snapshot.epoch(),
        now: clock_of(snapshot.as_ref())?,
        flight: None,
        changes: ChangeQueue::default(),
        waiters: Vec::new(),
        checkpoints: Checkpoints {
            durable: snapshot.epoch(),
            sequence: snapshot.inbox_sequence(),
            applied: applied(snapshot.as_ref())?,
            ..Checkpoints::default()
        },
        polling: Polling::default(),
        wiping: Wiping::default(),
        has_input: false,
        shutdown: Vec::new(),
    };
    coordinator.restore(restored)?;
    for (job, reason) in failed {
        let mut job = RunningJob::failed(job, reason);
        job.retry.on_failure(Duration::ZERO);
        coordinator.jobs.insert(job.definition.id, job);
    }
    for job in &later {
        let waiting = RunningJob::failed(job.clone(), "not started yet".to_owned());
        coordinator.jobs.insert(job.id, waiting);
    }
    coordinator.update_status();

    let mut threads = Vec::new();
    for (idx, mailbox) in mailboxes.into_iter().enumerate() {
        let worker = Worker::new(mailbox, Arc::clone(&parts.events));
        threads.push(spawn(format!("engine-{idx}"), move || worker.run())?);
    }
    let (storage, store, events) = (parts.storage, parts.store, parts.events);
    threads
        .push(spawn("commit".to_owned(), move || committer::run(&checkpoints, &storage, &store, &events))?);
    threads.push(spawn("coordinator".to_owned(), move || coordinator.run())?);
    Ok((Running { threads }, later))
}

/// A thread without which nothing goes on. Tasks are guarded on their own, so a panic here is a
/// bug of the runtime: an end, from which the next start recovers, is better than a silent halt.
fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, RuntimeError> {
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            tracing::error!("a runtime thread panicked: the process ends, the last checkpoint is intact");
            std::process::abort();
        }
    };
    thread::Builder::new().name(name).spawn(guarded).map_err(internal)
}

fn clock_of(snapshot: &dyn Snapshot) -> Result<i64, RuntimeError> {
    match snapshot.meta(meta::CLOCK_KEY).map_err(internal)? {
        Some(bytes) => ValueReader::new(meta::CLOCK_KEY, &bytes, VERSION)?.int(),
        None => Ok(i64::MIN),
    }
}

impl Coordinator {
    /// Starts the jobs whose state is there; with each, whether its entry says so.
    fn restore(&mut self, jobs: Vec<(JobDefinition, bool)>) -> Result<(), RuntimeError> {
        let mut builder = Builder {
            parallelism: self.options.parallelism,
            mailboxes: &self.mailboxes,
            backend: &self.storage.backend,
            store: &self.store,
            clock: &self.clock,
            events: &self.events,
            inbox: &self.inbox,
            tuning: &self.tuning,
            next_task: &mut self.next_task,
            epoch: self.epoch,
            is_new: false,
            built: Built::default(),
        };
        let mut saved = Vec::new();
        for (job, is_saved) in jobs {
            builder.add(job, &|_| None)?;
            saved.push(is_saved);
        }
        let mut built = builder.built;
        for (job, is_saved) in built.jobs.iter_mut().zip(saved) {
            job.is_saved = is_saved;
        }
        self.start_jobs(built);
        Ok(())
    }
}

impl RunningJob {
    /// A job without tasks, as it was when its state was last saved.
    fn failed(definition: JobDefinition, reason: String) -> Self {
        Self {
            error: Some(reason),
            tasks: 0,
            last: Vec::new(),
            channels: Vec::new(),
            fed: Vec::new(),
            pump: None,
            backfills: Vec::new(),
            is_scanning: false,
            is_saved: true,
            retry: Retry::default(),
            side: crate::side::SideWriter::new(&definition.graph),
            counters: Arc::default(),
            late_rows: 0,
            error_rows: 0,
            watermark: Watermark::MIN,
            dirty_bytes: 0,
            clean_bytes: 0,
            wake_at: None,
            definition,
        }
    }
}
