//! The memory backend: for tests, demos and databases that need not survive.
//!
//! A table is a stack of immutable sorted layers, newest last. A commit adds a layer and merges
//! layers of similar size, so that a commit costs in proportion to what it writes (times the
//! logarithm of the table), a snapshot is a copy of a few pointers, and readers block nobody.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::backend::encode::TableWrites;
use crate::backend::{CheckpointWrites, Entries, Entry, Snapshot, StateBackend};
use crate::merge::{MergeCursor, Sorted};
use crate::{EncodedKeys, Epoch, KeyGroupRange, Result, StateError, TableId, prefix_end};

/// Checkpoints in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryBackend {
    current: RwLock<Arc<MemorySnapshot>>,
    /// One commit at a time; readers take only `current`.
    commits: Mutex<()>,
}

#[derive(Debug, Default, Clone)]
struct MemorySnapshot {
    epoch: Epoch,
    inbox_sequence: u64,
    meta: Arc<BTreeMap<Vec<u8>, Vec<u8>>>,
    state: BTreeMap<TableId, MemoryTable>,
    views: BTreeMap<TableId, MemoryTable>,
}

/// The layers of one table, oldest first.
#[derive(Debug, Default, Clone)]
struct MemoryTable {
    layers: Vec<Arc<Layer>>,
}

#[derive(Debug, Default)]
struct Layer {
    keys: EncodedKeys,
    values: EncodedKeys,
    deleted: Vec<bool>,
}

impl StateBackend for MemoryBackend {
    fn commit(&self, writes: CheckpointWrites) -> Result<Arc<dyn Snapshot>> {
        let _commit = self.commits.lock();
        let mut next = MemorySnapshot::clone(&self.current.read());
        next.apply(writes)?;
        let next = Arc::new(next);
        *self.current.write() = Arc::clone(&next);
        Ok(next)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        Arc::<MemorySnapshot>::clone(&self.current.read())
    }

    fn get_state(&self, table: TableId, groups: &[u8], keys: &EncodedKeys) -> Result<Vec<Option<Vec<u8>>>> {
        let current = Arc::clone(&self.current.read());
        let Some(table) = current.state.get(&table) else {
            return Ok(vec![None; keys.len()]);
        };
        let mut stored_key = Vec::new();
        let values = keys.iter().zip(groups).map(|(key, group)| {
            stored_key.clear();
            stored_key.push(*group);
            stored_key.extend_from_slice(key);
            table.get(&stored_key).map(<[u8]>::to_vec)
        });
        Ok(values.collect())
    }

