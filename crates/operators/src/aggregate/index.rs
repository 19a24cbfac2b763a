//! Finds the slot of a key, a batch of keys at a time.
//!
//! A slot is a small number under which everything about a key is kept in plain vectors. Slots of
//! removed keys are used again, so the vectors grow to the greatest number of keys held at once.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Date32Type, FieldRef, Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use dataflow::{DataflowError, Result};
use state::{EncodedKeys, decode_keys, encode_keys};
use xxhash_rust::xxh3::xxh3_64;

use super::accumulator::{Moves, nulls_where_not};
use super::slot_table::{SlotTable, is_none, tag_of};

/// What an entry of the table costs for each key, on average between half full and a quarter.
const TABLE_BYTES: usize = 24;

/// A key that was not there before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Created {
    /// The first row of the batch that has the key.
    pub(crate) row: u32,
    /// The slot it got.
    pub(crate) slot: u32,
}

/// A map from keys to slots.
pub(crate) trait KeyIndex: Send {
    /// Pushes the slot of each row's key; keys that are new get one and are listed in `created`.
    fn find_or_insert(
        &mut self,
        keys: &[ArrayRef],
        rows: usize,
        slots: &mut Vec<u32>,
        created: &mut Vec<Created>,
    ) -> Result<()>;
    /// Forgets the keys in these slots, which may be given to other keys from now on.
    fn remove(&mut self, slots: &[u32]);
    /// Follows keys that have moved, and gives back the room behind the last. All slots that are
    /// left are in use.
    fn compact(&mut self, moves: &Moves);
    /// The key columns of some slots.
    fn keys(&self, slots: &[u32]) -> Result<Vec<ArrayRef>>;
    /// One more than the greatest slot ever given.
    fn slot_count(&self) -> usize;
    /// Bytes in memory for each key, about.
    fn bytes_per_key(&self) -> usize;
}

/// The index that suits these key columns.
pub(crate) fn key_index(fields: &[FieldRef]) -> Box<dyn KeyIndex> {
    if !fields.iter().all(|field| is_word(field.data_type())) {
        return Box::new(EncodedIndex::new(fields));
    }
    match fields.len() {
        0 => Box::new(WordIndex::<0>::new(fields)),
        1 => Box::new(WordIndex::<1>::new(fields)),
        2 => Box::new(WordIndex::<2>::new(fields)),
        3 => Box::new(WordIndex::<3>::new(fields)),
        4 => Box::new(WordIndex::<4>::new(fields)),
        _ => Box::new(EncodedIndex::new(fields)),
    }
}

/// Whether every value of the type is one 64-bit word, equal if and only if the values are.
fn is_word(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond, _)
    )
}

/// A key of up to four columns that are one word each. The word of a NULL is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WordKey<const K: usize> {
    words: [i64; K],
    nulls: u8,
}

impl<const K: usize> WordKey<K> {
    /// A folded multiplication for each word: each bit of the hash depends on each of the key.
    #[inline]
    fn tag(&self) -> u32 {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut hash = FACTOR ^ u64::from(self.nulls);
        for word in self.words {
            let product = u128::from(hash ^ word as u64) * u128::from(FACTOR);
            hash = (product as u64) ^ ((product >> 64) as u64);
        }
        tag_of(hash)
    }
}

/// The fast path: keys of a few words.
struct WordIndex<const K: usize> {
    types: Vec<DataType>,
    table: SlotTable,
    keys: Vec<WordKey<K>>,
    free: Vec<u32>,
    /// The keys of the batch at hand, their tags, and the slots that may be theirs.
    batch: Vec<WordKey<K>>,
    tags: Vec<u32>,
    candidates: Vec<u32>,
}

impl<const K: usize> WordIndex<K> {
    fn new(fields: &[FieldRef]) -> Self {
        Self {
            types: fields.iter().map(|field| field.data_type().clone()).collect(),
            table: SlotTable::new(),
            keys: Vec::new(),
            free: Vec::new(),
            batch: Vec::new(),
            tags: Vec::new(),
            candidates: Vec::new(),
        }
    }

