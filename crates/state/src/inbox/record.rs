//! The payload of an inbox record as bytes, on disk and therefore our own.
//!
//! | bytes | little-endian |
//! |---|---|
//! | 1 | version, `01` |
//! | 4 | number of changes |
//! | … | the changes |
//!
//! | bytes of a change | |
//! |---|---|
//! | 4 | job id of the table |
//! | 4 | bytes of the change behind this field, so that a table that is gone can be skipped |
//! | 4 | rows |
//! | 4 | columns |
//! | 1 | diffs: `00` all +1, `01` listed |
//! | 8 × rows | the diffs, when listed |
//! | 4 × rows | bytes of each row |
//! | … | the rows as [`encode_rows`] writes them |

use arrow::array::{Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use crate::{InboxChange, InboxRecord, Result, StateError, decode_rows, encode_rows};

const VERSION: u8 = 1;
const ALL_INSERTED: u8 = 0;
const LISTED: u8 = 1;

/// A record as bytes.
pub(super) fn encode_record(record: &InboxRecord) -> Result<Vec<u8>> {
    let mut bytes = vec![VERSION];
    push_length(&mut bytes, record.changes.len())?;
    for change in &record.changes {
        bytes.extend_from_slice(&change.job.to_le_bytes());
        let length_at = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        encode_change(change, &mut bytes)?;
        let length = to_u32(bytes.len() - length_at - 4)?;
        bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }
    Ok(bytes)
}

/// The inverse of [`encode_record`]; changes of tables without schema are skipped.
pub(super) fn decode_record(
    bytes: &[u8],
    schema_of: &dyn Fn(u32) -> Option<SchemaRef>,
) -> Result<InboxRecord> {
    let mut input = Input(bytes);
    let [version] = input.array()?;
    if version != VERSION {
        return Err(StateError::Version {
            what: "inbox record",
            found: version.into(),
            known: VERSION.into(),
        });
    }
    let count = input.length()?;
    let mut changes = Vec::new();
    for _ in 0..count {
        let job = input.number()?;
        let length = input.length()?;
        let body = input.take(length)?;
        if let Some(schema) = schema_of(job) {
            changes.push(decode_change(job, body, schema)?);
        }
    }
    input.end()?;
    Ok(InboxRecord { changes })
}

fn encode_change(change: &InboxChange, bytes: &mut Vec<u8>) -> Result<()> {
    let rows = change.rows.num_rows();
    let encoded = encode_rows(change.rows.columns(), rows)?;
    push_length(bytes, rows)?;
    push_length(bytes, change.rows.num_columns())?;
    if change.diffs.values().iter().all(|diff| *diff == 1) {
        bytes.push(ALL_INSERTED);
    } else {
        bytes.push(LISTED);
        change.diffs.values().iter().for_each(|diff| bytes.extend_from_slice(&diff.to_le_bytes()));
    }
    for row in encoded.iter() {
        push_length(bytes, row.len())?;
    }
    bytes.extend_from_slice(&encoded.bytes);
    Ok(())
}

fn decode_change(job: u32, body: &[u8], schema: SchemaRef) -> Result<InboxChange> {
    let mut input = Input(body);
    let rows = input.length()?;
    let columns = input.length()?;
    if columns != schema.fields().len() {
        let expected = schema.fields().len();
        return Err(StateError::Encoding(format!(
            "inbox row of job {job} has {columns} columns instead of {expected}"
        )));
    }
    let diffs = match input.array()? {
        [ALL_INSERTED] => Int64Array::from_value(1, rows),
        [LISTED] => {
            let listed = input.take(byte_size(rows, 8)?)?;
            listed.as_chunks().0.iter().map(|diff| i64::from_le_bytes(*diff)).collect::<Vec<_>>().into()
        }
        [other] => return Err(StateError::Encoding(format!("inbox diffs of unknown kind {other}"))),
    };
    let lengths = input.take(byte_size(rows, 4)?)?;
    let encoded = lengths
        .as_chunks()
        .0
        .iter()
        .map(|length| input.take(u32::from_le_bytes(*length) as usize))
        .collect::<Result<Vec<_>>>()?;
    input.end()?;
    let arrays = decode_rows(schema.fields(), encoded.into_iter())?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let rows = RecordBatch::try_new_with_options(schema, arrays, &options)?;
    Ok(InboxChange { job, rows, diffs })
}

fn to_u32(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| StateError::Encoding("a transaction is limited to 4 GiB".to_owned()))
}

