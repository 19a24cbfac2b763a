//! Measures the hot loop of the aggregate: rows a second of one core, one JSON line a case.
//!
//! `cargo run --release -p operators --example aggregate_speed`

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use dataflow::{
    BuildContext, ChangeBatch, ChangelogKind, DataflowError, EpochEnd, Found, Operator, OperatorContext,
    OperatorSpec, Progress, Result, Start, StateAccess, Watermark,
};
use operators::{Aggregate, AggregateCall, AggregateFunction};
use state::{Epoch, KeyGroupRange, Published, Run, TableChanges, TableId};

const BATCH: usize = 8192;
const BATCHES: usize = 1200;
const BATCHES_PER_EPOCH: usize = 100;

/// State that is never read, because nothing is evicted, and forgets what it is given.
struct Forgetful;

fn not_read() -> DataflowError {
    DataflowError::Internal("state was read although nothing was evicted".to_owned())
}

impl StateAccess for Forgetful {
    fn multi_get(&self, _table: usize, _keys: &[ArrayRef]) -> Result<Found> {
        Err(not_read())
    }

    fn scan(
        &self,
        _table: usize,
        _upper: Option<&ArrayRef>,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send + '_>> {
        Err(not_read())
    }

    fn hand_over(&mut self, _table: usize, _changes: TableChanges) -> Result<()> {
        Ok(())
    }

    fn published(&self) -> Arc<Published> {
        unreachable!("an aggregate reads no views")
    }

    fn publish(&mut self, _table: TableId, _run: Run) -> Result<()> {
        Ok(())
    }
}

struct Case {
    name: &'static str,
    keys: i64,
    windows: i64,
    is_text: bool,
    with_diffs: bool,
}

fn spec(case: &Case) -> Aggregate {
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    let key = if case.is_text { DataType::Utf8View } else { DataType::Int64 };
    let input: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("bidder", key, true),
        Field::new("window_start", time.clone(), true),
        Field::new("window_end", time, true),
        Field::new("price", DataType::Int64, true),
    ]));
    let call = |function: AggregateFunction, argument: Option<usize>| AggregateCall {
        function,
        argument,
        filter: None,
        distinct: false,
        output: Arc::new(Field::new(
            function.name(),
            function.result_type(argument.map(|_| &DataType::Int64)).unwrap_or(DataType::Null),
            true,
        )),
    };
    Aggregate {
        input,
        input_kind: if case.with_diffs { ChangelogKind::Retract } else { ChangelogKind::Append },
        group_columns: vec![0, 1, 2],
        aggregates: vec![
            call(AggregateFunction::CountStar, None),
            call(AggregateFunction::Avg, Some(3)),
            if case.with_diffs {
                call(AggregateFunction::Sum, Some(3))
            } else {
                call(AggregateFunction::Max, Some(3))
            },
        ],
        window_end: (!case.with_diffs).then_some(2),
        allowed_lateness: 0,
        emit_on_window_close: false,
    }
}

fn batches(case: &Case, schema: &SchemaRef) -> Result<Vec<ChangeBatch>> {
    let mut seed = 1_u64;
    let mut below = |bound: i64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) as i64) % bound
    };
    (0..64)
        .map(|_| {
            let keys: Vec<i64> = (0..BATCH).map(|_| below(case.keys)).collect();
            let starts: Vec<i64> = (0..BATCH).map(|_| below(case.windows) * 10_000_000).collect();
            let keys: ArrayRef = if case.is_text {
                Arc::new(StringViewArray::from_iter_values(
                    keys.iter().map(|key| format!("channel-{key:012}")),
                ))
            } else {
                Arc::new(Int64Array::from(keys))
            };
            let ends =
                TimestampMicrosecondArray::from_iter_values(starts.iter().map(|start| start + 10_000_000));
            let prices = Int64Array::from_iter_values((0..BATCH).map(|_| below(100_000)));
            let columns: Vec<ArrayRef> = vec![
                keys,
                Arc::new(TimestampMicrosecondArray::from(starts)),
                Arc::new(ends),
                Arc::new(prices),
            ];
            let diffs = case.with_diffs.then(|| Int64Array::from(vec![1; BATCH]));
            Ok(ChangeBatch { rows: RecordBatch::try_new(Arc::clone(schema), columns)?, diffs, origin: None })
        })
        .collect()
}

