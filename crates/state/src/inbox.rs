//! PLACEHOLDER. The inbox: a segment log of acknowledged row changes.

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::Result;

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

/// The open log.
#[derive(Debug)]
pub struct Inbox {}

impl Inbox {
    /// A log that is gone with the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {}
    }

    /// Appends a record and returns its sequence once it is on disk. Callers on several threads
    /// share one fsync. An fsync error is fatal: the process must end.
    pub fn append(&self, record: &InboxRecord) -> Result<u64> {
        let _ = record;
        unimplemented!()
    }

    /// The sequence of the last durable record (0: none yet).
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        unimplemented!()
    }

    /// Calls `apply` for every record behind `after`, in order. `schema_of` gives the columns of
    /// a table's rows; records of tables that are gone (`None`) are skipped.
    pub fn replay(
        &self,
        after: u64,
        schema_of: &dyn Fn(u32) -> Option<SchemaRef>,
        apply: &mut dyn FnMut(u64, InboxRecord) -> Result<()>,
    ) -> Result<()> {
        let _ = (after, schema_of, apply);
        unimplemented!()
    }

    /// Deletes segments whose every record is at or before `sequence`.
    pub fn truncate(&self, sequence: u64) -> Result<()> {
        let _ = sequence;
        unimplemented!()
    }
}
