//! The suite every backend passes.

use std::sync::Arc;

use state::{
    CheckpointWrites, Epoch, KEY_GROUPS, KeyGroupRange, Storage, TableChanges, TableId, TableSchema,
};

use crate::fixture::{
    STATE, VIEW, changes, decoded, ids, in_memory, keys, on_both_backends, open, puts, rows, run, schema,
    state_rows, view,
};

fn commit_state(storage: &Storage, epoch: u64, state: Vec<(TableId, KeyGroupRange, TableChanges)>) {
    let writes = CheckpointWrites { epoch: Epoch(epoch), state, ..CheckpointWrites::default() };
    storage.backend.commit(writes).unwrap();
}

fn owned(entries: &[(i64, &str)]) -> Vec<(i64, String)> {
    entries.iter().map(|(id, text)| (*id, (*text).to_owned())).collect()
}

#[test]
fn a_snapshot_keeps_showing_its_commit() {
    on_both_backends(|storage| {
        let empty = storage.backend.snapshot();
        let commit = |epoch, text: &str, inbox_sequence| CheckpointWrites {
            epoch: Epoch(epoch),
            views: vec![(VIEW, run(&[(1, text)]))],
            meta: vec![(b"a".to_vec(), Some(text.as_bytes().to_vec()))],
            inbox_sequence,
            ..CheckpointWrites::default()
        };
        let first = storage.backend.commit(commit(4, "first", 1)).unwrap();
        let second = storage.backend.commit(commit(9, "second", 5)).unwrap();
        assert_eq!((empty.epoch(), first.epoch(), second.epoch()), (Epoch(0), Epoch(4), Epoch(9)));
        assert_eq!((first.inbox_sequence(), second.inbox_sequence()), (1, 5));
        assert_eq!((view(&*empty), empty.meta(b"a").unwrap()), (vec![], None));
        assert_eq!(
            (view(&*first), first.meta(b"a").unwrap()),
            (owned(&[(1, "first")]), Some(b"first".to_vec()))
        );
        assert_eq!(view(&*second), owned(&[(1, "second")]));
        assert_eq!(view(&*storage.backend.snapshot()), view(&*second));
    });
}

#[test]
fn an_epoch_that_does_not_grow_is_refused_and_changes_nothing() {
    on_both_backends(|storage| {
        commit_state(storage, 5, vec![(STATE, KeyGroupRange::ALL, puts(&[(1, "kept")]))]);
        for epoch in [4, 5] {
            let state = vec![(STATE, KeyGroupRange::ALL, puts(&[(1, "lost")]))];
            let writes = CheckpointWrites { epoch: Epoch(epoch), state, ..CheckpointWrites::default() };
            let Err(error) = storage.backend.commit(writes) else { panic!("epoch {epoch} follows epoch 5") };
            assert!(!error.is_fatal());
        }
        commit_state(storage, 6, Vec::new());
        assert_eq!(state_rows(storage, STATE), owned(&[(1, "kept")]));
    });
}

#[test]
fn meta_is_scanned_by_prefix_in_key_order() {
    on_both_backends(|storage| {
        let meta = ["b/2", "a", "b/1", "c", "b/3"].map(|key| (key.into(), Some(key.as_bytes().to_vec())));
        let mut writes =
            CheckpointWrites { epoch: Epoch(1), meta: meta.into(), ..CheckpointWrites::default() };
        storage.backend.commit(writes).unwrap();
        writes = CheckpointWrites {
            epoch: Epoch(2),
            meta: vec![(b"b/2".to_vec(), None)],
            ..CheckpointWrites::default()
        };
        let snapshot = storage.backend.commit(writes).unwrap();
        let names = |prefix: &[u8]| -> Vec<String> {
            let entries = snapshot.scan_meta(prefix).unwrap();
            entries.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
        };
        assert_eq!(names(b"b/"), ["b/1", "b/3"]);
        assert_eq!(names(b""), ["a", "b/1", "b/3", "c"]);
        assert_eq!(names(b"d"), [""; 0]);
    });
}

