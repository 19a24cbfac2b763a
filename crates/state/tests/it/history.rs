//! A random history of checkpoints (state, views, meta, drops) against plain maps, over both
//! backends; earlier snapshots are looked at when all later checkpoints are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use proptest::bool::weighted;
use proptest::collection::{btree_map, vec};
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use proptest::{option, prop_assert_eq};
use state::{
    CheckpointWrites, EncodedKeys, Epoch, KeyGroupRange, Run, Snapshot, StateBackend, TableChanges, TableId,
    TableSchema, decode_keys, decode_rows, encode_keys,
};

use crate::fixture::{in_memory, open};

const KEYS: std::ops::Range<i64> = 0..40;
const TASKS: usize = 3;

fn schema() -> Arc<TableSchema> {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(TableSchema { columns: Arc::new(Schema::new(vec![field("k"), field("v")])), key_len: 1 })
}

fn column(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn encode(keys: impl IntoIterator<Item = i64>) -> EncodedKeys {
    let keys = column(keys);
    let rows = keys.len();
    encode_keys(&[keys], rows).unwrap()
}

fn group_of(key: i64) -> u8 {
    schema().key_groups(&[column([key])], 1).unwrap()[0]
}

fn decode_key(key: &[u8]) -> i64 {
    decode_keys(schema().key_fields(), std::iter::once(key)).unwrap()[0].as_primitive::<Int64Type>().value(0)
}

fn decode_value(value: &[u8]) -> i64 {
    decode_rows(schema().value_fields(), std::iter::once(value)).unwrap()[0]
        .as_primitive::<Int64Type>()
        .value(0)
}

/// One checkpoint. Changes: `Some` puts, `None` deletes.
#[derive(Debug, Clone)]
struct Checkpoint {
    state: BTreeMap<i64, Option<i64>>,
    state_up_to: Option<i64>,
    view: BTreeMap<i64, Option<i64>>,
    meta: BTreeMap<String, Option<u8>>,
    drop_state: bool,
    drop_view: bool,
}

fn checkpoints() -> impl Strategy<Value = Vec<Checkpoint>> {
    let changes = || btree_map(KEYS, option::weighted(0.7, 0..1000_i64), 0..20);
    let meta = btree_map("[ab/]{1,3}", option::of(0..9_u8), 0..4);
    let drops = (weighted(0.1), weighted(0.1));
    let checkpoint = (changes(), option::weighted(0.3, KEYS), changes(), meta, drops).prop_map(
        |(state, state_up_to, view, meta, (drop_state, drop_view))| Checkpoint {
            state,
            state_up_to,
            view,
            meta,
            drop_state,
            drop_view,
        },
    );
    vec(checkpoint, 1..12)
}

fn split(changes: &BTreeMap<i64, Option<i64>>, groups: KeyGroupRange) -> (Vec<(i64, i64)>, Vec<i64>) {
    let own = || changes.iter().filter(|(key, _)| groups.contains(group_of(**key)));
    let puts = own().filter_map(|(key, value)| Some((*key, (*value)?))).collect();
    let deletes = own().filter(|(_, value)| value.is_none()).map(|(key, _)| *key).collect();
    (puts, deletes)
}

fn rows(entries: &[(i64, i64)]) -> RecordBatch {
    let columns = vec![column(entries.iter().map(|row| row.0)), column(entries.iter().map(|row| row.1))];
    RecordBatch::try_new(Arc::clone(&schema().columns), columns).unwrap()
}

fn run(changes: &BTreeMap<i64, Option<i64>>) -> Arc<Run> {
    let entries: Vec<(i64, i64)> = changes.iter().map(|(key, value)| (*key, value.unwrap_or(0))).collect();
    let keys = encode(changes.keys().copied());
    let deleted = changes.values().map(|value| Some(value.is_none())).collect();
    Arc::new(Run { schema: schema(), keys, rows: rows(&entries), deleted: Some(deleted) })
}

#[derive(Debug, Clone)]
struct Model {
    epoch: u64,
    /// Table ids: the next ones after a drop, because ids are never reused.
    state_table: TableId,
    view_table: TableId,
    state: BTreeMap<i64, i64>,
    view: BTreeMap<i64, i64>,
    meta: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Model {
    fn apply(&mut self, checkpoint: &Checkpoint) -> CheckpointWrites {
        self.epoch += 1;
        if let Some(bound) = checkpoint.state_up_to {
            self.state.retain(|key, _| *key > bound);
        }
        for (table, changes) in [(&mut self.state, &checkpoint.state), (&mut self.view, &checkpoint.view)] {
            for (key, value) in changes {
                match value {
                    Some(value) => table.insert(*key, *value),
                    None => table.remove(key),
                };
            }
        }
        for (key, value) in &checkpoint.meta {
            match value {
                Some(value) => self.meta.insert(key.clone().into_bytes(), vec![*value]),
                None => self.meta.remove(key.as_bytes()),
            };
        }
        let state = (0..TASKS)
            .map(|task| (self.state_table, groups_of(task), task_changes(checkpoint, task)))
            .collect();
        let views = vec![(self.view_table, run(&checkpoint.view))];
        let mut dropped_tables = Vec::new();
        if checkpoint.drop_state {
            self.state.clear();
            dropped_tables.push(self.state_table);
            self.state_table.0 += 2;
        }
        if checkpoint.drop_view {
            self.view.clear();
            dropped_tables.push(self.view_table);
            self.view_table.0 += 2;
        }
        CheckpointWrites {
            epoch: Epoch(self.epoch),
            state,
            views,
            meta: checkpoint
                .meta
                .iter()
                .map(|(key, value)| (key.clone().into_bytes(), value.map(|value| vec![value])))
                .collect(),
            dropped_tables,
            inbox_sequence: 0,
        }
    }
}

fn groups_of(task: usize) -> KeyGroupRange {
    KeyGroupRange::of_subtask(task, TASKS)
}

fn task_changes(checkpoint: &Checkpoint, task: usize) -> TableChanges {
    let (puts, deletes) = split(&checkpoint.state, groups_of(task));
    TableChanges {
        schema: schema(),
        puts: puts.chunks(3).map(rows).collect(),
        deletes: deletes.chunks(2).map(|keys| vec![column(keys.iter().copied())]).collect(),
        delete_up_to: checkpoint.state_up_to.map(|bound| column([bound])),
    }
}

fn check_state(backend: &dyn StateBackend, model: &Model) -> TestCaseResult {
    let groups: Vec<u8> = KEYS.map(group_of).collect();
    let found = backend.get_state(model.state_table, &groups, &encode(KEYS)).unwrap();
    let found: Vec<_> = found.iter().map(|value| value.as_deref().map(decode_value)).collect();
    let expected: Vec<_> = KEYS.map(|key| model.state.get(&key).copied()).collect();
    prop_assert_eq!(found, expected);
    for upper in [None, Some(KEYS.end / 2)] {
        for task in 0..TASKS {
            let groups = groups_of(task);
            let bound = upper.map(|upper| encode([upper]));
            let scan =
                backend.scan_state(model.state_table, groups, bound.as_ref().map(|bound| bound.get(0)));
            let found: Vec<(u8, i64, i64)> = scan
                .map(|entry| entry.unwrap())
                .map(|(key, value)| (decode_key(&key), decode_value(&value)))
                .map(|(key, value)| (group_of(key), key, value))
                .collect();
            let mut expected: Vec<(u8, i64, i64)> = model
                .state
                .iter()
                .filter(|(key, _)| {
                    groups.contains(group_of(**key)) && upper.is_none_or(|upper| **key <= upper)
                })
                .map(|(key, value)| (group_of(*key), *key, *value))
                .collect();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
    Ok(())
}

fn check_snapshot(snapshot: &dyn Snapshot, model: &Model) -> TestCaseResult {
    prop_assert_eq!(snapshot.epoch(), Epoch(model.epoch));
    let found = snapshot.get_view(model.view_table, &encode(KEYS)).unwrap();
    let found: Vec<_> = found.iter().map(|value| value.as_deref().map(decode_value)).collect();
    prop_assert_eq!(found, KEYS.map(|key| model.view.get(&key).copied()).collect::<Vec<_>>());
    let (start, end) = (KEYS.end / 4, KEYS.end / 2);
    let bounds = encode([start, end]);
    for (start, end) in [(None, None), (Some(start), None), (None, Some(end)), (Some(start), Some(end))] {
        let expected: Vec<(i64, i64)> = model
            .view
            .iter()
            .filter(|(key, _)| start.is_none_or(|start| **key >= start) && end.is_none_or(|end| **key < end))
            .map(|(key, value)| (*key, *value))
            .collect();
        let (start, end) = (start.map(|_| bounds.get(0)), end.map(|_| bounds.get(1)));
        let scan = snapshot.scan_view(model.view_table, start, end).map(|entry| entry.unwrap());
        let found: Vec<_> = scan.map(|(key, value)| (decode_key(&key), decode_value(&value))).collect();
        prop_assert_eq!(&found, &expected);
        let mut found = Vec::new();
        for entries in snapshot.scan_view_entries(model.view_table, start, end, 7) {
            let entries = entries.unwrap();
            assert!((1..=7).contains(&entries.keys.len()));
            found.extend(entries.keys.iter().map(decode_key).zip(entries.values.iter().map(decode_value)));
        }
        prop_assert_eq!(&found, &expected);
    }
    for (key, value) in &model.meta {
        prop_assert_eq!(snapshot.meta(key).unwrap(), Some(value.clone()));
    }
    prop_assert_eq!(snapshot.meta(b"none").unwrap(), None);
    for prefix in [&b""[..], b"a", b"b/"] {
        let from_prefix = model.meta.iter().filter(|(key, _)| key.starts_with(prefix));
        let expected: Vec<_> = from_prefix.map(|(key, value)| (key.clone(), value.clone())).collect();
        prop_assert_eq!(snapshot.scan_meta(prefix).unwrap(), expected);
    }
    Ok(())
}

/// Every checkpoint shows what it should, then and (views, meta) after all later ones.
fn check_history(backend: &dyn StateBackend, history: &[Checkpoint]) -> TestCaseResult {
    let mut model = Model {
        epoch: 0,
        state_table: TableId(1),
        view_table: TableId(2),
        state: BTreeMap::new(),
        view: BTreeMap::new(),
        meta: BTreeMap::new(),
    };
    let mut snapshots = vec![(backend.snapshot(), model.clone())];
    for checkpoint in history {
        let writes = model.apply(checkpoint);
        let snapshot = backend.commit(writes).unwrap();
        prop_assert_eq!(backend.snapshot().epoch(), snapshot.epoch());
        check_state(backend, &model)?;
        snapshots.push((snapshot, model.clone()));
    }
    for (snapshot, model) in snapshots {
        check_snapshot(snapshot.as_ref(), &model)?;
    }
    Ok(())
}

fn check_backend(
    cases: u32,
    with_backend: impl Fn(&dyn Fn(&dyn StateBackend) -> TestCaseResult) -> TestCaseResult,
) {
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    let result =
        runner.run(&checkpoints(), |history| with_backend(&|backend| check_history(backend, &history)));
    assert!(result.is_ok(), "{}", result.unwrap_err());
}

#[test]
fn memory_holds_exactly_its_checkpoints() {
    check_backend(200, |check| check(in_memory().backend.as_ref()));
}

#[test]
fn rocksdb_holds_exactly_its_checkpoints() {
    check_backend(8, |check| {
        let folder = tempfile::tempdir().unwrap();
        check(open(folder.path()).unwrap().backend.as_ref())
    });
}
