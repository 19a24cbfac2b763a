//! Runs one operator in tests: by a script, or step by step, over a real (memory) state backend.
//!
//! A script has one command a line:
//!
//! | line | |
//! |---|---|
//! | `+ 7 a`, `- 7 null`, `+3 7 a` | a row, its values parsed by the input's types |
//! | `+ 7 @100` | a row that came from a source when its split's watermark was 100 |
//! | `batch` | what follows is another batch |
//! | `input 1` | what follows comes by that input |
//! | `watermark 100`, `watermark max` | where the watermark stands from the next barrier on |
//! | `epoch` | a barrier |
//! | `checkpoint` | a barrier with a checkpoint that becomes durable at once |
//! | `hand-over`, `durable` | the two halves of `checkpoint` |
//! | `restore` | `checkpoint`, then a new operator over what is on disk |
//! | `crash` | a new operator over what is on disk |
//! | `evict` | memory is released, all that can be |
//!
//! The expectation is what the operator emits, one row a line, with late rows and errors.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use dataflow::{
    BuildContext, ChangeBatch, EpochEnd, Found, Operator, OperatorContext, OperatorSpec, Progress, Result,
    RowOrigin, SideOutput, Start, StateAccess, Watermark,
};
use expect_test::Expect;
use state::{
    CheckpointWrites, Entry, Epoch, KeyGroupRange, Published, Run, StateBackend, Storage, StorageOptions,
    TableChanges, TableId, TableSchema, ViewStore, decode_keys, decode_rows, encode_keys,
};

/// Runs a script through an operator and compares what it emits.
#[track_caller]
pub(crate) fn check_operator(
    spec: impl OperatorSpec + 'static,
    input: &SchemaRef,
    script: &str,
    expect: Expect,
) {
    let mut task = TestTask::new(Arc::new(spec), KeyGroupRange::ALL);
    let mut script_run = ScriptRun { input: Arc::clone(input), rows: Vec::new(), number: 0, position: 0 };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        script_run.line(line, &mut task);
    }
    script_run.flush(&mut task);
    expect.assert_eq(&task.take_text());
}

/// A row of a script: multiplicity, values, watermark.
type ScriptRow = (i64, Vec<String>, Option<i64>);

type StagedChanges = (TableId, KeyGroupRange, TableChanges);

struct ScriptRun {
    input: SchemaRef,
    rows: Vec<ScriptRow>,
    number: usize,
    position: i64,
}

impl ScriptRun {
    fn line(&mut self, line: &str, task: &mut TestTask) {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(times) = command.strip_prefix(['+', '-']) {
            let times: i64 = if times.is_empty() { 1 } else { times.parse().unwrap() };
            let (values, marks): (Vec<&str>, Vec<&str>) =
                rest.split_whitespace().partition(|word| !word.starts_with('@'));
            let values = values.into_iter().map(str::to_owned).collect();
            let mark = marks.first().map(|mark| mark[1..].parse().unwrap());
            return self.rows.push((if command.starts_with('-') { -times } else { times }, values, mark));
        }
        self.flush(task);
        match command {
            "batch" => {}
            "input" => self.number = rest.parse().unwrap(),
            "watermark" => {
                task.watermark =
                    if rest == "max" { Watermark::MAX } else { Watermark(rest.parse().unwrap()) };
            }
            "epoch" => task.end_epoch(false),
            "checkpoint" => task.checkpoint(),
            "hand-over" => task.end_epoch(true),
            "durable" => task.durable(),
            "restore" => {
                task.checkpoint();
                task.restart();
            }
            "crash" => task.restart(),
            "evict" => {
                task.operator.release_memory(usize::MAX);
            }
            other => panic!("no such command: {other}"),
        }
    }

