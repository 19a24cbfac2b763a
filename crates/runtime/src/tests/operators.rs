//! Operators for tests: small, slow and obviously right.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use dataflow::{
    BuildContext, ChangeBatch, ChangelogKind, DataflowError, EpochEnd, LateRows, Operator, OperatorContext,
    OperatorSpec, Progress, Result, Start, StateTableSpec, ViewTableSpec, Watermark,
};
use state::{TableChanges, TableSchema, ViewWriter};

pub(super) fn int_schema(names: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(
        names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect::<Vec<_>>(),
    ))
}

pub(super) fn int_batch(schema: &SchemaRef, rows: &[Vec<i64>]) -> RecordBatch {
    let column =
        |idx: usize| -> ArrayRef { Arc::new(rows.iter().map(|row| row[idx]).collect::<Int64Array>()) };
    let columns = (0..schema.fields().len()).map(column).collect();
    RecordBatch::try_new(Arc::clone(schema), columns).unwrap()
}

/// Rows as numbers; NULL is `i64::MIN`.
pub(super) fn int_rows(batch: &RecordBatch) -> Vec<Vec<i64>> {
    let columns: Vec<Int64Array> = batch
        .columns()
        .iter()
        .map(|column| {
            arrow::compute::cast(column, &DataType::Int64).unwrap().as_primitive::<Int64Type>().clone()
        })
        .collect();
    let value =
        |column: &Int64Array, row: usize| if column.is_null(row) { i64::MIN } else { column.value(row) };
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| value(column, row)).collect()).collect()
}

macro_rules! spec {
    ($spec:ident, $schema:expr, $kind:expr, $build:expr $(, $item:item)*) => {
        impl OperatorSpec for $spec {
            fn name(&self) -> &'static str {
                stringify!($spec)
            }
            fn detail(&self) -> String {
                String::new()
            }
            fn output_schema(&self) -> SchemaRef {
                ($schema)(self)
            }
            fn output_kind(&self) -> ChangelogKind {
                $kind
            }
            fn build(&self, ctx: &BuildContext) -> Result<Box<dyn Operator>> {
                ($build)(self, ctx)
            }
            fn as_any(&self) -> &dyn Any {
                self
            }
            $($item)*
        }
    };
}

/// Counts rows by some of the columns (all `bigint`); with `window` the group is freed, and what
/// it shows stays, when its first key column passes the watermark.
#[derive(Debug, Clone)]
pub(super) struct Count {
    pub(super) keys: Vec<usize>,
    pub(super) window: bool,
}

impl Count {
    fn schema(&self) -> Arc<TableSchema> {
        let names: Vec<String> =
            (0..self.keys.len()).map(|key| format!("k{key}")).chain(["n".to_owned()]).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Arc::new(TableSchema { columns: int_schema(&names), key_len: self.keys.len() })
    }
}

spec!(
    Count,
    |spec: &Count| Arc::clone(&spec.schema().columns),
    ChangelogKind::Retract,
    |spec: &Count, _: &BuildContext| -> Result<Box<dyn Operator>> {
        Ok(Box::new(CountOperator {
            spec: spec.clone(),
            groups: BTreeMap::new(),
            dirty: BTreeSet::new(),
            gone: BTreeSet::new(),
            touched: BTreeMap::new(),
        }))
    },
    fn state_tables(&self) -> Vec<StateTableSpec> {
        vec![StateTableSpec { name: "groups", schema: self.schema() }]
    }
);

struct CountOperator {
    spec: Count,
    groups: BTreeMap<Vec<i64>, i64>,
    /// Changed since the last hand-over.
    dirty: BTreeSet<Vec<i64>>,
    gone: BTreeSet<Vec<i64>>,
    /// What groups were at the start of the epoch.
    touched: BTreeMap<Vec<i64>, i64>,
}

impl Operator for CountOperator {
    fn open(&mut self, start: &Start, ctx: &mut OperatorContext<'_>) -> Result<()> {
        if !start.is_new {
            for batch in ctx.state.scan(0, None)? {
                for mut row in int_rows(&batch?) {
                    let count = row.pop().unwrap();
                    self.groups.insert(row, count);
                }
            }
        }
        Ok(())
    }

    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, _ctx: &mut OperatorContext<'_>) -> Result<()> {
        for (idx, row) in int_rows(&batch.rows).into_iter().enumerate() {
            let key: Vec<i64> = self.spec.keys.iter().map(|key| row[*key]).collect();
            let count = self.groups.entry(key.clone()).or_default();
            self.touched.entry(key).or_insert(*count);
            *count += batch.diff(idx);
        }
        Ok(())
    }

    fn on_epoch_end(&mut self, end: &EpochEnd, ctx: &mut OperatorContext<'_>) -> Result<Progress> {
        let schema = self.spec.schema();
        let (mut rows, mut diffs) = (Vec::new(), Vec::new());
        for (key, old) in std::mem::take(&mut self.touched) {
            let new = self.groups[&key];
            for (count, diff) in [(old, -1), (new, 1)] {
                if count != 0 && old != new {
                    rows.push([key.clone(), vec![count]].concat());
                    diffs.push(diff);
                }
            }
            self.dirty.insert(key);
        }
        if self.spec.window {
            let closed: Vec<_> =
                self.groups.keys().filter(|key| key[0] <= end.watermark.0).cloned().collect();
            for key in closed {
                self.groups.remove(&key);
                self.dirty.remove(&key);
                self.gone.insert(key);
            }
        }
        ctx.emit(ChangeBatch::with_diffs(int_batch(&schema.columns, &rows), Int64Array::from(diffs)));
        if end.is_checkpoint {
            let puts: Vec<Vec<i64>> = std::mem::take(&mut self.dirty)
                .into_iter()
                .map(|key| [key.clone(), vec![self.groups[&key]]].concat())
                .collect();
            let gone: Vec<Vec<i64>> = std::mem::take(&mut self.gone).into_iter().collect();
            let keys = int_schema(&vec!["k"; self.spec.keys.len()]);
            ctx.state.hand_over(
                0,
                TableChanges {
                    puts: vec![int_batch(&schema.columns, &puts)],
                    deletes: vec![int_batch(&keys, &gone).columns().to_vec()],
                    schema,
                    delete_up_to: None,
                },
            )?;
        }
        Ok(Progress::Done)
    }

    fn output_watermark(&self, end: &EpochEnd) -> Watermark {
        end.watermark
    }
}

