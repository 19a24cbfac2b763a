//! Backfill over a stored relation: its rows at the end of the epoch before the follower's first.
//!
//! The scan runs inside the follower's first epoch, whose barrier waits for it. Until then the
//! published content stands still, because an epoch is published only when all tasks finished it.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};
use dataflow::{ChangeBatch, DataflowError, JobId, Result, RowOrigin, ViewTableSpec, Watermark};
use state::{ViewRange, ViewStore};

/// Rows per batch.
const SCAN_ROWS: usize = 8192;

/// Name of the multiplicity column of a multiset.
const COUNT_COLUMN: &str = "$count";
/// Names of the hidden key of an append-only view.
const ORIGIN_COLUMNS: [&str; 3] = ["$split", "$position", "$ordinal"];

type StoredRows = Box<dyn Iterator<Item = state::Result<RecordBatch>> + Send>;

/// A scan that has perhaps not begun.
pub(crate) struct Scan {
    store: Arc<ViewStore>,
    job: JobId,
    table: ViewTableSpec,
    /// What followers receive.
    output: SchemaRef,
    needs_origin: bool,
    rows: Option<StoredRows>,
    /// Rows given so far: their positions where the table does not keep any.
    count: i64,
}

impl Scan {
    pub(crate) fn new(
        store: Arc<ViewStore>,
        job: JobId,
        table: ViewTableSpec,
        output: SchemaRef,
        needs_origin: bool,
    ) -> Self {
        Self { store, job, table, output, needs_origin, rows: None, count: 0 }
    }

    /// The next rows as a follower sees them; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<ChangeBatch>> {
        let rows = self.rows.get_or_insert_with(|| {
            self.store.current().scan(self.table.table, &self.table.schema, ViewRange::default(), SCAN_ROWS)
        });
        match rows.next() {
            Some(stored) => Ok(Some(self.output_of(&stored?)?)),
            None => Ok(None),
        }
    }

    fn output_of(&mut self, stored: &RecordBatch) -> Result<ChangeBatch> {
        let columns = self.table.output.iter().map(|&column| Arc::clone(stored.column(column))).collect();
        let mut batch = ChangeBatch::append(RecordBatch::try_new_with_options(
            Arc::clone(&self.output),
            columns,
            &arrow::array::RecordBatchOptions::new().with_row_count(Some(stored.num_rows())),
        )?);
        let schema = stored.schema();
        if schema.fields().last().is_some_and(|field| field.name() == COUNT_COLUMN) {
            batch.diffs = Some(int64(stored, stored.num_columns() - 1)?);
        }
        if self.needs_origin {
            batch.origin = Some(self.origin_of(stored)?);
        }
        self.count += stored.num_rows() as i64;
        Ok(batch)
    }

    /// Origins as the table keeps them, else made up from the order of the scan. Stored rows
    /// promise nothing about event time.
    fn origin_of(&self, stored: &RecordBatch) -> Result<RowOrigin> {
        let rows = stored.num_rows();
        let schema = stored.schema();
        let keeps_origin = ORIGIN_COLUMNS
            .iter()
            .enumerate()
            .all(|(idx, name)| schema.fields().get(idx).is_some_and(|field| field.name() == name));
        let watermarks = Int64Array::from_value(Watermark::MIN.0, rows);
        if keeps_origin {
            let [splits, positions, ordinals] = [int64(stored, 0)?, int64(stored, 1)?, int64(stored, 2)?];
            return Ok(RowOrigin { splits, positions, ordinals, watermarks });
        }
        Ok(RowOrigin {
            splits: Int64Array::from_value(i64::from(self.job.0) << 32 | i64::from(u32::MAX), rows),
            positions: Int64Array::from_iter_values(self.count..self.count + rows as i64),
            ordinals: Int64Array::from_value(0, rows),
            watermarks,
        })
    }
}

fn int64(batch: &RecordBatch, column: usize) -> Result<Int64Array> {
    let column = batch.column(column);
    match column.as_primitive_opt::<Int64Type>() {
        Some(values) => Ok(values.clone()),
        None => Err(DataflowError::Internal(format!(
            "a hidden column is stored as {}, not as bigint",
            column.data_type()
        ))),
    }
}
