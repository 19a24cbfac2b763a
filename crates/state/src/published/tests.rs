use std::collections::BTreeMap;
use std::ops::Bound;

use arrow::array::{AsArray, BooleanArray, Int64Array, StringViewArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{option, prop_assert_eq, proptest};

use super::*;
use crate::{CheckpointWrites, StateBackend, Storage, StorageOptions};

const TABLE: TableId = TableId(7);

type Model = BTreeMap<i64, String>;

fn schema() -> Arc<TableSchema> {
    let columns =
        Schema::new(vec![Field::new("k", DataType::Int64, false), Field::new("v", DataType::Utf8View, true)]);
    Arc::new(TableSchema { columns: Arc::new(columns), key_len: 1 })
}

fn backend() -> Arc<dyn StateBackend> {
    Storage::open(&StorageOptions { path: None, memory: 0 }).unwrap().backend
}

fn key_column(keys: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(keys))
}

fn encoded(key: i64) -> Vec<u8> {
    encode_keys(&[key_column([key])], 1).unwrap().bytes
}

/// A run that sets (`Some`) or deletes (`None`) keys.
fn run(changes: &BTreeMap<i64, Option<String>>) -> Arc<Run> {
    let key = key_column(changes.keys().copied());
    let keys = encode_keys(&[Arc::clone(&key)], changes.len()).unwrap();
    let values: StringViewArray = changes.values().cloned().collect();
    let rows = RecordBatch::try_new(Arc::clone(&schema().columns), vec![key, Arc::new(values)]).unwrap();
    let deleted: BooleanArray = changes.values().map(|value| Some(value.is_none())).collect();
    let deleted = (deleted.true_count() > 0).then_some(deleted);
    Arc::new(Run { schema: schema(), keys, rows, deleted })
}

fn set(keys: impl IntoIterator<Item = i64>, value: &str) -> Arc<Run> {
    run(&keys.into_iter().map(|key| (key, Some(format!("{value} of {key}, quite long")))).collect())
}

fn rows_of<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<(i64, String)> {
    let mut rows = Vec::new();
    for batch in batches {
        let (keys, values) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string_view());
        rows.extend((0..batch.num_rows()).map(|row| (keys.value(row), values.value(row).to_owned())));
    }
    rows
}

fn scan(published: &Published, range: ViewRange, batch_rows: usize) -> Vec<(i64, String)> {
    let batches: Vec<RecordBatch> =
        published.scan(TABLE, &schema(), range, batch_rows).collect::<Result<_>>().unwrap();
    assert!(batches.iter().all(|batch| (1..=batch_rows).contains(&batch.num_rows())));
    rows_of(&batches)
}

fn commit(backend: &dyn StateBackend, store: &ViewStore, epoch: u64) -> Arc<dyn Snapshot> {
    let epoch = Epoch(epoch);
    let views = store.runs_up_to(epoch);
    backend.commit(CheckpointWrites { epoch, views, ..CheckpointWrites::default() }).unwrap()
}

fn content(model: &Model) -> Vec<(i64, String)> {
    model.iter().map(|(key, value)| (*key, value.clone())).collect()
}

#[derive(Debug, Clone)]
struct EpochScript {
    changes: BTreeMap<i64, Option<String>>,
    /// The epoch is a checkpoint that becomes durable this many epochs later.
    durable_after: Option<u64>,
}

fn epochs() -> impl Strategy<Value = Vec<EpochScript>> {
    let value = option::weighted(0.7, "[a-c]{1,20}");
    let changes =
        prop_oneof![vec((0..60_i64, value.clone()), 0..6), vec((0..60_i64, value), 0..40), Just(Vec::new()),];
    let epoch = (changes, option::weighted(0.3, 0..3_u64)).prop_map(|(changes, durable_after)| EpochScript {
        changes: changes.into_iter().collect(),
        durable_after,
    });
    vec(epoch, 1..25)
}

