//! The distinct values of an argument in each group, and how many rows have each: what DISTINCT
//! aggregates, and `min` and `max` over rows that are taken back, are computed from.
//!
//! **Invariant.** A value is passed on as +1 when its count leaves 0 and as −1 when it returns
//! there, counted over a whole epoch: what happened inside the epoch does not show.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute;
use dataflow::{ChangeBatch, Result, StateAccess};
use state::{Epoch, TableChanges};

use super::layout::ValueSet;
use super::resident::{HandOver, Resident, table_changes};

/// The values of one [`ValueSet`].
pub(crate) struct Values {
    set: ValueSet,
    /// Which state table of the operator it is.
    table: usize,
    /// Whether rows are never taken back. A retract input has batches of plain insertions too, so
    /// this is a fact about the input, not about a batch.
    is_append: bool,
    resident: Resident,
    /// The slot of the group of each value touched in this epoch.
    groups: Vec<u32>,
    /// Scratch.
    slots: Vec<u32>,
}

/// Values that have appeared in groups or disappeared from them.
pub(crate) struct Transitions {
    pub(crate) values: ArrayRef,
    /// +1 or −1.
    pub(crate) diffs: Vec<i64>,
    /// The slots of the groups.
    pub(crate) groups: Vec<u32>,
}

impl Values {
    pub(crate) fn new(set: ValueSet, table: usize, is_windowed: bool, is_append: bool) -> Self {
        let resident = Resident::new(set.schema.key_fields(), is_windowed, false);
        Self { set, table, is_append, resident, groups: Vec::new(), slots: Vec::new() }
    }

    pub(crate) fn table(&self) -> usize {
        self.table
    }

    pub(crate) fn resident(&mut self) -> &mut Resident {
        &mut self.resident
    }

    pub(crate) fn pinned_and_clean_bytes(&self) -> (usize, usize) {
        let (pinned, clean) = self.resident.pinned_and_clean();
        let bytes = self.resident.bytes_per_key();
        (pinned * bytes, clean * bytes)
    }

    /// Takes in a batch. `keys` are the group columns, `groups` the slot of each row's group,
    /// `selected` the rows that count.
    pub(crate) fn update(
        &mut self,
        batch: &ChangeBatch,
        keys: &[ArrayRef],
        groups: &[u32],
        selected: Option<&NullBuffer>,
        state: &dyn StateAccess,
    ) -> Result<()> {
        let mut keys = keys.to_vec();
        keys.push(ArrayRef::clone(batch.rows.column(self.set.argument)));
        let rows: Option<Vec<u32>> =
            selected.map(|selected| selected.valid_indices().map(|row| row as u32).collect());
        if let Some(rows) = &rows {
            let rows = UInt32Array::from(rows.clone());
            keys = keys.iter().map(|key| compute::take(key, &rows, None)).collect::<Result<_, _>>()?;
        }
        let count = rows.as_ref().map_or(batch.len(), Vec::len);
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        self.resident.take_freed();
        self.resident.resolve(&keys, count, state, self.table, &mut slots)?;
        let row_at = |place: usize| rows.as_ref().map_or(place, |rows| rows[place] as usize);
        for (place, &slot) in slots.iter().enumerate() {
            // Over rows that are only added, a value that is there already stays as it is: so it
            // need not be written again.
            if self.is_append && self.resident.count(slot) > 0 {
                continue;
            }
            let row = row_at(place);
            let touched = self.resident.touched().len();
            self.resident.touch_one(slot, batch.diff(row));
            if self.resident.touched().len() > touched {
                self.groups.push(groups[row]);
            }
        }
        self.slots = slots;
        Ok(())
    }

    /// What the epoch has changed. The epoch is over for this table.
    pub(crate) fn end_epoch(&mut self) -> Result<Option<Transitions>> {
        let (mut slots, mut diffs, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (touched, group) in self.resident.touched().iter().zip(self.groups.drain(..)) {
            let (was, is) = (touched.before > 0, self.resident.count(touched.slot) > 0);
            if was != is {
                slots.push(touched.slot);
                diffs.push(if is { 1 } else { -1 });
                groups.push(group);
            }
        }
        self.resident.end_epoch()?;
        let values = self.resident.keys(&slots)?.pop().filter(|_| !slots.is_empty());
        Ok(values.map(|values| Transitions { values, diffs, groups }))
    }

    /// Gives back the room of values that are gone.
    pub(crate) fn compact(&mut self, percent: usize) {
        self.resident.take_freed();
        // Nothing but the resident keys knows their slots between epochs.
        self.resident.compact(percent);
    }

    /// What the next checkpoint must write.
    pub(crate) fn hand_over(&mut self, epoch: Epoch) -> Result<Option<TableChanges>> {
        let HandOver { puts, deletes, delete_up_to } = self.resident.hand_over(epoch);
        let mut columns = self.resident.keys(&puts)?;
        columns.push(Arc::new(Int64Array::from(self.resident.counts(&puts))));
        let puts = RecordBatch::try_new(Arc::clone(&self.set.schema.columns), columns)?;
        let deletes = if deletes.is_empty() { None } else { Some(self.resident.keys(&deletes)?) };
        Ok(table_changes(&self.set.schema, puts, deletes, delete_up_to))
    }
}