#[test]
fn view_rows_are_read_by_key_in_the_order_asked() {
    on_both_backends(|storage| {
        let views = vec![
            (VIEW, run(&[(-5, "a"), (1, "b"), (300, "c")])),
            (TableId(VIEW.0 + 1), run(&[(2, "other")])),
        ];
        let writes = CheckpointWrites { epoch: Epoch(1), views, ..CheckpointWrites::default() };
        let snapshot = storage.backend.commit(writes).unwrap();
        let found = snapshot.get_view(VIEW, &keys(&[300, 2, -5, 300])).unwrap();
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true, true]);
        assert_eq!(found[0], found[3]);
        assert_ne!(found[0], found[2]);
        let between = |start: Option<i64>, end: Option<i64>| -> Vec<i64> {
            let bound = |id: Option<i64>| id.map(|id| keys(&[id]).get(0).to_vec());
            let (start, end) = (bound(start), bound(end));
            let entries = snapshot.scan_view(VIEW, start.as_deref(), end.as_deref());
            decoded(entries).into_iter().map(|(id, _)| id).collect()
        };
        assert_eq!(between(None, None), [-5, 1, 300]);
        assert_eq!(between(Some(1), None), [1, 300]);
        assert_eq!(between(None, Some(300)), [-5, 1]);
        assert_eq!(between(Some(-4), Some(1)), [0; 0]);
        assert_eq!(between(Some(300), Some(-5)), [0; 0]);
    });
}

#[test]
fn a_run_deletes_and_later_runs_win() {
    on_both_backends(|storage| {
        let mut gone = Arc::into_inner(run(&[(1, ""), (2, "two again")])).unwrap();
        gone.deleted = Some(vec![true, false].into());
        let views = vec![(VIEW, run(&[(1, "one"), (2, "two"), (3, "three")])), (VIEW, Arc::new(gone))];
        let writes = CheckpointWrites { epoch: Epoch(1), views, ..CheckpointWrites::default() };
        let snapshot = storage.backend.commit(writes).unwrap();
        assert_eq!(view(&*snapshot), owned(&[(2, "two again"), (3, "three")]));
    });
}

#[test]
fn state_is_read_by_key_group_and_key() {
    on_both_backends(|storage| {
        let all: Vec<i64> = (0..1_000).collect();
        let texts: Vec<String> = all.iter().map(i64::to_string).collect();
        let entries: Vec<(i64, &str)> = all.iter().map(|id| (*id, texts[*id as usize].as_str())).collect();
        commit_state(storage, 1, vec![(STATE, KeyGroupRange::ALL, puts(&entries))]);
        let groups = schema().key_groups(&[ids(&all)], all.len()).unwrap();
        let found = storage.backend.get_state(STATE, &groups, &keys(&all)).unwrap();
        assert!(found.iter().all(Option::is_some));
        let missed = storage.backend.get_state(TableId(STATE.0 + 1), &groups, &keys(&all)).unwrap();
        assert!(missed.iter().all(Option::is_none));

        // All groups together are all rows; within a group keys ascend.
        let mut seen = 0;
        for group in 0..KEY_GROUPS {
            let range = KeyGroupRange { start: group, end: group + 1 };
            let of_group: Vec<i64> = decoded(storage.backend.scan_state(STATE, range, None))
                .into_iter()
                .map(|(id, _)| id)
                .collect();
            let expected: Vec<i64> =
                all.iter().copied().filter(|id| u16::from(groups[*id as usize]) == group).collect();
            assert_eq!(of_group, expected);
            seen += of_group.len();
        }
        assert_eq!(seen, all.len());
    });
}

#[test]
fn a_scan_up_to_a_key_includes_it_in_every_group() {
    on_both_backends(|storage| {
        let all: Vec<(i64, &str)> = (0..1_000).map(|id| (id, "x")).collect();
        commit_state(storage, 1, vec![(STATE, KeyGroupRange::ALL, puts(&all))]);
        for (upper, expected) in [(-1, 0), (0, 1), (499, 500), (5_000, 1_000)] {
            let upper = keys(&[upper]);
            let found = decoded(storage.backend.scan_state(STATE, KeyGroupRange::ALL, Some(upper.get(0))));
            assert_eq!(found.len(), expected);
        }
    });
}

#[test]
fn a_closed_window_is_deleted_in_the_owned_groups_only() {
    on_both_backends(|storage| {
        let all: Vec<(i64, &str)> = (0..1_000).map(|id| (id, "x")).collect();
        commit_state(storage, 1, vec![(STATE, KeyGroupRange::ALL, puts(&all))]);
        let half = KeyGroupRange::of_subtask(0, 2);
        let closed = TableChanges { delete_up_to: Some(ids(&[699])), puts: vec![rows(&[])], ..changes() };
        commit_state(storage, 2, vec![(STATE, half, closed)]);
        let groups = schema().key_groups(&[ids(&(0..1_000).collect::<Vec<_>>())], 1_000).unwrap();
        let expected: Vec<i64> =
            (0..1_000).filter(|id| *id > 699 || !half.contains(groups[*id as usize])).collect();
        let found: Vec<i64> = state_rows(storage, STATE).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, expected);
    });
}

