//! Key groups: the unit in which keyed state moves between subtasks.
//!
//! Key group of a row = xxh3-64(memcomparable encoding of its key columns) mod 128. This is on
//! disk (the prefix of every `state` key), so neither the hash nor the encoding may ever change.

use arrow::array::ArrayRef;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Result, encode_keys};

/// How many key groups there are; the most tasks a keyed operator can have.
pub const KEY_GROUPS: u16 = 128;

/// The key groups `start..end` of one subtask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyGroupRange {
    /// First group owned.
    pub start: u16,
    /// First group no longer owned.
    pub end: u16,
}

impl KeyGroupRange {
    /// All key groups.
    pub const ALL: Self = Self { start: 0, end: KEY_GROUPS };

    /// What `subtask` of `parallelism` owns. The ranges of all subtasks partition all groups.
    #[must_use]
    pub fn of_subtask(subtask: usize, parallelism: usize) -> Self {
        let bound = |index: usize| (index * KEY_GROUPS as usize / parallelism) as u16;
        Self { start: bound(subtask), end: bound(subtask + 1) }
    }

    /// The subtask that owns a group: the inverse of [`Self::of_subtask`].
    #[must_use]
    pub fn subtask_of(group: u8, parallelism: usize) -> usize {
        ((usize::from(group) + 1) * parallelism - 1) / KEY_GROUPS as usize
    }

    /// Whether a group is in the range.
    #[must_use]
    pub fn contains(self, group: u8) -> bool {
        (self.start..self.end).contains(&u16::from(group))
    }
}

/// The key group of each row of these key columns. No column: `rows` times the group of the
/// empty key.
pub fn key_groups(columns: &[ArrayRef], rows: usize) -> Result<Vec<u8>> {
    let keys = encode_keys(columns, rows)?;
    Ok((0..rows).map(|row| (xxh3_64(keys.get(row)) % u64::from(KEY_GROUPS)) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_owned_by_the_subtask_that_says_so() {
        for parallelism in 1..=usize::from(KEY_GROUPS) {
            for group in 0..KEY_GROUPS as u8 {
                let owner = KeyGroupRange::subtask_of(group, parallelism);
                assert!(KeyGroupRange::of_subtask(owner, parallelism).contains(group));
            }
        }
    }
}
