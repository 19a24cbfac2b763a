//! The commit chain: one entry per commit in every column family, so that a lost write shows.
//!
//! `RocksDB` does not notice all of its own losses (a shortened older log, a shortened MANIFEST),
//! and what it loses may be the writes of one family only. Each commit therefore writes an entry
//! to every family in its atomic batch, and a start checks that no entry is missing.
//!
//! | bytes of the key | |
//! |---|---|
//! | 0..4  | `FF FF FF FF`: behind every table id |
//! | 4..12 | number of the commit, from 1, big-endian |
//!
//! | bytes of the value | |
//! |---|---|
//! | 0..8  | epoch, big-endian |
//! | 8..16 | inbox sequence the commit contains, big-endian |
//!
//! **Invariant.** A family holds exactly the entries of the last [`SPAN`] commits: commit n writes
//! entry n and deletes entry n − [`SPAN`]. Every family is flushed more often than once in a span,
//! so what the chain no longer covers is in table files that the MANIFEST names, and those are
//! missed when they are gone.

use rocksdb::{ColumnFamily, DB, WriteBatch};

use crate::{Epoch, Result, StateError};

/// How many commits stay in the chain.
pub(crate) const SPAN: u64 = 10_000;

/// All families are flushed every so many commits.
pub(crate) const FLUSH_INTERVAL: u64 = 4_000;

/// No table has this id.
pub(crate) const CHAIN_PREFIX: [u8; 4] = [0xff; 4];

/// One commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChainEntry {
    /// Commits are counted from 1; 0 is the empty database.
    pub(crate) number: u64,
    /// The epoch it completed.
    pub(crate) epoch: Epoch,
    /// The inbox sequence it contains.
    pub(crate) inbox_sequence: u64,
}

impl ChainEntry {
    /// The commit after this one.
    pub(crate) fn followed_by(&self, epoch: Epoch, inbox_sequence: u64) -> Result<Self> {
        if epoch <= self.epoch || inbox_sequence < self.inbox_sequence {
            let reason = format!("commit of epoch {epoch} and inbox record {inbox_sequence} after {self:?}");
            return Err(StateError::Internal(reason));
        }
        Ok(Self { number: self.number + 1, epoch, inbox_sequence })
    }

    /// Adds the entry to a commit, and takes out the one that leaves the span.
    pub(crate) fn write(&self, batch: &mut WriteBatch, family: &ColumnFamily) {
        batch.put_cf(family, key(self.number), self.value());
        if let Some(expired) = self.number.checked_sub(SPAN).filter(|number| *number > 0) {
            batch.delete_cf(family, key(expired));
        }
    }

    fn value(&self) -> [u8; 16] {
        let mut value = [0; 16];
        value[..8].copy_from_slice(&self.epoch.0.to_be_bytes());
        value[8..].copy_from_slice(&self.inbox_sequence.to_be_bytes());
        value
    }

    fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
        let number = u64::from_be_bytes(key.strip_prefix(&CHAIN_PREFIX)?.try_into().ok()?);
        let (epoch, inbox_sequence) = value.split_first_chunk()?;
        let inbox_sequence = u64::from_be_bytes(inbox_sequence.try_into().ok()?);
        Some(Self { number, epoch: Epoch(u64::from_be_bytes(*epoch)), inbox_sequence })
    }
}

/// Reads the chain of a family.
pub(crate) fn read_chain(db: &DB, family: &ColumnFamily) -> Result<Vec<ChainEntry>, rocksdb::Error> {
    let mut chain = Vec::new();
    let mut entries = db.raw_iterator_cf(family);
    entries.seek(CHAIN_PREFIX);
    while let Some((key, value)) = entries.item() {
        // An entry that does not decode counts as missing.
        chain.extend(ChainEntry::decode(key, value));
        entries.next();
    }
    entries.status()?;
    Ok(chain)
}

/// What is wrong with a chain in itself, in words.
pub(crate) fn fault_of(chain: &[ChainEntry]) -> Option<String> {
    let last = chain.last()?;
    let first_expected = last.number.saturating_sub(SPAN) + 1;
    let numbers = chain.iter().map(|entry| entry.number);
    if let Some((expected, found)) =
        (first_expected..).zip(numbers).find(|(expected, found)| expected != found)
    {
        return Some(format!("commits {expected} to {} are missing", found.saturating_sub(1)));
    }
    let (before, after) =
        chain.iter().zip(&chain[1..]).find(|(before, after)| before.epoch >= after.epoch)?;
    Some(format!("epoch {} follows epoch {}", after.epoch, before.epoch))
}

fn key(number: u64) -> [u8; 12] {
    let mut key = [0xff; 12];
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(numbers: impl Iterator<Item = u64>) -> Vec<ChainEntry> {
        numbers
            .map(|number| ChainEntry { number, epoch: Epoch(number * 3), inbox_sequence: number })
            .collect()
    }

    #[test]
    fn a_whole_chain_has_no_fault() {
        for numbers in [1..=0, 1..=1, 1..=SPAN, 8..=SPAN + 7] {
            assert_eq!(fault_of(&chain(numbers.clone())), None, "{numbers:?}");
        }
    }

    #[test]
    fn a_missing_commit_shows_at_either_place() {
        assert_eq!(fault_of(&chain(4..=9)).as_deref(), Some("commits 1 to 3 are missing"));
        assert_eq!(
            fault_of(&chain((1..=9).filter(|n| !(5..7).contains(n)))).as_deref(),
            Some("commits 5 to 6 are missing")
        );
        assert_eq!(fault_of(&chain(9..=SPAN + 7)).as_deref(), Some("commits 8 to 8 are missing"));
    }

    #[test]
    fn an_epoch_that_does_not_grow_is_a_fault() {
        let mut chain = chain(1..=4);
        chain[2].epoch = Epoch(6);
        assert_eq!(fault_of(&chain).as_deref(), Some("epoch 6 follows epoch 6"));
    }

    #[test]
    fn a_family_keeps_one_span_of_commits() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = rocksdb::Options::default();
        options.create_if_missing(true);
        let db = DB::open_cf(&options, folder.path(), ["default"]).unwrap();
        let family = db.cf_handle("default").unwrap();
        for entry in chain(1..=SPAN + 50) {
            let mut batch = WriteBatch::default();
            entry.write(&mut batch, family);
            db.write(batch).unwrap();
        }
        let found = read_chain(&db, family).unwrap();
        assert_eq!(fault_of(&found), None);
        assert_eq!(found, chain(51..=SPAN + 50));
    }

    #[test]
    fn an_entry_comes_back_as_it_went() {
        let entry = ChainEntry { number: 5, epoch: Epoch(77), inbox_sequence: 1 << 40 };
        assert_eq!(ChainEntry::decode(&key(5), &entry.value()), Some(entry));
        assert_eq!(ChainEntry::decode(&key(5), &entry.value()[1..]), None);
    }
}
