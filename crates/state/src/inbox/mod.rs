//! The inbox: acknowledged row changes that are perhaps in no checkpoint yet.
//!
//! ```text
//!  append ─► record.rs (bytes) ─► log.rs (group commit: write, fdatasync, fence) ─► acknowledged
//!                                    │
//!                                    └─► segment.rs (files) ◄─ replay, truncate
//! ```
//!
//! It holds row changes, never SQL, so a replay gives the same rows whatever the time or the
//! catalog. A checkpoint stores the sequence up to which it contains the inbox; a start replays
//! what is behind it.
//!
//! **Invariant.** Sequences are dense and ascending: record n + 1 follows record n, over all
//! segments, and the checksum of each covers the checksum of the one before.

mod log;
mod record;
mod segment;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;

use crate::Result;

pub(crate) use log::SegmentLog;
pub(crate) use segment::LogEnd;

/// Row changes of one transaction.
#[derive(Debug, Clone)]
pub struct InboxRecord {
    /// By table.
    pub changes: Vec<InboxChange>,
}

/// Row changes of one table in one transaction.
#[derive(Debug, Clone)]
pub struct InboxChange {
    /// The table's job id.
    pub job: u32,
    /// Rows with the columns of the table's view table.
    pub rows: RecordBatch,
    /// Multiplicity per row: +1 or −1.
    pub diffs: Int64Array,
}

/// The open inbox.
#[derive(Debug)]
pub struct Inbox {
    log: Log,
}

#[derive(Debug)]
enum Log {
    Segments(SegmentLog),
    Memory(Mutex<MemoryLog>),
}

#[derive(Debug, Default)]
struct MemoryLog {
    last: u64,
    records: Vec<(u64, InboxRecord)>,
}

impl Inbox {
    /// An inbox that ends with the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { log: Log::Memory(Mutex::default()) }
    }

    pub(crate) fn on_disk(log: SegmentLog) -> Self {
        Self { log: Log::Segments(log) }
    }

    /// Appends a record and returns its sequence once it is on disk. Callers on several threads
    /// share one fsync.
    ///
    /// # Contract
    ///
    /// A fatal error ([`StateError::is_fatal`](crate::StateError::is_fatal)) ends the process: the
    /// record may or may not be on disk, and after a failed fsync a later success proves nothing.
    pub fn append(&self, record: &InboxRecord) -> Result<u64> {
        match &self.log {
            Log::Segments(log) => log.append(&record::encode_record(record)?),
            Log::Memory(log) => {
                let mut log = log.lock();
                log.last += 1;
                let sequence = log.last;
                log.records.push((sequence, record.clone()));
                Ok(sequence)
            }
        }
    }

    /// The sequence of the last durable record (0: none yet).
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        match &self.log {
            Log::Segments(log) => log.last_sequence(),
            Log::Memory(log) => log.lock().last,
        }
    }

    /// Calls `apply` for every record behind `after`, in order. `schema_of` gives the columns of
    /// a table's rows; changes of tables that are gone (`None`) are skipped.
    pub fn replay(
        &self,
        after: u64,
        schema_of: &dyn Fn(u32) -> Option<SchemaRef>,
        apply: &mut dyn FnMut(u64, InboxRecord) -> Result<()>,
    ) -> Result<()> {
        match &self.log {
            Log::Segments(log) => log.replay(after, &mut |sequence, payload| {
                apply(sequence, record::decode_record(payload, schema_of)?)
            }),
            Log::Memory(log) => {
                let records: Vec<_> =
                    log.lock().records.iter().filter(|(at, _)| *at > after).cloned().collect();
                records.into_iter().try_for_each(|(sequence, mut record)| {
                    record.changes.retain(|change| schema_of(change.job).is_some());
                    apply(sequence, record)
                })
            }
        }
    }

    /// Deletes segments whose every record is at or before `sequence`.
    pub fn truncate(&self, sequence: u64) -> Result<()> {
        match &self.log {
            Log::Segments(log) => log.truncate(sequence),
            Log::Memory(log) => {
                log.lock().records.retain(|(at, _)| *at > sequence);
                Ok(())
            }
        }
    }
}
