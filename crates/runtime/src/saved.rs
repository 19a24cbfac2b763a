//! What the last checkpoint says: of each job, and of the inbox.
//!
//! A job's entry (`runtime/job/<job>`, version 1) is a number and a text:
//!
//! | number | text | |
//! |---|---|---|
//! | 1 | hash of the printed graph | the job's state belongs to the checkpoint |
//! | 2 | why it failed | its state belongs to an earlier checkpoint: it is rebuilt |
//! | 3 | hash | a table whose content belongs to the checkpoint's inbox sequence |

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dataflow::{JobGraph, JobId, JobKind, VertexInput};
use hashbrown::HashMap;
use state::{InboxRecord, Snapshot};
use xxhash_rust::xxh3::xxh3_64;

use crate::jobs::internal;
use crate::meta::{self, MetaWrite, ValueReader, ValueWriter};
use crate::{JobDefinition, RuntimeError};

/// Format version of the runtime's small entries.
pub(crate) const VERSION: u8 = 1;
const SAVED: i64 = 1;
const FAILED: i64 = 2;
const HELD: i64 = 3;

/// What the last checkpoint says about a job.
pub(crate) enum Saved {
    /// Its state is there.
    Restored,
    /// It is a table whose content is there as of the checkpoint's inbox sequence.
    Held,
    /// It was not there yet.
    New,
    /// It has to be rebuilt, for this reason.
    Failed(String),
}

impl Saved {
    pub(crate) fn of(snapshot: &dyn Snapshot, job: &JobDefinition) -> Result<Self, RuntimeError> {
        let key = meta::job_key(job.id);
        let Some(bytes) = snapshot.meta(&key).map_err(internal)? else { return Ok(Self::New) };
        let mut value = ValueReader::new(&key, &bytes, VERSION)?;
        let (number, text) = (value.int()?, value.text()?);
        // A table cannot be rebuilt; what its rows look like does not depend on its plan. A source
        // has no state but its positions.
        let keeps_state = matches!(job.kind, JobKind::Table | JobKind::Source);
        Ok(match number {
            FAILED => Self::Failed(text),
            HELD => Self::Held,
            _ if keeps_state || text == graph_hash(&job.graph) => Self::Restored,
            _ => Self::Failed("this version plans it differently".to_owned()),
        })
    }

    /// The entry that says so.
    pub(crate) fn entry(&self, id: JobId, graph: &JobGraph) -> MetaWrite {
        let (number, text) = match self {
            Self::New => return (meta::job_key(id), None),
            Self::Restored => (SAVED, graph_hash(graph)),
            Self::Held => (HELD, graph_hash(graph)),
            Self::Failed(reason) => (FAILED, reason.clone()),
        };
        (meta::job_key(id), Some(ValueWriter::new(VERSION).int(number).text(&text).finish()))
    }
}

fn graph_hash(graph: &JobGraph) -> String {
    format!("{:016x}", xxh3_64(graph.to_string().as_bytes()))
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
            if matches!(Saved::of(snapshot, job)?, Saved::Held | Saved::New) {
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

fn inbox_schema(job: &JobDefinition) -> Option<(JobId, SchemaRef)> {
    let mut inputs = job.graph.vertices.iter().flat_map(|vertex| &vertex.inputs);
    inputs.find_map(|input| match input {
        VertexInput::Inbox { job, schema } => Some((*job, Arc::clone(schema))),
        VertexInput::Exchange { .. } | VertexInput::Relation { .. } | VertexInput::Source(_) => None,
    })
}

/// The inbox sequence that tables have applied, those held back excepted.
pub(crate) fn applied(snapshot: &dyn Snapshot) -> Result<u64, RuntimeError> {
    match snapshot.meta(meta::INBOX_KEY).map_err(internal)? {
        Some(bytes) => Ok(ValueReader::new(meta::INBOX_KEY, &bytes, VERSION)?.int()? as u64),
        None => Ok(snapshot.inbox_sequence()),
    }
}
