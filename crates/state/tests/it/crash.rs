//! SIGKILL under load: a child commits and appends as fast as it can and reports what was
//! acknowledged; whenever it dies, all of that is there, and commits are whole.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use arrow::array::Int64Array;
use state::{CheckpointWrites, InboxChange, InboxRecord, KeyGroupRange, Storage};

use crate::fixture::{STATE, VIEW, open, puts, rows, run, schema, state_rows, view};

const FOLDER: &str = "STATE_CRASH_TEST_FOLDER";
const KILLS: usize = 12;

/// What the child reported before it was killed.
#[derive(Default)]
struct Ledger {
    epoch: u64,
    inbox_sequence: u64,
}

/// Not a test of its own: the process that is killed.
#[test]
#[ignore = "run by a_kill_at_any_moment_loses_nothing"]
fn child() {
    let storage = open(&PathBuf::from(env::var(FOLDER).unwrap())).unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| append_forever(&storage));
        }
        commit_forever(&storage);
    });
}

fn append_forever(storage: &Storage) {
    let change = InboxChange { job: 1, rows: rows(&[(1, "a row")]), diffs: Int64Array::from(vec![1]) };
    let record = InboxRecord { changes: vec![change] };
    loop {
        report("appended", storage.inbox.append(&record).unwrap());
    }
}

/// Every commit writes its epoch to all rows; some are larger than one write to the log.
fn commit_forever(storage: &Storage) {
    for epoch in storage.backend.snapshot().epoch().0 + 1.. {
        let text = format!("{epoch:01000}");
        let count = if epoch % 5 == 0 { 3_000 } else { 20 };
        let entries: Vec<(i64, &str)> = (0..count).map(|id| (id, text.as_str())).collect();
        let inbox_sequence = storage.inbox.last_sequence();
        let writes = CheckpointWrites {
            epoch: state::Epoch(epoch),
            state: vec![(STATE, KeyGroupRange::ALL, puts(&entries))],
            views: vec![(VIEW, run(&entries[..20]))],
            inbox_sequence,
            ..CheckpointWrites::default()
        };
        storage.backend.commit(writes).unwrap();
        storage.inbox.truncate(inbox_sequence).unwrap();
        report("committed", epoch);
    }
}

fn report(what: &str, number: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what} {number}").unwrap();
    out.flush().unwrap();
}

/// Lets a child run until it has reported `reports` times, and kills it.
fn kill_child(folder: &Path, reports: usize) -> Ledger {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ledger = Ledger::default();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let numbers = lines.filter_map(|line| {
        let (what, number) = line.split_once(' ')?;
        Some((what.to_owned(), number.parse::<u64>().ok()?))
    });
    for (what, number) in numbers.take(reports) {
        match what.as_str() {
            "appended" => ledger.inbox_sequence = ledger.inbox_sequence.max(number),
            "committed" => ledger.epoch = number,
            _ => {}
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    ledger
}

fn check(storage: &Storage, ledger: &Ledger) {
    let snapshot = storage.backend.snapshot();
    let epoch = snapshot.epoch().0;
    assert!(epoch >= ledger.epoch, "epoch {epoch} after {} was durable", ledger.epoch);
    let text = format!("{epoch:01000}");
    let is_whole =
        |rows: &[(i64, String)]| rows.iter().filter(|(id, _)| *id < 20).all(|(_, found)| *found == text);
    assert!(is_whole(&view(&*snapshot)), "the view mixes commits");
    assert!(is_whole(&state_rows(storage, STATE)), "the state mixes commits");

    let columns = Arc::clone(&schema().columns);
    let mut last = snapshot.inbox_sequence();
    let follows = &mut |sequence, _| {
        assert_eq!(sequence, last + 1);
        last = sequence;
        Ok(())
    };
    storage.inbox.replay(snapshot.inbox_sequence(), &|_| Some(Arc::clone(&columns)), follows).unwrap();
    assert!(last >= ledger.inbox_sequence, "record {last} after {} was acknowledged", ledger.inbox_sequence);
}

#[test]
fn a_kill_at_any_moment_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for kill in 0..KILLS {
        let ledger = kill_child(folder.path(), 1 + kill * 17 % 120);
        check(&open(folder.path()).unwrap(), &ledger);
    }
}
