//! What a transaction has written and not committed: by key, the row before and the row after.
//!
//! **Invariant.** `before` is the row of the key in the transaction's snapshot (`None`: the key was
//! free there), however often the key has been written since; `after` is what the transaction
//! sees. So `−before +after` over all keys is the transaction's net effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, interleave_record_batch, take_record_batch};
use catalog::RelationId;
use dataflow::row_bytes;
use hashbrown::HashMap;
use sql::{SqlError, SqlErrorKind};
use state::{EncodedKeys, InboxChange, InboxRecord, Published, encode_keys};

use super::HeldRows;
use crate::engine::Shared;
use crate::error::{from_arrow, from_state};
use crate::live::Stored;

/// What a written row costs beside its columns: its key here and among the pending ones.
const KEY_BYTES: usize = 200;
/// How often the columns of a written row are in memory at once while it is committed: as written,
/// gathered, encoded, and in the group that goes to disk.
const COPIES: usize = 4;

/// The writes of one transaction. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes {
    tables: BTreeMap<RelationId, Arc<TableWrites>>,
    held: Option<Arc<HeldRows>>,
}

impl Writes {
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub(crate) fn table(&self, id: RelationId) -> Option<&Arc<TableWrites>> {
        self.tables.get(&id)
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = (RelationId, &TableWrites)> {
        self.tables.iter().map(|(id, writes)| (*id, writes.as_ref()))
    }

    /// Makes sure that there is memory for more rows.
    pub(crate) fn reserve(&mut self, shared: &Shared, rows: &RecordBatch) -> Result<(), SqlError> {
        let held = self.held.get_or_insert_with(|| Arc::new(HeldRows::new(shared)));
        held.hold(COPIES * row_bytes(rows) + KEY_BYTES * rows.num_rows())
    }

    /// The writes of a table, to add to.
    pub(crate) fn table_mut(&mut self, id: RelationId, name: &str, stored: &Arc<Stored>) -> &mut TableWrites {
        let writes = self
            .tables
            .entry(id)
            .or_insert_with(|| Arc::new(TableWrites::new(name.to_owned(), Arc::clone(stored))));
        Arc::make_mut(writes)
    }

    /// The net effect as row changes; `None` when there is none.
    pub(crate) fn record(&self) -> Result<Option<InboxRecord>, SqlError> {
        let mut changes = Vec::new();
        for (id, writes) in &self.tables {
            if let Some((rows, diffs)) = writes.changes()? {
                changes.push(InboxChange { job: id.0, rows, diffs });
            }
        }
        Ok((!changes.is_empty()).then_some(InboxRecord { changes }))
    }
}

/// Where a row is: batch, row in it.
type Place = (u32, u32);

/// The two ends of what happened to a key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyWrite {
    before: Option<Place>,
    after: Option<Place>,
}

impl KeyWrite {
    /// Whether the key was taken in the snapshot.
    pub(crate) fn existed(&self) -> bool {
        self.before.is_some()
    }

    /// Whether the key is taken now.
    pub(crate) fn exists(&self) -> bool {
        self.after.is_some()
    }
}

/// The writes of one transaction to one table.
#[derive(Debug, Clone)]
pub(crate) struct TableWrites {
    name: String,
    stored: Arc<Stored>,
    keys: HashMap<Box<[u8]>, KeyWrite>,
    /// Rows with all columns of the view table.
    batches: Vec<RecordBatch>,
}

