//! Collects an epoch's changes of a view table and turns them into a sorted run.
//!
//! ```text
//!  push* ─► concatenate ─► encode keys ─► sort ─► net per key ─► take the rows once ─► Run
//! ```
//!
//! Rows are identified by their encoded bytes, as keys are: −0 is 0 and 36 hours are 1 day
//! 12 hours, so a retraction finds its row whichever form it comes in.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow::compute;
use arrow::datatypes::{DataType, Int64Type, Schema, SchemaRef};
use arrow::util::display::array_value_to_string;

use crate::encoding::first_bytes;
use crate::run::compact;
use crate::{
    EncodedKeys, Published, Result, Run, StateError, TableId, TableSchema, decode_keys, encode_keys,
};

/// Collects changes of one view table for one task.
///
/// Two kinds of table: *keyed* (a key has at most one row) and *multiset* (the key is the whole
/// row, the last column `$count` is its multiplicity).
#[derive(Debug)]
pub struct ViewWriter {
    table: TableId,
    schema: Arc<TableSchema>,
    multiset: bool,
    /// Whether a row that is pushed again is the same row.
    idempotent: bool,
    /// What was pushed, each with its multiplicities (`None`: all +1).
    collected: Vec<(RecordBatch, Option<Int64Array>)>,
    memory: usize,
}

/// The collected rows as one batch, and the order of their keys.
struct SortedChanges {
    rows: RecordBatch,
    /// `None`: every row is +1.
    diffs: Option<Int64Array>,
    keys: EncodedKeys,
    /// Rows in ascending key order.
    order: Vec<u32>,
}

impl SortedChanges {
    fn diff(&self, row: u32) -> i64 {
        self.diffs.as_ref().map_or(1, |diffs| diffs.value(row as usize))
    }

    fn diff_of(&self, rows: &[u32]) -> i64 {
        rows.iter().map(|row| self.diff(*row)).sum()
    }

    fn key(&self, row: u32) -> &[u8] {
        self.keys.get(row as usize)
    }

    /// Stretches of the order with the same key.
    fn groups(&self) -> impl Iterator<Item = &[u32]> {
        self.order.chunk_by(|left, right| self.key(*left) == self.key(*right))
    }

    fn keys_of(&self, rows: &[u32]) -> EncodedKeys {
        let mut keys = EncodedKeys::with_capacity(rows.len(), self.keys.bytes.len());
        rows.iter().for_each(|row| keys.push(self.key(*row)));
        keys
    }

    fn has_unique_keys(&self) -> bool {
        self.order.windows(2).all(|pair| self.key(pair[0]) != self.key(pair[1]))
    }
}

/// What changes of one key leave of it.
#[derive(Default)]
struct KeyNet {
    added: Option<u32>,
    removed: Option<u32>,
}

impl KeyNet {
    /// Takes in the net multiplicity of one row; false if the key would have more than one row.
    fn add(&mut self, row: u32, diff: i64) -> bool {
        match diff {
            0 => true,
            1 => self.added.replace(row).is_none(),
            -1 => self.removed.replace(row).is_none(),
            _ => false,
        }
    }
}

/// Net entries in key order: which row stands for each, and whether its key is gone.
#[derive(Default)]
struct Net {
    rows: Vec<u32>,
    deleted: Vec<bool>,
    /// `$count` of each, for multisets.
    counts: Option<Int64Array>,
}

impl ViewWriter {
    /// A writer with nothing collected.
    #[must_use]
    pub fn new(table: TableId, schema: Arc<TableSchema>, multiset: bool) -> Self {
        Self { table, schema, multiset, idempotent: false, collected: Vec::new(), memory: 0 }
    }

    /// A writer of a keyed table to which rows are only added, the same one perhaps several times.
    #[must_use]
    pub fn idempotent(table: TableId, schema: Arc<TableSchema>) -> Self {
        Self { idempotent: true, ..Self::new(table, schema, false) }
    }

