//! The inbox, in memory and on disk.

use std::fs;
use std::sync::Arc;

use arrow::array::Int64Array;
use state::{CheckpointWrites, Epoch, InboxChange, InboxRecord, StateError, Storage};

use crate::fixture::{copy_folder, files, on_both_backends, open, rows, schema};

fn record(texts: &[&str]) -> InboxRecord {
    let entries: Vec<(i64, &str)> = (0..).zip(texts.iter().copied()).collect();
    let diffs = Int64Array::from_iter_values((0..texts.len()).map(|idx| if idx % 2 == 0 { 1 } else { -1 }));
    InboxRecord { changes: vec![InboxChange { job: 3, rows: rows(&entries), diffs }] }
}

/// Sequence and number of rows of every record behind `after`.
fn replayed(storage: &Storage, after: u64) -> Vec<(u64, usize)> {
    let mut records = Vec::new();
    let columns = schema();
    storage
        .inbox
        .replay(after, &|_| Some(Arc::clone(&columns.columns)), &mut |sequence, record| {
            records.push((sequence, record.changes[0].rows.num_rows()));
            Ok(())
        })
        .unwrap();
    records
}

#[test]
fn records_are_replayed_in_order_behind_a_checkpoint() {
    on_both_backends(|storage| {
        assert_eq!(storage.inbox.append(&record(&["a"])).unwrap(), 1);
        assert_eq!(storage.inbox.append(&record(&["a", "b"])).unwrap(), 2);
        assert_eq!(storage.inbox.append(&record(&["a", "b", "c"])).unwrap(), 3);
        assert_eq!(storage.inbox.last_sequence(), 3);
        assert_eq!(replayed(storage, 0), [(1, 1), (2, 2), (3, 3)]);
        storage.inbox.truncate(2).unwrap();
        assert_eq!(replayed(storage, 2), [(3, 3)]);
        assert_eq!(replayed(storage, 3), []);
    });
}

#[test]
fn rows_of_a_table_that_is_gone_are_left_out() {
    on_both_backends(|storage| {
        storage.inbox.append(&record(&["a"])).unwrap();
        let mut changes = None;
        let mut count = |_, record: InboxRecord| {
            changes = Some(record.changes.len());
            Ok(())
        };
        storage.inbox.replay(0, &|_| None, &mut count).unwrap();
        assert_eq!(changes, Some(0));
    });
}

#[test]
fn a_replay_ends_at_the_first_error() {
    on_both_backends(|storage| {
        (0..3).for_each(|_| assert!(storage.inbox.append(&record(&["a"])).is_ok()));
        let mut seen = Vec::new();
        let result = storage.inbox.replay(0, &|_| None, &mut |sequence, _| {
            seen.push(sequence);
            if sequence == 2 { Err(StateError::Internal("no".to_owned())) } else { Ok(()) }
        });
        assert!(result.is_err());
        assert_eq!(seen, [1, 2]);
    });
}

#[test]
fn acknowledged_records_survive_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open(&folder.path().join("live")).unwrap();
    for records in 1..=5 {
        storage.inbox.append(&record(&["x", "y"])).unwrap();
        let image = folder.path().join(records.to_string());
        copy_folder(&folder.path().join("live"), &image);
        let restarted = open(&image).unwrap();
        assert_eq!(restarted.inbox.last_sequence(), records);
        assert_eq!(replayed(&restarted, 0).len(), records as usize);
        assert_eq!(restarted.inbox.append(&record(&["z"])).unwrap(), records + 1);
    }
}

#[test]
fn a_torn_record_that_was_never_acknowledged_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open(folder.path()).unwrap();
    storage.inbox.append(&record(&["kept"])).unwrap();
    drop(storage);
    let segment = &files(&folder.path().join("inbox"), ".inbox")[0];
    let mut bytes = fs::read(segment).unwrap();
    bytes.extend_from_slice(&bytes.clone()[32..60]);
    fs::write(segment, bytes).unwrap();
    assert_eq!(replayed(&open(folder.path()).unwrap(), 0), [(1, 1)]);
}

#[test]
fn a_damaged_or_shortened_segment_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open(&folder.path().join("live")).unwrap();
    (0..3).for_each(|_| assert!(storage.inbox.append(&record(&["x"])).is_ok()));
    drop(storage);
    let length = fs::metadata(&files(&folder.path().join("live/inbox"), ".inbox")[0]).unwrap().len() as usize;
    for (case, at) in (0..length).step_by(23).enumerate() {
        let image = folder.path().join(case.to_string());
        copy_folder(&folder.path().join("live"), &image);
        let segment = files(&image.join("inbox"), ".inbox")[0].clone();
        let mut bytes = fs::read(&segment).unwrap();
        if case % 2 == 0 {
            bytes[at] ^= 4
        } else {
            bytes.truncate(at)
        }
        fs::write(&segment, &bytes).unwrap();
        assert!(matches!(open(&image), Err(StateError::Damaged { file, .. }) if file == segment));
        assert_eq!(fs::read(&segment).unwrap(), bytes, "a refusal changes nothing");
    }
}

#[test]
fn an_inbox_from_before_a_checkpoint_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open(&folder.path().join("live")).unwrap();
    storage.inbox.append(&record(&["x"])).unwrap();
    copy_folder(&folder.path().join("live/inbox"), &folder.path().join("old"));
    storage.inbox.append(&record(&["y"])).unwrap();
    let writes = CheckpointWrites { epoch: Epoch(1), inbox_sequence: 2, ..CheckpointWrites::default() };
    storage.backend.commit(writes).unwrap();
    drop(storage);
    copy_folder(&folder.path().join("old"), &folder.path().join("live/inbox"));
    assert!(
        matches!(open(&folder.path().join("live")), Err(StateError::Damaged { file, .. }) if file.starts_with(folder.path().join("live/inbox")))
    );
}
