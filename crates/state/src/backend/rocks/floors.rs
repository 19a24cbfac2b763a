//! Floors: below which keys a state table is known to be empty.
//!
//! Closing windows deletes the front of every key group again and again. An iterator that begins
//! at the front would step over all those tombstones until a compaction removes them; one that
//! begins at the floor does not. Floors are a hint kept in memory: without one a scan begins at
//! the front.
//!
//! **Invariant.** At the snapshot that carries the floors, no key of the group is below its floor.

use std::collections::HashMap;

use crate::{KEY_GROUPS, TableId};

/// Per table and key group: the key group and the key from which there may be entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Floors {
    tables: HashMap<TableId, Vec<Option<Box<[u8]>>>>,
}

impl Floors {
    /// Key group and key at which a scan of the group may begin.
    pub(super) fn of(&self, table: TableId, group: u8) -> Option<&[u8]> {
        self.tables.get(&table)?.get(usize::from(group))?.as_deref()
    }

    /// Every key of the group below `end` (group and key) is deleted.
    pub(super) fn raise(&mut self, table: TableId, group: u8, end: &[u8]) {
        let floors = self.tables.entry(table).or_insert_with(|| vec![None; usize::from(KEY_GROUPS)]);
        if let Some(floor) = floors.get_mut(usize::from(group))
            && floor.as_deref().is_none_or(|floor| floor < end)
        {
            *floor = Some(end.into());
        }
    }

    /// A key (group and key) is written: forgets a floor above it.
    pub(super) fn admit(&mut self, table: TableId, key: &[u8]) {
        let Some(floors) = self.tables.get_mut(&table) else { return };
        let group = key.first().map_or(0, |group| usize::from(*group));
        if let Some(floor) = floors.get_mut(group)
            && floor.as_deref().is_some_and(|floor| key < floor)
        {
            *floor = None;
        }
    }

    pub(super) fn forget(&mut self, table: TableId) {
        self.tables.remove(&table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(1);

    #[test]
    fn a_floor_only_rises() {
        let mut floors = Floors::default();
        floors.raise(TABLE, 3, &[3, 20]);
        floors.raise(TABLE, 3, &[3, 10]);
        assert_eq!(floors.of(TABLE, 3), Some(&[3, 20][..]));
        assert_eq!((floors.of(TABLE, 4), floors.of(TableId(2), 3)), (None, None));
    }

    #[test]
    fn a_key_below_the_floor_removes_it() {
        let mut floors = Floors::default();
        floors.raise(TABLE, 3, &[3, 20]);
        floors.admit(TABLE, &[3, 20]);
        floors.admit(TABLE, &[2, 0]);
        assert_eq!(floors.of(TABLE, 3), Some(&[3, 20][..]));
        floors.admit(TABLE, &[3, 19, 255]);
        assert_eq!(floors.of(TABLE, 3), None);
    }
}
