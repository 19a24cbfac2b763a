//! Starting: from the last checkpoint to running threads.
//!
//! ```text
//!  snapshot ─► source positions, split logs ─► pumps ┐
//!           ─► job entries: restored, new, failed ───┼─► tasks ─► threads ─► inbox replay
//!           ─► clock, inbox sequence ────────────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use arrow::datatypes::SchemaRef;
use dataflow::{JobId, VertexInput, Watermark};
use hashbrown::HashMap;
use state::{Snapshot, Storage, ViewStore};

use crate::changes::ChangeQueue;
use crate::clock::{Clock, instant};
use crate::committer;
use crate::coordinator::{Checkpoints, Coordinator};
use crate::events::Events;
use crate::failure::{JOB_FAILED, JOB_VERSION};
use crate::inbox_reader::InboxReader;
use crate::jobs::{Builder, Built, RunningJob, internal};
use crate::meta::{self, ValueReader};
use crate::pacing::Pacing;
use crate::polling::Polling;
use crate::status::Shared;
use crate::worker::{Mailbox, Worker};
use crate::{JobDefinition, RuntimeError, RuntimeOptions, Tuning};

/// Columns of the inbox rows of each table.
pub(crate) type InboxSchemas = HashMap<JobId, SchemaRef>;

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

/// What the last checkpoint says about a job.
enum Saved {
    /// Its state is there.
    Restored,
    /// It was not there yet.
    New,
    Failed(String),
}

/// Starts the threads and the jobs that the checkpoint holds. Returns also the jobs it does not
/// know: they begin anew, as if just created.
pub(crate) fn start(
    parts: Parts,
    jobs: Vec<JobDefinition>,
) -> Result<(Running, Vec<JobDefinition>), RuntimeError> {
    let snapshot = parts.storage.backend.snapshot();
    let (mut restored, mut failed, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        match saved(snapshot.as_ref(), job.id)? {
            Saved::Restored => restored.push(job),
            Saved::New => later.push(job),
            Saved::Failed(reason) => failed.push((job, reason)),
        }
    }
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
        epoch: snapshot.epoch(),
        published: snapshot.epoch(),
        now: clock_of(snapshot.as_ref())?,
        flight: None,
        changes: ChangeQueue::default(),
        waiters: Vec::new(),
        checkpoints: Checkpoints { durable: snapshot.epoch(), ..Checkpoints::default() },
        polling: Polling::default(),
        has_input: false,
        is_short_of_memory: false,
        shutdown: Vec::new(),
    };
    coordinator.restore(restored, snapshot.as_ref())?;
    for (job, reason) in failed {
        coordinator.jobs.insert(job.id, RunningJob::failed(job, reason));
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

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, RuntimeError> {
    thread::Builder::new().name(name).spawn(run).map_err(internal)
}

fn saved(snapshot: &dyn Snapshot, job: JobId) -> Result<Saved, RuntimeError> {
    let key = meta::job_key(job);
    let Some(bytes) = snapshot.meta(&key).map_err(internal)? else { return Ok(Saved::New) };
    let mut value = ValueReader::new(&key, &bytes, JOB_VERSION)?;
    Ok(if value.int()? == JOB_FAILED { Saved::Failed(value.text()?) } else { Saved::Restored })
}

fn clock_of(snapshot: &dyn Snapshot) -> Result<i64, RuntimeError> {
    match snapshot.meta(meta::CLOCK_KEY).map_err(internal)? {
        Some(bytes) => ValueReader::new(meta::CLOCK_KEY, &bytes, JOB_VERSION)?.int(),
        None => Ok(i64::MIN),
    }
}

/// Columns of the inbox rows of all tables.
pub(crate) fn inbox_schemas(jobs: &[JobDefinition]) -> InboxSchemas {
    jobs.iter().filter_map(inbox_schema).collect()
}

fn inbox_schema(job: &JobDefinition) -> Option<(JobId, SchemaRef)> {
    let mut inputs = job.graph.vertices.iter().flat_map(|vertex| &vertex.inputs);
    inputs.find_map(|input| match input {
        VertexInput::Inbox { job, schema } => Some((*job, Arc::clone(schema))),
        VertexInput::Exchange { .. } | VertexInput::Relation { .. } | VertexInput::Source(_) => None,
    })
}

impl Coordinator {
    fn restore(&mut self, jobs: Vec<JobDefinition>, snapshot: &dyn Snapshot) -> Result<(), RuntimeError> {
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
        for job in jobs {
            builder.add(job, &|_| None)?;
        }
        let built = builder.built;
        for job in &built.jobs {
            if let Some(pump) = &job.pump {
                let prefix = meta::source_prefix(job.definition.id);
                pump.restore(&snapshot.scan_meta(prefix.as_bytes()).map_err(internal)?)?;
            }
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
