//! What `RocksDB` does not notice by itself: after any such damage the start gives the right
//! answer, or it refuses, names a file and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use state::StateError;

use crate::fixture::{Database, Size, fault_of_content, files, open};

/// How a damaged database answered.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// All commits are there.
    Right,
    /// The start was refused; the name of the file at fault.
    Refused(String),
    /// It opened, and a read failed and named the file.
    ReadFailed,
}

/// Opens a damaged image that once held `commits`. Wrong content, an error that names no file and
/// a refusal that changes files fail the test.
fn answer(image: &Path, commits: u64, size: Size) -> Answer {
    let before = contents(image);
    match open(image) {
        Ok(storage) => match fault_of_content(&storage, commits, size) {
            None => Answer::Right,
            Some(fault) if fault.contains(".sst") => Answer::ReadFailed,
            Some(fault) => panic!("opened with a fault: {fault}"),
        },
        Err(StateError::Damaged { file, reason }) => {
            assert!(file.starts_with(image), "{} is elsewhere", file.display());
            assert!(reason.contains("restore"), "no advice in: {reason}");
            assert_eq!(contents(image), before, "a refusal changes nothing");
            Answer::Refused(file.file_name().unwrap().to_string_lossy().into_owned())
        }
        Err(other) => panic!("a refusal that names no file: {other}"),
    }
}

/// Every file but the evidence.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            if entry.file_name() != "evidence" {
                found.extend(contents(&entry.path()));
            }
        } else {
            found.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    found
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn length(path: &Path) -> usize {
    fs::metadata(path).unwrap().len() as usize
}

/// A crash image per case, each damaged in its own way. `damage` gets the folder and the case and
/// returns false when there are no more cases.
fn for_each_damage(
    database: &Database,
    commits: u64,
    mut damage: impl FnMut(&Path, usize) -> bool,
    mut check: impl FnMut(usize, Answer),
) {
    for case in 0.. {
        let folder = tempfile::tempdir().unwrap();
        database.crash_image(folder.path());
        if !damage(folder.path(), case) {
            break;
        }
        check(case, answer(folder.path(), commits, database.size()));
    }
}

fn database(folder: &Path, size: Size, commits: u64) -> Database {
    let mut database = Database::create(&folder.join("live"), size);
    (0..commits).for_each(|_| database.commit());
    database
}

fn last_log(image: &Path) -> PathBuf {
    files(&image.join("rocksdb"), ".log").pop().unwrap()
}

#[test]
fn a_bit_flipped_anywhere_in_the_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), Size::Small, 6);
    let damage = |image: &Path, case: usize| {
        let log = last_log(image);
        let at = case * 173;
        let is_inside = at < length(&log);
        if is_inside {
            edit(&log, |bytes| bytes[at] ^= 1 << (case % 8));
        }
        is_inside
    };
    for_each_damage(&database, 6, damage, |case, answer| {
        assert!(
            matches!(&answer, Answer::Refused(file) if file.ends_with(".log")),
            "case {case}: {answer:?}"
        );
    });
}

#[test]
fn a_log_shortened_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::create(&folder.path().join("live"), Size::Small);
    // Lengths at which the log ends with a whole commit: nothing is torn there.
    let mut whole = Vec::new();
    for _ in 0..6 {
        whole.push(length(&last_log(&database.path)));
        database.commit();
    }
    let log_length = length(&last_log(&database.path));
    let lengths: Vec<usize> = whole.into_iter().chain((0..log_length).step_by(307)).collect();
    let damage = |image: &Path, case: usize| {
        lengths.get(case).is_some_and(|length| {
            edit(&last_log(image), |bytes| bytes.truncate(*length));
            true
        })
    };
    for_each_damage(&database, 6, damage, |case, answer| {
        assert!(
            matches!(&answer, Answer::Refused(file) if file.ends_with(".log")),
            "case {case}: {answer:?}"
        );
    });
}

