//! From columns to the entries of one table: what both backends write.
//!
//! | table | key | value |
//! |---|---|---|
//! | of an operator's state | key group (1 byte), encoded key columns | encoded other columns |
//! | of a view | encoded key columns | encoded other columns |

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray};

use crate::{
    EncodedKeys, KeyGroupRange, Result, Run, StateError, TableChanges, TableSchema, encode_keys, encode_rows,
    prefix_end,
};

/// What a checkpoint does to one table: the ranges go, then each entry applies.
#[derive(Debug, Default)]
pub(crate) struct TableWrites {
    /// Keys that are gone, start inclusive, end exclusive.
    pub(crate) delete_ranges: Vec<Range<Vec<u8>>>,
    parts: Vec<Part>,
    /// Part and row of each entry, in key order.
    order: Vec<(u32, u32)>,
}

/// Entries that were encoded together.
#[derive(Debug)]
struct Part {
    keys: EncodedKeys,
    /// `None`: every key is deleted.
    values: Option<EncodedKeys>,
    /// Which keys are deleted although there are values.
    deleted: Option<BooleanArray>,
}

impl TableWrites {
    /// Key and value (`None` deletes) in ascending key order, each key at most once.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        self.order.iter().map(|&(part, row)| {
            let (part, row) = (&self.parts[part as usize], row as usize);
            let is_deleted = part.deleted.as_ref().is_some_and(|deleted| deleted.value(row));
            let value = part.values.as_ref().filter(|_| !is_deleted).map(|values| values.get(row));
            (part.keys.get(row), value)
        })
    }

    /// The changes of an operator's state table by the task that owns `groups`.
    pub(crate) fn of_state(groups: KeyGroupRange, changes: &TableChanges) -> Result<Self> {
        let schema = &changes.schema;
        let mut writes = Self::default();
        if let Some(bound) = &changes.delete_up_to {
            writes.delete_ranges = ranges_up_to(groups, bound)?;
        }
        for rows in &changes.puts {
            let (keys, values) = rows.columns().split_at(schema.key_len);
            let keys = keys_with_group(schema, keys, rows.num_rows())?;
            let values = Some(encode_rows(values, rows.num_rows())?);
            writes.parts.push(Part { keys, values, deleted: None });
        }
        for keys in &changes.deletes {
            // Without key columns there is one key, the empty one.
            let rows = keys.first().map_or(1, |column| column.len());
            let keys = keys_with_group(schema, keys, rows)?;
            writes.parts.push(Part { keys, values: None, deleted: None });
        }
        writes.sort()?;
        Ok(writes)
    }

    /// The content of a run of a view table.
    pub(crate) fn of_run(run: &Run) -> Result<Self> {
        let values = encode_rows(&run.rows.columns()[run.schema.key_len..], run.rows.num_rows())?;
        let order = (0..run.keys.len() as u32).map(|row| (0, row)).collect();
        let part = Part { keys: run.keys.clone(), values: Some(values), deleted: run.deleted.clone() };
        Ok(Self { delete_ranges: Vec::new(), parts: vec![part], order })
    }

    fn sort(&mut self) -> Result<()> {
        for (number, part) in self.parts.iter().enumerate() {
            self.order.extend((0..part.keys.len() as u32).map(|row| (number as u32, row)));
        }
        let parts = &self.parts;
        let key = |&(part, row): &(u32, u32)| parts[part as usize].keys.get(row as usize);
        self.order.sort_unstable_by(|left, right| key(left).cmp(key(right)));
        if self.order.windows(2).any(|pair| key(&pair[0]) == key(&pair[1])) {
            return Err(StateError::Internal("a key was handed over twice in one checkpoint".to_owned()));
        }
        Ok(())
    }
}

/// The key under which an operator's state is stored: key group, then the encoded key.
fn keys_with_group(schema: &TableSchema, columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
    let keys = encode_keys(columns, rows)?;
    let groups = schema.key_groups(columns, rows)?;
    let mut with_group = EncodedKeys::with_capacity(rows, keys.bytes.len() + rows);
    for (key, group) in keys.iter().zip(groups) {
        with_group.bytes.push(group);
        with_group.push(key);
    }
    Ok(with_group)
}

/// In each key group: the keys whose first column is at most `bound`.
fn ranges_up_to(groups: KeyGroupRange, bound: &ArrayRef) -> Result<Vec<Range<Vec<u8>>>> {
    let encoded = encode_keys(std::slice::from_ref(bound), bound.len())?;
    if encoded.len() != 1 {
        return Err(StateError::Internal(format!("a bound with {} values", encoded.len())));
    }
    let ranges = (groups.start..groups.end).filter_map(|group| {
        let start = vec![group as u8];
        let last: Vec<u8> = start.iter().chain(encoded.get(0)).copied().collect();
        Some(start..prefix_end(&last)?)
    });
    Ok(ranges.collect())
}
