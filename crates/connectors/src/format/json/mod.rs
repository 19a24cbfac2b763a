//! JSON lines: one object a line, its keys the columns.
//!
//! | JSON | becomes |
//! |---|---|
//! | missing key, `null` | NULL |
//! | key without a column | nothing |
//! | key twice | the last value |
//! | string | its text, read in the column's type |
//! | number, `true`, `false` | the same; a timestamp only with `timestamp_unit` |
//! | array, object | list, struct, or the JSON text in a text column |
//!
//! A key that no column is named like is tried without regard to case, because unquoted column
//! names are lower case and keys often are not; an exact key wins.
//!
//! Records of one source mostly have the same keys in the same order. So the raw bytes of the keys
//! of the record before, quotes and colon included, are compared first, and only a surprise is
//! looked up.

mod canonical;
mod record;
mod scanner;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dataflow::{Chunk, Decoded, Decoder, Result};

use memchr::memchr_iter;

use crate::format::datetime::EpochUnit;
use crate::format::names::Names;
use crate::format::rows::{ChunkText, RowPlan, base_position, is_oversized, oversized_error, without_mark};
use crate::format::value::ValueError;

pub(crate) use record::append_json_text;

/// Options of the format.
#[derive(Debug, Clone)]
pub(crate) struct JsonFormat {
    pub(crate) timestamp_unit: Option<EpochUnit>,
}

impl JsonFormat {
    pub(crate) fn decoder(&self, schema: &SchemaRef, columns: &[usize]) -> Result<Arc<dyn Decoder>> {
        let plan = RowPlan::new(schema, columns, self.timestamp_unit)?;
        let names = Names::new(&plan);
        Ok(Arc::new(JsonDecoder { plan, names }))
    }
}

#[derive(Debug)]
struct JsonDecoder {
    plan: RowPlan,
    names: Names,
}

impl Decoder for JsonDecoder {
    fn decode(&self, chunk: &Chunk) -> Result<Decoded> {
        let mut rows = self.plan.rows(memchr_iter(b'\n', &chunk.bytes).count() + 1);
        if is_oversized(chunk) {
            rows.end_record(chunk.start, &chunk.bytes, Err(oversized_error()));
            return rows.finish();
        }
        let mut reader = record::RecordReader::new(&self.names);
        let (base, bytes) = (base_position(chunk), chunk.bytes.as_ref());
        let text = ChunkText::new(bytes);
        let mut start = if base == 0 { bytes.len() - without_mark(bytes).len() } else { 0 };
        // The mark belongs to the first record: it begins where the file does.
        let mut position = base;
        for line in lines(&bytes[start..]) {
            let end = start + line.len();
            if !line.trim_ascii().is_empty() {
                let outcome = text.record(start..end).and_then(|text| reader.read(text, &mut rows));
                rows.end_record(position, line, outcome);
            }
            start = end + 1;
            position = base + start as i64;
        }
        rows.finish()
    }
}

/// Lines without their newlines; the last one may have none.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let mut ends = memchr_iter(b'\n', bytes);
    std::iter::from_fn(move || {
        let end = ends.next().unwrap_or(bytes.len());
        let line = bytes.get(start..end)?;
        start = end + 1;
        Some(line)
    })
}

impl From<scanner::SyntaxError> for ValueError {
    fn from(error: scanner::SyntaxError) -> Self {
        Self::new(
            "22P02",
            format!(
                "invalid input syntax for type json: expected {} at byte {}",
                error.expected,
                error.at + 1
            ),
        )
    }
}

#[cfg(test)]
mod tests;