    fn scan_state(
        &self,
        table: TableId,
        groups: KeyGroupRange,
        upper: Option<&[u8]>,
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send> {
        let Some(table) = self.current.read().state.get(&table).cloned() else {
            return Box::new(std::iter::empty());
        };
        let upper = upper.map(<[u8]>::to_vec);
        let entries = (groups.start..groups.end).flat_map(move |group| {
            let start = [group as u8];
            let mut last = start.to_vec();
            last.extend(upper.iter().flatten());
            table.scan(Some(&start), prefix_end(&last).as_deref())
        });
        Box::new(entries.map(|(key, value)| Ok((key[1..].into(), value))))
    }

    fn scan_state_prefix(
        &self,
        table: TableId,
        group: u8,
        prefix: &[u8],
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send> {
        let Some(table) = self.current.read().state.get(&table).cloned() else {
            return Box::new(std::iter::empty());
        };
        let start = [&[group], prefix].concat();
        let entries = table.scan(Some(&start), prefix_end(&start).as_deref());
        Box::new(entries.map(|(key, value)| Ok((key[1..].into(), value))))
    }

    fn memory(&self) -> usize {
        let current = Arc::clone(&self.current.read());
        let tables = current.state.values().chain(current.views.values());
        tables.flat_map(|table| &table.layers).map(|layer| layer.memory_size()).sum()
    }
}

impl MemorySnapshot {
    fn apply(&mut self, writes: CheckpointWrites) -> Result<()> {
        if writes.epoch <= self.epoch {
            let (now, then) = (writes.epoch, self.epoch);
            return Err(StateError::Internal(format!("checkpoint {now} after checkpoint {then}")));
        }
        self.epoch = writes.epoch;
        self.inbox_sequence = self.inbox_sequence.max(writes.inbox_sequence);
        for (table, groups, changes) in &writes.state {
            self.state.entry(*table).or_default().apply(&TableWrites::of_state(*groups, changes)?);
        }
        for (table, run) in &writes.views {
            self.views.entry(*table).or_default().apply(&TableWrites::of_run(run)?);
        }
        if !writes.meta.is_empty() {
            let meta = Arc::make_mut(&mut self.meta);
            for (key, value) in writes.meta {
                match value {
                    Some(value) => meta.insert(key, value),
                    None => meta.remove(&key),
                };
            }
        }
        for table in &writes.dropped_tables {
            self.state.remove(table);
            self.views.remove(table);
        }
        Ok(())
    }
}

impl Snapshot for MemorySnapshot {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn inbox_sequence(&self) -> u64 {
        self.inbox_sequence
    }

    fn meta(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.meta.get(key).cloned())
    }

    fn scan_meta(&self, prefix: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let from_prefix = self.meta.range(prefix.to_vec()..);
        let entries = from_prefix.take_while(|(key, _)| key.starts_with(prefix));
        Ok(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn get_view(&self, table: TableId, keys: &EncodedKeys) -> Result<Vec<Option<Vec<u8>>>> {
        let table = self.views.get(&table);
        Ok(keys.iter().map(|key| Some(table?.get(key)?.to_vec())).collect())
    }

    fn scan_view(
        &self,
        table: TableId,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Box<dyn Iterator<Item = Result<Entry>> + Send> {
        match self.views.get(&table) {
            Some(table) => Box::new(table.scan(start, end).map(Ok)),
            None => Box::new(std::iter::empty()),
        }
    }

    fn scan_view_entries(
        &self,
        table: TableId,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        entries_max: usize,
    ) -> Box<dyn Iterator<Item = Result<Entries>> + Send> {
        let Some(table) = self.views.get(&table) else {
            return Box::new(std::iter::empty());
        };
        let layers = table.layers.clone();
        let mut cursor = table.cursor(start, end);
        Box::new(std::iter::from_fn(move || {
            let mut entries = Entries::default();
            while entries.has_room(entries_max)
                && let Some((layer, row)) = cursor.next()
            {
                if let Some((key, value)) = layers[layer].entry(row) {
                    entries.push(key, value);
                }
            }
            (!entries.keys.is_empty()).then_some(Ok(entries))
        }))
    }
}

impl MemoryTable {
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.layers.iter().rev().find_map(|layer| layer.find(key))?
    }

    fn scan(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> impl Iterator<Item = Entry> + Send + use<> {
        let layers = self.layers.clone();
        self.cursor(start, end).filter_map(move |(layer, row)| {
            let (key, value) = layers[layer].entry(row)?;
            Some((key.into(), value.into()))
        })
    }

    fn cursor(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> MergeCursor<Arc<Layer>> {
        MergeCursor::new(self.layers.iter().map(Arc::clone), start, end)
    }

    fn apply(&mut self, writes: &TableWrites) {
        let mut ended = Layer::default();
        for range in &writes.delete_ranges {
            for (key, _) in self.scan(Some(&range.start), Some(&range.end)) {
                ended.push(&key, None);
            }
        }
        self.add(ended);
        let mut changed = Layer::default();
        for (key, value) in writes.entries() {
            changed.push(key, value);
        }
        self.add(changed);
    }

    /// Adds a layer and merges from the top while the newer layer is at least half as large as the
    /// older: what remains doubles from layer to layer.
    fn add(&mut self, layer: Layer) {
        if layer.keys.is_empty() {
            return;
        }
        self.layers.push(Arc::new(layer));
        while let [.., older, newer] = self.layers.as_slice()
            && newer.keys.len() * 2 >= older.keys.len()
        {
            let is_oldest = self.layers.len() == 2;
            let merged = Layer::merge(Arc::clone(older), Arc::clone(newer), is_oldest);
            self.layers.truncate(self.layers.len() - 2);
            self.layers.push(Arc::new(merged));
        }
    }
}

impl Layer {
    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.keys.push(key);
        self.values.push(value.unwrap_or_default());
        self.deleted.push(value.is_none());
    }

    /// Key and value of a row that is not a deletion.
    fn entry(&self, row: usize) -> Option<(&[u8], &[u8])> {
        (!self.deleted[row]).then(|| (self.keys.get(row), self.values.get(row)))
    }

    /// The value of a key, `Some(None)` if it is deleted here.
    fn find(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let row = self.keys.lower_bound(key);
        let is_here = row < self.keys.len() && self.keys.get(row) == key;
        is_here.then(|| (!self.deleted[row]).then(|| self.values.get(row)))
    }

    /// Both as one. Below the oldest layer is nothing that a deletion could hide.
    fn merge(older: Arc<Self>, newer: Arc<Self>, is_oldest: bool) -> Self {
        let mut merged = Self::default();
        let layers = [older, newer];
        for (layer, row) in MergeCursor::new(layers.clone(), None, None) {
            match layers[layer].entry(row) {
                Some((key, value)) => merged.push(key, Some(value)),
                None if is_oldest => {}
                None => merged.push(layers[layer].keys.get(row), None),
            }
        }
        merged
    }

    fn memory_size(&self) -> usize {
        self.keys.memory_size() + self.values.memory_size() + self.deleted.capacity()
    }
}

impl Sorted for Arc<Layer> {
    fn keys(&self) -> &EncodedKeys {
        &self.keys
    }
}