impl TableWrites {
    fn new(name: String, stored: Arc<Stored>) -> Self {
        Self { name, stored, keys: HashMap::new(), batches: Vec::new() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn stored(&self) -> &Arc<Stored> {
        &self.stored
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = (&[u8], &KeyWrite)> {
        self.keys.iter().map(|(key, write)| (key.as_ref(), write))
    }

    /// Adds rows. A key that is taken, in the snapshot or by this transaction, is an error.
    pub(crate) fn insert(&mut self, rows: &RecordBatch, published: &Published) -> Result<(), SqlError> {
        let keys = self.encode(rows)?;
        self.refuse_taken(rows, &keys, published)?;
        let batch = self.push(rows.clone());
        self.keys.reserve(keys.len());
        for row in 0..keys.len() {
            let write = self.keys.entry(keys.get(row).into()).or_default();
            if write.after.replace((batch, row as u32)).is_some() {
                return Err(self.duplicate(rows, row));
            }
        }
        Ok(())
    }

    /// Removes rows that the transaction sees.
    pub(crate) fn delete(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        let keys = self.encode(rows)?;
        let batch = self.push(rows.clone());
        for row in 0..keys.len() {
            match self.keys.get_mut(keys.get(row)) {
                Some(write) => write.after = None,
                None => {
                    let write = KeyWrite { before: Some((batch, row as u32)), after: None };
                    self.keys.insert(keys.get(row).into(), write);
                }
            }
        }
        Ok(())
    }

    /// Replaces rows that the transaction sees; row i of `old` becomes row i of `new`. Uniqueness
    /// is that of the result: keys may be passed on from row to row.
    pub(crate) fn update(
        &mut self,
        old: &RecordBatch,
        new: &RecordBatch,
        published: &Published,
    ) -> Result<(), SqlError> {
        self.delete(old)?;
        self.insert(new, published)
    }

    /// The rows of `batch` (all columns of the view table) whose key this transaction has not
    /// touched.
    pub(crate) fn untouched(&self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let keys = self.encode(batch)?;
        let keep: BooleanArray =
            (0..keys.len()).map(|row| Some(!self.keys.contains_key(keys.get(row)))).collect();
        if keep.true_count() == batch.num_rows() {
            return Ok(batch.clone());
        }
        filter_record_batch(batch, &keep).map_err(from_arrow)
    }

    /// The row of one key as this transaction sees it; `rows` is what the snapshot has.
    pub(crate) fn get(&self, key: &[ArrayRef], rows: RecordBatch) -> Result<RecordBatch, SqlError> {
        let keys = encode_keys(key, 1).map_err(from_state)?;
        match self.keys.get(keys.get(0)) {
            None => Ok(rows),
            Some(write) => Ok(self.gather(write.after.into_iter())?.unwrap_or_else(|| rows.slice(0, 0))),
        }
    }

    /// The rows this transaction has written, as it sees them.
    pub(crate) fn rows(&self) -> Result<Option<RecordBatch>, SqlError> {
        self.gather(self.keys.values().filter_map(|write| write.after))
    }

    /// The rows of the snapshot that this transaction has touched.
    pub(crate) fn rows_before(&self) -> Result<Option<RecordBatch>, SqlError> {
        self.gather(self.keys.values().filter_map(|write| write.before))
    }

    /// The rows of keys that were free in the snapshot and are taken now.
    pub(crate) fn rows_added(&self) -> Result<Option<RecordBatch>, SqlError> {
        self.gather(self.keys.values().filter(|write| !write.existed()).filter_map(|write| write.after))
    }

    fn changes(&self) -> Result<Option<(RecordBatch, Int64Array)>, SqlError> {
        let removed = self.keys.values().filter_map(|write| write.before);
        let added = self.keys.values().filter_map(|write| write.after);
        let removed_count = removed.clone().count();
        let Some(rows) = self.gather(removed.chain(added))? else { return Ok(None) };
        let diffs = (0..rows.num_rows()).map(|row| if row < removed_count { -1 } else { 1 });
        let diffs = Int64Array::from_iter_values(diffs);
        Ok(Some((rows, diffs)))
    }

    fn gather(&self, places: impl Iterator<Item = Place>) -> Result<Option<RecordBatch>, SqlError> {
        let places: Vec<(usize, usize)> = places.map(|(batch, row)| (batch as usize, row as usize)).collect();
        if places.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        interleave_record_batch(&batches, &places).map(Some).map_err(from_arrow)
    }

    fn push(&mut self, rows: RecordBatch) -> u32 {
        self.batches.push(rows);
        (self.batches.len() - 1) as u32
    }

    fn encode(&self, rows: &RecordBatch) -> Result<EncodedKeys, SqlError> {
        encode_keys(&rows.columns()[..self.stored.schema.key_len], rows.num_rows()).map_err(from_state)
    }

    /// Keys this transaction has not touched must be free in its snapshot.
    fn refuse_taken(
        &self,
        rows: &RecordBatch,
        keys: &EncodedKeys,
        published: &Published,
    ) -> Result<(), SqlError> {
        let unknown: Vec<u32> = (0..keys.len())
            .filter(|&row| !self.keys.contains_key(keys.get(row)))
            .map(|row| row as u32)
            .collect();
        if unknown.is_empty() || self.stored.has_hidden_key() {
            return Ok(());
        }
        let asked = if unknown.len() == rows.num_rows() {
            rows.clone()
        } else {
            take_record_batch(rows, &UInt32Array::from(unknown)).map_err(from_arrow)?
        };
        let key_columns: &[ArrayRef] = &asked.columns()[..self.stored.schema.key_len];
        let (_, found) =
            published.get(self.stored.table, &self.stored.schema, key_columns).map_err(from_state)?;
        match found.first() {
            Some(&row) => Err(self.duplicate(&asked, row as usize)),
            None => Ok(()),
        }
    }

    /// `duplicate key value violates unique constraint`, naming the key.
    pub(crate) fn duplicate(&self, rows: &RecordBatch, row: usize) -> SqlError {
        let fields = self.stored.schema.key_fields();
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let values: Vec<String> = (0..fields.len())
            .map(|column| {
                arrow::util::display::array_value_to_string(rows.column(column), row).unwrap_or_default()
            })
            .collect();
        SqlErrorKind::UniqueViolation { constraint: format!("{}_pkey", self.name) }.detail(format!(
            "Key ({})=({}) already exists.",
            names.join(", "),
            values.join(", ")
        ))
    }
}