fn push_length(bytes: &mut Vec<u8>, length: usize) -> Result<()> {
    bytes.extend_from_slice(&to_u32(length)?.to_le_bytes());
    Ok(())
}

fn byte_size(count: usize, width: usize) -> Result<usize> {
    count.checked_mul(width).ok_or_else(short)
}

fn short() -> StateError {
    StateError::Encoding("inbox record ends early".to_owned())
}

/// The bytes not read yet.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn length(&mut self) -> Result<usize> {
        Ok(self.number()? as usize)
    }

    fn end(&self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(StateError::Encoding(format!("{} bytes too many in an inbox record", self.0.len())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, StringViewArray};

    use super::*;

    fn change(job: u32, diffs: &[i64]) -> InboxChange {
        let ids: Vec<i32> = (0..diffs.len() as i32).collect();
        let names: Vec<Option<String>> =
            ids.iter().map(|id| (id % 2 == 0).then(|| format!("name {id}"))).collect();
        let rows = RecordBatch::try_from_iter_with_nullable([
            ("id", Arc::new(Int32Array::from(ids)) as ArrayRef, true),
            ("name", Arc::new(StringViewArray::from_iter(names)) as ArrayRef, true),
        ])
        .unwrap();
        InboxChange { job, rows, diffs: diffs.to_vec().into() }
    }

    fn assert_same(left: &InboxChange, right: &InboxChange) {
        assert_eq!((left.job, &left.rows, &left.diffs), (right.job, &right.rows, &right.diffs));
    }

    #[test]
    fn a_record_comes_back_as_it_went() {
        let record =
            InboxRecord { changes: vec![change(7, &[1, 1, 1]), change(9, &[1, -1]), change(7, &[])] };
        let schema = record.changes[0].rows.schema();
        let bytes = encode_record(&record).unwrap();
        let decoded = decode_record(&bytes, &|_| Some(Arc::clone(&schema))).unwrap();
        assert_eq!(decoded.changes.len(), 3);
        for (left, right) in decoded.changes.iter().zip(&record.changes) {
            assert_same(left, right);
        }
    }

    #[test]
    fn changes_of_a_table_that_is_gone_are_skipped() {
        let record = InboxRecord { changes: vec![change(7, &[1]), change(9, &[1, -1])] };
        let schema = record.changes[0].rows.schema();
        let bytes = encode_record(&record).unwrap();
        let decoded = decode_record(&bytes, &|job| (job == 9).then(|| Arc::clone(&schema))).unwrap();
        assert_eq!(decoded.changes.len(), 1);
        assert_same(&decoded.changes[0], &record.changes[1]);
    }

    #[test]
    fn every_shortened_record_is_an_error() {
        let record = InboxRecord { changes: vec![change(7, &[1, -1])] };
        let schema = record.changes[0].rows.schema();
        let bytes = encode_record(&record).unwrap();
        for length in 0..bytes.len() {
            let decoded = decode_record(&bytes[..length], &|_| Some(Arc::clone(&schema)));
            assert!(decoded.is_err(), "{length} of {} bytes decode", bytes.len());
        }
    }

    #[test]
    fn an_unknown_version_is_refused() {
        assert!(matches!(
            decode_record(&[9, 0, 0, 0, 0], &|_| None),
            Err(StateError::Version { found: 9, .. })
        ));
    }
}
