//! Commit: first committer wins, uniqueness is exact, fsyncs are shared.
//!
//! ```text
//!  validate against published + pending ─► reserve the keys ─► Runtime::write (fsync) ─► acknowledge
//!  └────────── under the mutex ──────────┘                     └── no lock is held ──┘
//! ```
//!
//! *Pending* keys are those written by transactions that a [`Published`] may not show yet: first
//! *in flight* (not yet durable), then acknowledged under an inbox sequence, until an epoch that
//! contains the sequence is published.
//!
//! **Invariant.** Two transactions that write the same key are never in flight together: the
//! second waits, so that the inbox holds their changes in the order in which they were validated.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, RecordBatch};
use arrow::row::{RowConverter, SortField};
use catalog::RelationId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use sql::{SqlError, SqlErrorKind};
use state::{InboxRecord, Published, encode_keys};
use tokio::sync::Notify;

use super::writes::{TableWrites, Writes};
use crate::engine::Shared;
use crate::error::{from_arrow, from_runtime, from_state};
use crate::transaction::ReadView;
use crate::workers::from_panic;

/// Sequence of a key that is in flight.
const IN_FLIGHT: u64 = u64::MAX;

/// The order of all commits.
pub(crate) struct WriteLog {
    pending: Mutex<Pending>,
    /// A transaction is no longer in flight.
    landed: Notify,
    /// Every published epoch from now on contains the inbox up to here.
    visible: AtomicU64,
    /// The last record of the inbox when the database was opened.
    recovered: u64,
    /// Row ids of tables without a primary key.
    pub(crate) row_ids: super::row_ids::RowIds,
}

#[derive(Default)]
struct Pending {
    tables: HashMap<RelationId, PendingTable>,
    /// Highest sequence acknowledged, over all tables.
    acknowledged: u64,
}

#[derive(Default)]
struct PendingTable {
    keys: HashMap<Arc<[u8]>, PendingKey>,
    /// Acknowledged keys by ascending sequence, to forget them in order.
    order: VecDeque<(u64, Vec<Arc<[u8]>>)>,
    acknowledged: u64,
}

#[derive(Clone, Copy)]
struct PendingKey {
    sequence: u64,
    exists: bool,
}

/// The keys of one table that a transaction in flight has taken, and what was pending of them before.
struct Reserved {
    table: RelationId,
    keys: Vec<(Arc<[u8]>, Option<PendingKey>)>,
}

/// What validation said.
enum Validation {
    /// The keys are reserved.
    Reserved(Vec<Reserved>),
    /// Another transaction with one of the keys is in flight.
    Busy,
    /// Another transaction was first.
    Conflict,
}

/// What a commit came to.
pub(crate) enum Committed {
    /// Durable.
    Done,
    /// Something it read or wrote has changed since its snapshot.
    Conflict,
}

impl WriteLog {
    /// `inbox_sequence`: the last record when the database was opened.
    pub(crate) fn new(inbox_sequence: u64) -> Self {
        let pending = Pending { tables: HashMap::new(), acknowledged: inbox_sequence };
        Self {
            pending: Mutex::new(pending),
            landed: Notify::new(),
            visible: AtomicU64::new(0),
            recovered: inbox_sequence,
            row_ids: super::row_ids::RowIds::default(),
        }
    }

    /// What must be visible before a query over these tables may start (semantics 18).
    pub(crate) fn acknowledged(&self, tables: &BTreeSet<RelationId>) -> u64 {
        let pending = self.pending.lock();
        if tables.is_empty() {
            return 0;
        }
        let of_tables = tables.iter().filter_map(|id| pending.tables.get(id)).map(|table| table.acknowledged);
        of_tables.max().unwrap_or(0).max(self.recovered)
    }

    /// The same for all tables.
    pub(crate) fn acknowledged_everywhere(&self) -> u64 {
        self.pending.lock().acknowledged
    }

