//! A hash table of slots, looked up a batch at a time.
//!
//! Open addressing with linear probing, at most half full. An entry holds 32 bits of the key's
//! hash (the low ones choose where the search begins) and the slot, so one cache line answers
//! most questions, and growing or removing never looks at a key.
//!
//! A lookup is done in passes over the batch: first every row's entry is read, then every
//! candidate's key is compared. The reads within a pass do not depend on each other, so the
//! processor waits for many of them at once instead of one after the other. Only rows whose first
//! entry was not the right one are searched for singly.

const EMPTY: u32 = u32::MAX;
const LEAST_CAPACITY: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Entry {
    tag: u32,
    slot: u32,
}

const NOTHING: Entry = Entry { tag: 0, slot: EMPTY };

/// The table. It never sees keys: callers compare them.
#[derive(Debug)]
pub(crate) struct SlotTable {
    /// A power of two.
    entries: Vec<Entry>,
    len: usize,
}

impl SlotTable {
    pub(crate) fn new() -> Self {
        Self { entries: vec![NOTHING; LEAST_CAPACITY], len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn home(&self, tag: u32) -> usize {
        tag as usize & (self.entries.len() - 1)
    }

    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    /// For each tag the slot in the first entry of its search, if that has the same tag.
    pub(crate) fn candidates(&self, tags: &[u32], candidates: &mut Vec<u32>) {
        let entries = self.entries.as_slice();
        let mask = entries.len() - 1;
        candidates.clear();
        candidates.extend(tags.iter().map(|&tag| {
            let entry = entries[tag as usize & mask];
            if entry.tag == tag { entry.slot } else { EMPTY }
        }));
    }

    /// The slot with this tag of which `is_it` is true.
    pub(crate) fn find(&self, tag: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(tag);
        loop {
            let entry = self.entries[at];
            if entry.slot == EMPTY {
                return None;
            }
            if entry.tag == tag && is_it(entry.slot) {
                return Some(entry.slot);
            }
            at = self.behind(at);
        }
    }

    /// Adds a slot that is not in the table.
    pub(crate) fn insert(&mut self, tag: u32, slot: u32) {
        if (self.len + 1) * 2 > self.entries.len() {
            let doubled = vec![NOTHING; self.entries.len() * 2];
            let old = std::mem::replace(&mut self.entries, doubled);
            old.into_iter().filter(|entry| entry.slot != EMPTY).for_each(|entry| self.place(entry));
        }
        self.len += 1;
        self.place(Entry { tag, slot });
    }

    fn place(&mut self, entry: Entry) {
        let mut at = self.home(entry.tag);
        while self.entries[at].slot != EMPTY {
            at = self.behind(at);
        }
        self.entries[at] = entry;
    }

    /// Takes out a slot; false if it is not there.
    pub(crate) fn remove(&mut self, tag: u32, slot: u32) -> bool {
        let mut at = self.home(tag);
        while self.entries[at].slot != slot {
            if self.entries[at].slot == EMPTY {
                return false;
            }
            at = self.behind(at);
        }
        self.len -= 1;
        self.close_gap(at);
        true
    }

    /// The slot with this tag and number has another number now.
    pub(crate) fn renumber(&mut self, tag: u32, slot: u32, number: u32) {
        let mut at = self.home(tag);
        while self.entries[at].slot != slot {
            if self.entries[at].slot == EMPTY {
                return;
            }
            at = self.behind(at);
        }
        self.entries[at].slot = number;
    }

    /// Gives back room that a few removals ago was needed and now is not.
    pub(crate) fn shrink(&mut self) {
        let capacity = (self.len * 2 + 1).next_power_of_two().max(LEAST_CAPACITY);
        if capacity < self.entries.len() {
            let old = std::mem::replace(&mut self.entries, vec![NOTHING; capacity]);
            old.into_iter().filter(|entry| entry.slot != EMPTY).for_each(|entry| self.place(entry));
        }
    }

    /// Moves entries back so that no search ends at the gap before it should.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.entries.len() - 1;
        let mut at = gap;
        loop {
            at = self.behind(at);
            let entry = self.entries[at];
            if entry.slot == EMPTY {
                break;
            }
            // It may move back to the gap unless its search begins behind the gap.
            let from_home = at.wrapping_sub(self.home(entry.tag)) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.entries[gap] = entry;
                gap = at;
            }
        }
        self.entries[gap] = NOTHING;
    }
}

/// Whether a candidate is none.
pub(crate) fn is_none(candidate: u32) -> bool {
    candidate == EMPTY
}

/// The part of a hash that the table keeps.
#[inline]
pub(crate) fn tag_of(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_finds_what_was_inserted_and_not_removed() {
        let mut table = SlotTable::new();
        let mut model = BTreeMap::new();
        let mut seed = 3_u64;
        for step in 0..20_000_u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let slot = (seed >> 40) as u32 % 200;
            // Few tags, so that searches collide and wrap around the end.
            let tag = (slot % 23).wrapping_mul(0xFFFF_FFF7);
            if model.remove(&slot).is_some() {
                assert!(table.remove(tag, slot));
                assert!(!table.remove(tag, slot));
            } else {
                model.insert(slot, tag);
                table.insert(tag, slot);
            }
            assert_eq!(table.len(), model.len());
            if step % 1000 == 0 {
                table.shrink();
            }
            if step % 100 == 0 {
                for slot in 0..200 {
                    let tag = (slot % 23_u32).wrapping_mul(0xFFFF_FFF7);
                    assert_eq!(table.find(tag, |at| at == slot).is_some(), model.contains_key(&slot));
                }
            }
        }
    }
}
