//! A chain of operators: what one emits, the next one gets by a plain call.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::array::{RecordBatch, UInt32Array};
use dataflow::{
    BuildContext, ChangeBatch, DataflowError, EpochEnd, Found, Operator, OperatorContext, OperatorNode,
    Progress, Result, SideOutput, Start, StateAccess, StateTable, Watermark,
};
use state::{
    Epoch, KeyGroupRange, Published, Run, StateBackend, TableChanges, TableId, ViewStore, decode_keys,
    decode_rows, encode_keys,
};

use crate::partition::ResultPartition;
use crate::side::SideRows;

/// Bytes an operator may emit in one resumable call.
const ROOM_BYTES: usize = 1 << 20;
/// Rows per batch of a state scan.
const SCAN_ROWS: usize = 8192;

/// An encoded key and its encoded value.
type Entry = (Box<[u8]>, Box<[u8]>);

/// A task's durable state, and what it has staged in this epoch.
pub(crate) struct TaskState {
    pub(crate) backend: Arc<dyn StateBackend>,
    pub(crate) store: Arc<ViewStore>,
    pub(crate) key_groups: KeyGroupRange,
    pub(crate) runs: Vec<(TableId, Run)>,
    pub(crate) changes: Vec<(TableId, KeyGroupRange, TableChanges)>,
}

/// Everything a chain works with besides itself.
pub(crate) struct ChainEnv {
    pub(crate) state: TaskState,
    pub(crate) side: Vec<SideRows>,
    pub(crate) partition: ResultPartition,
    pub(crate) rows_out: u64,
}

struct ChainLink {
    node: OperatorNode,
    operator: Box<dyn Operator>,
    output: Vec<ChangeBatch>,
    side: Vec<SideOutput>,
}

/// The running operators of a task.
pub(crate) struct OperatorChain {
    links: Vec<ChainLink>,
}

/// How far the end of an epoch has come down a chain.
pub(crate) struct EndOfEpoch {
    /// The barrier as the link sees it.
    end: EpochEnd,
    link: usize,
}

impl EndOfEpoch {
    pub(crate) fn new(end: EpochEnd) -> Self {
        Self { end, link: 0 }
    }

    /// The watermark behind the links that are done.
    pub(crate) fn watermark(&self) -> Watermark {
        self.end.watermark
    }
}

impl OperatorChain {
    pub(crate) fn build(nodes: &[OperatorNode], ctx: &BuildContext) -> Result<Self> {
        let build = |node: &OperatorNode| -> Result<ChainLink> {
            let operator = node.spec.build(ctx)?;
            Ok(ChainLink { node: node.clone(), operator, output: Vec::new(), side: Vec::new() })
        };
        Ok(Self { links: nodes.iter().map(build).collect::<Result<_>>()? })
    }

    /// Opens all operators, the last one first, so that each may emit at once.
    pub(crate) fn open(&mut self, start: &Start, env: &mut ChainEnv) -> Result<()> {
        for idx in (0..self.links.len()).rev() {
            self.links[idx].call(env, |operator, ctx| operator.open(start, ctx))?;
            self.pass_on(idx, env)?;
        }
        Ok(())
    }

    /// Feeds a batch to the first operator.
    pub(crate) fn on_batch(&mut self, input: usize, batch: ChangeBatch, env: &mut ChainEnv) -> Result<()> {
        feed(&mut self.links, input, batch, env)
    }

    /// Goes on with the end of an epoch: one call of one operator. `Done`: all of them are.
    pub(crate) fn on_epoch_end(&mut self, ending: &mut EndOfEpoch, env: &mut ChainEnv) -> Result<Progress> {
        let Some(link) = self.links.get_mut(ending.link) else { return Ok(Progress::Done) };
        let progress = link.call(env, |operator, ctx| operator.on_epoch_end(&ending.end, ctx))?;
        self.pass_on(ending.link, env)?;
        if progress == Progress::Done {
            let watermark = self.links[ending.link].operator.output_watermark(&ending.end);
            ending.end.watermark = watermark;
            ending.end.watermarks = vec![watermark];
            ending.link += 1;
        }
        Ok(if ending.link == self.links.len() { Progress::Done } else { Progress::More })
    }

    fn pass_on(&mut self, idx: usize, env: &mut ChainEnv) -> Result<()> {
        let mut output = std::mem::take(&mut self.links[idx].output);
        for batch in output.drain(..) {
            feed(&mut self.links[idx + 1..], 0, batch, env)?;
        }
        self.links[idx].output = output;
        Ok(())
    }

    pub(crate) fn on_checkpoint_durable(&mut self, epoch: Epoch) {
        for link in &mut self.links {
            link.operator.on_checkpoint_durable(epoch);
        }
    }

    /// Dirty and clean bytes.
    pub(crate) fn memory(&self) -> (usize, usize) {
        let uses = self.links.iter().map(|link| link.operator.memory());
        uses.fold((0, 0), |(dirty, clean), memory| (dirty + memory.dirty, clean + memory.clean))
    }

    pub(crate) fn release_memory(&mut self, bytes: usize) -> usize {
        self.links.iter_mut().map(|link| link.operator.release_memory(bytes)).sum()
    }

