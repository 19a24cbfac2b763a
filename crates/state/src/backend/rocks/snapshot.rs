//! What one commit left, readable while later commits go on.
//!
//! `RocksDB` snapshots and iterators borrow the database. [`Borrowing`] makes them owned: it is
//! the only unsafe code of this crate.

use std::fs::File;
use std::sync::Arc;

use rocksdb::{Cache, ColumnFamily, DB, DBRawIteratorWithThreadMode, ReadOptions, SnapshotWithThreadMode};

use super::chain::{CHAIN_PREFIX, ChainEntry};
use super::floors::Floors;
use super::options::Family;
use crate::backend::{Entries, Entry};
use crate::{EncodedKeys, Epoch, KeyGroupRange, Result, Snapshot, StateError, TableId, prefix_end};

/// The open database. Closed when the last snapshot, iterator and backend are gone.
pub(super) struct Database {
    pub(super) db: DB,
    pub(super) cache: Cache,
    /// Behind `db`: the folder stays ours until the database is closed.
    pub(super) _lock: Arc<File>,
}

impl Database {
    pub(super) fn family(&self, family: Family) -> Result<&ColumnFamily> {
        let missing = || StateError::Internal(format!("column family {} is not open", family.name()));
        self.db.cf_handle(family.name()).ok_or_else(missing)
    }
}

/// Keys that are asked for at a time: each may pin a block of its own until its value is copied, and
/// pinned blocks are not bounded by the cache.
const KEYS_AT_ONCE: usize = 256;

/// Something that borrows the database, with a share of the database that keeps it open.
struct Borrowing<T> {
    // Fields drop in order of declaration: the borrower before what it borrows from.
    borrower: T,
    database: Arc<Database>,
}

impl<T> Borrowing<T> {
    /// # Contract
    ///
    /// `borrow` keeps the reference nowhere but in what it returns.
    fn new(database: Arc<Database>, borrow: impl FnOnce(&'static DB) -> T) -> Self {
        // SAFETY: the reference points into the heap allocation of the `Arc`, which neither moves
        // nor is written to (`Database` is only ever shared) and lives at least as long as
        // `database`. By the contract only `borrower` holds the reference; it is private to this
        // file, never moved out, and dropped before `database`. `DB` is `Sync`, so any thread may
        // read and drop it; whether `T` may change threads stays the compiler's judgement.
        let db: &'static DB = unsafe { &*std::ptr::from_ref(&database.db) };
        Self { borrower: borrow(db), database }
    }
}

/// The state after a commit.
pub(super) struct RocksSnapshot {
    inner: Arc<Borrowing<SnapshotWithThreadMode<'static, DB>>>,
    commit: ChainEntry,
    floors: Floors,
}

impl RocksSnapshot {
    /// Takes a snapshot; nobody may write between the commit and this.
    pub(super) fn take(database: Arc<Database>, commit: ChainEntry, floors: Floors) -> Self {
        Self { inner: Arc::new(Borrowing::new(database, DB::snapshot)), commit, floors }
    }

    pub(super) fn commit(&self) -> ChainEntry {
        self.commit
    }

    pub(super) fn floors(&self) -> &Floors {
        &self.floors
    }

    /// Values of a state table by key group and key.
    pub(super) fn get_state(
        &self,
        table: TableId,
        groups: &[u8],
        keys: &EncodedKeys,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut full = keys_with_room(keys, 5);
        for (key, group) in keys.iter().zip(groups) {
            full.bytes.extend_from_slice(&table.0.to_be_bytes());
            full.bytes.push(*group);
            full.bytes.extend_from_slice(key);
            full.offsets.push(full.bytes.len());
        }
        self.multi_get(Family::State, &full)
    }

    /// Entries of some key groups; in each only the keys up to those that start with `upper`.
    pub(super) fn scan_state(
        &self,
        table: TableId,
        groups: KeyGroupRange,
        upper: Option<&[u8]>,
    ) -> Result<Scan> {
        let end = [&table.0.to_be_bytes()[..], &[groups.end as u8]].concat();
        let starts: Vec<_> =
            (groups.start..groups.end).map(|group| self.group_start(table, group as u8)).collect();
        let first = starts.first().unwrap_or(&end).clone();
        let mut scan = self.scan(Family::State, &first, Some(end), 5)?;
        scan.groups = Some(Groups { first: groups.start, starts, upper: upper.and_then(prefix_end) });
        Ok(scan)
    }

