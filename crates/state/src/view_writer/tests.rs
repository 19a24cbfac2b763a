use std::collections::BTreeMap;

use arrow::array::{ArrayRef, Float64Array, StringViewArray};
use arrow::datatypes::Field;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::{prop_assert_eq, proptest};

use super::*;
use crate::{Epoch, Storage, StorageOptions, ViewRange, ViewStore};

const TABLE: TableId = TableId(1);

fn empty() -> ViewStore {
    let storage = Storage::open(&StorageOptions { path: None, memory: 0 }).unwrap();
    ViewStore::new(storage.backend.snapshot())
}

fn schema(names: &[&str], key_len: usize) -> Arc<TableSchema> {
    let field = |name: &&str| Field::new(*name, DataType::Int64, !name.starts_with('$'));
    let fields: Vec<Field> = names.iter().map(field).collect();
    Arc::new(TableSchema { columns: Arc::new(Schema::new(fields)), key_len })
}

fn keyed() -> ViewWriter {
    ViewWriter::new(TABLE, schema(&["k", "v"], 1), false)
}

fn multiset() -> ViewWriter {
    ViewWriter::new(TABLE, schema(&["a", "b", "$count"], 2), true)
}

/// Two columns and a multiplicity a row.
fn push(writer: &mut ViewWriter, changes: &[(i64, i64, i64)]) {
    let column = |of: fn(&(i64, i64, i64)) -> i64| Int64Array::from_iter_values(changes.iter().map(of));
    let columns: Vec<ArrayRef> = vec![Arc::new(column(|row| row.0)), Arc::new(column(|row| row.1))];
    let rows = RecordBatch::try_new(Arc::clone(&schema(&["x", "y"], 0).columns), columns).unwrap();
    let is_append = changes.iter().all(|row| row.2 == 1);
    writer.push(rows, (!is_append).then(|| column(|row| row.2)));
}

/// Lines like `+ 1 2` and `- 1`.
fn show(run: Option<Run>, key_len: usize) -> Vec<String> {
    let Some(run) = run else { return Vec::new() };
    assert!((1..run.len()).all(|row| run.keys.get(row - 1) < run.keys.get(row)));
    let lines = (0..run.len()).map(|row| {
        let (sign, width) = if run.is_deleted(row) { ("-", key_len) } else { ("+", run.rows.num_columns()) };
        let values =
            run.rows.columns()[..width].iter().map(|column| column.as_primitive::<Int64Type>().value(row));
        let values: Vec<String> = values.map(|value| value.to_string()).collect();
        format!("{sign} {}", values.join(" "))
    });
    lines.collect()
}

#[test]
fn an_idempotent_writer_takes_a_row_any_number_of_times() {
    let mut writer = ViewWriter::idempotent(TABLE, schema(&["k", "v"], 1));
    push(&mut writer, &[(1, 5, 1), (2, 6, 1)]);
    push(&mut writer, &[(1, 5, 1)]);
    assert_eq!(show(writer.finish(&empty().current()).unwrap(), 1), ["+ 1 5", "+ 2 6"]);
    push(&mut writer, &[(1, 5, 1), (1, 6, 1)]);
    assert!(writer.finish(&empty().current()).is_err());
}

fn finish_keyed(batches: &[&[(i64, i64, i64)]]) -> Result<Vec<String>> {
    let mut writer = keyed();
    batches.iter().for_each(|batch| push(&mut writer, batch));
    let run = writer.finish(&empty().current())?;
    assert_eq!(writer.memory(), 0);
    Ok(show(run, 1))
}

#[test]
fn appended_rows_are_sorted_by_key() {
    let lines = finish_keyed(&[&[(3, 30, 1), (1, 10, 1)], &[(2, 20, 1)]]).unwrap();
    assert_eq!(lines, ["+ 1 10", "+ 2 20", "+ 3 30"]);
}

#[test]
fn an_update_is_the_new_row() {
    assert_eq!(finish_keyed(&[&[(1, 10, -1), (1, 11, 1)]]).unwrap(), ["+ 1 11"]);
    assert_eq!(finish_keyed(&[&[(1, 11, 1)], &[(1, 10, -1)]]).unwrap(), ["+ 1 11"]);
}

#[test]
fn a_retraction_alone_deletes() {
    assert_eq!(finish_keyed(&[&[(1, 10, -1), (2, 20, 1)]]).unwrap(), ["- 1", "+ 2 20"]);
}

#[test]
fn what_cancels_out_changes_nothing() {
    assert!(finish_keyed(&[&[(1, 10, -1), (1, 10, 1)]]).unwrap().is_empty());
    assert_eq!(finish_keyed(&[&[(1, 10, -1), (1, 11, 1)], &[(1, 11, -1), (1, 12, 1)]]).unwrap(), ["+ 1 12"]);
    assert_eq!(finish_keyed(&[&[(1, 10, 2), (1, 10, -1)]]).unwrap(), ["+ 1 10"]);
    assert!(finish_keyed(&[]).unwrap().is_empty());
}