    fn insert(&mut self, key: WordKey<K>, tag: u32) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.keys[slot as usize] = key;
                slot
            }
            None => {
                self.keys.push(key);
                self.keys.len() as u32 - 1
            }
        };
        self.table.insert(tag, slot);
        slot
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a few of the many types of Arrow")]
    fn gather(&mut self, columns: &[ArrayRef], rows: usize) -> Result<()> {
        self.batch.clear();
        self.batch.resize(rows, WordKey { words: [0; K], nulls: 0 });
        for (place, column) in columns.iter().enumerate() {
            let keys = &mut self.batch;
            match column.data_type() {
                DataType::Boolean => {
                    let values = column.as_boolean().values();
                    keys.iter_mut().zip(values).for_each(|(key, value)| key.words[place] = i64::from(value));
                }
                DataType::Int16 => put_words(keys, place, column.as_primitive::<Int16Type>()),
                DataType::Int32 => put_words(keys, place, column.as_primitive::<Int32Type>()),
                DataType::Int64 => put_words(keys, place, column.as_primitive::<Int64Type>()),
                DataType::Date32 => put_words(keys, place, column.as_primitive::<Date32Type>()),
                DataType::Time64(TimeUnit::Microsecond) => {
                    put_words(keys, place, column.as_primitive::<Time64MicrosecondType>());
                }
                DataType::Timestamp(TimeUnit::Microsecond, _) => {
                    put_words(keys, place, column.as_primitive::<TimestampMicrosecondType>());
                }
                other => return Err(wrong_type(other)),
            }
            if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
                for row in (!nulls.inner()).set_indices() {
                    keys[row].words[place] = 0;
                    keys[row].nulls |= 1 << place;
                }
            }
        }
        Ok(())
    }
}

fn wrong_type(of: &DataType) -> DataflowError {
    DataflowError::Internal(format!("a key column has the type {of}"))
}

fn put_words<const K: usize, T>(keys: &mut [WordKey<K>], place: usize, column: &PrimitiveArray<T>)
where
    T: ArrowPrimitiveType,
    T::Native: Into<i64>,
{
    for (key, &value) in keys.iter_mut().zip(column.values()) {
        key.words[place] = value.into();
    }
}

impl<const K: usize> KeyIndex for WordIndex<K> {
    fn find_or_insert(
        &mut self,
        keys: &[ArrayRef],
        rows: usize,
        slots: &mut Vec<u32>,
        created: &mut Vec<Created>,
    ) -> Result<()> {
        self.gather(keys, rows)?;
        self.tags.clear();
        self.tags.extend(self.batch.iter().map(WordKey::tag));
        self.table.candidates(&self.tags, &mut self.candidates);
        slots.reserve(rows);
        for row in 0..rows {
            let (key, candidate) = (self.batch[row], self.candidates[row]);
            if !is_none(candidate) && self.keys[candidate as usize] == key {
                slots.push(candidate);
                continue;
            }
            let tag = self.tags[row];
            let found = self.table.find(tag, |slot| self.keys[slot as usize] == key);
            slots.push(found.unwrap_or_else(|| {
                let slot = self.insert(key, tag);
                created.push(Created { row: row as u32, slot });
                slot
            }));
        }
        Ok(())
    }

    fn remove(&mut self, slots: &[u32]) {
        for &slot in slots {
            if self.table.remove(self.keys[slot as usize].tag(), slot) {
                self.free.push(slot);
            }
        }
    }

    fn compact(&mut self, moves: &Moves) {
        for &(from, to) in &moves.moves {
            self.table.renumber(self.keys[from as usize].tag(), from, to);
        }
        moves.apply(&mut self.keys);
        self.free = Vec::new();
        self.table.shrink();
    }

    fn keys(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.types.iter().enumerate().map(|(place, of)| self.column(place, of, slots)).collect()
    }

    fn slot_count(&self) -> usize {
        self.keys.len()
    }

    fn bytes_per_key(&self) -> usize {
        size_of::<WordKey<K>>() + TABLE_BYTES
    }
}

impl<const K: usize> WordIndex<K> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a few of the many types of Arrow")]
    fn column(&self, place: usize, of: &DataType, slots: &[u32]) -> Result<ArrayRef> {
        let words = || slots.iter().map(|&slot| self.keys[slot as usize].words[place]);
        let nulls =
            nulls_where_not(slots.len(), |row| self.keys[slots[row] as usize].nulls & (1 << place) == 0);
        // The words came from values of this type, so they fit.
        Ok(match of {
            DataType::Boolean => Arc::new(BooleanArray::new(words().map(|word| word != 0).collect(), nulls)),
            DataType::Int16 => {
                Arc::new(PrimitiveArray::<Int16Type>::new(words().map(|word| word as i16).collect(), nulls))
            }
            DataType::Int32 => {
                Arc::new(PrimitiveArray::<Int32Type>::new(words().map(|word| word as i32).collect(), nulls))
            }
            DataType::Int64 => Arc::new(PrimitiveArray::<Int64Type>::new(words().collect(), nulls)),
            DataType::Date32 => {
                Arc::new(PrimitiveArray::<Date32Type>::new(words().map(|word| word as i32).collect(), nulls))
            }
            DataType::Time64(TimeUnit::Microsecond) => {
                Arc::new(PrimitiveArray::<Time64MicrosecondType>::new(words().collect(), nulls))
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let times = PrimitiveArray::<TimestampMicrosecondType>::new(words().collect(), nulls);
                Arc::new(times.with_timezone_opt(zone.clone()))
            }
            other => return Err(wrong_type(other)),
        })
    }
}