    /// Takes in changes. Keyed: rows with all columns. Multiset: rows without `$count`.
    pub fn push(&mut self, rows: RecordBatch, diffs: Option<Int64Array>) {
        if rows.num_rows() > 0 {
            self.memory += rows.get_array_memory_size();
            self.memory += diffs.as_ref().map_or(0, Array::get_array_memory_size);
            self.collected.push((rows, diffs));
        }
    }

    /// What the epoch changed, net; `None` when nothing did. `published` is the epoch before,
    /// read for multiplicities. A key left with two rows, or a negative multiplicity, is an
    /// internal error.
    pub fn finish(&mut self, published: &Published) -> Result<Option<Run>> {
        self.memory = 0;
        let collected = std::mem::take(&mut self.collected);
        if collected.is_empty() {
            return Ok(None);
        }
        let mut changes = self.sort(collected)?;
        let net = if self.multiset {
            self.net_multiset(&changes, published)?
        } else if changes.diffs.is_none() && changes.has_unique_keys() {
            let rows = std::mem::take(&mut changes.order);
            Net { deleted: vec![false; rows.len()], rows, counts: None }
        } else {
            self.net_keyed(&changes)?
        };
        if net.rows.is_empty() { Ok(None) } else { self.run(changes, net).map(Some) }
    }

    /// Bytes collected.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }

    fn sort(&self, collected: Vec<(RecordBatch, Option<Int64Array>)>) -> Result<SortedChanges> {
        let fields = self.schema.columns.fields();
        let pushed = &fields[..fields.len() - usize::from(self.multiset)];
        let (rows, diffs) = concatenate(&Arc::new(Schema::new(pushed)), collected)?;
        if rows.num_columns() != pushed.len() {
            let (found, expected) = (rows.num_columns(), pushed.len());
            return Err(self.broken(&format!("got {found} columns instead of {expected}")));
        }
        let keys = encode_keys(&rows.columns()[..self.schema.key_len], rows.num_rows())?;
        let order = sorted_order(&keys);
        Ok(SortedChanges { rows, diffs, keys, order })
    }

    /// Per key: the row that is added, or that the one row is gone, or nothing.
    fn net_keyed(&self, changes: &SortedChanges) -> Result<Net> {
        let values = if changes.has_unique_keys() {
            EncodedKeys::default()
        } else {
            encode_keys(&changes.rows.columns()[self.schema.key_len..], changes.rows.num_rows())?
        };
        let value = |row: &u32| values.get(*row as usize);
        let mut net = Net::default();
        let mut several = Vec::new();
        for group in changes.groups() {
            let mut key = KeyNet::default();
            let is_sound = if let [row] = group {
                key.add(*row, changes.diff(*row))
            } else {
                several.clear();
                several.extend_from_slice(group);
                several.sort_unstable_by(|left, right| value(left).cmp(value(right)).then(left.cmp(right)));
                let mut same_rows = several.chunk_by(|left, right| value(left) == value(right));
                let diff_of = |same: &[u32]| if self.idempotent { 1 } else { changes.diff_of(same) };
                same_rows.all(|same| key.add(same[0], diff_of(same)))
            };
            if !is_sound {
                let key = describe(&changes.rows.columns()[..self.schema.key_len], group[0])?;
                return Err(self.broken(&format!("key ({key}) would not have one row or none")));
            }
            if let Some(row) = key.added.or(key.removed) {
                net.rows.push(row);
                net.deleted.push(key.added.is_none());
            }
        }
        Ok(net)
    }

    /// Per row: its new multiplicity, or that it is gone, or nothing.
    fn net_multiset(&self, changes: &SortedChanges, published: &Published) -> Result<Net> {
        let (mut rows, mut counts) = (Vec::new(), Vec::new());
        for group in changes.groups() {
            let diff = changes.diff_of(group);
            if diff != 0 {
                rows.push(group[0]);
                counts.push(diff);
            }
        }
        let keys = changes.keys_of(&rows);
        let (existing, answers) = published.get_encoded(self.table, &self.schema, &keys)?;
        let existing = existing.columns().last().and_then(|column| column.as_primitive_opt::<Int64Type>());
        let existing = existing.ok_or_else(|| self.broken("$count is not the last column"))?;
        for (count, answered) in existing.values().iter().zip(answers) {
            counts[answered as usize] += count;
        }
        if let Some(negative) = counts.iter().position(|count| *count < 0) {
            let (row, count) = (describe(changes.rows.columns(), rows[negative])?, counts[negative]);
            return Err(self.broken(&format!("row ({row}) would be there {count} times")));
        }
        let deleted = counts.iter().map(|count| *count == 0).collect();
        Ok(Net { rows, deleted, counts: Some(counts.into()) })
    }