    pub(crate) fn wake_at(&self) -> Option<i64> {
        self.links.iter().filter_map(|link| link.operator.wake_at()).min()
    }
}

/// Runs a batch through the links; what is left behind the last one is sent.
fn feed(links: &mut [ChainLink], input: usize, batch: ChangeBatch, env: &mut ChainEnv) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let Some((link, rest)) = links.split_first_mut() else {
        env.rows_out += batch.len() as u64;
        return env.partition.send(batch);
    };
    link.call(env, |operator, ctx| operator.on_batch(input, batch, ctx))?;
    let mut output = std::mem::take(&mut link.output);
    for batch in output.drain(..) {
        feed(rest, 0, batch, env)?;
    }
    link.output = output;
    Ok(())
}

impl ChainLink {
    fn call<T>(
        &mut self,
        env: &mut ChainEnv,
        call: impl FnOnce(&mut dyn Operator, &mut OperatorContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut state = OperatorState { task: &mut env.state, tables: &self.node.tables };
        let mut ctx = OperatorContext {
            output: &mut self.output,
            side: &mut self.side,
            state: &mut state,
            room: ROOM_BYTES,
        };
        let called = call(self.operator.as_mut(), &mut ctx)?;
        for side in self.side.drain(..) {
            env.side.push(SideRows::of_operator(self.node.id, side)?);
        }
        Ok(called)
    }
}

/// One operator's view of its task's state.
struct OperatorState<'a> {
    task: &'a mut TaskState,
    tables: &'a [StateTable],
}

impl OperatorState<'_> {
    fn table(&self, table: usize) -> Result<&StateTable> {
        self.tables
            .get(table)
            .ok_or_else(|| DataflowError::Internal(format!("the operator has no state table {table}")))
    }
}

impl StateAccess for OperatorState<'_> {
    fn multi_get(&self, table: usize, keys: &[ArrayRef]) -> Result<Found> {
        let table = self.table(table)?;
        let rows = keys.first().map_or(1, |column| column.len());
        let encoded = encode_keys(keys, rows)?;
        let groups = table.spec.schema.key_groups(keys, rows)?;
        let values = self.task.backend.get_state(table.id, &groups, &encoded)?;
        let hits: Vec<u32> = (0..rows as u32).filter(|row| values[*row as usize].is_some()).collect();
        let found = values.iter().flatten().map(Vec::as_slice);
        let key_idx = UInt32Array::from(hits);
        let mut columns: Vec<ArrayRef> = keys
            .iter()
            .map(|column| arrow::compute::take(column, &key_idx, None))
            .collect::<Result<_, _>>()?;
        columns.extend(decode_rows(table.spec.schema.value_fields(), found)?);
        Ok(Found { rows: batch_of(table, columns, key_idx.len())?, key_idx })
    }

    fn scan(
        &self,
        table: usize,
        upper: Option<&ArrayRef>,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send + '_>> {
        let table = self.table(table)?;
        let upper = upper.map(|column| encode_keys(std::slice::from_ref(column), 1)).transpose()?;
        let upper = upper.as_ref().map(|keys| keys.get(0));
        let mut entries = self.task.backend.scan_state(table.id, self.task.key_groups, upper);
        Ok(Box::new(std::iter::from_fn(move || {
            let chunk: state::Result<Vec<_>> = entries.by_ref().take(SCAN_ROWS).collect();
            match chunk {
                Ok(chunk) if chunk.is_empty() => None,
                Ok(chunk) => Some(decode_entries(table, &chunk)),
                Err(error) => Some(Err(error.into())),
            }
        })))
    }

    fn scan_prefixes(&self, table: usize, prefixes: &[ArrayRef]) -> Result<Found> {
        let table = self.table(table)?;
        let rows = prefixes.first().map_or(1, |column| column.len());
        let encoded = encode_keys(prefixes, rows)?;
        let groups = table.spec.schema.key_groups(prefixes, rows)?;
        let (mut entries, mut key_idx) = (Vec::new(), Vec::new());
        for (row, group) in groups.into_iter().enumerate() {
            for entry in self.task.backend.scan_state_prefix(table.id, group, encoded.get(row)) {
                entries.push(entry?);
                key_idx.push(row as u32);
            }
        }
        Ok(Found { rows: decode_entries(table, &entries)?, key_idx: UInt32Array::from(key_idx) })
    }

    fn hand_over(&mut self, table: usize, changes: TableChanges) -> Result<()> {
        let table = self.table(table)?.id;
        self.task.changes.push((table, self.task.key_groups, changes));
        Ok(())
    }

    fn published(&self) -> Arc<Published> {
        self.task.store.current()
    }

    fn publish(&mut self, table: TableId, run: Run) -> Result<()> {
        self.task.runs.push((table, run));
        Ok(())
    }
}

fn decode_entries(table: &StateTable, entries: &[Entry]) -> Result<RecordBatch> {
    let schema = &table.spec.schema;
    let mut columns = decode_keys(schema.key_fields(), entries.iter().map(|(key, _)| key.as_ref()))?;
    columns.extend(decode_rows(schema.value_fields(), entries.iter().map(|(_, value)| value.as_ref()))?);
    batch_of(table, columns, entries.len())
}

fn batch_of(table: &StateTable, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(&table.spec.schema.columns), columns, &options)?)
}
