//! A checkpoint as one `WriteBatch`.

use std::ops::Range;

use rocksdb::{ColumnFamily, WriteBatch};

use super::chain::{CHAIN_PREFIX, ChainEntry};
use super::floors::Floors;
use super::options::Family;
use super::snapshot::{Database, RocksSnapshot};
use crate::backend::encode::TableWrites;
use crate::{CheckpointWrites, KeyGroupRange, Result, StateError, TableId, prefix_end};

/// A range that holds more keys than this is deleted as a range. Fewer are deleted one by one:
/// range tombstones cost every later read of the table, and closing windows would leave one per
/// key group and checkpoint.
const POINT_DELETES_MAX: usize = 256;

/// What the commit writes, and the floors that hold once it is written.
pub(super) struct CommitBatch<'a> {
    batch: WriteBatch,
    floors: Floors,
    before: &'a RocksSnapshot,
    meta: &'a ColumnFamily,
    state: &'a ColumnFamily,
    views: &'a ColumnFamily,
    /// Where this batch has put state: a scan of the snapshot before does not see it.
    put: Vec<(TableId, KeyGroupRange)>,
    key: Vec<u8>,
}

impl<'a> CommitBatch<'a> {
    /// Encodes a whole checkpoint.
    pub(super) fn build(
        database: &'a Database,
        before: &'a RocksSnapshot,
        writes: CheckpointWrites,
        commit: ChainEntry,
    ) -> Result<(WriteBatch, Floors)> {
        let mut batch = Self {
            batch: WriteBatch::default(),
            floors: before.floors().clone(),
            before,
            meta: database.family(Family::Meta)?,
            state: database.family(Family::State)?,
            views: database.family(Family::Views)?,
            put: Vec::new(),
            key: Vec::new(),
        };
        batch.write_meta(writes.meta)?;
        for (table, groups, changes) in writes.state {
            batch.write_state(table, groups, &TableWrites::of_state(groups, &changes)?)?;
        }
        for (table, run) in writes.views {
            let family = batch.views;
            batch.write_entries(family, table, &TableWrites::of_run(&run)?)?;
        }
        for table in writes.dropped_tables {
            batch.drop_table(table)?;
        }
        for family in [batch.meta, batch.state, batch.views] {
            commit.write(&mut batch.batch, family);
        }
        Ok((batch.batch, batch.floors))
    }

    fn write_meta(&mut self, entries: Vec<(Vec<u8>, Option<Vec<u8>>)>) -> Result<()> {
        for (key, value) in entries {
            if key.starts_with(&CHAIN_PREFIX) {
                return Err(StateError::Internal("a meta key in the place of the commit chain".to_owned()));
            }
            match value {
                Some(value) => self.batch.put_cf(self.meta, key, value),
                None => self.batch.delete_cf(self.meta, key),
            }
        }
        Ok(())
    }

    fn write_state(&mut self, table: TableId, groups: KeyGroupRange, writes: &TableWrites) -> Result<()> {
        for range in &writes.delete_ranges {
            self.delete_range(table, range)?;
        }
        let mut last_group = None;
        for (key, value) in writes.entries() {
            // Keys ascend, so the first of a group is its least.
            if value.is_some() && last_group != key.first() {
                last_group = key.first();
                self.floors.admit(table, key);
            }
        }
        self.put.push((table, groups));
        self.write_entries(self.state, table, writes)
    }

    fn write_entries(&mut self, family: &ColumnFamily, table: TableId, writes: &TableWrites) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(&prefix(table)?);
        for (key, value) in writes.entries() {
            self.key.truncate(4);
            self.key.extend_from_slice(key);
            match value {
                Some(value) => self.batch.put_cf(family, &self.key, value),
                None => self.batch.delete_cf(family, &self.key),
            }
        }
        Ok(())
    }

    /// Deletes the keys of one key group of a state table up to a bound.
    fn delete_range(&mut self, table: TableId, range: &Range<Vec<u8>>) -> Result<()> {
        let group = range.start.first().copied().unwrap_or_default();
        let is_put = |(put, groups): &(TableId, KeyGroupRange)| *put == table && groups.contains(group);
        let keys = if self.put.iter().any(is_put) {
            None
        } else {
            self.before.state_keys(table, group, &range.end, POINT_DELETES_MAX)?
        };
        match keys {
            Some(keys) => keys.iter().for_each(|key| self.batch.delete_cf(self.state, key)),
            None => {
                let bounds = [&range.start, &range.end]
                    .map(|bound| [&table.0.to_be_bytes(), bound.as_slice()].concat());
                let [start, end] = &bounds;
                self.batch.delete_range_cf(self.state, start, end);
            }
        }
        self.floors.raise(table, group, &range.end);
        Ok(())
    }

    fn drop_table(&mut self, table: TableId) -> Result<()> {
        let start = prefix(table)?;
        let end = prefix_end(&start).ok_or_else(|| reserved(table))?;
        for family in [self.state, self.views] {
            self.batch.delete_range_cf(family, start.as_slice(), end.as_slice());
        }
        self.floors.forget(table);
        Ok(())
    }
}

fn prefix(table: TableId) -> Result<[u8; 4]> {
    let prefix = table.0.to_be_bytes();
    if prefix == CHAIN_PREFIX { Err(reserved(table)) } else { Ok(prefix) }
}

fn reserved(table: TableId) -> StateError {
    StateError::Internal(format!("table id {} is reserved", table.0))
}