proptest! {
    /// Checkpoints become durable late, readers keep old instants, ranges and batches vary.
    #[test]
    fn every_instant_shows_its_epoch(
        script in epochs(),
        batch_rows in 1..20_usize,
        (low, high) in (0..60_i64, 0..60_i64),
        held in any::<proptest::sample::Index>(),
    ) {
        let backend = backend();
        let store = ViewStore::new(backend.snapshot());
        let mut model = Model::new();
        let mut instants = vec![(store.current(), model.clone())];
        let mut pending: Option<(u64, Arc<dyn Snapshot>)> = None;
        for (number, epoch) in script.iter().enumerate() {
            let number = number as u64 + 1;
            store.publish(Epoch(number), vec![(TABLE, run(&epoch.changes))]);
            for (key, value) in epoch.changes.clone() {
                match value {
                    Some(value) => model.insert(key, value),
                    None => model.remove(&key),
                };
            }
            if pending.as_ref().is_some_and(|(at, _)| *at <= number) {
                store.rebase(pending.take().unwrap().1);
            }
            if let Some(delay) = epoch.durable_after && pending.is_none() {
                pending = Some((number + delay, commit(&*backend, &store, number)));
            }
            instants.push((store.current(), model.clone()));
            prop_assert_eq!(store.current().epoch, Epoch(number));
        }
        let (held, held_model) = held.get(&instants);
        for (published, model) in [(held, held_model), instants.last().map(|(p, m)| (p, m)).unwrap()] {
            prop_assert_eq!(scan(published, ViewRange::default(), batch_rows), content(model));
            let range = ViewRange { start: Some(encoded(low)), end: Some(encoded(high)) };
            let expected: Vec<_> = model
                .range((Bound::Included(low.min(high)), Bound::Excluded(high)))
                .filter(|(key, _)| **key >= low)
                .map(|(key, value)| (*key, value.clone()))
                .collect();
            prop_assert_eq!(scan(published, range, batch_rows), expected);
            let asked = [59, high, low, low, 3];
            let (rows, answers) = published.get(TABLE, &schema(), &[key_column(asked)]).unwrap();
            let expected: Vec<(u32, (i64, String))> = asked
                .iter()
                .enumerate()
                .filter_map(|(idx, key)| Some((idx as u32, (*key, model.get(key)?.clone()))))
                .collect();
            let found: Vec<_> = answers.into_iter().zip(rows_of([&rows])).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn a_checkpoint_gets_the_runs_of_its_epochs_and_no_others() {
    let backend = backend();
    let store = ViewStore::new(backend.snapshot());
    store.publish(Epoch(1), vec![(TABLE, set([1], "first"))]);
    store.publish(Epoch(2), vec![(TABLE, set([1], "second"))]);
    let base = commit(&*backend, &store, 2);
    store.publish(Epoch(3), vec![(TABLE, set([1], "third"))]);
    store.rebase(Arc::clone(&base));
    let durable = Published::of_checkpoint(base);
    assert_eq!(scan(&durable, ViewRange::default(), 10), [(1, "second of 1, quite long".to_owned())]);
    assert_eq!(scan(&store.current(), ViewRange::default(), 10), [(1, "third of 1, quite long".to_owned())]);
    assert_eq!(store.runs_up_to(Epoch(2)).len(), 0);
    assert_eq!(store.runs_up_to(Epoch(3)).len(), 1);
}

#[test]
fn a_checkpoint_announced_in_time_may_be_collected_late() {
    let store = ViewStore::new(backend().snapshot());
    store.publish(Epoch(1), vec![(TABLE, set([1], "first"))]);
    store.begin_checkpoint(Epoch(1));
    store.publish(Epoch(2), vec![(TABLE, set([2], "second"))]);
    let runs = store.runs_up_to(Epoch(1));
    assert_eq!(runs.len(), 1);
    assert_eq!(rows_of([&runs[0].1.rows]), [(1, "first of 1, quite long".to_owned())]);
}

#[test]
#[should_panic(expected = "epoch 1 was merged with epoch 2")]
fn a_checkpoint_of_merged_epochs_is_refused() {
    let store = ViewStore::new(backend().snapshot());
    store.publish(Epoch(1), vec![(TABLE, set([1], "first"))]);
    store.publish(Epoch(2), vec![(TABLE, set([2], "second"))]);
    let _ = store.runs_up_to(Epoch(1));
}

#[test]
#[should_panic(expected = "epoch 1 published after epoch 2")]
fn epochs_never_go_back() {
    let store = ViewStore::new(backend().snapshot());
    store.publish(Epoch(2), Vec::new());
    store.publish(Epoch(1), Vec::new());
}

#[test]
fn many_small_runs_become_few() {
    let store = ViewStore::new(backend().snapshot());
    for epoch in 1..=1000 {
        store.publish(Epoch(epoch), vec![(TABLE, set([epoch as i64], "row"))]);
    }
    assert!(store.current().runs(TABLE).count() <= 10);
    assert_eq!(scan(&store.current(), ViewRange::default(), 64).len(), 1000);
}

#[test]
fn a_forgotten_table_has_no_overlay() {
    let store = ViewStore::new(backend().snapshot());
    store.publish(Epoch(1), vec![(TABLE, set(0..100, "row"))]);
    assert!(store.memory() > 0);
    store.forget(&[TABLE]);
    assert_eq!(store.memory(), 0);
    assert_eq!(scan(&store.current(), ViewRange::default(), 64), []);
}

#[test]
fn stretches_without_overlay_keep_their_batches() {
    let backend = backend();
    let store = ViewStore::new(backend.snapshot());
    store.publish(Epoch(1), vec![(TABLE, set(0..100, "base"))]);
    store.rebase(commit(&*backend, &store, 1));
    store.publish(Epoch(2), vec![(TABLE, set([55], "overlay"))]);
    let sizes: Vec<usize> = store
        .current()
        .scan(TABLE, &schema(), ViewRange::default(), 10)
        .map(|batch| batch.unwrap().num_rows())
        .collect();
    assert_eq!(sizes, [10; 10]);
}
