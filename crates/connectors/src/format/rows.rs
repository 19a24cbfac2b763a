//! The rows of one chunk under construction, whatever the format.
//!
//! **Invariant.** Between records all columns have the same number of rows: a record is either
//! completed in every column or taken back from every column.

use std::ops::Range;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, Field, SchemaRef};
use bytes::Bytes;
use dataflow::{Chunk, DataflowError, DecodeError, Decoded, Result};

use crate::format::column::{Column, Token};
use crate::format::datetime::EpochUnit;
use crate::format::value::ValueError;
use crate::format::{BYTE_ORDER_MARK, RAW_BYTES_MAX, RECORD_BYTES_MAX};

/// Which columns of a schema are filled. A *slot* is the index of a filled column among these.
#[derive(Debug)]
pub(crate) struct RowPlan {
    pub(crate) schema: SchemaRef,
    /// Column of each slot, ascending.
    pub(crate) columns: Vec<usize>,
    unit: Option<EpochUnit>,
}

impl RowPlan {
    /// Fills the columns asked for and all that can fail: whether a record is good must not depend
    /// on who reads it. Any text is good in a column of text, so those are left out.
    pub(crate) fn new(schema: &SchemaRef, asked: &[usize], unit: Option<EpochUnit>) -> Result<Self> {
        check_types(schema).map_err(DataflowError::Internal)?;
        let cannot_fail = |field: &Field| {
            field.is_nullable() && field.data_type() == &DataType::Utf8View && field.metadata().is_empty()
        };
        let is_filled = |idx: &usize| asked.contains(idx) || !cannot_fail(schema.field(*idx));
        let columns = (0..schema.fields().len()).filter(is_filled).collect();
        Ok(Self { schema: SchemaRef::clone(schema), columns, unit })
    }

    /// The slot of a column, if it is filled.
    pub(crate) fn slot(&self, column: usize) -> Option<usize> {
        self.columns.binary_search(&column).ok()
    }

    /// An empty set of rows with room for about `capacity`.
    pub(crate) fn rows(&self, capacity: usize) -> Rows<'_> {
        let new_column = |idx: &usize| Column::new(self.schema.field(*idx), capacity, self.unit);
        Rows {
            plan: self,
            // `new` has refused schemas with columns that cannot be made.
            columns: self.columns.iter().filter_map(new_column).collect(),
            positions: Vec::with_capacity(capacity),
            errors: Vec::new(),
        }
    }
}

/// Says which column has a type that no text format can fill.
pub(crate) fn check_types(schema: &SchemaRef) -> Result<(), String> {
    match schema.fields().iter().find(|field| Column::new(field, 0, None).is_none()) {
        Some(field) => {
            Err(format!("column \"{}\" of type {} cannot be read from text", field.name(), field.data_type()))
        }
        None => Ok(()),
    }
}

/// Rows and errors so far.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    plan: &'a RowPlan,
    columns: Vec<Column>,
    positions: Vec<i64>,
    errors: Vec<DecodeError>,
}

