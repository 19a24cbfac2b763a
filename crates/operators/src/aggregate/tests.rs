//! Scripts and random histories of the aggregate.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use dataflow::{ChangeBatch, ChangelogKind, OperatorSpec, Watermark};
use expect_test::expect;
use state::KeyGroupRange;

use super::{Aggregate, AggregateCall, AggregateFunction};
use crate::testing::{TestTask, check_operator, row_texts};

use AggregateFunction::{Avg, BoolAnd, BoolOr, Count, CountStar, Max, Min, StddevSamp, Sum, VarPop};

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, of): &(&str, DataType)| Field::new(*name, of.clone(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

fn call(input: &SchemaRef, function: AggregateFunction, argument: Option<usize>) -> AggregateCall {
    let of = function.result_type(argument.map(|column| input.field(column).data_type())).unwrap();
    AggregateCall {
        function,
        argument,
        filter: None,
        distinct: false,
        output: Arc::new(Field::new(function.name(), of, true)),
    }
}

fn distinct(call: AggregateCall) -> AggregateCall {
    AggregateCall { distinct: true, ..call }
}

fn filtered(call: AggregateCall, filter: usize) -> AggregateCall {
    AggregateCall { filter: Some(filter), ..call }
}

fn aggregate(input: &SchemaRef, group_columns: &[usize], aggregates: Vec<AggregateCall>) -> Aggregate {
    Aggregate {
        input: Arc::clone(input),
        input_kind: ChangelogKind::Retract,
        group_columns: group_columns.to_vec(),
        aggregates,
        window_end: None,
        allowed_lateness: 0,
        emit_on_window_close: false,
    }
}

fn count_by_key() -> (Aggregate, SchemaRef) {
    let input = schema(&[("k", DataType::Int64)]);
    (aggregate(&input, &[0], vec![call(&input, CountStar, None)]), input)
}

#[test]
fn a_restore_keeps_the_count_of_a_key() {
    let (spec, input) = count_by_key();
    check_operator(
        spec,
        &input,
        "
        + 7
        epoch
        restore
        + 7
        epoch
        ",
        expect![[r#"
            + 7 1
            - 7 1
            + 7 2
        "#]],
    );
}

#[test]
fn an_epoch_emits_each_group_once_and_nothing_for_what_cancels() {
    let (spec, input) = count_by_key();
    check_operator(
        spec,
        &input,
        "
        + 1
        + null
        batch
        +2 1
        + 2
        - 2
        epoch
        - 1
        batch
        + 1
        epoch
        - null
        epoch
        ",
        expect![[r#"
            + 1 3
            + null 1
            - null 1
        "#]],
    );
}

#[test]
fn a_retraction_may_come_before_its_row_within_an_epoch() {
    let input = schema(&[("k", DataType::Int64), ("v", DataType::Int64)]);
    let calls = vec![
        call(&input, Min, Some(1)),
        call(&input, Max, Some(1)),
        distinct(call(&input, Count, Some(1))),
        call(&input, Sum, Some(1)),
    ];
    check_operator(
        aggregate(&input, &[0], calls),
        &input,
        "
        - 1 5
        batch
        + 1 5
        + 1 6
        epoch
        + 1 4
        epoch
        - 1 4
        - 1 6
        + 1 6
        epoch
        - 1 6
        epoch
        ",
        expect![[r#"
            + 1 6 6 1 6
            - 1 6 6 1 6
            + 1 4 6 2 10
            - 1 4 6 2 10
            + 1 6 6 1 6
            - 1 6 6 1 6
        "#]],
    );
}

#[test]
fn a_negative_multiplicity_at_the_end_of_an_epoch_is_an_internal_error() {
    let (spec, input) = count_by_key();
    let mut task = TestTask::new(Arc::new(spec), KeyGroupRange::ALL);
    let rows = RecordBatch::try_new(input, vec![Arc::new(Int64Array::from(vec![1]))]).unwrap();
    task.push(0, ChangeBatch::with_diffs(rows, Int64Array::from(vec![-1])));
    assert!(task.try_end_epoch(false).is_err());
}

#[test]
fn a_global_aggregate_has_its_row_from_the_start_and_for_ever() {
    let input = schema(&[("v", DataType::Int32)]);
    let calls =
        || vec![call(&input, CountStar, None), call(&input, Sum, Some(0)), call(&input, Avg, Some(0))];
    check_operator(
        aggregate(&input, &[], calls()),
        &input,
        "
        epoch
        restore
        + 3
        + 4
        + null
        epoch
        restore
        - 3
        - 4
        - null
        checkpoint
        evict
        + 1
        epoch
        ",
        expect![[r#"
            + 0 null null
            - 0 null null
            + 3 7 3.5000000000000000
            - 3 7 3.5000000000000000
            + 0 null null
            - 0 null null
            + 1 1 1.0000000000000000
        "#]],
    );
    // Only the task that owns the empty key has the row.
    let owner = state::key_groups(&[], 1).unwrap()[0];
    let others =
        if owner < 64 { KeyGroupRange { start: 64, end: 128 } } else { KeyGroupRange { start: 0, end: 64 } };
    let mut task = TestTask::new(Arc::new(aggregate(&input, &[], calls())), others);
    task.end_epoch(false);
    assert_eq!(task.take_text(), "");
}

#[test]
fn group_by_alone_makes_rows_distinct() {
    let input = schema(&[("a", DataType::Utf8View), ("b", DataType::Float64)]);
    check_operator(
        aggregate(&input, &[0, 1], vec![]),
        &input,
        "
        + x 0
        + x -0
        + x NaN
        + x NaN
        + null 1
        epoch
        - x 0
        epoch
        - x -0
        restore
        - x NaN
        epoch
        - x NaN
        epoch
        ",
        expect![[r#"
            + x 0.0
            + x NaN
            + null 1.0
            - x 0.0
            - x NaN
        "#]],
    );
}

#[test]
fn every_function_ignores_nulls_and_is_null_over_nothing() {
    let input = schema(&[
        ("k", DataType::Int64),
        ("i", DataType::Int32),
        ("f", DataType::Float64),
        ("b", DataType::Boolean),
        ("t", DataType::Utf8View),
        ("d", DataType::Decimal128(10, 2)),
    ]);
    let calls = vec![
        call(&input, Count, Some(1)),
        call(&input, Sum, Some(1)),
        call(&input, Avg, Some(1)),
        call(&input, Sum, Some(2)),
        call(&input, StddevSamp, Some(2)),
        call(&input, VarPop, Some(1)),
        call(&input, BoolAnd, Some(3)),
        call(&input, BoolOr, Some(3)),
        call(&input, Min, Some(4)),
        call(&input, Max, Some(4)),
        call(&input, Sum, Some(5)),
        call(&input, Avg, Some(5)),
        filtered(call(&input, CountStar, None), 3),
    ];
    check_operator(
        aggregate(&input, &[0], calls),
        &input,
        "
        + 1 null null null null null
        epoch
        + 1 1 0.5 true a 1.10
        + 1 2 1.5 false b 2.20
        restore
        - 1 1 0.5 true a 1.10
        - 1 2 1.5 false b 2.20
        epoch
        ",
        expect![[r#"
            + 1 0 null null null null null null null null null null null 0
            - 1 0 null null null null null null null null null null null 0
            + 1 2 3 1.5000000000000000 2.0 0.7071067811865476 0.25 false true a b 3.30 1.6500000000000000 1
            - 1 2 3 1.5000000000000000 2.0 0.7071067811865476 0.25 false true a b 3.30 1.6500000000000000 1
            + 1 0 null null null null null null null null null null null 0
        "#]],
    );
}

#[test]
fn a_sum_out_of_range_is_an_error_of_its_group_until_it_is_back() {
    let input = schema(&[("k", DataType::Int64), ("v", DataType::Int32)]);
    let large = i32::MAX;
    let times = 1_i64 << 33;
    check_operator(
        aggregate(&input, &[0], vec![call(&input, Sum, Some(1))]),
        &input,
        &format!(
            "
            + 1 5
            + 2 6
            epoch
            +{times} 1 {large}
            epoch
            + 1 7
            epoch
            restore
            -{times} 1 {large}
            epoch
            "
        ),
        expect![[r#"
            + 1 5
            + 2 6
            - 1 5
            + 1 12
            group error + 1: 22003 bigint out of range
            group error - 1: 22003 bigint out of range
        "#]],
    );
}

fn windowed(on_close: bool) -> (Aggregate, SchemaRef) {
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    let input = schema(&[("k", DataType::Int64), ("window_end", time), ("v", DataType::Int64)]);
    let calls = vec![
        call(&input, CountStar, None),
        distinct(call(&input, Count, Some(2))),
        call(&input, Max, Some(2)),
    ];
    let spec = Aggregate {
        input_kind: ChangelogKind::Append,
        window_end: Some(1),
        emit_on_window_close: on_close,
        allowed_lateness: 2_000_000,
        ..aggregate(&input, &[0, 1], calls)
    };
    (spec, input)
}

#[test]
fn a_window_is_emitted_once_when_the_watermark_and_the_lateness_have_passed() {
    let (spec, input) = windowed(true);
    check_operator(
        spec,
        &input,
        "
        + 1 1970-01-01T00:00:10 5
        + 2 1970-01-01T00:00:10 5
        + 1 1970-01-01T00:00:20 6
        watermark 11999999
        epoch
        restore
        + 1 1970-01-01T00:00:10 5
        watermark 12000000
        epoch
        checkpoint
        evict
        watermark 22000000
        restore
        watermark max
        epoch
        ",
        expect![[r#"
            + 1 1970-01-01T00:00:10 2 1 5
            + 2 1970-01-01T00:00:10 1 1 5
            + 1 1970-01-01T00:00:20 1 1 6
        "#]],
    );
}

#[test]
fn an_on_update_window_is_freed_without_retraction() {
    let (spec, input) = windowed(false);
    let mut task = TestTask::new(Arc::new(spec), KeyGroupRange::ALL);
    let row = |key: i64, end: i64, value: i64| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![key])),
            Arc::new(TimestampMicrosecondArray::from(vec![end])),
            Arc::new(Int64Array::from(vec![value])),
        ];
        ChangeBatch::append(RecordBatch::try_new(Arc::clone(&input), columns).unwrap())
    };
    task.push(0, row(1, 10_000_000, 5));
    task.push(0, row(1, 20_000_000, 6));
    task.checkpoint();
    assert_eq!(task.take_text(), "+ 1 1970-01-01T00:00:10 1 1 5\n+ 1 1970-01-01T00:00:20 1 1 6\n");
    let full = task.operator.memory();
    assert!(full.clean > 0 && full.dirty == 0, "{full:?}");
    task.watermark = Watermark(12_000_000);
    task.checkpoint();
    assert_eq!(task.take_text(), "");
    assert_eq!(task.operator.memory().clean, full.clean / 2);
    task.restart();
    task.push(0, row(1, 20_000_000, 7));
    task.end_epoch(false);
    assert_eq!(task.take_text(), "- 1 1970-01-01T00:00:20 1 1 6\n+ 1 1970-01-01T00:00:20 2 2 7\n");
    // A row for a closed window is a broken promise of the window assigner.
    assert!(task.try_push(0, row(1, 10_000_000, 5)).is_err());
}

#[test]
fn a_restore_at_another_parallelism_moves_each_group_to_the_task_that_gets_its_rows() {
    let (spec, input) = windowed(true);
    let spec: Arc<dyn OperatorSpec> = Arc::new(spec);
    let batch = |keys: &[i64]| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(keys.to_vec())),
            Arc::new(TimestampMicrosecondArray::from(vec![10_000_000; keys.len()])),
            Arc::new(Int64Array::from(vec![5; keys.len()])),
        ];
        RecordBatch::try_new(Arc::clone(&input), columns).unwrap()
    };
    let keys: Vec<i64> = (0..50).collect();
    // The exchange hashes the group columns in the order of the output.
    let groups = state::key_groups(&batch(&keys).columns()[..2], keys.len()).unwrap();
    let mut emitted = Vec::new();
    for half in [KeyGroupRange { start: 0, end: 64 }, KeyGroupRange { start: 64, end: 128 }] {
        let mut task = TestTask::new(Arc::clone(&spec), KeyGroupRange::ALL);
        task.push(0, ChangeBatch::append(batch(&keys)));
        task.checkpoint();
        task.restart_with(half);
        let own: Vec<i64> = keys.iter().copied().filter(|&key| half.contains(groups[key as usize])).collect();
        assert!(own.len() > 10);
        task.push(0, ChangeBatch::append(batch(&own[..10])));
        task.watermark = Watermark::MAX;
        task.end_epoch(false);
        let mut lines: Vec<String> = task.take_text().lines().map(str::to_owned).collect();
        lines.sort();
        let mut expected: Vec<String> = own
            .iter()
            .enumerate()
            .map(|(place, key)| format!("+ {key} 1970-01-01T00:00:10 {} 1 5", if place < 10 { 2 } else { 1 }))
            .collect();
        expected.sort();
        assert_eq!(lines, expected);
        emitted.extend(own);
    }
    emitted.sort_unstable();
    assert_eq!(emitted, keys);
}

#[test]
fn nothing_is_read_while_nothing_was_evicted() {
    let (spec, input) = count_by_key();
    let mut task = TestTask::new(Arc::new(spec), KeyGroupRange::ALL);
    let batch = |key: i64| {
        let rows = RecordBatch::try_new(Arc::clone(&input), vec![Arc::new(Int64Array::from(vec![key]))]);
        ChangeBatch::append(rows.unwrap())
    };
    for key in 0..10 {
        task.push(0, batch(key));
        task.checkpoint();
    }
    assert_eq!(task.state.reads.get(), 0);
    assert!(task.operator.release_memory(1) > 0);
    task.push(0, batch(11));
    assert_eq!(task.state.reads.get(), 1);
}

#[test]
fn what_is_not_durable_yet_is_not_evicted() {
    let (spec, input) = count_by_key();
    check_operator(
        spec,
        &input,
        "
        + 1
        + 2
        hand-over
        evict
        + 1
        epoch
        durable
        evict
        + 2
        checkpoint
        - 2
        - 2
        hand-over
        evict
        + 2
        epoch
        durable
        checkpoint
        crash
        + 2
        + 1
        epoch
        ",
        expect![[r#"
            + 1 1
            + 2 1
            - 1 1
            + 1 2
            - 2 1
            + 2 2
            - 2 2
            + 2 1
            - 2 1
            - 1 2
            + 2 2
            + 1 3
        "#]],
    );
}

/// A generator good enough for tests.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Key, number, text, filter.
type Row = (Option<i64>, Option<i64>, Option<&'static str>, bool);

fn random_row(random: &mut Random) -> Row {
    let key = random.below(7) as i64;
    let number = random.below(12) as i64 - 5;
    let text = ["", "a", "b\0", "ba"][random.below(4) as usize];
    (
        (key > 0).then_some(key),
        (number < 5).then_some(number),
        (number != 0).then_some(text),
        random.below(3) > 0,
    )
}

fn random_batch(input: &SchemaRef, rows: &[(Row, i64)], is_append: bool) -> ChangeBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|(row, _)| row.0).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|(row, _)| row.1).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|(row, _)| row.2).collect::<StringViewArray>()),
        Arc::new(rows.iter().map(|(row, _)| Some(row.3)).collect::<BooleanArray>()),
    ];
    let batch = RecordBatch::try_new(Arc::clone(input), columns).unwrap();
    let diffs = Int64Array::from_iter_values(rows.iter().map(|(_, diff)| *diff));
    ChangeBatch { rows: batch, diffs: (!is_append).then_some(diffs), origin: None }
}

fn text_of<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// The result by the definition of the functions, from scratch.
fn expected(rows: &BTreeMap<Row, i64>) -> BTreeMap<String, i64> {
    let mut groups: BTreeMap<Option<i64>, Vec<(Row, i64)>> = BTreeMap::new();
    for (row, times) in rows.iter().filter(|(_, times)| **times > 0) {
        groups.entry(row.0).or_default().push((*row, *times));
    }
    let result = |(key, rows): (Option<i64>, Vec<(Row, i64)>)| {
        let numbers: Vec<(i64, i64)> =
            rows.iter().filter_map(|(row, times)| Some((row.1?, *times))).collect();
        let sum: i64 = numbers.iter().map(|(number, times)| number * times).sum();
        let count: i64 = numbers.iter().map(|(_, times)| times).sum();
        let passing: i64 = rows.iter().filter(|(row, _)| row.3).map(|(_, times)| times).sum();
        let least_passing = rows.iter().filter(|(row, _)| row.3).filter_map(|(row, _)| row.1).min();
        let mut distinct: Vec<i64> = numbers.iter().map(|(number, _)| *number).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let texts = || rows.iter().filter_map(|(row, _)| row.2);
        let parts = [
            text_of(key),
            rows.iter().map(|(_, times)| times).sum::<i64>().to_string(),
            text_of((count > 0).then_some(sum)),
            passing.to_string(),
            text_of(numbers.iter().map(|(number, _)| number).max()),
            text_of(least_passing),
            distinct.len().to_string(),
            text_of((count > 0).then(|| distinct.iter().sum::<i64>())),
            text_of(texts().min()),
            text_of(texts().max()),
        ];
        (parts.join(" "), 1)
    };
    groups.into_iter().map(result).collect()
}

fn random_spec(input: &SchemaRef, group: usize, input_kind: ChangelogKind) -> Aggregate {
    let calls = vec![
        call(input, CountStar, None),
        call(input, Sum, Some(1)),
        filtered(call(input, CountStar, None), 3),
        call(input, Max, Some(1)),
        filtered(call(input, Min, Some(1)), 3),
        distinct(call(input, Count, Some(1))),
        distinct(call(input, Sum, Some(1))),
        call(input, Min, Some(2)),
        call(input, Max, Some(2)),
    ];
    Aggregate { input_kind, ..aggregate(input, &[group], calls) }
}

/// Random changes in random batches, with checkpoints, crashes and evictions in between: the sum
/// of what was emitted must be the aggregate of the sum of what was taken in.
fn check_random_history(seed: u64, is_append: bool) {
    let mut random = Random(seed);
    let input = schema(&[
        ("k", DataType::Int64),
        ("v", DataType::Int64),
        ("t", DataType::Utf8View),
        ("f", DataType::Boolean),
    ]);
    let kind = if is_append { ChangelogKind::Append } else { ChangelogKind::Retract };
    let mut task = TestTask::new(Arc::new(random_spec(&input, 0, kind)), KeyGroupRange::ALL);
    task.room = 1;
    let mut rows: BTreeMap<Row, i64> = BTreeMap::new();
    let mut emitted: BTreeMap<String, i64> = BTreeMap::new();
    let mut durable = (rows.clone(), emitted.clone());
    let mut handed_over = None;
    for _ in 0..60 {
        let mut changes: Vec<(Row, i64)> = Vec::new();
        for _ in 0..random.below(12) {
            let row = random_row(&mut random);
            let times = rows.entry(row).or_default();
            let diff = if is_append { 1 } else { (random.below(5) as i64 - 2).max(-*times) };
            *times += diff;
            changes.extend((diff != 0).then_some((row, diff)));
        }
        if random.below(2) == 0 {
            // The order within an epoch does not matter.
            changes.reverse();
        }
        for part in changes.chunks(1 + random.below(4) as usize) {
            task.push(0, random_batch(&input, part, is_append));
            if random.below(3) == 0 {
                task.operator.release_memory(random.below(2000) as usize);
            }
        }
        let hands_over = random.below(3) == 0 && handed_over.is_none();
        task.end_epoch(hands_over);
        for batch in task.output.drain(..) {
            for (row, text) in row_texts(&batch.rows).into_iter().enumerate() {
                *emitted.entry(text).or_default() += batch.diff(row);
            }
        }
        emitted.retain(|_, times| *times != 0);
        assert_eq!(emitted, expected(&rows), "seed {seed}");
        if hands_over {
            handed_over = Some((rows.clone(), emitted.clone()));
        }
        if random.below(2) == 0
            && let Some(contained) = handed_over.take()
        {
            task.durable();
            durable = contained;
        }
        if random.below(10) == 0 && durable.0.values().any(|times| *times > 0) {
            task.restart();
            (rows, emitted) = durable.clone();
            handed_over = None;
        }
    }
    assert!(task.side.is_empty());
}

#[test]
fn random_changes_give_what_their_sum_gives() {
    for seed in 0..60 {
        check_random_history(seed, false);
    }
}

#[test]
fn random_insertions_give_what_their_sum_gives() {
    for seed in 0..60 {
        check_random_history(seed, true);
    }
}

#[test]
fn the_name_of_a_state_column_is_stable() {
    let (spec, _) = windowed(true);
    let tables: Vec<String> = spec
        .state_tables()
        .iter()
        .map(|table| {
            let columns = table.schema.columns.fields();
            let names: Vec<&str> = columns.iter().map(|field| field.name().as_str()).collect();
            format!("{} {} of {names:?}", table.name, table.schema.key_len)
        })
        .collect();
    expect![[r#"
        groups 2 of ["window_end", "k", "$rows", "count_0", "extreme_1"]
        values 3 of ["window_end", "k", "$value", "$count"]"#]]
    .assert_eq(&tables.join("\n"));
}
