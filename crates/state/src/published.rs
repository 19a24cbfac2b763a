//! What readers see: the last checkpoint plus the runs of the epochs since.
//!
//! ```text
//!  ViewStore ── swapped as a whole ──► Published { epoch, base, overlay }
//!                                                         │      └ per table: Run, Run, Run  (oldest first)
//!                                                         └ Snapshot of the last checkpoint
//!  publish(N, runs)      adds runs, merges small ones
//!  runs_up_to(N)         what the checkpoint of N writes
//!  rebase(base of N)     drops the runs up to N
//! ```
//!
//! A reader holds one `Arc<Published>` for as long as it likes and never waits for a writer.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use parking_lot::{Mutex, RwLock};

use crate::merge::MergeCursor;
use crate::run::gather;
use crate::scan::ViewScan;
use crate::{
    EncodedKeys, Epoch, Result, Run, Snapshot, TableId, TableSchema, decode_keys, decode_rows, encode_keys,
};

/// Runs are merged only up to this many rows, so that publishing never takes long.
const MERGED_ROWS_MAX: usize = 1 << 16;

/// One consistent instant of all views.
#[derive(Clone)]
pub struct Published {
    /// The epoch it shows.
    pub epoch: Epoch,
    /// The last checkpoint.
    pub base: Arc<dyn Snapshot>,
    overlay: BTreeMap<TableId, Arc<[OverlayRun]>>,
}

/// A run and the epochs whose changes it holds.
#[derive(Debug, Clone)]
struct OverlayRun {
    first: Epoch,
    last: Epoch,
    run: Arc<Run>,
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
    /// What a checkpoint alone shows.
    #[must_use]
    pub fn of_checkpoint(base: Arc<dyn Snapshot>) -> Self {
        Self { epoch: base.epoch(), base, overlay: BTreeMap::new() }
    }

    /// Rows of a view table in key order, in batches of about `batch_rows`.
    pub fn scan(
        &self,
        table: TableId,
        schema: &Arc<TableSchema>,
        range: ViewRange,
        batch_rows: usize,
    ) -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send> {
        let (start, end) = (range.start.as_deref(), range.end.as_deref());
        let batch_rows = batch_rows.max(1);
        let base = self.base.scan_view_entries(table, start, end, batch_rows);
        let runs: Vec<Arc<Run>> = self.runs(table).map(Arc::clone).collect();
        let overlay = MergeCursor::new(runs.iter().map(Arc::clone), start, end);
        Box::new(ViewScan::new(Arc::clone(schema), base, runs, overlay, batch_rows))
    }

    /// Rows by key: all columns, and for each row which of the keys it answers (ascending).
    pub fn get(
        &self,
        table: TableId,
        schema: &Arc<TableSchema>,
        keys: &[ArrayRef],
    ) -> Result<(RecordBatch, Vec<u32>)> {
        // Without key columns there is one key, the empty one.
        let rows = keys.first().map_or(1, |column| column.len());
        self.get_encoded(table, schema, &encode_keys(keys, rows)?)
    }

    /// [`Self::get`] for keys that are encoded already.
    pub fn get_encoded(
        &self,
        table: TableId,
        schema: &Arc<TableSchema>,
        keys: &EncodedKeys,
    ) -> Result<(RecordBatch, Vec<u32>)> {
        let runs: Vec<&Arc<Run>> = self.runs(table).collect();
        // Batch 0 is what the checkpoint has, batch n + 1 is run n.
        let mut order: Vec<(usize, usize)> = Vec::new();
        let mut answers = Vec::new();
        let mut missing = EncodedKeys::default();
        let mut missing_idx = Vec::new();
        for (idx, key) in keys.iter().enumerate() {
            let newest = runs.iter().enumerate().rev().find_map(|(run, of)| Some((run, of.find(key)?)));
            match newest {
                Some((run, row)) if runs[run].is_deleted(row) => {}
                Some((run, row)) => {
                    order.push((run + 1, row));
                    answers.push(idx as u32);
                }
                None => {
                    missing.push(key);
                    missing_idx.push(idx as u32);
                }
            }
        }
        let (durable, found) = self.get_durable(table, schema, &missing)?;
        let mut rows: Vec<(u32, (usize, usize))> = answers.into_iter().zip(order).collect();
        rows.extend(found.iter().enumerate().map(|(row, found)| (missing_idx[*found], (0, row))));
        rows.sort_unstable();
        let (answers, order): (Vec<u32>, Vec<(usize, usize)>) = rows.into_iter().unzip();
        let batches: Vec<&RecordBatch> =
            std::iter::once(&durable).chain(runs.iter().map(|run| &run.rows)).collect();
        Ok((gather(&batches, &order)?, answers))
    }

    /// Rows of the checkpoint by key, and which of the keys each answers.
    fn get_durable(
        &self,
        table: TableId,
        schema: &TableSchema,
        keys: &EncodedKeys,
    ) -> Result<(RecordBatch, Vec<usize>)> {
        if keys.is_empty() {
            return Ok((RecordBatch::new_empty(Arc::clone(&schema.columns)), Vec::new()));
        }
        let values = self.base.get_view(table, keys)?;
        let found: Vec<usize> = (0..values.len()).filter(|row| values[*row].is_some()).collect();
        let rows = decode_entries(
            schema,
            found.iter().map(|row| keys.get(*row)),
            values.iter().flatten().map(Vec::as_slice),
            found.len(),
        )?;
        Ok((rows, found))
    }

    fn runs(&self, table: TableId) -> impl Iterator<Item = &Arc<Run>> {
        self.overlay.get(&table).into_iter().flat_map(|runs| runs.iter().map(|overlay| &overlay.run))
    }
}