    /// Entries of a key group whose keys start with `prefix`.
    pub(super) fn scan_state_prefix(&self, table: TableId, group: u8, prefix: &[u8]) -> Result<Scan> {
        let start = [&table.0.to_be_bytes()[..], &[group], prefix].concat();
        let end = prefix_end(&start);
        // Below the floor of the group everything is deleted.
        self.scan(Family::State, &start.max(self.group_start(table, group)), end, 5)
    }

    /// Full keys of a key group before `end` (key group and key); `None`: more than `max`.
    pub(super) fn state_keys(
        &self,
        table: TableId,
        group: u8,
        end: &[u8],
        max: usize,
    ) -> Result<Option<Vec<Box<[u8]>>>> {
        let end = [&table.0.to_be_bytes(), end].concat();
        let start = self.group_start(table, group);
        if start >= end {
            return Ok(Some(Vec::new()));
        }
        let scan = self.scan(Family::State, &start, Some(end), 0)?;
        let keys = scan.take(max + 1).map(|entry| entry.map(|(key, _)| key)).collect::<Result<Vec<_>>>()?;
        Ok((keys.len() <= max).then_some(keys))
    }

    /// Where the entries of a key group begin.
    fn group_start(&self, table: TableId, group: u8) -> Vec<u8> {
        let front = [group];
        let floor = self.floors.of(table, group).unwrap_or(&front);
        [&table.0.to_be_bytes(), floor].concat()
    }

    fn scan(&self, family: Family, start: &[u8], end: Option<Vec<u8>>, prefix: usize) -> Result<Scan> {
        let database = &self.inner.database;
        let mut options = self.read_options();
        if let Some(end) = end {
            options.set_iterate_upper_bound(end);
        }
        // The family handle belongs to the database, which the iterator keeps open.
        let handle = database.family(family)?;
        let mut inner = Borrowing::new(Arc::clone(database), |db| db.raw_iterator_cf_opt(handle, options));
        inner.borrower.seek(start);
        Ok(Scan { inner, _snapshot: Arc::clone(&self.inner), prefix, groups: None, has_failed: false })
    }

    /// Entries of a view table; `None`: the range is empty.
    fn view_entries(&self, table: TableId, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<Option<Scan>> {
        let prefix = table.0.to_be_bytes();
        let first = [&prefix, start.unwrap_or_default()].concat();
        let end = end.map_or_else(|| prefix_end(&prefix), |end| Some([&prefix, end].concat()));
        if end.as_ref().is_some_and(|end| *end <= first) {
            return Ok(None);
        }
        self.scan(Family::Views, &first, end, 4).map(Some)
    }

    fn multi_get(&self, family: Family, keys: &EncodedKeys) -> Result<Vec<Option<Vec<u8>>>> {
        let database = &self.inner.database;
        let handle = database.family(family)?;
        let options = self.read_options();
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by(|left, right| keys.get(*left).cmp(keys.get(*right)));
        let mut values = vec![None; keys.len()];
        for rows in order.chunks(KEYS_AT_ONCE) {
            let slices: Vec<&[u8]> = rows.iter().map(|&row| keys.get(row)).collect();
            let found = database.db.batched_multi_get_cf_opt(handle, slices, true, &options);
            for (&row, value) in rows.iter().zip(found) {
                values[row] = value?.map(|value| value.to_vec());
            }
        }
        Ok(values)
    }

    fn read_options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.inner.borrower);
        options
    }
}

impl Snapshot for RocksSnapshot {
    fn epoch(&self) -> Epoch {
        self.commit.epoch
    }

    fn inbox_sequence(&self) -> u64 {
        self.commit.inbox_sequence
    }

    fn meta(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let database = &self.inner.database;
        Ok(database.db.get_cf_opt(database.family(Family::Meta)?, key, &self.read_options())?)
    }

    fn scan_meta(&self, prefix: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let end = prefix_end(prefix).unwrap_or_else(|| CHAIN_PREFIX.to_vec());
        let scan = self.scan(Family::Meta, prefix, Some(end), 0)?;
        scan.map(|entry| entry.map(|(key, value)| (key.into_vec(), value.into_vec()))).collect()
    }