/// Stores rows as a view, keyed by the first columns.
#[derive(Debug, Clone)]
pub(super) struct Materialize {
    pub(super) table: ViewTableSpec,
    pub(super) output: SchemaRef,
}

spec!(
    Materialize,
    |spec: &Materialize| Arc::clone(&spec.output),
    ChangelogKind::Retract,
    |spec: &Materialize, _: &BuildContext| -> Result<Box<dyn Operator>> {
        let table = &spec.table;
        Ok(Box::new(MaterializeOperator {
            writer: ViewWriter::new(table.table, Arc::clone(&table.schema), false),
            spec: spec.clone(),
        }))
    },
    fn view_table(&self) -> Option<ViewTableSpec> {
        Some(self.table.clone())
    }
);

struct MaterializeOperator {
    spec: Materialize,
    writer: ViewWriter,
}

impl Operator for MaterializeOperator {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        self.writer.push(batch.rows.clone(), batch.diffs.clone());
        ctx.emit(batch);
        Ok(())
    }

    fn on_epoch_end(&mut self, _end: &EpochEnd, ctx: &mut OperatorContext<'_>) -> Result<Progress> {
        if let Some(run) = self.writer.finish(&ctx.state.published())? {
            ctx.state.publish(self.spec.table.table, run)?;
        }
        Ok(Progress::Done)
    }
}

/// Turns (key, time, value) into (window end, key); rows behind the watermark are late.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub(super) size: i64,
}

spec!(
    Window,
    |_: &Window| int_schema(&["window_end", "k"]),
    ChangelogKind::Append,
    |spec: &Window, _: &BuildContext| -> Result<Box<dyn Operator>> { Ok(Box::new(spec.clone())) },
    fn needs_origin(&self) -> bool {
        true
    }
);

impl Operator for Window {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let origin = batch.origin.clone().ok_or_else(|| DataflowError::Internal("no origin".to_owned()))?;
        let rows = int_rows(&batch.rows);
        let ends: Vec<i64> = rows.iter().map(|row| (row[1].div_euclid(self.size) + 1) * self.size).collect();
        let is_late: BooleanArray =
            (0..rows.len()).map(|row| Some(ends[row] <= origin.watermarks.value(row))).collect();
        let late = batch.filter(&is_late)?;
        let late_ends: Vec<i64> =
            ends.iter().zip(&is_late).filter(|(_, late)| *late == Some(true)).map(|(end, _)| *end).collect();
        ctx.late(LateRows {
            rows: late.rows,
            origin: late.origin.unwrap(),
            window_starts: late_ends.iter().map(|end| end - self.size).collect(),
            window_ends: Int64Array::from(late_ends),
        });
        let kept: Vec<Vec<i64>> = (0..rows.len())
            .filter(|row| !is_late.value(*row))
            .map(|row| vec![ends[row], rows[row][0]])
            .collect();
        ctx.emit(ChangeBatch::append(int_batch(&self.output_schema(), &kept)));
        Ok(())
    }
}

/// Passes rows on and asks for an epoch every so often.
#[derive(Debug, Clone)]
pub(super) struct Alarm {
    pub(super) every: i64,
    pub(super) rung: Arc<AtomicI64>,
    pub(super) schema: SchemaRef,
}

spec!(Alarm, |spec: &Alarm| Arc::clone(&spec.schema), ChangelogKind::Append, |spec: &Alarm,
                                                                              _: &BuildContext|
 -> Result<
    Box<dyn Operator>,
> {
    Ok(Box::new(spec.clone()))
});

impl Operator for Alarm {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        ctx.emit(batch);
        Ok(())
    }

    fn on_epoch_end(&mut self, end: &EpochEnd, _ctx: &mut OperatorContext<'_>) -> Result<Progress> {
        self.rung.store(end.now, Ordering::SeqCst);
        Ok(Progress::Done)
    }

    fn wake_at(&self) -> Option<i64> {
        Some(self.rung.load(Ordering::SeqCst) + self.every)
    }
}

/// Passes rows on; fails or panics when it sees a value.
#[derive(Debug, Clone)]
pub(super) struct FailOn {
    pub(super) value: i64,
    pub(super) panics: bool,
    pub(super) is_armed: Arc<AtomicBool>,
    pub(super) schema: SchemaRef,
}

spec!(FailOn, |spec: &FailOn| Arc::clone(&spec.schema), ChangelogKind::Append, |spec: &FailOn,
                                                                                _: &BuildContext|
 -> Result<
    Box<dyn Operator>,
> {
    Ok(Box::new(spec.clone()))
});

impl Operator for FailOn {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let is_armed = self.is_armed.load(Ordering::SeqCst);
        if is_armed && int_rows(&batch.rows).iter().any(|row| row[0] == self.value) {
            assert!(!self.panics, "as asked");
            return Err(DataflowError::Internal("as asked".to_owned()));
        }
        ctx.emit(batch);
        Ok(())
    }
}