    /// The inbox sequence that everything published from now on contains.
    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Waits until everything published contains the inbox up to `sequence`.
    pub(crate) async fn wait_visible(&self, shared: &Shared, sequence: u64) -> Result<(), SqlError> {
        if sequence > self.visible() {
            let answer = shared.runtime.wait_for_inbox(sequence).await;
            answer.map_err(|_| SqlErrorKind::AdminShutdown)?.map_err(from_runtime)?;
            self.visible.fetch_max(sequence, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Makes the writes of a transaction durable.
    pub(crate) async fn commit(
        &self,
        shared: &Arc<Shared>,
        view: &ReadView,
        writes: &Writes,
    ) -> Result<Committed, SqlError> {
        let Some(record) = writes.record()? else { return Ok(Committed::Done) };
        loop {
            // Registered before validation, so that a landing in between is not missed.
            let landed = self.landed.notified();
            match self.validate(shared, view, writes)? {
                Validation::Busy => landed.await,
                Validation::Conflict => return Ok(Committed::Conflict),
                Validation::Reserved(keys) => {
                    self.write(shared, record, keys).await?;
                    return Ok(Committed::Done);
                }
            }
        }
    }

    /// The table is gone.
    pub(crate) async fn forget(&self, id: RelationId) {
        self.pending.lock().tables.remove(&id);
        self.row_ids.forget(id).await;
    }

    async fn write(
        &self,
        shared: &Arc<Shared>,
        record: InboxRecord,
        reserved: Vec<Reserved>,
    ) -> Result<(), SqlError> {
        // Not cancelled when the client goes away: once reserved, the write must land.
        let writer = Arc::clone(shared);
        shared
            .workers
            .block(move || {
                // Keys that stay reserved would let nobody write them again.
                let written = catch_unwind(AssertUnwindSafe(|| writer.runtime.write(record)));
                let written = match written {
                    Ok(written) => written.map_err(from_runtime),
                    Err(payload) => Err(from_panic(payload.as_ref())),
                };
                writer.writes.land(reserved, written.as_ref().ok().copied());
                written.map(|_| ())
            })
            .await
    }

    /// The transaction is in the inbox (or, `None`, will never be).
    fn land(&self, reserved: Vec<Reserved>, sequence: Option<u64>) {
        let mut pending = self.pending.lock();
        let visible = self.visible();
        for Reserved { table, keys } in reserved {
            let table = pending.tables.entry(table).or_default();
            match sequence {
                Some(sequence) => {
                    for (key, _) in &keys {
                        if let Some(entry) = table.keys.get_mut(key) {
                            entry.sequence = sequence;
                        }
                    }
                    table.acknowledged = table.acknowledged.max(sequence);
                    table.push(sequence, keys.into_iter().map(|(key, _)| key).collect());
                }
                // What another transaction wrote before is pending again, unless it is published.
                None => {
                    for (key, before) in keys {
                        match before.filter(|before| before.sequence > visible) {
                            Some(before) => table.keys.insert(key, before),
                            None => table.keys.remove(&key),
                        };
                    }
                }
            }
        }
        pending.acknowledged = pending.acknowledged.max(sequence.unwrap_or(0));
        drop(pending);
        self.landed.notify_waiters();
    }

    fn validate(&self, shared: &Shared, view: &ReadView, writes: &Writes) -> Result<Validation, SqlError> {
        let live = shared.live();
        let mut pending = self.pending.lock();
        let visible = self.visible();
        let now = ReadView::now(shared);
        for (id, table_writes) in writes.tables() {
            if live.relation(id).is_none() {
                return Err(SqlErrorKind::UndefinedTable { name: table_writes.name().to_owned() }.into());
            }
            // Whether a key is taken cannot be told from a table that is not there.
            let this = BTreeSet::from([id]);
            view.refuse_unready(&this)?;
            now.refuse_unready(&this)?;
            let table = pending.tables.entry(id).or_default();
            table.forget(visible);
            match table.check(table_writes, view.sequence)? {
                Check::Free => {}
                Check::Busy => return Ok(Validation::Busy),
                Check::Conflict => return Ok(Validation::Conflict),
            }
            if now.published.epoch != view.published.epoch && !unchanged(table, table_writes, &now.published)?
            {
                return Ok(Validation::Conflict);
            }
        }
        Ok(Validation::Reserved(pending.reserve(writes)))
    }
}

enum Check {
    Free,
    Busy,
    Conflict,
}

impl Pending {
    fn reserve(&mut self, writes: &Writes) -> Vec<Reserved> {
        let mut reserved = Vec::new();
        for (id, table_writes) in writes.tables() {
            let table = self.tables.entry(id).or_default();
            let hidden = table_writes.stored().has_hidden_key();
            let mut keys = Vec::new();
            for (key, write) in table_writes.keys() {
                // A fresh row id: nobody else can know it before it is visible.
                if hidden && !write.existed() {
                    continue;
                }
                let key: Arc<[u8]> = Arc::from(key);
                let taken = PendingKey { sequence: IN_FLIGHT, exists: write.exists() };
                let before = table.keys.insert(Arc::clone(&key), taken);
                keys.push((key, before));
            }
            reserved.push(Reserved { table: id, keys });
        }
        reserved
    }
}

impl PendingTable {
    fn push(&mut self, sequence: u64, keys: Vec<Arc<[u8]>>) {
        // Landings may be reported a little out of order.
        let at = self.order.partition_point(|(other, _)| *other <= sequence);
        self.order.insert(at, (sequence, keys));
    }

    /// Forgets what every published epoch contains.
    fn forget(&mut self, visible: u64) {
        while self.order.front().is_some_and(|(sequence, _)| *sequence <= visible) {
            let Some((sequence, keys)) = self.order.pop_front() else { return };
            for key in keys {
                if self.keys.get(&key).is_some_and(|entry| entry.sequence == sequence) {
                    self.keys.remove(&key);
                }
            }
        }
    }

    /// Compares with what other transactions wrote after the snapshot.
    fn check(&self, writes: &TableWrites, snapshot: u64) -> Result<Check, SqlError> {
        if self.keys.is_empty() {
            return Ok(Check::Free);
        }
        for (key, write) in writes.keys() {
            let Some(pending) = self.keys.get(key) else { continue };
            if pending.sequence == IN_FLIGHT {
                return Ok(Check::Busy);
            }
            if pending.sequence <= snapshot {
                continue;
            }
            if write.existed() {
                return Ok(Check::Conflict);
            }
            if pending.exists {
                return Err(duplicate_key(writes, key)?);
            }
        }
        Ok(Check::Free)
    }
}

/// Whether the keys hold now what they held in the snapshot. Keys that are pending were compared
/// already.
fn unchanged(pending: &PendingTable, writes: &TableWrites, now: &Published) -> Result<bool, SqlError> {
    let stored = writes.stored();
    let key_len = stored.schema.key_len;
    if let Some(before) = writes.rows_before()? {
        let (rows, found) =
            now.get(stored.table, &stored.schema, &before.columns()[..key_len]).map_err(from_state)?;
        // Every row is there, in the order asked, and equal. A pending key that the snapshot
        // contains may have to be published yet: its row differs, and the caller tries again.
        if found.len() != before.num_rows() || !same_rows(&rows, &before)? {
            return Ok(false);
        }
    }
    if stored.has_hidden_key() {
        return Ok(true);
    }
    let Some(after) = writes.rows_added()? else { return Ok(true) };
    let (rows, found) =
        now.get(stored.table, &stored.schema, &after.columns()[..key_len]).map_err(from_state)?;
    if found.is_empty() {
        return Ok(true);
    }
    let keys = encode_keys(&rows.columns()[..key_len], rows.num_rows()).map_err(from_state)?;
    for row in 0..rows.num_rows() {
        // Deleted by an acknowledged transaction that is not published yet: free.
        let freed = pending.keys.get(keys.get(row)).is_some_and(|entry| !entry.exists);
        if !freed {
            return Err(writes.duplicate(&rows, row));
        }
    }
    Ok(true)
}

fn duplicate_key(writes: &TableWrites, key: &[u8]) -> Result<SqlError, SqlError> {
    let Some(rows) = writes.rows_added()? else {
        return Ok(SqlErrorKind::internal("a duplicate key without a row").into());
    };
    let keys = encode_keys(&rows.columns()[..writes.stored().schema.key_len], rows.num_rows())
        .map_err(from_state)?;
    let row = (0..keys.len()).find(|&row| keys.get(row) == key).unwrap_or(0);
    Ok(writes.duplicate(&rows, row))
}

/// Whether two batches of the same columns hold the same rows in the same order.
fn same_rows(left: &RecordBatch, right: &RecordBatch) -> Result<bool, SqlError> {
    if left.num_rows() != right.num_rows() {
        return Ok(false);
    }
    let fields: Vec<SortField> =
        left.columns().iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let converter = RowConverter::new(fields).map_err(from_arrow)?;
    let left = converter.convert_columns(left.columns()).map_err(from_arrow)?;
    let right = converter.convert_columns(right.columns()).map_err(from_arrow)?;
    Ok(left.iter().eq(right.iter()))
}
