//! Rows in motion: a record batch with a signed multiplicity per row (a Z-set).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, GenericByteViewArray, Int64Array, RecordBatch,
    RecordBatchOptions, UInt32Array,
};
use arrow::compute;
use arrow::datatypes::{ByteViewType, DataType, SchemaRef};

use crate::{Result, Watermark};

/// Longest string a view array keeps inside of the view itself.
const INLINE_VIEW_BYTES: u32 = 12;

/// Whether the rows of an edge are only ever added, or also taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangelogKind {
    /// Every row is an insertion; `diffs` is always `None`.
    Append,
    /// Rows may be retracted; an update is a retraction and an insertion.
    Retract,
}

/// Some rows and by how much each one's multiplicity changes.
///
/// Inside an epoch the order of rows never matters, between batches or within one.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    /// The rows.
    pub rows: RecordBatch,
    /// One non-null, non-zero multiplicity per row; `None` means every row is `+1`.
    pub diffs: Option<Int64Array>,
    /// Where each row entered Highwater. Present only between a source and the first operator
    /// that keeps state, and only where something downstream asks for it.
    pub origin: Option<RowOrigin>,
}

/// Where rows came from and how far their split's event time had come just before each arrived.
///
/// This is the hidden part of a row (`$split`, `$position`, `$ordinal`, `$wm`): it travels beside
/// the columns so that no query, and no `*`, can see it. All arrays have one non-null value a row.
///
/// **Invariant.** (`split`, `position`, `ordinal`) names one row on its edge for ever, however
/// often the split is read: it is the hidden key of append-only views and of `$late`.
#[derive(Debug, Clone)]
pub struct RowOrigin {
    /// Split number, unique over all sources: source job id in the high 32 bits.
    pub splits: Int64Array,
    /// Position of the record in its split (byte offset, event number, inbox sequence …).
    pub positions: Int64Array,
    /// Which of the rows made from that record this is (a UNION ALL branch, a hopping window).
    pub ordinals: Int64Array,
    /// The split's watermark just before this row, as [`Watermark`] microseconds.
    pub watermarks: Int64Array,
}

impl RowOrigin {
    /// The origins of the rows for which `keep` is true.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        self.map(|column| compute::filter(column, keep))
    }

    /// The origins at `indices`, in that order.
    pub fn take(&self, indices: &UInt32Array) -> Result<Self> {
        self.map(|column| compute::take(column, indices, None))
    }

    /// A zero-copy part.
    #[must_use]
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        Self {
            splits: self.splits.slice(offset, length),
            positions: self.positions.slice(offset, length),
            ordinals: self.ordinals.slice(offset, length),
            watermarks: self.watermarks.slice(offset, length),
        }
    }

    fn map(&self, kernel: impl Fn(&dyn Array) -> Result<ArrayRef, arrow::error::ArrowError>) -> Result<Self> {
        let apply = |column: &Int64Array| -> Result<Int64Array> {
            let mapped = kernel(column)?;
            Ok(Int64Array::from(mapped.to_data()))
        };
        Ok(Self {
            splits: apply(&self.splits)?,
            positions: apply(&self.positions)?,
            ordinals: apply(&self.ordinals)?,
            watermarks: apply(&self.watermarks)?,
        })
    }

    /// The watermark a row carries.
    #[must_use]
    pub fn watermark(&self, row: usize) -> Watermark {
        Watermark(self.watermarks.value(row))
    }
}

impl ChangeBatch {
    /// Rows that are all insertions and have no origin.
    #[must_use]
    pub fn append(rows: RecordBatch) -> Self {
        Self { rows, diffs: None, origin: None }
    }

    /// Rows with a multiplicity each.
    #[must_use]
    pub fn with_diffs(rows: RecordBatch, diffs: Int64Array) -> Self {
        Self { rows, diffs: Some(diffs), origin: None }
    }

    /// Number of rows (not the sum of the multiplicities).
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The multiplicity of a row.
    #[must_use]
    pub fn diff(&self, row: usize) -> i64 {
        self.diffs.as_ref().map_or(1, |diffs| diffs.value(row))
    }

    /// The schema of the rows.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// Bytes held in memory, for budgets and credits. Buffers shared between batches count twice.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.rows.get_array_memory_size()
            + self.diffs.as_ref().map_or(0, Array::get_array_memory_size)
            + self.origin.as_ref().map_or(0, |origin| 4 * origin.splits.get_array_memory_size())
    }

    /// The rows for which `keep` is true, with their diffs and origins. NULL is not true.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        Ok(Self {
            rows: compute::filter_record_batch(&self.rows, keep)?,
            diffs: match &self.diffs {
                Some(diffs) => Some(Int64Array::from(compute::filter(diffs, keep)?.to_data())),
                None => None,
            },
            origin: self.origin.as_ref().map(|origin| origin.filter(keep)).transpose()?,
        })
    }

    /// The rows at `indices`, with their diffs and origins.
    pub fn take(&self, indices: &UInt32Array) -> Result<Self> {
        Ok(Self {
            rows: take_rows(&self.rows, indices)?,
            diffs: match &self.diffs {
                Some(diffs) => Some(Int64Array::from(compute::take(diffs, indices, None)?.to_data())),
                None => None,
            },
            origin: self.origin.as_ref().map(|origin| origin.take(indices)).transpose()?,
        })
    }

    /// A zero-copy part.
    #[must_use]
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        Self {
            rows: self.rows.slice(offset, length),
            diffs: self.diffs.as_ref().map(|diffs| diffs.slice(offset, length)),
            origin: self.origin.as_ref().map(|origin| origin.slice(offset, length)),
        }
    }

    /// The same changes over other columns (a projection keeps diffs and origins).
    #[must_use]
    pub fn with_rows(&self, rows: RecordBatch) -> Self {
        assert_eq!(rows.num_rows(), self.len());
        Self { rows, diffs: self.diffs.clone(), origin: self.origin.clone() }
    }

    /// The columns of the rows.
    #[must_use]
    pub fn columns(&self) -> &[Arc<dyn Array>] {
        self.rows.columns()
    }
}

/// Bytes of the rows alone. Unlike [`ChangeBatch::memory_size`] it does not count what other batches
/// share, else every slice of a large batch would cost the large batch.
#[must_use]
pub fn row_bytes(rows: &RecordBatch) -> usize {
    rows.columns().iter().map(|column| column_bytes(column.as_ref())).sum()
}

#[allow(clippy::wildcard_enum_match_arm, reason = "all other types know the size of a slice themselves")]
fn column_bytes(column: &dyn Array) -> usize {
    match column.data_type() {
        DataType::Utf8View => view_bytes(column.as_string_view()),
        DataType::BinaryView => view_bytes(column.as_binary_view()),
        _ => column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()),
    }
}

fn view_bytes<T: ByteViewType + ?Sized>(column: &GenericByteViewArray<T>) -> usize {
    let outside = |&view: &u128| {
        let length = view as u32;
        if length > INLINE_VIEW_BYTES { length as usize } else { 0 }
    };
    size_of::<u128>() * column.len() + column.views().iter().map(outside).sum::<usize>()
}

/// Rows without columns are rows too.
fn take_rows(rows: &RecordBatch, indices: &UInt32Array) -> Result<RecordBatch> {
    if rows.num_columns() > 0 {
        return Ok(compute::take_record_batch(rows, indices)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(indices.len()));
    Ok(RecordBatch::try_new_with_options(rows.schema(), Vec::new(), &options)?)
}
