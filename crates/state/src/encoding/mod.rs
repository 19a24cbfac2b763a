//! Keys and rows as bytes: our own formats, because they are on disk.
//!
//! *Keys* ([`encode_keys`]) are memcomparable: comparing the bytes compares the values, ascending
//! with NULLs last, and no encoded key is a prefix of another one of the same types. The hash of a
//! key's bytes is also its key group. *Rows* ([`encode_rows`]) are compact and only read back.
//!
//! **Invariant.** Neither format may change for values that were ever written: a new format gets a
//! new version byte (rows) or a new table (keys). The golden tests in both files hold the bytes.
//!
//! # Key format
//!
//! The columns back to back; each is a tag and, unless it is NULL, a body.
//!
//! | tag | |
//! |---|---|
//! | `01` | a value follows |
//! | `02` | NULL |
//!
//! | type | body |
//! |---|---|
//! | boolean | `00` or `01` |
//! | signed integers, date, time, timestamp, duration, decimal | big-endian, sign bit flipped; the decimal's unscaled number |
//! | unsigned integers | big-endian |
//! | real, double precision | big-endian IEEE 754; negative: all bits flipped, else sign bit flipped. −0 is written as 0 and every NaN as the one positive quiet NaN, greatest of all |
//! | interval | nanoseconds (24 h = 1 day, 30 days = 1 month) as a 16-byte signed integer |
//! | text, bytea | the bytes, each `00` as `00 FF`, then the end `00 01` |
//! | list | the elements, each with its tag, then the end `00` |
//! | struct | the fields, each with its tag |
//!
//! # Row format
//!
//! | bytes | |
//! |---|---|
//! | 1 | version, `01` |
//! | ⌈columns / 8⌉ | NULL bitmap: bit i % 8 of byte i / 8 is set when column i is NULL |
//! | … | the bodies of the columns that are not NULL |
//!
//! | type | body |
//! |---|---|
//! | boolean | `00` or `01` |
//! | numbers, date, time, timestamp, duration, decimal | little-endian |
//! | interval | months (4), days (4), nanoseconds (8), little-endian |
//! | text, bytea | length (LEB128), the bytes |
//! | list | number of elements (LEB128), NULL bitmap of the elements, bodies of the elements |
//! | struct | NULL bitmap of the fields, bodies of the fields |

mod column;
mod key;
mod value;

pub use key::{decode_keys, encode_keys, prefix_end};
pub use value::{decode_rows, encode_rows};

/// Byte strings of a batch, back to back: one per row.
#[derive(Debug, Clone, Default)]
pub struct EncodedKeys {
    /// All keys, one behind the other.
    pub bytes: Vec<u8>,
    /// `len + 1` ends; key i is `bytes[offsets[i]..offsets[i + 1]]`.
    pub offsets: Vec<usize>,
}

impl EncodedKeys {
    /// No key yet, and room for as many.
    #[must_use]
    pub fn with_capacity(keys: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(keys + 1);
        offsets.push(0);
        Self { bytes: Vec::with_capacity(bytes), offsets }
    }

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

    /// All keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.offsets.windows(2).map(|ends| &self.bytes[ends[0]..ends[1]])
    }

    /// Adds a key behind the others.
    pub fn push(&mut self, key: &[u8]) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.bytes.extend_from_slice(key);
        self.offsets.push(self.bytes.len());
    }

    /// In ascending keys: how many are less than `key`.
    #[must_use]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Bytes held in memory.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.bytes.capacity() + self.offsets.capacity() * size_of::<usize>()
    }
}

/// The first 16 bytes as a number that compares like them. Most keys differ in these, so a sort
/// that looks at them first rarely jumps to a key.
pub(crate) fn first_bytes(key: &[u8]) -> u128 {
    let mut first = [0; 16];
    let len = key.len().min(16);
    first[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests;
