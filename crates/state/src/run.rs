//! Runs: the sorted, immutable changes of a view table in one epoch or a few.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute;

use crate::merge::{MergeCursor, Sorted};
use crate::{EncodedKeys, Result, TableSchema};

/// Less than this is not worth a copy, in bytes per column.
const WASTE_MIN: usize = 1 << 12;

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

impl Run {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the entry says that its key is gone.
    #[must_use]
    pub fn is_deleted(&self, row: usize) -> bool {
        self.deleted.as_ref().is_some_and(|deleted| deleted.value(row))
    }

    /// The entry of a key, if it has one.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        let row = self.keys.lower_bound(key);
        (row < self.len() && self.keys.get(row) == key).then_some(row)
    }

    /// Bytes held in memory.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.keys.memory_size()
            + self.rows.get_array_memory_size()
            + self.deleted.as_ref().map_or(0, Array::get_array_memory_size)
    }

    /// Both as one. Deletions stay: an older run or the checkpoint may still have the key.
    pub(crate) fn merge(older: &Arc<Self>, newer: &Arc<Self>) -> Result<Self> {
        let runs = [older, newer];
        let order: Vec<(usize, usize)> =
            MergeCursor::new(runs.into_iter().map(Arc::clone), None, None).collect();
        let bytes = older.keys.bytes.len() + newer.keys.bytes.len();
        let mut keys = EncodedKeys::with_capacity(order.len(), bytes);
        for &(run, row) in &order {
            keys.push(runs[run].keys.get(row));
        }
        let has_deleted = older.deleted.is_some() || newer.deleted.is_some();
        let deleted =
            has_deleted.then(|| order.iter().map(|&(run, row)| Some(runs[run].is_deleted(row))).collect());
        let rows = compact(gather(&[&older.rows, &newer.rows], &order)?)?;
        Ok(Self { schema: Arc::clone(&newer.schema), keys, rows, deleted })
    }
}

impl Sorted for Arc<Run> {
    fn keys(&self) -> &EncodedKeys {
        &self.keys
    }
}

/// The rows at `order` (batch and row), as one batch. A stretch of one batch is not copied.
pub(crate) fn gather(batches: &[&RecordBatch], order: &[(usize, usize)]) -> Result<RecordBatch> {
    let is_stretch = order.windows(2).all(|pair| pair[0].0 == pair[1].0 && pair[0].1 + 1 == pair[1].1);
    match order.first() {
        Some(&(batch, row)) if is_stretch => Ok(batches[batch].slice(row, order.len())),
        Some(_) => {
            let schema = batches[0].schema();
            let columns = (0..schema.fields().len())
                .map(|column| {
                    let columns: Vec<&dyn Array> =
                        batches.iter().map(|batch| batch.column(column).as_ref()).collect();
                    Ok(compute::interleave(&columns, order)?)
                })
                .collect::<Result<Vec<_>>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
            Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
        }
        None => Ok(batches[0].slice(0, 0)),
    }
}

/// Copies columns that keep much larger buffers alive than they show (string views of a few rows,
/// slices of a big batch): for whatever outlives the batches it came from.
pub(crate) fn compact(rows: RecordBatch) -> Result<RecordBatch> {
    let schema = rows.schema();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let columns = rows.columns().iter().map(compact_column).collect::<Result<_>>()?;
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

fn compact_column(column: &ArrayRef) -> Result<ArrayRef> {
    let is_wasteful = |used: usize| column.get_buffer_memory_size() > 2 * used + WASTE_MIN;
    if let Some(views) = column.as_string_view_opt() {
        if is_wasteful(size_of_val::<[u128]>(views.views()) + views.total_buffer_bytes_used()) {
            return Ok(Arc::new(views.gc()));
        }
    } else if let Some(views) = column.as_binary_view_opt() {
        if is_wasteful(size_of_val::<[u128]>(views.views()) + views.total_buffer_bytes_used()) {
            return Ok(Arc::new(views.gc()));
        }
    } else if is_wasteful(column.to_data().get_slice_memory_size()?) {
        let every_row = UInt32Array::from_iter_values(0..column.len() as u32);
        return Ok(compute::take(column, &every_row, None)?);
    }
    Ok(Arc::clone(column))
}
