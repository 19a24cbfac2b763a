//! PLACEHOLDER. Keys and rows as bytes.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::FieldRef;

use crate::Result;

/// Memcomparable keys of a batch, back to back.
#[derive(Debug, Clone, Default)]
pub struct EncodedKeys {
    /// All keys, one behind the other.
    pub bytes: Vec<u8>,
    /// `len + 1` ends; key i is `bytes[offsets[i]..offsets[i + 1]]`.
    pub offsets: Vec<usize>,
}

impl EncodedKeys {
    /// The bytes of key `row`.
    #[must_use]
    pub fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row]..self.offsets[row + 1]]
    }
    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Encodes key columns; byte order of the result = (NULLS LAST, ascending) order of the values.
pub fn encode_keys(columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
    let _ = (columns, rows);
    unimplemented!()
}

/// The inverse of [`encode_keys`].
pub fn decode_keys<'a>(fields: &[FieldRef], keys: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
    let _ = (fields, keys.count());
    unimplemented!()
}

/// Encodes value columns row by row: compact, versioned.
pub fn encode_rows(columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
    let _ = (columns, rows);
    unimplemented!()
}

/// The inverse of [`encode_rows`].
pub fn decode_rows<'a>(fields: &[FieldRef], rows: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
    let _ = (fields, rows.count());
    unimplemented!()
}

#[allow(dead_code)]
type Unused = RecordBatch;
