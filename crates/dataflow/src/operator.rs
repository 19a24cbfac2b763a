//! The contract between an operator and whatever runs it.
//!
//! An operator is a plain state machine: it never blocks (except for reads of local state), never
//! starts threads and never looks at a clock. The runtime calls
//!
//! ```text
//! open ─► ( on_batch* ─► on_epoch_end )*      one epoch per turn, until the job is dropped
//!              │               │
//!              └── emits into OperatorContext, which the next operator of the chain receives
//! ```
//!
//! **Invariant.** What an operator has emitted between two `on_epoch_end`s is a function of the
//! *multiset* of rows it got in that epoch: never of their order, batching or parallelism.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::{Schema, SchemaRef};
use state::{Epoch, KeyGroupRange, Published, Run, TableChanges, TableId, TableSchema};

use crate::{ChangeBatch, ChangelogKind, Result, RowError, RowOrigin, Watermark};

/// What the planner decided about one operator: enough to build it and to print it in EXPLAIN.
pub trait OperatorSpec: Debug + Send + Sync {
    /// The name in EXPLAIN and metrics, e.g. `filter`.
    fn name(&self) -> &'static str;
    /// What EXPLAIN prints behind the name, e.g. the predicate. One line, deterministic.
    fn detail(&self) -> String;
    /// Schema of the rows the operator emits.
    fn output_schema(&self) -> SchemaRef;
    /// Kind of changelog the operator emits.
    fn output_kind(&self) -> ChangelogKind;
    /// The state tables the operator keeps; their ids are assigned by the planner.
    fn state_tables(&self) -> Vec<StateTableSpec> {
        Vec::new()
    }
    /// The view table this operator publishes, for the one operator that has one.
    fn view_table(&self) -> Option<ViewTableSpec> {
        None
    }
    /// Whether the operator reads [`ChangeBatch::origin`] (so the source must stamp it).
    fn needs_origin(&self) -> bool {
        false
    }
    /// When its state is freed, for EXPLAIN: e.g. `freed when window_end passes the watermark`.
    fn state_note(&self) -> Option<String> {
        None
    }
    /// Makes a running instance for one task.
    fn build(&self, ctx: &BuildContext) -> Result<Box<dyn Operator>>;
    /// For downcasts in tests.
    fn as_any(&self) -> &dyn Any;
}

/// What an instance is told about its place.
#[derive(Debug, Clone)]
pub struct BuildContext {
    /// Which subtask this is, from 0.
    pub subtask: usize,
    /// How many there are.
    pub parallelism: usize,
    /// The key groups this subtask owns.
    pub key_groups: KeyGroupRange,
}

/// One table of an operator's own state. Its rows are stored by key group, then key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTableSpec {
    /// What it holds, for EXPLAIN and metrics: e.g. `groups`.
    pub name: &'static str,
    /// Key columns first.
    pub schema: Arc<TableSchema>,
}

/// The table in which a view (or table) keeps its rows for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewTableSpec {
    /// Where it is stored.
    pub table: TableId,
    /// Key columns first; the last column is `$count` when rows are a multiset.
    pub schema: Arc<TableSchema>,
    /// For each column that followers receive, which column of the table holds it: what a new
    /// follower that scans the table must do to see rows as the live ones come.
    pub output: Vec<usize>,
}

/// A running operator of one task.
pub trait Operator: Send {
    /// Called once before any batch. `start` says whether there is state to restore.
    /// A new operator emits here what empty input gives (e.g. the row of `SELECT count(*)`).
    fn open(&mut self, start: &Start, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let _ = (start, ctx);
        Ok(())
    }

