//! What all accumulators have in common: columns of intermediate results, one entry per slot.

use std::collections::BTreeMap;

use arrow::array::ArrayRef;
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Field};
use dataflow::{Result, RowError};

use super::call::AggregateFunction;

/// One batch as one accumulator sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The argument; `None` for `count(*)`.
    pub(crate) values: Option<&'a ArrayRef>,
    /// Multiplicities; `None`: all 1.
    pub(crate) diffs: Option<&'a [i64]>,
    /// The rows that count: those that pass the filter and whose argument is not NULL.
    /// `None`: all.
    pub(crate) selected: Option<&'a NullBuffer>,
    /// The slot of each row.
    pub(crate) slots: &'a [u32],
}

impl Input<'_> {
    /// Calls `add(row, slot, diff)` for each row that counts. `diff` is the constant 1 where the
    /// input has none, so that the compiler can drop the multiplication.
    #[inline]
    pub(crate) fn for_each(&self, mut add: impl FnMut(usize, usize, i64)) {
        let slots = self.slots;
        match (self.selected, self.diffs) {
            (None, None) => slots.iter().enumerate().for_each(|(row, &slot)| add(row, slot as usize, 1)),
            (None, Some(diffs)) => {
                let rows = slots.iter().zip(diffs).enumerate();
                rows.for_each(|(row, (&slot, &diff))| add(row, slot as usize, diff));
            }
            (Some(rows), None) => rows.valid_indices().for_each(|row| add(row, slots[row] as usize, 1)),
            (Some(rows), Some(diffs)) => {
                rows.valid_indices().for_each(|row| add(row, slots[row] as usize, diffs[row]));
            }
        }
    }
}

/// How the slots in use became the first ones: what was scattered over many is in few now.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// From a slot in use to a lower one that was not.
    pub(crate) moves: Vec<(u32, u32)>,
    /// Number of slots that are left.
    pub(crate) slots: usize,
}

impl Moves {
    /// Moves the entries of a column; those that are not in use are alike.
    pub(crate) fn apply<T>(&self, entries: &mut Vec<T>) {
        for &(from, to) in &self.moves {
            entries.swap(from as usize, to as usize);
        }
        entries.truncate(self.slots);
        entries.shrink_to_fit();
    }
}

/// Rows of a result that cannot be represented, with the reasons.
pub(crate) type Failures = BTreeMap<usize, RowError>;

/// Intermediate results of one kind for all groups.
///
/// # Contract
/// A slot's entry is empty when the slot is new: `clear` is called for every slot given back.
/// `update` may leave an entry in a state that no multiset of rows has (a retraction before its
/// insertion); by the end of the epoch it is one again.
pub(crate) trait Accumulator: Send {
    /// Makes room for this many slots.
    fn resize(&mut self, slots: usize);
    /// Takes in a batch.
    fn update(&mut self, input: &Input<'_>) -> Result<()>;
    /// Empties some entries.
    fn clear(&mut self, slots: &[u32]);
    /// Follows entries that have moved, and gives back the room behind the last.
    fn compact(&mut self, moves: &Moves);
    /// Results of some slots, of type `output`. A result that cannot be represented is NULL and
    /// listed, by its place in `slots`.
    fn evaluate(
        &self,
        function: AggregateFunction,
        output: &DataType,
        slots: &[u32],
        failures: &mut Failures,
    ) -> Result<ArrayRef>;
    /// The columns that hold an entry in the state table; `name` is unique to the accumulator.
    fn state_fields(&self, name: &str) -> Vec<Field>;
    /// The entries of some slots, as those columns.
    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>>;
    /// Sets the entries of some slots, which are empty, from those columns.
    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()>;
    /// Bytes in memory for each slot, about.
    fn bytes_per_slot(&self) -> usize;
}

/// NULL in each of `len` places where `is_valid` is false.
pub(crate) fn nulls_where_not(len: usize, is_valid: impl FnMut(usize) -> bool) -> Option<NullBuffer> {
    let valid = NullBuffer::new(BooleanBuffer::collect_bool(len, is_valid));
    (valid.null_count() > 0).then_some(valid)
}

/// A failure with SQLSTATE 22003.
pub(crate) fn out_of_range(message: &str) -> RowError {
    RowError { sqlstate: "22003", message: message.to_owned() }
}

/// The error for a column that is not of the type it was planned with: a bug.
pub(crate) fn wrong_column(what: &str, found: &DataType) -> dataflow::DataflowError {
    dataflow::DataflowError::Internal(format!("{what} over a column of type {found}"))
}
