//! Tables: DML is durable when acknowledged and atomic when seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::Int64Array;
use state::{InboxChange, InboxRecord};

use super::Db;
use super::graphs::{count_over, table, table_behind};
use super::operators::{FailOn, int_batch, int_schema};

fn change(job: u32, rows: &[(i64, i64)], diff: i64) -> InboxChange {
    let values: Vec<Vec<i64>> = rows.iter().map(|(k, v)| vec![*k, *v]).collect();
    InboxChange {
        job,
        rows: int_batch(&int_schema(&["k", "v"]), &values),
        diffs: Int64Array::from(vec![diff; rows.len()]),
    }
}

impl Db {
    fn write(&self, changes: Vec<InboxChange>) -> u64 {
        self.runtime().write(InboxRecord { changes }).unwrap()
    }

    fn wait_for(&self, sequence: u64) {
        self.runtime().wait_for_inbox(sequence).blocking_recv().unwrap().unwrap();
    }
}

#[test]
fn rows_show_when_their_sequence_is_published() {
    let mut db = Db::new(2);
    db.create(table(1));
    db.write(vec![change(1, &[(1, 10), (2, 20)], 1)]);
    let sequence = db.write(vec![change(1, &[(1, 10)], -1), change(1, &[(1, 11)], 1)]);
    db.wait_for(sequence);
    assert_eq!(db.view(1), vec![vec![1, 11], vec![2, 20]]);
}

#[test]
fn acknowledged_rows_survive_a_crash() {
    let mut db = Db::new(2);
    db.create(table(1));
    db.create(count_over(2, &table(1), 1));
    for n in 0..200 {
        db.write(vec![change(1, &[(n, n % 2)], 1)]);
        if n % 70 == 0 {
            db.crash(1 + (n as usize % 3));
        }
    }
    db.crash(3);
    assert_eq!(db.view(1).len(), 200);
    assert_eq!(db.view(2), vec![vec![0, 100], vec![1, 100]]);
}

#[test]
fn a_transaction_over_two_tables_shows_in_one_epoch() {
    let mut db = Db::new(2);
    db.create(table(1));
    db.create(table(2));
    let db = Arc::new(db);
    let writer = Arc::clone(&db);
    let thread = std::thread::spawn(move || {
        let mut last = 0;
        for n in 0..500 {
            last = writer.write(vec![change(1, &[(n, n)], 1), change(2, &[(n, n)], 1)]);
        }
        writer.wait_for(last);
    });
    while !thread.is_finished() {
        let published = db.runtime().published();
        let count = |job: u32| -> usize {
            let view = db.jobs[&job].graph.view_table().unwrap();
            let batches = published.scan(view.table, &view.schema, state::ViewRange::default(), 1000);
            batches.map(|batch| batch.unwrap().num_rows()).sum()
        };
        assert_eq!(count(1), count(2));
    }
    thread.join().unwrap();
    assert_eq!(db.view(1).len(), 500);
}

#[test]
fn a_failed_table_loses_nothing_and_the_others_go_on() {
    let mut db = Db::on_disk(2);
    let is_armed = Arc::new(AtomicBool::new(true));
    let schema = int_schema(&["k", "v"]);
    let fail = FailOn { value: 99, panics: true, is_armed: Arc::clone(&is_armed), schema };
    db.create(table_behind(1, vec![Arc::new(fail)]));
    db.create(table(2));
    db.create(count_over(3, &table(2), 1));
    db.write(vec![change(1, &[(1, 1)], 1), change(2, &[(1, 1)], 1)]);
    db.runtime().flush(true).blocking_recv().unwrap().unwrap();
    db.write(vec![change(1, &[(99, 1)], 1), change(2, &[(2, 1)], 1)]);
    db.wait_for_failure();
    // Checkpoints of the healthy tables go on.
    for n in 3..50 {
        let sequence = db.write(vec![change(1, &[(n, 1)], 1), change(2, &[(n, 1)], 1)]);
        db.wait_for(sequence);
    }
    assert_eq!(db.view(3), vec![vec![1, 49]]);
    db.runtime().shutdown();
    is_armed.store(false, Ordering::SeqCst);
    for parallelism in [3, 1] {
        db.crash(parallelism);
        db.wait_for_health();
        assert_eq!(db.view(2).len(), 49);
        assert_eq!(db.view(1).len(), 49);
        assert_eq!(db.view(3), vec![vec![1, 49]]);
    }
}