    fn flush(&mut self, task: &mut TestTask) {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return;
        }
        let columns: Vec<ArrayRef> = (0..self.input.fields().len())
            .map(|column| {
                let texts = rows
                    .iter()
                    .map(|(_, values, _)| Some(values[column].as_str()).filter(|text| *text != "null"));
                let texts = StringArray::from_iter(texts);
                compute::cast(&texts, self.input.field(column).data_type()).unwrap()
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.input), columns, &options).unwrap();
        let diffs = Int64Array::from_iter_values(rows.iter().map(|(diff, _, _)| *diff));
        let diffs = rows.iter().any(|(diff, _, _)| *diff != 1).then_some(diffs);
        let origin = rows.iter().any(|(_, _, mark)| mark.is_some()).then(|| {
            let first = self.position;
            self.position += rows.len() as i64;
            RowOrigin {
                splits: Int64Array::from(vec![1; rows.len()]),
                positions: Int64Array::from_iter_values(first..self.position),
                ordinals: Int64Array::from(vec![0; rows.len()]),
                watermarks: rows.iter().map(|(_, _, mark)| mark.unwrap_or(i64::MIN)).collect(),
            }
        });
        task.push(self.number, ChangeBatch { rows: batch, diffs, origin });
    }
}

/// One operator as one task runs it.
pub(crate) struct TestTask {
    spec: Arc<dyn OperatorSpec>,
    pub(crate) operator: Box<dyn Operator>,
    pub(crate) watermark: Watermark,
    /// Bytes the output takes before the operator is told that it is full.
    pub(crate) room: usize,
    pub(crate) output: Vec<ChangeBatch>,
    pub(crate) side: Vec<SideOutput>,
    pub(crate) state: TestState,
    epoch: Epoch,
    handed_over: Option<(Epoch, Vec<StagedChanges>)>,
}

impl TestTask {
    pub(crate) fn new(spec: Arc<dyn OperatorSpec>, key_groups: KeyGroupRange) -> Self {
        let storage = Storage::open(&StorageOptions { path: None, memory: 1 << 20 }).unwrap();
        let state = TestState {
            tables: spec.state_tables().into_iter().map(|table| table.schema).collect(),
            views: ViewStore::new(storage.backend.snapshot()),
            backend: storage.backend,
            key_groups,
            changes: Vec::new(),
            runs: Vec::new(),
            reads: std::cell::Cell::new(0),
        };
        let operator = build(spec.as_ref(), key_groups);
        let mut task = Self {
            spec,
            operator,
            watermark: Watermark::MIN,
            room: usize::MAX,
            output: Vec::new(),
            side: Vec::new(),
            state,
            epoch: Epoch(0),
            handed_over: None,
        };
        task.open(true);
        task
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut dyn Operator, &mut OperatorContext<'_>) -> T) -> T {
        let mut ctx = OperatorContext {
            output: &mut self.output,
            side: &mut self.side,
            state: &mut self.state,
            room: self.room,
        };
        call(self.operator.as_mut(), &mut ctx)
    }

    fn open(&mut self, is_new: bool) {
        let start = Start { is_new, epoch: self.epoch, key_groups: self.state.key_groups };
        self.call(|operator, ctx| operator.open(&start, ctx)).unwrap();
    }

    pub(crate) fn push(&mut self, input: usize, batch: ChangeBatch) {
        self.try_push(input, batch).unwrap();
    }

    pub(crate) fn try_push(&mut self, input: usize, batch: ChangeBatch) -> Result<()> {
        self.call(|operator, ctx| operator.on_batch(input, batch, ctx))
    }

    pub(crate) fn end_epoch(&mut self, is_checkpoint: bool) {
        self.try_end_epoch(is_checkpoint).unwrap();
    }

