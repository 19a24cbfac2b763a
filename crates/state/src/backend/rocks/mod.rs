//! Checkpoints in `RocksDB`.
//!
//! ```text
//!  CheckpointWrites ─► CommitBatch ─► one WriteBatch, synced ─► fence ─► snapshot ─► readers
//!                         (batch)      all families + chain            (swapped as a whole)
//! ```
//!
//! | family | key | value |
//! |---|---|---|
//! | `meta`  | any | any |
//! | `state` | table id (4, big-endian) · key group (1) · key | row |
//! | `views` | table id (4, big-endian) · key | row |
//! | each    | the commit chain: `chain.rs` | |
//!
//! **Invariant.** The writer lock is held from the write to the swap of the snapshot, so a
//! snapshot shows exactly the commits up to its own, and nothing else is ever written.

mod batch;
mod chain;
mod floors;
mod options;
mod snapshot;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rocksdb::{DB, DBRecoveryMode, FlushOptions, WriteOptions};

use self::batch::CommitBatch;
use self::chain::FLUSH_INTERVAL;
use self::floors::Floors;
use self::snapshot::{Database, RocksSnapshot, boxed};
use super::verify::Verified;
use super::{CheckpointWrites, Entry, Snapshot, StateBackend};
use crate::fence::Fence;
use crate::{EncodedKeys, KeyGroupRange, Result, StateError, TableId, file};

pub(super) use self::chain::{ChainEntry, fault_of, read_chain};
pub(super) use self::options::{DatabaseOptions, Family};

/// The open database as a state backend.
pub(super) struct RocksBackend {
    database: Arc<Database>,
    fence: Arc<Fence>,
    current: RwLock<Arc<RocksSnapshot>>,
    writer: Mutex<Writer>,
}

/// Whoever holds it may write.
#[derive(Debug, Default)]
struct Writer {
    has_failed: bool,
}

impl RocksBackend {
    /// Creates an empty database.
    pub(super) fn create(path: &Path) -> Result<()> {
        file::create_folder(path)?;
        let mut options = DatabaseOptions::new(0, DBRecoveryMode::AbsoluteConsistency);
        options.database.create_if_missing(true);
        options.database.create_missing_column_families(true);
        drop(DB::open_cf_descriptors(&options.database, path, options.families())?);
        file::sync_folder(path)
    }

    /// Opens a database that has been verified.
    pub(super) fn open(
        path: &Path,
        memory: usize,
        verified: Verified,
        fence: Arc<Fence>,
        lock: Arc<File>,
    ) -> Result<Self> {
        let Verified { recovery, last } = verified;
        let options = DatabaseOptions::new(memory, recovery);
        let db = DB::open_cf_descriptors(&options.database, path, options.families())?;
        let database = Arc::new(Database { db, cache: options.cache, _lock: lock });
        // The last commit may be one that the fence does not know yet.
        fence.advance_epoch(last.epoch)?;
        let current = RocksSnapshot::take(Arc::clone(&database), last, Floors::default());
        Ok(Self { database, fence, current: RwLock::new(Arc::new(current)), writer: Mutex::default() })
    }

    fn current(&self) -> Arc<RocksSnapshot> {
        Arc::clone(&self.current.read())
    }

    /// The part of a commit that cannot be taken back.
    fn write(&self, batch: rocksdb::WriteBatch, commit: ChainEntry) -> Result<()> {
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        self.database.db.write_opt(batch, &synced)?;
        self.fence.advance_epoch(commit.epoch)?;
        if commit.number.is_multiple_of(FLUSH_INTERVAL) {
            self.flush()?;
        }
        Ok(())
    }

    /// Begins to flush every family; the next write reports what goes wrong.
    fn flush(&self) -> Result<()> {
        let mut begin = FlushOptions::default();
        begin.set_wait(false);
        for family in Family::ALL {
            self.database.db.flush_cf_opt(self.database.family(family)?, &begin)?;
        }
        Ok(())
    }
}

impl StateBackend for RocksBackend {
    fn commit(&self, writes: CheckpointWrites) -> Result<Arc<dyn Snapshot>> {
        let mut writer = self.writer.lock();
        if writer.has_failed {
            return Err(StateError::Fatal { reason: "an earlier commit failed".to_owned() });
        }
        let before = self.current();
        let commit = before.commit().followed_by(writes.epoch, writes.inbox_sequence)?;
        let (batch, floors) = CommitBatch::build(&self.database, &before, writes, commit)?;
        if let Err(error) = self.write(batch, commit) {
            writer.has_failed = true;
            return Err(error.into_fatal());
        }
        let snapshot = Arc::new(RocksSnapshot::take(Arc::clone(&self.database), commit, floors));
        *self.current.write() = Arc::clone(&snapshot);
        Ok(snapshot)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.current()
    }

    fn get_state(&self, table: TableId, groups: &[u8], keys: &EncodedKeys) -> Result<Vec<Option<Vec<u8>>>> {
        self.current().get_state(table, groups, keys)
    }

    fn scan_state(
        &self,
        table: TableId,
        groups: KeyGroupRange,
        upper: Option<&[u8]>,
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send> {
        boxed(self.current().scan_state(table, groups, upper))
    }

    fn scan_state_prefix(
        &self,
        table: TableId,
        group: u8,
        prefix: &[u8],
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send> {
        boxed(self.current().scan_state_prefix(table, group, prefix))
    }

    fn memory(&self) -> usize {
        self.database.cache.get_usage()
    }
}
