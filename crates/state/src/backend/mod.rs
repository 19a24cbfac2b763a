//! State backends: where checkpoints go.

mod encode;
mod folder;
mod memory;
mod rocks;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;

use crate::backend::memory::MemoryBackend;
use crate::{EncodedKeys, Epoch, Inbox, KeyGroupRange, Result, Run, TableChanges, TableId};

/// Everything one checkpoint writes, in one atomic commit.
#[derive(Debug, Default)]
pub struct CheckpointWrites {
    /// The epoch the checkpoint completes.
    pub epoch: Epoch,
    /// Operator state: later entries of the same table win.
    pub state: Vec<(TableId, KeyGroupRange, TableChanges)>,
    /// View content: runs since the last checkpoint, oldest first per table.
    pub views: Vec<(TableId, Arc<Run>)>,
    /// Catalog, positions, watermarks, clocks: key to value, `None` deletes.
    pub meta: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Tables that are gone.
    pub dropped_tables: Vec<TableId>,
    /// Every inbox record up to this sequence is contained in the checkpoint.
    pub inbox_sequence: u64,
}

/// An encoded key and its encoded value.
pub type Entry = (Box<[u8]>, Box<[u8]>);

/// Many entries, back to back: entry i is key i and value i.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    /// Encoded keys, ascending.
    pub keys: EncodedKeys,
    /// Their encoded values.
    pub values: EncodedKeys,
}

/// Bytes of [`Entries`] behind which no more are added, however few there are.
const ENTRIES_BYTES_MAX: usize = 1 << 20;

impl Entries {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.keys.push(key);
        self.values.push(value);
    }

    /// Whether one more may be added: long rows must not make a batch of a size that nobody
    /// reckons with.
    fn has_room(&self, entries_max: usize) -> bool {
        self.keys.len() < entries_max && self.keys.bytes.len() + self.values.bytes.len() < ENTRIES_BYTES_MAX
    }
}

/// What one checkpoint holds, readable for as long as anybody holds on to it.
pub trait Snapshot: Send + Sync {
    /// The checkpoint's epoch.
    fn epoch(&self) -> Epoch;
    /// The inbox sequence it contains.
    fn inbox_sequence(&self) -> u64;
    /// A `meta` value.
    fn meta(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// All `meta` entries whose key starts with `prefix`, in key order.
    fn scan_meta(&self, prefix: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>>;
    /// Encoded values of a view table by encoded key, in the order asked.
    fn get_view(&self, table: TableId, keys: &EncodedKeys) -> Result<Vec<Option<Vec<u8>>>>;
    /// Entries of a view table in key order, from `start` (inclusive) to `end` (exclusive).
    fn scan_view(
        &self,
        table: TableId,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send>;
    /// [`Self::scan_view`] with up to `entries_max` entries at a time (fewer where they are long),
    /// for scans of many rows.
    fn scan_view_entries(
        &self,
        table: TableId,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        entries_max: usize,
    ) -> Box<dyn Iterator<Item = Result<Entries>> + Send> {
        let mut scan = self.scan_view(table, start, end);
        Box::new(std::iter::from_fn(move || {
            let mut entries = Entries::default();
            while entries.has_room(entries_max)
                && let Some(entry) = scan.next()
            {
                match entry {
                    Ok((key, value)) => entries.push(&key, &value),
                    Err(error) => return Some(Err(error)),
                }
            }
            (!entries.keys.is_empty()).then_some(Ok(entries))
        }))
    }
}

/// Durable state behind a trait, so that the same tests run over `RocksDB` and memory.
pub trait StateBackend: Send + Sync {
    /// Writes a checkpoint atomically and durably; returns what the disk now holds.
    fn commit(&self, writes: CheckpointWrites) -> Result<Arc<dyn Snapshot>>;
    /// The last durable checkpoint.
    fn snapshot(&self) -> Arc<dyn Snapshot>;
    /// Encoded values of an operator's state table: `groups[i]` is the key group of key i.
    fn get_state(&self, table: TableId, groups: &[u8], keys: &EncodedKeys) -> Result<Vec<Option<Vec<u8>>>>;
    /// Entries of an operator's state table: per key group in key order (keys come back without
    /// the prefix). `upper`: only keys up to and including those that start with these bytes.
    fn scan_state(
        &self,
        table: TableId,
        groups: KeyGroupRange,
        upper: Option<&[u8]>,
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send>;
    /// Entries of an operator's state table in one key group whose keys start with `prefix`, in
    /// key order.
    fn scan_state_prefix(
        &self,
        table: TableId,
        group: u8,
        prefix: &[u8],
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send>;
    /// Bytes the backend holds in memory (block cache, write buffers).
    fn memory(&self) -> usize;
}

/// How to open durable state.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// The data folder; `None` keeps everything in memory.
    pub path: Option<PathBuf>,
    /// Budget for block cache and write buffers together, in bytes.
    pub memory: usize,
}

/// The open data folder: a backend and the inbox beside it.
#[derive(Clone)]
pub struct Storage {
    /// Checkpoints.
    pub backend: Arc<dyn StateBackend>,
    /// Row changes of tables that are acknowledged but perhaps not in a checkpoint yet.
    pub inbox: Arc<Inbox>,
}

impl Storage {
    /// Verifies the folder, then opens it read-write. Refuses, naming the file, when anything on
    /// disk is not what was written; a refusal changes nothing.
    pub fn open(options: &StorageOptions) -> Result<Self> {
        match &options.path {
            None => {
                Ok(Self { backend: Arc::new(MemoryBackend::default()), inbox: Arc::new(Inbox::in_memory()) })
            }
            Some(path) => folder::open(path, options.memory),
        }
    }
}