#[test]
fn a_bound_applies_before_the_puts_of_its_hand_over_and_after_those_before() {
    on_both_backends(|storage| {
        commit_state(
            storage,
            1,
            vec![(STATE, KeyGroupRange::ALL, puts(&[(1, "old"), (2, "old"), (9, "old")]))],
        );
        let earlier = puts(&[(3, "earlier hand-over")]);
        let closed = TableChanges { delete_up_to: Some(ids(&[5])), ..puts(&[(2, "late put")]) };
        commit_state(
            storage,
            2,
            vec![(STATE, KeyGroupRange::ALL, earlier), (STATE, KeyGroupRange::ALL, closed)],
        );
        assert_eq!(state_rows(storage, STATE), owned(&[(2, "late put"), (9, "old")]));
    });
}

#[test]
fn deletes_and_later_hand_overs_of_a_table_win() {
    on_both_backends(|storage| {
        let deletes = TableChanges { deletes: vec![vec![ids(&[1, 2])]], ..changes() };
        let state = vec![
            (STATE, KeyGroupRange::ALL, puts(&[(1, "a"), (2, "a"), (3, "a")])),
            (STATE, KeyGroupRange::ALL, deletes),
            (STATE, KeyGroupRange::ALL, puts(&[(2, "b")])),
        ];
        commit_state(storage, 1, state);
        assert_eq!(state_rows(storage, STATE), owned(&[(2, "b"), (3, "a")]));
    });
}

#[test]
fn a_table_without_key_has_one_row() {
    on_both_backends(|storage| {
        let single = Arc::new(TableSchema { columns: Arc::clone(&schema().columns), key_len: 0 });
        let put =
            |text| TableChanges { schema: Arc::clone(&single), puts: vec![rows(&[(5, text)])], ..changes() };
        commit_state(storage, 1, vec![(STATE, KeyGroupRange::ALL, put("first"))]);
        commit_state(storage, 2, vec![(STATE, KeyGroupRange::ALL, put("second"))]);
        let entries: Vec<_> =
            storage.backend.scan_state(STATE, KeyGroupRange::ALL, None).map(Result::unwrap).collect();
        assert_eq!(entries.len(), 1);
        assert!(entries[0].0.is_empty());
    });
}

#[test]
fn a_dropped_table_is_empty_and_its_neighbours_are_not() {
    on_both_backends(|storage| {
        let tables = [STATE.0 - 1, STATE.0, STATE.0 + 1].map(TableId);
        let writes = CheckpointWrites {
            epoch: Epoch(1),
            state: tables.map(|table| (table, KeyGroupRange::ALL, puts(&[(1, "x")]))).into(),
            views: tables.map(|table| (table, run(&[(1, "x")]))).into(),
            ..CheckpointWrites::default()
        };
        let before = storage.backend.commit(writes).unwrap();
        let writes =
            CheckpointWrites { epoch: Epoch(2), dropped_tables: vec![STATE], ..CheckpointWrites::default() };
        let after = storage.backend.commit(writes).unwrap();
        for (table, rows) in tables.into_iter().zip([1, 0, 1]) {
            assert_eq!(decoded(after.scan_view(table, None, None)).len(), rows);
            assert_eq!(state_rows(storage, table).len(), rows);
            assert_eq!(decoded(before.scan_view(table, None, None)).len(), 1);
        }
    });
}

#[test]
fn readers_on_other_threads_see_whole_commits() {
    let folder = tempfile::tempdir().unwrap();
    for storage in [in_memory(), open(folder.path()).unwrap()] {
        std::thread::scope(|scope| {
            let read = || {
                let mut last = 0;
                while last < 50 {
                    let snapshot = storage.backend.snapshot();
                    let rows = view(&*snapshot);
                    // Commit n writes n to all of its rows.
                    assert!(rows.iter().all(|(_, text)| *text == snapshot.epoch().to_string()), "{rows:?}");
                    assert!(snapshot.epoch().0 >= last);
                    last = snapshot.epoch().0;
                }
            };
            (0..3).for_each(|_| drop(scope.spawn(read)));
            for epoch in 1..=50 {
                let text = epoch.to_string();
                let entries: Vec<(i64, &str)> = (0..20).map(|id| (id, text.as_str())).collect();
                let views = vec![(VIEW, run(&entries))];
                storage
                    .backend
                    .commit(CheckpointWrites { epoch: Epoch(epoch), views, ..CheckpointWrites::default() })
                    .unwrap();
            }
        });
    }
}