    fn get_view(&self, table: TableId, keys: &EncodedKeys) -> Result<Vec<Option<Vec<u8>>>> {
        let mut full = keys_with_room(keys, 4);
        for key in keys.iter() {
            full.bytes.extend_from_slice(&table.0.to_be_bytes());
            full.bytes.extend_from_slice(key);
            full.offsets.push(full.bytes.len());
        }
        self.multi_get(Family::Views, &full)
    }

    fn scan_view(
        &self,
        table: TableId,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send> {
        match self.view_entries(table, start, end) {
            Ok(scan) => Box::new(scan.into_iter().flatten()),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn scan_view_entries(
        &self,
        table: TableId,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        entries_max: usize,
    ) -> Box<dyn Iterator<Item = Result<Entries>> + Send> {
        match self.view_entries(table, start, end) {
            Ok(Some(mut scan)) => {
                Box::new(std::iter::from_fn(move || scan.next_entries(entries_max).transpose()))
            }
            Ok(None) => Box::new(std::iter::empty()),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}

/// Entries in key order, without their prefix. Ends behind the first error.
pub(super) struct Scan {
    inner: Borrowing<DBRawIteratorWithThreadMode<'static, DB>>,
    /// The iterator reads at this snapshot, so it stays taken.
    _snapshot: Arc<Borrowing<SnapshotWithThreadMode<'static, DB>>>,
    /// Bytes of table id and key group before the key.
    prefix: usize,
    groups: Option<Groups>,
    has_failed: bool,
}

/// How a scan goes from key group to key group.
struct Groups {
    first: u16,
    /// Where the entries of each group begin.
    starts: Vec<Vec<u8>>,
    /// In every group, keys end before this.
    upper: Option<Vec<u8>>,
}

impl Groups {
    /// Where the scan must jump to, if it has no business at this key.
    fn jump(&self, full_key: &[u8], key: &[u8]) -> Option<Jump<'_>> {
        let group = full_key.len().checked_sub(key.len() + 1).and_then(|at| full_key.get(at)).copied()?;
        let idx = usize::from(u16::from(group).checked_sub(self.first)?);
        if self.upper.as_deref().is_some_and(|upper| key >= upper) {
            return Some(self.starts.get(idx + 1).map_or(Jump::End, |start| Jump::To(start)));
        }
        None
    }
}

enum Jump<'a> {
    To(&'a [u8]),
    End,
}

impl Scan {
    /// Passes the next entry to `take`.
    fn next_with<T>(&mut self, take: impl FnOnce(&[u8], &[u8]) -> T) -> Result<Option<T>> {
        let iterator = &mut self.inner.borrower;
        loop {
            let Some((full_key, value)) = iterator.item() else {
                if self.has_failed {
                    return Ok(None);
                }
                self.has_failed = true;
                return iterator.status().map(|()| None).map_err(Into::into);
            };
            let key = &full_key[self.prefix..];
            match self.groups.as_ref().and_then(|groups| groups.jump(full_key, key)) {
                Some(Jump::To(start)) => iterator.seek(start),
                Some(Jump::End) => return Ok(None),
                None => {
                    let taken = take(key, value);
                    iterator.next();
                    return Ok(Some(taken));
                }
            }
        }
    }

    /// Up to that many entries, fewer where they are long; `None` at the end.
    fn next_entries(&mut self, entries_max: usize) -> Result<Option<Entries>> {
        let mut entries = Entries::default();
        while entries.has_room(entries_max) {
            let push = |key: &[u8], value: &[u8]| entries.push(key, value);
            if self.next_with(push)?.is_none() {
                break;
            }
        }
        Ok((!entries.keys.is_empty()).then_some(entries))
    }
}

impl Iterator for Scan {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_with(|key, value| (Box::from(key), Box::from(value))).transpose()
    }
}

/// A scan, or the error that it could not begin.
pub(super) fn boxed(scan: Result<Scan>) -> Box<dyn Iterator<Item = Result<Entry>> + Send> {
    match scan {
        Ok(scan) => Box::new(scan),
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

fn keys_with_room(keys: &EncodedKeys, prefix: usize) -> EncodedKeys {
    let mut offsets = Vec::with_capacity(keys.len() + 1);
    offsets.push(0);
    EncodedKeys { bytes: Vec::with_capacity(keys.bytes.len() + prefix * keys.len()), offsets }
}
