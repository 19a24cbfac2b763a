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
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use dataflow::{JobId, VertexInput, Watermark};
use hashbrown::HashMap;
use state::{InboxRecord, Snapshot, Storage, ViewStore};

use crate::changes::ChangeQueue;
use crate::clock::{Clock, instant};
use crate::committer;
use crate::coordinator::{Checkpoints, Coordinator};
use crate::events::Events;
use crate::failure::{JOB_FAILED, JOB_HELD, JOB_VERSION};
use crate::inbox_reader::InboxReader;
use crate::jobs::{Builder, Built, RunningJob, internal};
use crate::meta::{self, ValueReader};
use crate::pacing::Pacing;
use crate::polling::Polling;
use crate::rebuild::{Retry, Wiping};
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

/// What the last checkpoint says about a job.
enum Saved {
    /// Its state is there.
    Restored,
    /// It is a table whose content is there as of the checkpoint's inbox sequence.
    Held,
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
            Saved::Restored => restored.push((job, true)),
            Saved::Held => restored.push((job, false)),
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
        checkpoints: Checkpoints {
            durable: snapshot.epoch(),
            sequence: snapshot.inbox_sequence(),
            applied: applied(snapshot.as_ref())?,
            ..Checkpoints::default()
        },
        polling: Polling::default(),
        wiping: Wiping::default(),
        has_input: false,
        is_short_of_memory: false,
        shutdown: Vec::new(),
    };
    coordinator.restore(restored)?;
    for (job, reason) in failed {
        let mut job = RunningJob::failed(job, reason);
        job.retry.on_failure(Duration::ZERO);
        coordinator.jobs.insert(job.definition.id, job);
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
    Ok(match value.int()? {
        JOB_FAILED => Saved::Failed(value.text()?),
        JOB_HELD => Saved::Held,
        _ => Saved::Restored,
    })
}

fn clock_of(snapshot: &dyn Snapshot) -> Result<i64, RuntimeError> {
    match snapshot.meta(meta::CLOCK_KEY).map_err(internal)? {
        Some(bytes) => ValueReader::new(meta::CLOCK_KEY, &bytes, JOB_VERSION)?.int(),
        None => Ok(i64::MIN),
    }
}

/// What the inbox has to hand out again.
pub(crate) struct Replay {
    /// The sequence behind which it begins.
    pub(crate) after: u64,
    /// Up to here all tables have applied it, except those held back.
    applied: u64,
    /// Tables that are behind that.
    held: Vec<JobId>,
    schemas: HashMap<JobId, SchemaRef>,
}

impl Replay {
    pub(crate) fn new(snapshot: &dyn Snapshot, jobs: &[JobDefinition]) -> Result<Self, RuntimeError> {
        let after = snapshot.inbox_sequence();
        let applied = applied(snapshot)?;
        let mut held = Vec::new();
        for job in jobs {
            if matches!(saved(snapshot, job.id)?, Saved::Held | Saved::New) {
                held.push(job.id);
            }
        }
        Ok(Self { after, applied, held, schemas: jobs.iter().filter_map(inbox_schema).collect() })
    }

    /// Columns of the inbox rows of a table.
    pub(crate) fn schema_of(&self, job: JobId) -> Option<SchemaRef> {
        self.schemas.get(&job).cloned()
    }

    /// The part of a record that its tables have not applied yet.
    pub(crate) fn unapplied(&self, sequence: u64, mut record: InboxRecord) -> InboxRecord {
        if sequence <= self.applied {
            record.changes.retain(|change| self.held.contains(&JobId(change.job)));
        }
        record
    }
}

fn applied(snapshot: &dyn Snapshot) -> Result<u64, RuntimeError> {
    match snapshot.meta(meta::INBOX_KEY).map_err(internal)? {
        Some(bytes) => Ok(ValueReader::new(meta::INBOX_KEY, &bytes, JOB_VERSION)?.int()? as u64),
        None => Ok(snapshot.inbox_sequence()),
    }
}

fn inbox_schema(job: &JobDefinition) -> Option<(JobId, SchemaRef)> {
    let mut inputs = job.graph.vertices.iter().flat_map(|vertex| &vertex.inputs);
    inputs.find_map(|input| match input {
        VertexInput::Inbox { job, schema } => Some((*job, Arc::clone(schema))),
        VertexInput::Exchange { .. } | VertexInput::Relation { .. } | VertexInput::Source(_) => None,
    })
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
