//! PLACEHOLDER. Collects an epoch's changes of a view table and turns them into a sorted run.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};

use crate::{Published, Result, Run, TableId, TableSchema};

/// Collects changes of one view table for one task.
///
/// Two kinds of table: *keyed* (a key has at most one row) and *multiset* (the key is the whole
/// row, the last column `$count` is its multiplicity).
#[derive(Debug)]
pub struct ViewWriter {
    table: TableId,
    schema: Arc<TableSchema>,
    multiset: bool,
}

impl ViewWriter {
    /// A writer with nothing collected.
    #[must_use]
    pub fn new(table: TableId, schema: Arc<TableSchema>, multiset: bool) -> Self {
        Self { table, schema, multiset }
    }

    /// Takes in changes. Keyed: rows with all columns. Multiset: rows without `$count`.
    pub fn push(&mut self, rows: RecordBatch, diffs: Option<Int64Array>) {
        let _ = (rows, diffs, &self.table, &self.schema, self.multiset);
        unimplemented!()
    }

    /// What the epoch changed, net; `None` when nothing did. `published` is the epoch before,
    /// read for multiplicities. A key left with two rows, or a negative multiplicity, is an
    /// internal error.
    pub fn finish(&mut self, published: &Published) -> Result<Option<Run>> {
        let _ = published;
        unimplemented!()
    }

    /// Bytes collected.
    #[must_use]
    pub fn memory(&self) -> usize {
        unimplemented!()
    }
}