    /// Takes in a batch from one of its inputs.
    fn on_batch(&mut self, input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()>;

    /// Emits what the epoch changed. [`Progress::More`]: the output is full, call again when
    /// there is room. [`Progress::Done`]: the barrier may pass.
    fn on_epoch_end(&mut self, end: &EpochEnd, ctx: &mut OperatorContext<'_>) -> Result<Progress> {
        let _ = (end, ctx);
        Ok(Progress::Done)
    }

    /// The watermark behind this operator, asked after `on_epoch_end` was done.
    /// The default forwards the minimum of the inputs.
    fn output_watermark(&self, end: &EpochEnd) -> Watermark {
        end.watermark
    }

    /// The wall time (microseconds) at which the operator wants an epoch to end even without
    /// input, asked after `on_epoch_end` was done.
    fn wake_at(&self) -> Option<i64> {
        None
    }

    /// The checkpoint that contained everything handed over up to `epoch` is durable.
    fn on_checkpoint_durable(&mut self, epoch: Epoch) {
        let _ = epoch;
    }

    /// What it holds in memory.
    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    /// Frees about `bytes` of clean (durable, re-readable) entries; returns what was freed.
    fn release_memory(&mut self, bytes: usize) -> usize {
        let _ = bytes;
        0
    }
}

/// How an operator begins.
#[derive(Debug, Clone)]
pub struct Start {
    /// Whether there is nothing to restore.
    pub is_new: bool,
    /// The epoch whose state is restored (or before which the job begins).
    pub epoch: Epoch,
    /// The key groups this subtask owns.
    pub key_groups: KeyGroupRange,
}

/// Whether a resumable call has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Finished.
    Done,
    /// The output is full; call again.
    More,
}

/// The barrier that ends an epoch, as one operator sees it.
#[derive(Debug, Clone)]
pub struct EpochEnd {
    /// The epoch that ends.
    pub epoch: Epoch,
    /// Wall time in microseconds since 1970 UTC, carried by the barrier: monotone and saved.
    pub now: i64,
    /// Whether dirty state must be handed over.
    pub is_checkpoint: bool,
    /// The minimum of the input watermarks.
    pub watermark: Watermark,
    /// The watermark of each input; one that declares none stands at `MAX` here only if it ended.
    pub watermarks: Vec<Watermark>,
}

/// Bytes held by an operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Entries changed since the last durable checkpoint: cannot be released.
    pub dirty: usize,
    /// Entries that can be read back from disk.
    pub clean: usize,
}

/// Rows that came behind the watermark of their window, on their way to `$late`.
#[derive(Debug, Clone)]
pub struct LateRows {
    /// The rows as the window assigner got them.
    pub rows: RecordBatch,
    /// Where they came from, with the watermark that made them late.
    pub origin: RowOrigin,
    /// Start of the window each row is late for, in microseconds.
    pub window_starts: Int64Array,
    /// End of that window, in microseconds.
    pub window_ends: Int64Array,
}

/// What leaves a chain sideways, collected by the runtime into `$late` and `$errors`.
#[derive(Debug)]
pub enum SideOutput {
    /// Late rows.
    Late(LateRows),
    /// Rows whose expression failed, with the reason of each.
    Errors {
        /// The failing rows with their diffs and origins (if any).
        rows: ChangeBatch,
        /// One per row.
        errors: Vec<RowError>,
    },
    /// Groups whose result cannot be represented (diff +1) or can be again (diff −1).
    GroupErrors {
        /// The keys of the groups.
        keys: ChangeBatch,
        /// One per key.
        errors: Vec<RowError>,
    },
}

/// Rows found by [`StateAccess::multi_get`].
#[derive(Debug, Clone)]
pub struct Found {
    /// The rows, all columns of the table, in the order of `key_idx`.
    pub rows: RecordBatch,
    /// For each row, which of the asked keys it answers; ascending.
    pub key_idx: UInt32Array,
}