    fn run(&self, changes: SortedChanges, net: Net) -> Result<Run> {
        let is_whole = net.rows.len() == changes.rows.num_rows()
            && net.rows.iter().copied().eq(0..net.rows.len() as u32);
        let (keys, mut columns) = if is_whole {
            (changes.keys, changes.rows.columns().to_vec())
        } else {
            let keys = changes.keys_of(&net.rows);
            let indices = UInt32Array::from(net.rows);
            (keys, compute::take_arrays(changes.rows.columns(), &indices, None)?)
        };
        // What is read before a checkpoint must be what is read after it.
        if self.schema.key_fields().iter().any(|field| has_several_forms(field.data_type())) {
            columns.splice(..self.schema.key_len, decode_keys(self.schema.key_fields(), keys.iter())?);
        }
        if let Some(counts) = net.counts {
            columns.push(Arc::new(counts));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(keys.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema.columns), columns, &options)?;
        let deleted = net.deleted.contains(&true).then(|| BooleanArray::from(net.deleted));
        Ok(Run { schema: Arc::clone(&self.schema), keys, rows: compact(rows)?, deleted })
    }

    fn broken(&self, what: &str) -> StateError {
        StateError::Internal(format!("view table {}: {what}", self.table.0))
    }
}

/// All collected rows as one batch.
fn concatenate(
    schema: &SchemaRef,
    mut collected: Vec<(RecordBatch, Option<Int64Array>)>,
) -> Result<(RecordBatch, Option<Int64Array>)> {
    if collected.len() == 1
        && let Some(only) = collected.pop()
    {
        return Ok(only);
    }
    let rows = compute::concat_batches(schema, collected.iter().map(|(rows, _)| rows))?;
    let diffs = collected.iter().any(|(_, diffs)| diffs.is_some()).then(|| {
        let mut all = Vec::with_capacity(rows.num_rows());
        for (rows, diffs) in &collected {
            match diffs {
                Some(diffs) => all.extend_from_slice(diffs.values()),
                None => all.resize(all.len() + rows.num_rows(), 1),
            }
        }
        Int64Array::from(all)
    });
    Ok((rows, diffs))
}

/// The rows in ascending order of their keys, equal keys in the order they came.
fn sorted_order(keys: &EncodedKeys) -> Vec<u32> {
    let rows = 0..keys.len() as u32;
    if (1..keys.len()).all(|row| keys.get(row - 1) <= keys.get(row)) {
        return rows.collect();
    }
    let mut order: Vec<(u128, u32)> = keys.iter().map(first_bytes).zip(rows).collect();
    order.sort_unstable_by(|(left_first, left), (right_first, right)| {
        let key = |row: &u32| keys.get(*row as usize);
        left_first.cmp(right_first).then_with(|| key(left).cmp(key(right))).then(left.cmp(right))
    });
    order.into_iter().map(|(_, row)| row).collect()
}

/// Some columns of a row as text, for errors.
fn describe(columns: &[ArrayRef], row: u32) -> Result<String> {
    let values = columns.iter().map(|column| Ok(array_value_to_string(column, row as usize)?));
    Ok(values.collect::<Result<Vec<_>>>()?.join(", "))
}

/// Whether values that are equal as keys can look different.
fn has_several_forms(data_type: &DataType) -> bool {
    if let DataType::List(element) | DataType::LargeList(element) = data_type {
        has_several_forms(element.data_type())
    } else if let DataType::Struct(fields) = data_type {
        fields.iter().any(|field| has_several_forms(field.data_type()))
    } else {
        data_type.is_floating() || matches!(data_type, DataType::Interval(_))
    }
}

#[cfg(test)]
mod tests;