    pub(crate) fn try_end_epoch(&mut self, is_checkpoint: bool) -> Result<()> {
        self.epoch = self.epoch.next();
        let end = EpochEnd {
            epoch: self.epoch,
            now: 0,
            is_checkpoint,
            watermark: self.watermark,
            watermarks: vec![self.watermark],
        };
        while self.call(|operator, ctx| operator.on_epoch_end(&end, ctx))? == Progress::More {}
        let runs = std::mem::take(&mut self.state.runs);
        self.state
            .views
            .publish(self.epoch, runs.into_iter().map(|(table, run)| (table, Arc::new(run))).collect());
        if is_checkpoint {
            self.handed_over = Some((self.epoch, std::mem::take(&mut self.state.changes)));
        }
        Ok(())
    }

    /// Writes what was handed over last.
    pub(crate) fn durable(&mut self) {
        let Some((epoch, state)) = self.handed_over.take() else { return };
        self.state.views.begin_checkpoint(epoch);
        let views = self.state.views.runs_up_to(epoch);
        let writes = CheckpointWrites { epoch, state, views, ..CheckpointWrites::default() };
        let snapshot = self.state.backend.commit(writes).unwrap();
        self.state.views.rebase(snapshot);
        self.operator.on_checkpoint_durable(epoch);
    }

    pub(crate) fn checkpoint(&mut self) {
        self.end_epoch(true);
        self.durable();
    }

    /// The same, with some of the key groups only.
    pub(crate) fn restart_with(&mut self, key_groups: KeyGroupRange) {
        self.state.key_groups = key_groups;
        self.restart();
    }

    /// A new operator over what is on disk.
    pub(crate) fn restart(&mut self) {
        self.handed_over = None;
        self.state.changes.clear();
        self.state.views = ViewStore::new(self.state.backend.snapshot());
        self.epoch = self.state.backend.snapshot().epoch();
        self.operator = build(self.spec.as_ref(), self.state.key_groups);
        self.open(false);
    }

    /// What was emitted since the last call, as text.
    pub(crate) fn take_text(&mut self) -> String {
        let mut text = String::new();
        for batch in self.output.drain(..) {
            for (row, values) in row_texts(&batch.rows).into_iter().enumerate() {
                writeln!(text, "{} {values}", diff_text(batch.diff(row))).unwrap();
            }
        }
        for side in self.side.drain(..) {
            text += &side_text(side);
        }
        text
    }
}

fn build(spec: &dyn OperatorSpec, key_groups: KeyGroupRange) -> Box<dyn Operator> {
    spec.build(&BuildContext { subtask: 0, parallelism: 1, key_groups }).unwrap()
}

fn diff_text(diff: i64) -> String {
    let sign = if diff < 0 { '-' } else { '+' };
    if diff.abs() == 1 { sign.to_string() } else { format!("{sign}{}", diff.abs()) }
}

/// The rows of a batch, values separated by spaces.
pub(crate) fn row_texts(rows: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let columns: Vec<ArrayFormatter<'_>> =
        rows.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let text =
        |row: usize| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" ");
    (0..rows.num_rows()).map(text).collect()
}

fn side_text(side: SideOutput) -> String {
    let mut text = String::new();
    match side {
        SideOutput::Late(late) => {
            for (row, values) in row_texts(&late.rows).into_iter().enumerate() {
                let window = (late.window_starts.value(row), late.window_ends.value(row));
                writeln!(text, "late {values} for {window:?} at {}", late.origin.watermark(row)).unwrap();
            }
        }
        SideOutput::Errors { rows, errors } => {
            for (row, values) in row_texts(&rows.rows).into_iter().enumerate() {
                let error = &errors[row];
                writeln!(text, "error {} {values}: {} {error}", diff_text(rows.diff(row)), error.sqlstate)
                    .unwrap();
            }
        }
        SideOutput::GroupErrors { keys, errors } => {
            for (row, values) in row_texts(&keys.rows).into_iter().enumerate() {
                let error = &errors[row];
                writeln!(
                    text,
                    "group error {} {values}: {} {error}",
                    diff_text(keys.diff(row)),
                    error.sqlstate
                )
                .unwrap();
            }
        }
    }
    text
}