/// Any other key, by its encoding in state tables: so that two values are one key here if and
/// only if they are one key there (−0 and 0, NaN and NaN, 24 hours and 1 day).
struct EncodedIndex {
    fields: Vec<FieldRef>,
    table: SlotTable,
    spans: Vec<Span>,
    free: Vec<u32>,
    bytes: Vec<u8>,
    /// Bytes of removed keys, squeezed out when they are more than half.
    garbage: usize,
    tags: Vec<u32>,
    candidates: Vec<u32>,
}

/// Where the bytes of a key are.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: usize,
    /// 0 for a slot without a key: no key is empty, because each column has a tag.
    len: u32,
    tag: u32,
}

impl EncodedIndex {
    fn new(fields: &[FieldRef]) -> Self {
        Self {
            fields: fields.to_vec(),
            table: SlotTable::new(),
            spans: Vec::new(),
            free: Vec::new(),
            bytes: Vec::new(),
            garbage: 0,
            tags: Vec::new(),
            candidates: Vec::new(),
        }
    }

    fn key(&self, slot: u32) -> &[u8] {
        let Span { start, len, .. } = self.spans[slot as usize];
        &self.bytes[start..start + len as usize]
    }

    fn insert(&mut self, key: &[u8], tag: u32) -> u32 {
        let span = Span { start: self.bytes.len(), len: key.len() as u32, tag };
        self.bytes.extend_from_slice(key);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.spans.push(Span::default());
            self.spans.len() as u32 - 1
        });
        self.spans[slot as usize] = span;
        self.table.insert(tag, slot);
        slot
    }

    fn squeeze(&mut self) {
        if self.garbage > self.bytes.len() / 2 {
            self.squeeze_all();
        }
    }

    fn squeeze_all(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.garbage);
        for span in self.spans.iter_mut().filter(|span| span.len > 0) {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[span.start..span.start + span.len as usize]);
            span.start = start;
        }
        self.bytes = bytes;
        self.garbage = 0;
    }
}

impl KeyIndex for EncodedIndex {
    fn find_or_insert(
        &mut self,
        keys: &[ArrayRef],
        rows: usize,
        slots: &mut Vec<u32>,
        created: &mut Vec<Created>,
    ) -> Result<()> {
        let encoded: EncodedKeys = encode_keys(keys, rows)?;
        self.tags.clear();
        self.tags.extend((0..rows).map(|row| tag_of(xxh3_64(encoded.get(row)))));
        self.table.candidates(&self.tags, &mut self.candidates);
        slots.reserve(rows);
        for row in 0..rows {
            let (key, tag, candidate) = (encoded.get(row), self.tags[row], self.candidates[row]);
            if !is_none(candidate) && self.key(candidate) == key {
                slots.push(candidate);
                continue;
            }
            let found = self.table.find(tag, |slot| self.key(slot) == key);
            slots.push(found.unwrap_or_else(|| {
                let slot = self.insert(key, tag);
                created.push(Created { row: row as u32, slot });
                slot
            }));
        }
        Ok(())
    }

    fn remove(&mut self, slots: &[u32]) {
        for &slot in slots {
            let Span { len, tag, .. } = self.spans[slot as usize];
            if self.table.remove(tag, slot) {
                self.spans[slot as usize] = Span::default();
                self.garbage += len as usize;
                self.free.push(slot);
            }
        }
        self.squeeze();
    }

    fn compact(&mut self, moves: &Moves) {
        for &(from, to) in &moves.moves {
            self.table.renumber(self.spans[from as usize].tag, from, to);
        }
        moves.apply(&mut self.spans);
        self.free = Vec::new();
        self.table.shrink();
        self.squeeze_all();
    }

    fn keys(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(decode_keys(&self.fields, slots.iter().map(|&slot| self.key(slot)))?)
    }

    fn slot_count(&self) -> usize {
        self.spans.len()
    }

    fn bytes_per_key(&self) -> usize {
        let keys = self.table.len().max(1);
        size_of::<Span>() + TABLE_BYTES + (self.bytes.len() - self.garbage) / keys
    }
}