#[test]
fn an_older_log_that_is_shortened_or_missing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::create(&folder.path().join("live"), Size::Large);
    // Large commits flush the views, and the other families keep the older logs alive.
    let mut ends: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for _ in 0..4 {
        database.commit();
        let log = last_log(&database.path);
        ends.entry(PathBuf::from(log.file_name().unwrap())).or_default().push(length(&log));
    }
    let logs = files(&database.path.join("rocksdb"), ".log");
    assert!(logs.len() > 2, "only {} logs", logs.len());
    let older = PathBuf::from(logs[logs.len() - 2].file_name().unwrap());
    let full = length(&logs[logs.len() - 2]);
    let mut lengths = vec![0, 1, 20, full / 2, full - 1000, full - 20, full - 1];
    lengths.extend(ends.get(&older).into_iter().flatten().copied().filter(|end| *end < full));
    let damage = |image: &Path, case: usize| {
        let log = image.join("rocksdb").join(&older);
        if case == lengths.len() {
            fs::remove_file(log).unwrap();
            return true;
        }
        lengths.get(case).is_some_and(|length| {
            edit(&log, |bytes| bytes.truncate(*length));
            true
        })
    };
    for_each_damage(&database, 4, damage, |case, answer| {
        assert!(matches!(answer, Answer::Refused(_)), "case {case}: {answer:?}");
    });
}

#[test]
fn a_shortened_manifest_never_loses_rows() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), Size::Large, 4);
    let manifest = |image: &Path| {
        let current = fs::read_to_string(image.join("rocksdb/CURRENT")).unwrap();
        image.join("rocksdb").join(current.trim_end())
    };
    let full = length(&manifest(&database.path));
    let cuts: Vec<usize> = [20, 1, full, full / 2].into_iter().chain((40..full).step_by(full / 10)).collect();
    let damage = |image: &Path, case: usize| {
        cuts.get(case).is_some_and(|cut| {
            edit(&manifest(image), |bytes| bytes.truncate(bytes.len() - cut));
            true
        })
    };
    let mut refused = 0;
    for_each_damage(&database, 4, damage, |case, answer| {
        assert!(answer != Answer::ReadFailed, "case {case}");
        refused += usize::from(matches!(answer, Answer::Refused(_)));
    });
    assert!(refused > 0, "no cut was noticed");
}

#[test]
fn a_manifest_cut_behind_a_flush_of_everything_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // An open flushes every family and deletes the log: from then on only the end of the MANIFEST
    // says which table files hold the rows.
    let database = database(folder.path(), Size::Small, 4).reopen();
    let manifest = |image: &Path| {
        let current = fs::read_to_string(image.join("rocksdb/CURRENT")).unwrap();
        image.join("rocksdb").join(current.trim_end())
    };
    let full = length(&manifest(&database.path));
    let cuts: Vec<usize> = [20].into_iter().chain((1..full).step_by(101)).collect();
    let damage = |image: &Path, case: usize| {
        cuts.get(case).is_some_and(|cut| {
            edit(&manifest(image), |bytes| bytes.truncate(bytes.len() - cut));
            true
        })
    };
    let mut refused = 0;
    for_each_damage(&database, 4, damage, |case, answer| {
        assert!(answer != Answer::ReadFailed, "case {case}");
        let is_refused = matches!(&answer, Answer::Refused(_));
        assert!(is_refused || case > 0, "20 bytes less: {answer:?}");
        refused += usize::from(is_refused);
    });
    assert!(refused > cuts.len() / 2, "only {refused} of {} cuts were noticed", cuts.len());
}

#[test]
fn a_bit_flipped_in_the_manifest_never_loses_rows() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), Size::Large, 3);
    let damage = |image: &Path, case: usize| {
        let manifest = files(&image.join("rocksdb"), "")
            .into_iter()
            .find(|path| path.to_string_lossy().contains("MANIFEST"))
            .unwrap();
        let at = case * 131;
        let is_inside = at < length(&manifest);
        if is_inside {
            edit(&manifest, |bytes| bytes[at] ^= 8);
        }
        is_inside
    };
    for_each_damage(&database, 3, damage, |case, answer| {
        assert!(answer != Answer::ReadFailed, "case {case}");
    });
}