/// Rows from what a checkpoint stores.
pub(crate) fn decode_entries<'a>(
    schema: &TableSchema,
    keys: impl Iterator<Item = &'a [u8]>,
    values: impl Iterator<Item = &'a [u8]>,
    rows: usize,
) -> Result<RecordBatch> {
    let mut columns = decode_keys(schema.key_fields(), keys)?;
    columns.extend(decode_rows(schema.value_fields(), values)?);
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(&schema.columns), columns, &options)?)
}

/// The published state, swapped as a whole.
pub struct ViewStore {
    current: RwLock<Arc<Published>>,
    /// Held by whoever swaps; readers take only `current`. The last epoch whose runs were given
    /// to a checkpoint: no run at or before it is merged with one behind it.
    sealed: Mutex<Epoch>,
}

impl ViewStore {
    /// Begins at a checkpoint.
    #[must_use]
    pub fn new(base: Arc<dyn Snapshot>) -> Self {
        let sealed = Mutex::new(base.epoch());
        Self { current: RwLock::new(Arc::new(Published::of_checkpoint(base))), sealed }
    }

    /// The current instant.
    #[must_use]
    pub fn current(&self) -> Arc<Published> {
        Arc::clone(&self.current.read())
    }

    /// Shows an epoch: all runs of all views at once.
    ///
    /// # Panics
    /// If the epoch is before the one shown: epochs never go back.
    pub fn publish(&self, epoch: Epoch, runs: Vec<(TableId, Arc<Run>)>) {
        let sealed = self.sealed.lock();
        let mut next = Published::clone(&self.current());
        assert!(epoch >= next.epoch, "epoch {epoch} published after epoch {}", next.epoch);
        next.epoch = epoch;
        for (table, run) in runs {
            if !run.is_empty() {
                let added = OverlayRun { first: epoch, last: epoch, run };
                let before = next.overlay.get(&table).map_or(&[][..], |runs| runs);
                let after = with_run(before, added, *sealed);
                next.overlay.insert(table, after.into());
            }
        }
        *self.current.write() = Arc::new(next);
    }

    /// The checkpoint `base` is durable: its runs are dropped from the overlay.
    ///
    /// # Panics
    /// If it is before the one that is the base now.
    pub fn rebase(&self, base: Arc<dyn Snapshot>) {
        let _sealed = self.sealed.lock();
        let mut next = Published::clone(&self.current());
        let durable = base.epoch();
        assert!(durable >= next.base.epoch(), "checkpoint {durable} after checkpoint {}", next.base.epoch());
        next.epoch = next.epoch.max(durable);
        next.base = base;
        next.overlay.retain(|_, runs| {
            if runs.iter().any(|run| run.last <= durable) {
                *runs = runs.iter().filter(|run| run.last > durable).cloned().collect();
            }
            !runs.is_empty()
        });
        *self.current.write() = Arc::new(next);
    }

    /// Drops the overlay of tables that are gone.
    pub fn forget(&self, tables: &[TableId]) {
        let _sealed = self.sealed.lock();
        let mut next = Published::clone(&self.current());
        next.overlay.retain(|table, _| !tables.contains(table));
        *self.current.write() = Arc::new(next);
    }

    /// Says that `epoch` will be a checkpoint, so that its runs stay apart from later ones.
    /// Needed only where epochs behind it are published before [`Self::runs_up_to`] is called.
    pub fn begin_checkpoint(&self, epoch: Epoch) {
        let mut sealed = self.sealed.lock();
        *sealed = epoch.max(*sealed);
    }

    /// Runs not yet in a checkpoint, up to `epoch`, oldest first per table: what a checkpoint
    /// writes.
    ///
    /// # Panics
    /// If runs of `epoch` have been merged with later ones: call this (or
    /// [`Self::begin_checkpoint`]) before the next epoch is published.
    #[must_use]
    pub fn runs_up_to(&self, epoch: Epoch) -> Vec<(TableId, Arc<Run>)> {
        self.begin_checkpoint(epoch);
        let current = self.current();
        let mut runs = Vec::new();
        for (table, overlay) in &current.overlay {
            for run in overlay.iter().filter(|run| run.first <= epoch) {
                assert!(run.last <= epoch, "epoch {epoch} was merged with epoch {}", run.last);
                runs.push((*table, Arc::clone(&run.run)));
            }
        }
        runs
    }

    /// Bytes of the overlay.
    #[must_use]
    pub fn memory(&self) -> usize {
        let current = self.current();
        current.overlay.values().flat_map(|runs| runs.iter()).map(|run| run.run.memory_size()).sum()
    }
}

/// Adds a run behind the others, then merges from the newest back while the newer is at least half
/// as large as the older: what remains doubles from run to run, up to the largest merged size.
fn with_run(runs: &[OverlayRun], added: OverlayRun, sealed: Epoch) -> Vec<OverlayRun> {
    let mut runs = runs.to_vec();
    runs.push(added);
    while let [.., older, newer] = runs.as_slice()
        && older.first > sealed
        && newer.run.len() * 2 >= older.run.len()
        && newer.run.len() + older.run.len() <= MERGED_ROWS_MAX
    {
        // Runs that cannot be merged (e.g. text beyond the limits of one array) stay apart.
        let Ok(merged) = Run::merge(&older.run, &newer.run) else { break };
        let merged = OverlayRun { first: older.first, last: newer.last, run: Arc::new(merged) };
        runs.truncate(runs.len() - 2);
        runs.push(merged);
    }
    runs
}

#[cfg(test)]
mod tests;
