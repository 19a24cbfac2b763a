//! `min` and `max` over rows that are also taken back: the distinct values of each group, in order.
//!
//! It is fed from a table of values (see [`super::values`]): +1 when a value appears in a group
//! and −1 when its last row is taken back. The state table of the values is its state, so it has
//! none of its own: when a group comes back to memory, its values are read by their prefix.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef};
use dataflow::Result;
use state::encode_keys;

use super::accumulator::{Accumulator, Failures, Input, Moves, wrong_column};
use super::call::AggregateFunction;
use super::extreme::one_column;

/// The values of each group by their key encoding, whose byte order is theirs.
pub(crate) struct OrderedValues {
    entries: Vec<BTreeSet<Box<[u8]>>>,
    field: FieldRef,
    null: Vec<u8>,
    /// Values and their bytes over all groups.
    values: usize,
    bytes: usize,
}

impl OrderedValues {
    pub(crate) fn new(argument: &DataType) -> Result<Self> {
        let null = encode_keys(&[new_null_array(argument, 1)], 1)?;
        let field = Arc::new(Field::new("value", argument.clone(), true));
        Ok(Self { entries: Vec::new(), field, null: null.get(0).to_vec(), values: 0, bytes: 0 })
    }
}

impl Accumulator for OrderedValues {
    fn resize(&mut self, slots: usize) {
        self.entries.resize_with(slots, BTreeSet::new);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let column = input.values.ok_or_else(|| wrong_column("min or max", &DataType::Null))?;
        let encoded = encode_keys(std::slice::from_ref(column), column.len())?;
        input.for_each(|row, slot, diff| {
            let value = encoded.get(row);
            let entry = &mut self.entries[slot];
            if diff > 0 && entry.insert(value.into()) {
                self.values += 1;
                self.bytes += value.len();
            } else if diff < 0 && entry.remove(value) {
                self.values -= 1;
                self.bytes -= value.len();
            }
        });
        Ok(())
    }

    fn clear(&mut self, slots: &[u32]) {
        for &slot in slots {
            let entry = std::mem::take(&mut self.entries[slot as usize]);
            self.values -= entry.len();
            self.bytes -= entry.iter().map(|value| value.len()).sum::<usize>();
        }
    }

    fn compact(&mut self, moves: &Moves) {
        moves.apply(&mut self.entries);
    }

    fn evaluate(
        &self,
        function: AggregateFunction,
        _output: &DataType,
        slots: &[u32],
        _failures: &mut Failures,
    ) -> Result<ArrayRef> {
        let is_max = function == AggregateFunction::Max;
        let keys = slots.iter().map(|&slot| {
            let values = &self.entries[slot as usize];
            let best = if is_max { values.last() } else { values.first() };
            best.map_or(self.null.as_slice(), |best| best)
        });
        one_column(&self.field, keys)
    }

    fn state_fields(&self, _name: &str) -> Vec<Field> {
        Vec::new()
    }

    fn save(&self, _slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(Vec::new())
    }

    fn load(&mut self, _slots: &[u32], _columns: &[ArrayRef]) -> Result<()> {
        Ok(())
    }

    fn bytes_per_slot(&self) -> usize {
        // A B-tree node holds a value in about one and a half times its size.
        let values = self.values * size_of::<Box<[u8]>>() * 3 / 2 + self.bytes;
        size_of::<BTreeSet<Box<[u8]>>>() + values / self.entries.len().max(1)
    }
}