/// Processor time of this thread: what else runs on the machine does not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).map_or(f64::NAN, |nanos| nanos / 1e9)
}

struct Measured {
    batches: f64,
    epochs: f64,
    emitted: usize,
}

fn measure(case: &Case) -> Result<Measured> {
    let spec = spec(case);
    let batches = batches(case, &spec.input)?;
    let mut operator =
        spec.build(&BuildContext { subtask: 0, parallelism: 1, key_groups: KeyGroupRange::ALL })?;
    let (mut output, mut side, mut state) = (Vec::new(), Vec::new(), Forgetful);
    let start = Start { is_new: true, epoch: Epoch(0), key_groups: KeyGroupRange::ALL };
    let mut ctx =
        OperatorContext { output: &mut output, side: &mut side, state: &mut state, room: usize::MAX };
    operator.open(&start, &mut ctx)?;
    let mut measured = Measured { batches: 0.0, epochs: 0.0, emitted: 0 };
    for number in 0..BATCHES {
        let batch = batches[number % batches.len()].clone();
        let from = cpu_seconds();
        operator.on_batch(0, batch, &mut ctx)?;
        // The first epoch makes the groups resident.
        if number >= BATCHES_PER_EPOCH {
            measured.batches += cpu_seconds() - from;
        }
        if (number + 1) % BATCHES_PER_EPOCH == 0 {
            let seconds = end_epoch(operator.as_mut(), number / BATCHES_PER_EPOCH, &mut ctx)?;
            measured.epochs += if number >= BATCHES_PER_EPOCH { seconds } else { 0.0 };
            measured.emitted += ctx.output.iter().map(ChangeBatch::len).sum::<usize>();
            ctx.output.clear();
        }
    }
    Ok(measured)
}

fn end_epoch(operator: &mut dyn Operator, number: usize, ctx: &mut OperatorContext<'_>) -> Result<f64> {
    let epoch = Epoch(number as u64 + 1);
    let end = EpochEnd {
        epoch,
        now: 0,
        is_checkpoint: true,
        watermark: Watermark::MIN,
        watermarks: vec![Watermark::MIN],
    };
    let from = cpu_seconds();
    while operator.on_epoch_end(&end, ctx)? == Progress::More {}
    operator.on_checkpoint_durable(epoch);
    Ok(cpu_seconds() - from)
}

fn main() -> Result<()> {
    let case = |name, keys, windows| Case { name, keys, windows, is_text: false, with_diffs: false };
    let cases = [
        case("int64_window_1k_groups", 500, 2),
        case("int64_window_100k_groups", 50_000, 2),
        case("int64_window_400k_groups", 50_000, 8),
        Case { with_diffs: true, ..case("int64_diffs_100k_groups", 50_000, 2) },
        Case { is_text: true, ..case("text_window_100k_groups", 50_000, 2) },
    ];
    let mut lines = String::new();
    for case in &cases {
        let Measured { batches, epochs, emitted } = measure(case)?;
        let rows = (BATCH * (BATCHES - BATCHES_PER_EPOCH)) as f64;
        let _ = writeln!(
            lines,
            "{{\"case\":\"{}\",\"rows_per_second\":{:.0},\"with_epoch_ends\":{:.0},\"emitted\":{emitted}}}",
            case.name,
            rows / batches,
            rows / (batches + epochs),
        );
    }
    let _ = std::io::stdout().write_all(lines.as_bytes());
    Ok(())
}