/// State as the runtime gives it: reads of the last checkpoint, writes staged for the next.
pub(crate) struct TestState {
    tables: Vec<Arc<TableSchema>>,
    backend: Arc<dyn StateBackend>,
    pub(crate) views: ViewStore,
    key_groups: KeyGroupRange,
    changes: Vec<StagedChanges>,
    runs: Vec<(TableId, Run)>,
    /// How often state was read.
    pub(crate) reads: std::cell::Cell<usize>,
}

fn decode(schema: &TableSchema, entries: &[Entry]) -> Result<RecordBatch> {
    let mut columns = decode_keys(schema.key_fields(), entries.iter().map(|(key, _)| key.as_ref()))?;
    columns.extend(decode_rows(schema.value_fields(), entries.iter().map(|(_, row)| row.as_ref()))?);
    Ok(RecordBatch::try_new(Arc::clone(&schema.columns), columns)?)
}

fn table_id(table: usize) -> TableId {
    TableId(1000 + table as u32)
}

impl StateAccess for TestState {
    fn multi_get(&self, table: usize, keys: &[ArrayRef]) -> Result<Found> {
        self.reads.set(self.reads.get() + 1);
        let schema = &self.tables[table];
        let count = keys.first().map_or(1, |column| column.len());
        let encoded = encode_keys(keys, count)?;
        let groups = schema.key_groups(keys, count)?;
        let values = self.backend.get_state(table_id(table), &groups, &encoded)?;
        let key_idx =
            UInt32Array::from_iter_values((0..count as u32).filter(|&row| values[row as usize].is_some()));
        let mut columns =
            keys.iter().map(|key| compute::take(key, &key_idx, None)).collect::<Result<Vec<_>, _>>()?;
        columns.extend(decode_rows(schema.value_fields(), values.iter().flatten().map(Vec::as_slice))?);
        Ok(Found { rows: RecordBatch::try_new(Arc::clone(&schema.columns), columns)?, key_idx })
    }

    fn scan(
        &self,
        table: usize,
        upper: Option<&ArrayRef>,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send + '_>> {
        self.reads.set(self.reads.get() + 1);
        let schema = &self.tables[table];
        let upper = upper.map(|bound| encode_keys(std::slice::from_ref(bound), 1)).transpose()?;
        let upper = upper.as_ref().map(|keys| keys.get(0));
        let entries: Vec<_> =
            self.backend.scan_state(table_id(table), self.key_groups, upper).collect::<state::Result<_>>()?;
        // Small batches, so that more than one comes.
        let batches: Vec<Result<RecordBatch>> =
            entries.chunks(3).map(|chunk| decode(schema, chunk)).collect();
        Ok(Box::new(batches.into_iter()))
    }

    fn scan_prefixes(&self, table: usize, prefixes: &[ArrayRef]) -> Result<Found> {
        self.reads.set(self.reads.get() + 1);
        let schema = &self.tables[table];
        let count = prefixes.first().map_or(1, |column| column.len());
        let encoded = encode_keys(prefixes, count)?;
        let (mut entries, mut key_idx) = (Vec::new(), Vec::new());
        for (row, group) in schema.key_groups(prefixes, count)?.into_iter().enumerate() {
            for entry in self.backend.scan_state_prefix(table_id(table), group, encoded.get(row)) {
                entries.push(entry?);
                key_idx.push(row as u32);
            }
        }
        Ok(Found { rows: decode(schema, &entries)?, key_idx: UInt32Array::from(key_idx) })
    }

    fn hand_over(&mut self, table: usize, changes: TableChanges) -> Result<()> {
        self.changes.push((table_id(table), self.key_groups, changes));
        Ok(())
    }

    fn published(&self) -> Arc<Published> {
        self.views.current()
    }

    fn publish(&mut self, table: TableId, run: Run) -> Result<()> {
        self.runs.push((table, run));
        Ok(())
    }
}
