//! From columns to the entries of one table: what both backends write.
//!
//! | table | key | value |
//! |---|---|---|
//! | of an operator's state | key group (1 byte), encoded key columns | encoded other columns |
//! | of a view | encoded key columns | encoded other columns |

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray};

use crate::encoding::first_bytes;
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
        let parts = &self.parts;
        let key = |part: u32, row: u32| parts[part as usize].keys.get(row as usize);
        let mut sorted = Vec::with_capacity(parts.iter().map(|part| part.keys.len()).sum());
        for (number, part) in (0..).zip(parts) {
            sorted.extend((0..).zip(part.keys.iter()).map(|(row, key)| (first_bytes(key), number, row)));
        }
        sorted.sort_unstable_by(|left, right| {
            left.0.cmp(&right.0).then_with(|| key(left.1, left.2).cmp(key(right.1, right.2)))
        });
        let order: Vec<(u32, u32)> = sorted.into_iter().map(|(_, part, row)| (part, row)).collect();
        if order.windows(2).any(|pair| key(pair[0].0, pair[0].1) == key(pair[1].0, pair[1].1)) {
            return Err(StateError::Internal("a key was handed over twice in one checkpoint".to_owned()));
        }
        self.order = order;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn column(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    fn changes(puts: &[&[(i64, i64)]], deletes: &[&[i64]], delete_up_to: Option<i64>) -> TableChanges {
        let field = |name| Field::new(name, DataType::Int64, false);
        let columns = Arc::new(Schema::new(vec![field("k"), field("v")]));
        let put = |rows: &&[(i64, i64)]| {
            let (keys, values): (Vec<i64>, Vec<i64>) = rows.iter().copied().unzip();
            RecordBatch::try_new(Arc::clone(&columns), vec![column(&keys), column(&values)]).unwrap()
        };
        TableChanges {
            puts: puts.iter().map(put).collect(),
            deletes: deletes.iter().map(|keys| vec![column(keys)]).collect(),
            delete_up_to: delete_up_to.map(|bound| column(&[bound])),
            schema: Arc::new(TableSchema { columns, key_len: 1 }),
        }
    }

    #[test]
    fn entries_come_in_key_order_behind_their_key_group() {
        let changes = changes(&[&[(5, 50), (1, 10)], &[(3, 30)]], &[&[4, 2]], None);
        let writes = TableWrites::of_state(KeyGroupRange::ALL, &changes).unwrap();
        let entries: Vec<(&[u8], Option<&[u8]>)> = writes.entries().collect();
        assert!(entries.is_sorted_by(|left, right| left.0 < right.0));
        let keys = column(&[1, 2, 3, 4, 5]);
        let encoded = encode_keys(&[Arc::clone(&keys)], 5).unwrap();
        let groups = changes.schema.key_groups(&[keys], 5).unwrap();
        for (key, group, is_put) in [(0, 0, true), (1, 1, false), (2, 2, true), (3, 3, false), (4, 4, true)] {
            let stored = [&[groups[group]], encoded.get(key)].concat();
            let entry = entries.iter().find(|(key, _)| *key == stored).unwrap();
            assert_eq!(entry.1.is_some(), is_put);
        }
    }

    #[test]
    fn a_key_handed_over_twice_is_an_internal_error() {
        let error = TableWrites::of_state(KeyGroupRange::ALL, &changes(&[&[(1, 10)]], &[&[1]], None));
        let expected = "internal error: a key was handed over twice in one checkpoint";
        assert_eq!(error.unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_bound_covers_each_key_group_up_to_and_including_it() {
        let groups = KeyGroupRange { start: 3, end: 5 };
        let writes = TableWrites::of_state(groups, &changes(&[], &[], Some(7))).unwrap();
        assert_eq!(writes.delete_ranges.len(), 2);
        let covers = |group: u8, key: i64| {
            let key = [&[group], encode_keys(&[column(&[key])], 1).unwrap().get(0)].concat();
            writes.delete_ranges.iter().any(|range| range.contains(&key))
        };
        assert!(covers(3, i64::MIN) && covers(3, 7) && covers(4, 7));
        assert!(!covers(3, 8) && !covers(2, 7) && !covers(5, 7));
    }
}