/// An operator's view of durable state: what the last durable checkpoint holds.
///
/// # Contract
/// Between a hand-over and [`Operator::on_checkpoint_durable`] the disk does not hold the entry
/// yet, so an operator keeps it (deletes as tombstones) resident until then.
pub trait StateAccess {
    /// Looks up rows of the operator's `table`-th state table by key, one batch at a time.
    fn multi_get(&self, table: usize, keys: &[ArrayRef]) -> Result<Found>;
    /// All rows of a state table in the task's key groups, in key order per key group, in batches.
    /// `upper` bounds the first key column, inclusive (a one-element array), where given.
    fn scan(
        &self,
        table: usize,
        upper: Option<&ArrayRef>,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send + '_>>;
    /// All rows of a state table whose first key columns are one of `prefixes`, in no particular
    /// order; [`Found::key_idx`] says which. No column: every row of the table.
    ///
    /// # Contract
    /// The columns that decide the key group of a row are among those of the prefix.
    ///
    /// This default reads the whole table; whoever can seek should not.
    fn scan_prefixes(&self, table: usize, prefixes: &[ArrayRef]) -> Result<Found> {
        find_prefixes(self.scan(table, None)?, prefixes)
    }
    /// Stages changes of a state table for the current checkpoint.
    fn hand_over(&mut self, table: usize, changes: TableChanges) -> Result<()>;
    /// The last published content of all views: for this job, the end of the previous epoch.
    fn published(&self) -> Arc<Published>;
    /// Publishes a view table's changes of this epoch.
    fn publish(&mut self, table: TableId, run: Run) -> Result<()>;
}

/// The rows of a scan whose first columns are one of `prefixes`.
fn find_prefixes(batches: impl Iterator<Item = Result<RecordBatch>>, prefixes: &[ArrayRef]) -> Result<Found> {
    let wanted = state::encode_keys(prefixes, prefixes.first().map_or(1, |column| column.len()))?;
    let wanted: HashMap<&[u8], u32> = (0..wanted.len()).map(|row| (wanted.get(row), row as u32)).collect();
    let (mut found, mut key_idx) = (Vec::new(), Vec::new());
    let mut schema = Arc::new(Schema::empty());
    for batch in batches {
        let batch = batch?;
        schema = batch.schema();
        let keys = state::encode_keys(&batch.columns()[..prefixes.len()], batch.num_rows())?;
        let mut rows = Vec::new();
        for row in 0..batch.num_rows() {
            if let Some(&key) = wanted.get(keys.get(row)) {
                rows.push(row as u32);
                key_idx.push(key);
            }
        }
        found.push(arrow::compute::take_record_batch(&batch, &UInt32Array::from(rows))?);
    }
    let rows = arrow::compute::concat_batches(&schema, &found)?;
    Ok(Found { rows, key_idx: UInt32Array::from(key_idx) })
}

/// What an operator works with during one call.
pub struct OperatorContext<'a> {
    /// What it emits, for the next operator of the chain.
    pub output: &'a mut Vec<ChangeBatch>,
    /// Late rows and errors.
    pub side: &'a mut Vec<SideOutput>,
    /// Durable state.
    pub state: &'a mut dyn StateAccess,
    /// Bytes the output may still take before [`Self::has_room`] says no.
    pub room: usize,
}

impl OperatorContext<'_> {
    /// Sends rows on. Empty batches are dropped.
    pub fn emit(&mut self, batch: ChangeBatch) {
        if !batch.is_empty() {
            self.room = self.room.saturating_sub(batch.memory_size());
            self.output.push(batch);
        }
    }

    /// Whether a resumable operator should go on emitting.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.room > 0
    }

    /// Sends rows to `$late`.
    pub fn late(&mut self, rows: LateRows) {
        if rows.rows.num_rows() > 0 {
            self.side.push(SideOutput::Late(rows));
        }
    }

    /// Sends failing rows to `$errors`.
    pub fn row_errors(&mut self, rows: ChangeBatch, errors: Vec<RowError>) {
        assert_eq!(rows.len(), errors.len());
        if !errors.is_empty() {
            self.side.push(SideOutput::Errors { rows, errors });
        }
    }
}