impl Rows<'_> {
    /// Makes room for a value of the record at hand, forgetting one that it already has.
    #[inline]
    pub(crate) fn column(&mut self, slot: usize) -> &mut Column {
        let row = self.positions.len();
        let column = &mut self.columns[slot];
        if column.len() > row {
            column.truncate(row);
        }
        column
    }

    /// Whether the record at hand has a value for the slot.
    pub(crate) fn is_set(&self, slot: usize) -> bool {
        self.columns[slot].len() > self.positions.len()
    }

    /// Sets a value of the record at hand from its text.
    #[inline]
    pub(crate) fn set_text(&mut self, slot: usize, text: &str) -> Result<(), ValueError> {
        match self.column(slot).push_text(text, Token::Text) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.in_column(slot, error)),
        }
    }

    /// Adds the name of the column to an error.
    #[cold]
    pub(crate) fn in_column(&self, slot: usize, error: ValueError) -> ValueError {
        let name = self.plan.schema.field(self.plan.columns[slot]).name();
        ValueError::new(error.sqlstate, format!("column \"{name}\": {}", error.message))
    }

    /// Ends a record: it becomes a row, or leaves nothing but an error.
    pub(crate) fn end_record(&mut self, position: i64, raw: &[u8], outcome: Result<(), ValueError>) {
        match outcome.and_then(|()| self.complete()) {
            Ok(()) => self.positions.push(position),
            Err(error) => self.refuse(position, raw, error),
        }
    }

    /// Missing values are NULL, where that is allowed.
    fn complete(&mut self) -> Result<(), ValueError> {
        let row = self.positions.len();
        for slot in 0..self.columns.len() {
            let column = &mut self.columns[slot];
            if column.len() == row {
                column.push_null();
            }
            if column.ends_with_forbidden_null() {
                let name = self.plan.schema.field(self.plan.columns[slot]).name();
                return Err(ValueError::new(
                    "23502",
                    format!("null value in column \"{name}\" violates not-null constraint"),
                ));
            }
        }
        Ok(())
    }

    #[cold]
    fn refuse(&mut self, position: i64, raw: &[u8], error: ValueError) {
        let row = self.positions.len();
        self.columns.iter_mut().for_each(|column| column.truncate(row));
        self.errors.push(DecodeError {
            position,
            sqlstate: error.sqlstate,
            message: error.message,
            raw: Bytes::copy_from_slice(&raw[..raw.len().min(RAW_BYTES_MAX)]),
        });
    }

    /// All rows as a batch of the schema; columns that were not filled are NULL.
    pub(crate) fn finish(self) -> Result<Decoded> {
        let count = self.positions.len();
        let schema = &self.plan.schema;
        let mut filled = self.plan.columns.iter().zip(self.columns).peekable();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for (idx, field) in schema.fields().iter().enumerate() {
            arrays.push(match filled.next_if(|(column, _)| **column == idx) {
                Some((_, column)) => column.finish(field.data_type())?,
                None => new_null_array(field.data_type(), count),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Decoded {
            rows: RecordBatch::try_new_with_options(SchemaRef::clone(schema), arrays, &options)?,
            positions: Int64Array::from(self.positions),
            errors: self.errors,
        })
    }
}

/// Where the first byte of a chunk would be in its split if the chunk ended where it says. Chunks
/// of a CSV file with a header begin with the header, which comes from elsewhere.
pub(crate) fn base_position(chunk: &Chunk) -> i64 {
    chunk.end - i64::try_from(chunk.bytes.len()).unwrap_or(0)
}

/// The first record of a split without the byte order mark that may stand before it.
pub(crate) fn without_mark(record: &[u8]) -> &[u8] {
    record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record)
}

/// A reader hands over only the beginning of a record that is too long.
pub(crate) fn is_oversized(chunk: &Chunk) -> bool {
    base_position(chunk) > chunk.start
}

/// The error for a record that is too long.
pub(crate) fn oversized_error() -> ValueError {
    ValueError::new("54000", format!("record is longer than {} MiB", RECORD_BYTES_MAX >> 20))
}

/// A chunk whose records are read as text.
///
/// The whole chunk is checked at once, which for short records costs a fraction of checking each;
/// only in a chunk that is not text as a whole, each record answers for itself.
pub(crate) struct ChunkText<'a> {
    bytes: &'a [u8],
    text: Option<&'a str>,
}

impl<'a> ChunkText<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, text: std::str::from_utf8(bytes).ok() }
    }

    /// The bytes `range` of the chunk.
    #[inline]
    pub(crate) fn record(&self, range: Range<usize>) -> Result<&'a str, ValueError> {
        match self.text.and_then(|text| text.get(range.clone())) {
            Some(text) => Ok(text),
            None => utf8(&self.bytes[range]),
        }
    }
}

/// A record as text.
#[inline]
pub(crate) fn utf8(record: &[u8]) -> Result<&str, ValueError> {
    if record.is_ascii() {
        // SAFETY: ASCII is UTF-8. Testing for it is several times as fast as validating.
        return Ok(unsafe { std::str::from_utf8_unchecked(record) });
    }
    std::str::from_utf8(record).map_err(|error| {
        let byte = record.get(error.valid_up_to()).copied().unwrap_or(0);
        ValueError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}"))
    })
}
