//! What survives a restart, and what a start refuses that is not damage.

use std::fs;

use state::{StateError, Storage, StorageOptions};

use crate::fixture::{Database, Size, fault_of_content, open, view};

#[test]
fn everything_committed_is_there_after_a_clean_end() {
    for size in [Size::Small, Size::Large] {
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database::create(folder.path(), size);
        (0..4).for_each(|_| database.commit());
        drop(database);
        assert_eq!(fault_of_content(&open(folder.path()).unwrap(), 4, size), None);
    }
}

#[test]
fn everything_committed_is_there_after_a_crash_at_any_commit() {
    for size in [Size::Small, Size::Large] {
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database::create(&folder.path().join("live"), size);
        for commits in 1..=5 {
            database.commit();
            let image = folder.path().join(commits.to_string());
            database.crash_image(&image);
            let restarted = open(&image).unwrap();
            assert_eq!(fault_of_content(&restarted, commits, size), None);
            assert!(!image.join("verify").exists());
        }
    }
}

#[test]
fn commits_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::create(folder.path(), Size::Small);
    for commits in 1..=6 {
        database.commit();
        database = database.reopen();
        assert_eq!(fault_of_content(&database.storage, commits, Size::Small), None);
    }
}

#[test]
fn a_snapshot_and_a_scan_outlive_the_storage() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::create(folder.path(), Size::Small);
    database.commit();
    let snapshot = database.storage.backend.snapshot();
    let scan = snapshot.scan_view(crate::fixture::VIEW, None, None);
    drop(database);
    assert_eq!(view(&*snapshot).len(), 5);
    assert!(matches!(open(folder.path()), Err(StateError::InUse { .. })));
    drop(snapshot);
    assert_eq!(scan.map(Result::unwrap).count(), 5);
    assert!(open(folder.path()).is_ok());
}

#[test]
fn a_folder_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let storage = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(StateError::InUse { path }) if path == folder.path()));
    drop(storage);
    assert!(open(folder.path()).is_ok());
}

#[test]
fn a_folder_that_is_somebody_elses_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let Err(error) = open(folder.path()) else { panic!("opened") };
    assert!(error.to_string().contains("thesis.txt"), "{error}");
    assert_eq!(fs::read_to_string(folder.path().join("thesis.txt")).unwrap(), "years of work");
}

#[test]
fn a_creation_that_was_interrupted_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    fs::write(folder.path().join("FORMAT"), "highwater format 1 creating\n").unwrap();
    fs::remove_file(folder.path().join("rocksdb/CURRENT")).unwrap();
    fs::remove_file(folder.path().join("fence")).unwrap();
    assert!(open(folder.path()).is_ok());
    assert!(open(folder.path()).is_ok());
}

#[test]
fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    fs::write(folder.path().join("FORMAT"), "highwater format 2\n").unwrap();
    assert!(matches!(open(folder.path()), Err(StateError::Version { found: 2, known: 1, .. })));
}

#[test]
fn a_lost_format_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    Database::create(folder.path(), Size::Small).commit();
    fs::remove_file(folder.path().join("FORMAT")).unwrap();
    assert!(
        matches!(open(folder.path()), Err(StateError::Damaged { file, .. }) if file == folder.path().join("FORMAT"))
    );
}

#[test]
fn the_cache_stays_within_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::create(folder.path(), Size::Large);
    (0..20).for_each(|_| database.commit());
    assert!(view(&*database.storage.backend.snapshot()).len() == 28_000);
    let memory = database.storage.backend.memory();
    assert!(memory > 0 && memory <= 40 << 20, "{memory} bytes for a budget of 32 MiB");
}

#[test]
fn memory_has_no_folder() {
    let options = StorageOptions { path: None, memory: 0 };
    let storage = Storage::open(&options).unwrap();
    assert_eq!(storage.backend.snapshot().epoch().0, 0);
    assert_eq!(storage.inbox.last_sequence(), 0);
}