#[test]
fn a_fence_older_than_the_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = database(folder.path(), Size::Small, 2);
    let old_fence = fs::read(database.path.join("fence")).unwrap();
    // One commit further is what a crash before the fence leaves.
    for (commits, expected) in [(3, Answer::Right), (4, Answer::Refused("fence".to_owned()))] {
        database.commit();
        let image = folder.path().join(commits.to_string());
        database.crash_image(&image);
        fs::write(image.join("fence"), &old_fence).unwrap();
        assert_eq!(answer(&image, commits, Size::Small), expected);
    }
}

#[test]
fn a_fence_newer_than_the_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = database(folder.path(), Size::Small, 2);
    let image = folder.path().join("image");
    database.crash_image(&image);
    database.commit();
    fs::copy(database.path.join("fence"), image.join("fence")).unwrap();
    assert!(matches!(answer(&image, 2, Size::Small), Answer::Refused(file) if file.ends_with(".log")));
}

#[test]
fn a_missing_fence_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), Size::Small, 2);
    let image = folder.path().join("image");
    database.crash_image(&image);
    fs::remove_file(image.join("fence")).unwrap();
    assert_eq!(answer(&image, 2, Size::Small), Answer::Refused("fence".to_owned()));
}

#[test]
fn a_commit_that_was_cut_short_and_not_acknowledged_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = database(folder.path(), Size::Small, 2);
    let fence = fs::read(database.path.join("fence")).unwrap();
    let whole = length(&last_log(&database.path));
    database.commit();
    let torn = length(&last_log(&database.path));
    for at in (whole..torn).step_by(31) {
        let image = tempfile::tempdir().unwrap();
        database.crash_image(image.path());
        edit(&last_log(image.path()), |bytes| bytes.truncate(at));
        fs::write(image.path().join("fence"), &fence).unwrap();
        assert_eq!(answer(image.path(), 2, Size::Small), Answer::Right, "cut at {at}");
        // And it goes on from there.
        let again = open(image.path()).unwrap();
        assert_eq!(fault_of_content(&again, 2, Size::Small), None);
    }
}

#[test]
fn a_damaged_table_file_is_never_read_wrongly() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), Size::Large, 3);
    let damage = |image: &Path, case: usize| {
        let tables = files(&image.join("rocksdb"), ".sst");
        assert!(!tables.is_empty());
        let table = &tables[case % tables.len()];
        let (step, size) = (case / tables.len(), length(table));
        match step {
            0..6 => edit(table, |bytes| bytes[size * step / 6] ^= 0x20),
            6..9 => edit(table, |bytes| bytes[size - 1 - (step - 6) * 40] ^= 1),
            9 => edit(table, |bytes| bytes.truncate(size - 1)),
            10 => edit(table, |bytes| bytes.clear()),
            11 => fs::remove_file(table).unwrap(),
            _ => return false,
        }
        true
    };
    let mut noticed = 0;
    for_each_damage(&database, 3, damage, |_, answer| noticed += usize::from(answer != Answer::Right));
    assert!(noticed >= 6, "only {noticed} noticed");
}

#[test]
fn a_missing_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), Size::Small, 2);
    for name in ["rocksdb/CURRENT", "rocksdb"] {
        let image = tempfile::tempdir().unwrap();
        database.crash_image(image.path());
        let path = image.path().join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
        assert!(matches!(answer(image.path(), 2, Size::Small), Answer::Refused(_)));
    }
}

#[test]
fn a_refusal_keeps_the_files_as_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), Size::Small, 2);
    let image = folder.path().join("image");
    database.crash_image(&image);
    edit(&last_log(&image), |bytes| bytes.truncate(bytes.len() - 5));
    for _ in 0..2 {
        assert!(matches!(answer(&image, 2, Size::Small), Answer::Refused(_)));
        let evidence = image.join("evidence").join(last_log(&image).file_name().unwrap());
        assert_eq!(fs::read(evidence).unwrap(), fs::read(last_log(&image)).unwrap());
        assert!(!image.join("verify").exists());
    }
}
