//! PLACEHOLDER. What readers see: the last checkpoint plus the runs of the epochs since.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};

use crate::{EncodedKeys, Epoch, Result, Snapshot, TableId, TableSchema};

/// The changes of one view table in one epoch, sorted by encoded key, one entry a key.
#[derive(Debug)]
pub struct Run {
    /// Columns of the table.
    pub schema: Arc<TableSchema>,
    /// Encoded keys, ascending.
    pub keys: EncodedKeys,
    /// Rows in the order of the keys; for a deleted key only the key columns mean anything.
    pub rows: RecordBatch,
    /// Which keys are gone; `None`: none.
    pub deleted: Option<BooleanArray>,
}

/// One consistent instant of all views.
#[derive(Clone)]
pub struct Published {
    /// The epoch it shows.
    pub epoch: Epoch,
    /// The last checkpoint.
    pub base: Arc<dyn Snapshot>,
}

/// Which keys to read: bounds on encoded keys.
#[derive(Debug, Clone, Default)]
pub struct ViewRange {
    /// Inclusive.
    pub start: Option<Vec<u8>>,
    /// Exclusive.
    pub end: Option<Vec<u8>>,
}

impl Published {
    /// Rows of a view table in key order, in batches of about `batch_rows`.
    pub fn scan(
        &self,
        table: TableId,
        schema: &Arc<TableSchema>,
        range: ViewRange,
        batch_rows: usize,
    ) -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send> {
        let _ = (table, schema, range, batch_rows);
        unimplemented!()
    }

    /// Rows by key: all columns, and for each row which of the keys it answers (ascending).
    pub fn get(
        &self,
        table: TableId,
        schema: &Arc<TableSchema>,
        keys: &[ArrayRef],
    ) -> Result<(RecordBatch, Vec<u32>)> {
        let _ = (table, schema, keys);
        unimplemented!()
    }
}

/// The published state, swapped as a whole.
pub struct ViewStore {}

impl ViewStore {
    /// Begins at a checkpoint.
    #[must_use]
    pub fn new(base: Arc<dyn Snapshot>) -> Self {
        let _ = base;
        Self {}
    }

    /// The current instant.
    #[must_use]
    pub fn current(&self) -> Arc<Published> {
        unimplemented!()
    }

    /// Shows an epoch: all runs of all views at once.
    pub fn publish(&self, epoch: Epoch, runs: Vec<(TableId, Arc<Run>)>) {
        let _ = (epoch, runs);
        unimplemented!()
    }

    /// The checkpoint `base` is durable: its runs are dropped from the overlay.
    pub fn rebase(&self, base: Arc<dyn Snapshot>) {
        let _ = base;
        unimplemented!()
    }

    /// Drops the overlay of tables that are gone.
    pub fn forget(&self, tables: &[TableId]) {
        let _ = tables;
        unimplemented!()
    }

    /// Runs not yet in a checkpoint, up to `epoch`, oldest first per table: what a checkpoint
    /// writes.
    #[must_use]
    pub fn runs_up_to(&self, epoch: Epoch) -> Vec<(TableId, Arc<Run>)> {
        let _ = epoch;
        unimplemented!()
    }

    /// Bytes of the overlay.
    #[must_use]
    pub fn memory(&self) -> usize {
        unimplemented!()
    }
}