#[test]
fn a_key_with_two_rows_is_an_internal_error() {
    for changes in
        [&[(1, 10, 1), (1, 11, 1)][..], &[(1, 10, 1), (1, 10, 1)], &[(1, 10, 2)], &[(1, 1, -1), (1, 2, -1)]]
    {
        let error = finish_keyed(&[changes]).unwrap_err().to_string();
        assert_eq!(error, "internal error: view table 1: key (1) would not have one row or none");
    }
}

#[test]
fn a_table_without_key_has_one_row() {
    let mut writer = ViewWriter::new(TABLE, schema(&["x", "y"], 0), false);
    push(&mut writer, &[(1, 10, -1), (2, 20, 1)]);
    let store = empty();
    let run = writer.finish(&store.current()).unwrap().unwrap();
    store.publish(Epoch(1), vec![(TABLE, Arc::new(run))]);
    let (rows, answers) = store.current().get(TABLE, &schema(&["x", "y"], 0), &[]).unwrap();
    assert_eq!((rows.num_rows(), answers), (1, vec![0]));
}

#[test]
fn a_multiset_counts_equal_rows() {
    let store = empty();
    let mut writer = multiset();
    push(&mut writer, &[(1, 1, 1), (2, 2, 1), (1, 1, 1)]);
    let run = writer.finish(&store.current()).unwrap().unwrap();
    store.publish(Epoch(1), vec![(TABLE, Arc::new(run))]);
    push(&mut writer, &[(1, 1, -1), (2, 2, -1), (3, 3, 1)]);
    let run = writer.finish(&store.current()).unwrap();
    assert_eq!(show(run, 2), ["+ 1 1 1", "- 2 2", "+ 3 3 1"]);
}

#[test]
fn a_negative_multiplicity_is_an_internal_error() {
    let mut writer = multiset();
    push(&mut writer, &[(1, 1, -1)]);
    let error = writer.finish(&empty().current()).unwrap_err().to_string();
    assert_eq!(error, "internal error: view table 1: row (1, 1) would be there -1 times");
}

#[test]
fn a_key_reads_the_same_before_and_after_a_checkpoint() {
    let columns = Schema::new(vec![Field::new("k", DataType::Float64, true)]);
    let schema = Arc::new(TableSchema { columns: Arc::new(columns), key_len: 1 });
    let mut writer = ViewWriter::new(TABLE, Arc::clone(&schema), false);
    let negative_zero: ArrayRef = Arc::new(Float64Array::from(vec![-0.0]));
    writer.push(RecordBatch::try_new(Arc::clone(&schema.columns), vec![negative_zero]).unwrap(), None);
    let run = writer.finish(&empty().current()).unwrap().unwrap();
    assert!(run.rows.column(0).as_primitive::<arrow::datatypes::Float64Type>().value(0).is_sign_positive());
}

#[test]
fn a_run_does_not_keep_the_buffers_of_other_rows() {
    let columns =
        Schema::new(vec![Field::new("k", DataType::Utf8View, true), Field::new("v", DataType::Int64, true)]);
    let schema = Arc::new(TableSchema { columns: Arc::new(columns), key_len: 1 });
    let long = "x".repeat(100);
    let texts: StringViewArray = (0..10_000).map(|row| Some(format!("{row} {long}"))).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(texts), Arc::new(Int64Array::from_iter_values(0..10_000))];
    let rows = RecordBatch::try_new(Arc::clone(&schema.columns), columns).unwrap();
    let mut writer = ViewWriter::new(TABLE, schema, false);
    writer.push(rows.slice(10, 2), None);
    let run = writer.finish(&empty().current()).unwrap().unwrap();
    assert!(run.memory_size() < 10_000, "{}", run.memory_size());
}

/// Epochs of changes in shuffled order and batches: the new count of some rows.
fn multiset_epochs() -> impl Strategy<Value = Vec<Vec<(i64, i64, u64)>>> {
    vec(vec((0..4_i64, 0..3_i64, 0..3_u64), 0..20), 1..6)
}

proptest! {
    #[test]
    fn a_multiset_holds_the_sum_of_all_changes(epochs in multiset_epochs(), cut in any::<proptest::sample::Index>()) {
        let store = empty();
        let mut writer = multiset();
        let mut model: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        for (number, epoch) in epochs.iter().enumerate() {
            let mut changes = Vec::new();
            for &(a, b, count) in epoch {
                let before = model.insert((a, b), count as i64).unwrap_or(0);
                if count as i64 != before {
                    changes.push((a, b, count as i64 - before));
                }
            }
            changes.reverse();
            let (left, right) = changes.split_at(cut.index(changes.len() + 1));
            push(&mut writer, left);
            push(&mut writer, right);
            let run = writer.finish(&store.current()).unwrap();
            store.publish(Epoch(number as u64 + 1), run.map(|run| (TABLE, Arc::new(run))).into_iter().collect());
        }
        let mut stored = Vec::new();
        for batch in store.current().scan(TABLE, &multiset().schema, ViewRange::default(), 7) {
            let batch = batch.unwrap();
            let column = |idx: usize| batch.column(idx).as_primitive::<Int64Type>().clone();
            stored.extend((0..batch.num_rows()).map(|row| {
                ((column(0).value(row), column(1).value(row)), column(2).value(row))
            }));
        }
        let expected: Vec<_> = model.into_iter().filter(|(_, count)| *count != 0).collect();
        prop_assert_eq!(stored, expected);
    }
}
