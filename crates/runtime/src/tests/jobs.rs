//! Jobs: exactly once, back-pressure, backfill, drops and failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use super::graphs::{count_by_key, count_over, definition, from_source, hash, keyed, source};
use super::operators::{Alarm, Count, FailOn};
use super::source::{Row, TestSource, source_schema};
use super::{Db, counted};
use crate::{JobState, RuntimeError, Tuning};
use dataflow::JobKind;

fn rows(from: i64, to: i64) -> Vec<Row> {
    (from..to).map(|n| (n % 10, Some(n), n)).collect()
}

fn expected(to: i64, splits: i64) -> Vec<Vec<i64>> {
    counted((0..splits).flat_map(|_| (0..to).map(|n| vec![n % 10])))
}

#[test]
fn a_view_over_a_bounded_source_is_complete_when_created() {
    for parallelism in [1, 3] {
        let mut db = Db::new(parallelism);
        let rows_of = TestSource::new(vec![rows(0, 1000), rows(0, 1000)], true);
        db.create(source(1, &rows_of, None));
        db.create(count_by_key(2, 1));
        db.flush();
        assert_eq!(db.view(2), expected(1000, 2));
        db.flush();
        assert_eq!(db.state(2), JobState::Finished);
    }
}

#[test]
fn every_row_counts_once_across_crashes_at_other_parallelism() {
    let mut db = Db::new(2);
    let growing = TestSource::new(vec![rows(0, 10), rows(0, 10)], false);
    db.create(source(1, &growing, None));
    db.create(count_by_key(2, 1));
    let mut to = 10;
    for parallelism in [3, 1, 4, 2] {
        for _ in 0..20 {
            growing.push(0, &rows(to, to + 37));
            growing.push(1, &rows(to, to + 37));
            to += 37;
            db.flush();
        }
        assert_eq!(db.view(2), expected(to, 2));
        db.crash(parallelism);
        db.flush();
        assert_eq!(db.view(2), expected(to, 2));
    }
}

#[test]
fn a_durable_flush_survives_a_crash_without_rereading() {
    let mut db = Db::new(2);
    let growing = TestSource::new(vec![rows(0, 500)], false);
    db.create(source(1, &growing, None));
    db.create(count_by_key(2, 1));
    db.runtime().flush(true).blocking_recv().unwrap().unwrap();
    db.crash(1);
    assert_eq!(db.view(2), expected(500, 1));
}

#[test]
fn tiny_channels_slow_down_but_lose_nothing() {
    let mut db = Db::tuned(3, Tuning { channel_bytes: 1, chunk_bytes: 1, ..Tuning::default() });
    let rows_of = TestSource::new(vec![rows(0, 3000), rows(0, 3000)], true);
    db.create(source(1, &rows_of, None));
    db.create(count_by_key(2, 1));
    db.create(count_over(3, &count_by_key(2, 1), 1));
    db.flush();
    assert_eq!(db.view(2), expected(3000, 2));
    assert_eq!(db.view(3), vec![vec![600, 10]]);
}

#[test]
fn a_later_view_over_a_source_equals_the_first_one() {
    for is_bounded in [true, false] {
        let mut db = Db::new(2);
        let rows_of = TestSource::new(vec![rows(0, 700), rows(0, 900)], is_bounded);
        db.create(source(1, &rows_of, None));
        db.create(count_by_key(2, 1));
        if !is_bounded {
            rows_of.push(1, &rows(900, 1000));
        }
        db.create(count_by_key(3, 1));
        db.flush();
        assert_eq!(db.view(3), db.view(2), "bounded: {is_bounded}");
        if !is_bounded {
            rows_of.push(0, &rows(700, 800));
            rows_of.push(2, &rows(0, 50));
            db.flush();
            assert_eq!(db.view(2).iter().map(|row| row[1]).sum::<i64>(), 1850);
            assert_eq!(db.view(3), db.view(2));
            db.crash(3);
            db.flush();
            assert_eq!(db.view(3), db.view(2));
        }
    }
}

#[test]
fn a_view_created_after_the_last_follower_was_dropped_reads_from_the_start() {
    let mut db = Db::new(2);
    let growing = TestSource::new(vec![rows(0, 100)], false);
    db.create(source(1, &growing, None));
    db.create(count_by_key(2, 1));
    db.flush();
    db.drop_job(2);
    growing.push(0, &rows(100, 200));
    db.create(count_by_key(3, 1));
    db.flush();
    assert_eq!(db.view(3), expected(200, 1));
}

#[test]
fn a_view_over_a_view_sees_old_and_new_rows() {
    let mut db = Db::new(2);
    let growing = TestSource::new(vec![rows(0, 100)], false);
    let first = count_by_key(2, 1);
    db.create(source(1, &growing, None));
    db.create(first.clone());
    db.flush();
    db.create(count_over(3, &first, 1));
    assert_eq!(db.view(3), vec![vec![10, 10]]);
    growing.push(0, &rows(100, 105));
    db.flush();
    assert_eq!(db.view(3), vec![vec![10, 5], vec![11, 5]]);
    db.crash(1);
    growing.push(0, &rows(105, 110));
    db.flush();
    assert_eq!(db.view(3), vec![vec![11, 10]]);
}

#[test]
fn dropping_a_view_leaves_the_others_running() {
    let mut db = Db::new(2);
    let growing = TestSource::new(vec![rows(0, 100)], false);
    db.create(source(1, &growing, None));
    db.create(count_by_key(2, 1));
    db.create(count_by_key(3, 1));
    growing.push(0, &rows(100, 5000));
    db.drop_job(2);
    growing.push(0, &rows(5000, 6000));
    db.flush();
    assert_eq!(db.view(3), expected(6000, 1));
    assert_eq!(db.runtime().jobs().len(), 2);
    db.crash(1);
    db.flush();
    assert_eq!(db.view(3), expected(6000, 1));
}

/// Counts by key behind an operator that fails on a key while it is armed.
fn failing(id: u32, source: u32, panics: bool, is_armed: &Arc<AtomicBool>) -> crate::JobDefinition {
    let fail = FailOn { value: 99, panics, is_armed: Arc::clone(is_armed), schema: source_schema() };
    definition(
        id,
        JobKind::View,
        vec![
            (vec![from_source(source, &[0], false)], vec![Arc::new(fail)]),
            (
                vec![hash(0, &[0])],
                vec![Arc::new(Count { keys: vec![0], window: false }), Arc::new(keyed(id, &["k", "n"], 1))],
            ),
        ],
    )
}

#[test]
fn a_failing_operator_takes_down_its_job_and_followers_only() {
    for panics in [false, true] {
        let mut db = Db::new(2);
        let growing = TestSource::new(vec![rows(0, 100)], false);
        let bad = failing(3, 1, panics, &Arc::new(AtomicBool::new(true)));
        db.create(source(1, &growing, None));
        db.create(count_by_key(2, 1));
        db.create(bad.clone());
        db.create(count_over(4, &bad, 1));
        growing.push(0, &[(99, Some(0), 0)]);
        growing.push(0, &rows(100, 3000));
        // The flush says which job has failed, however long that takes.
        let failed = db.wait_for_failure();
        assert!(matches!(failed, RuntimeError::JobFailed { .. }), "{failed}");
        let states = |db: &Db| [1, 2, 3, 4].map(|job| db.state(job));
        let expect = [JobState::Running, JobState::Running, JobState::Failed, JobState::Failed];
        assert_eq!(states(&db), expect);
        db.drop_job(4);
        db.drop_job(3);
        db.flush();
        assert_eq!(db.view(2).iter().map(|row| row[1]).sum::<i64>(), 3001);
        db.crash(3);
        db.flush();
        assert_eq!(db.view(2).iter().map(|row| row[1]).sum::<i64>(), 3001);
    }
}

#[test]
fn a_failed_job_is_rebuilt_with_its_followers() {
    for restarts in [false, true] {
        let retry_after = Duration::from_millis(if restarts { 3_600_000 } else { 1 });
        let mut db = Db::tuned(2, Tuning { retry_after, ..Tuning::default() });
        let growing = TestSource::new(vec![rows(0, 100)], false);
        let is_armed = Arc::new(AtomicBool::new(true));
        let bad = failing(3, 1, false, &is_armed);
        db.create(source(1, &growing, None));
        db.create(count_by_key(2, 1));
        db.create(bad.clone());
        db.create(count_over(4, &bad, 1));
        growing.push(0, &[(99, Some(0), 0)]);
        db.wait_for_failure();
        growing.push(0, &rows(100, 300));
        is_armed.store(false, Ordering::SeqCst);
        if restarts {
            // The failure is in a checkpoint before the crash.
            let _ = db.runtime().flush(true).blocking_recv();
            growing.push(0, &rows(300, 400));
            db.crash(3);
        } else {
            growing.push(0, &rows(300, 400));
        }
        db.wait_for_health();
        db.flush();
        assert_eq!(db.view(3), db.view(2));
        assert_eq!(db.view(2).iter().map(|row| row[1]).sum::<i64>(), 401);
        assert_eq!(db.view(4), vec![vec![1, 1], vec![40, 10]]);
        db.crash(2);
        db.wait_for_health();
        db.flush();
        assert_eq!(db.view(3), db.view(2));
    }
}

#[test]
fn a_job_that_is_planned_differently_is_rebuilt_with_its_followers() {
    let mut db = Db::new(2);
    let growing = TestSource::new(vec![rows(0, 100)], false);
    db.create(source(1, &growing, None));
    db.create(count_by_key(2, 1));
    db.create(count_over(3, &count_by_key(2, 1), 1));
    db.runtime().shutdown();
    let never = Arc::new(AtomicBool::new(false));
    db.jobs.insert(2, failing(2, 1, false, &never));
    db.crash(1);
    db.wait_for_health();
    growing.push(0, &rows(100, 110));
    db.flush();
    assert_eq!(db.view(2), expected(110, 1));
    assert_eq!(db.view(3), vec![vec![11, 10]]);
}

#[test]
fn a_tiny_budget_slows_down_but_loses_nothing() {
    let mut db = Db::with(2, Tuning::default(), None, super::test_clock(), 1);
    let rows_of = TestSource::new(vec![rows(0, 3000)], true);
    db.create(source(1, &rows_of, None));
    db.create(count_by_key(2, 1));
    db.flush();
    assert_eq!(db.view(2), expected(3000, 1));
}

#[test]
fn a_database_on_disk_counts_once_across_crashes() {
    let mut db = Db::on_disk(2);
    let growing = TestSource::new(vec![rows(0, 10), rows(0, 10)], false);
    db.create(source(1, &growing, None));
    db.create(count_by_key(2, 1));
    db.create(count_over(3, &count_by_key(2, 1), 1));
    let mut to = 10;
    for parallelism in [3, 1, 4] {
        for _ in 0..10 {
            growing.push(0, &rows(to, to + 30));
            growing.push(1, &rows(to, to + 30));
            to += 30;
            db.flush();
        }
        db.crash(parallelism);
        db.flush();
        assert_eq!(db.view(2), expected(to, 2));
        assert_eq!(db.view(3), vec![vec![2 * to / 10, 10]]);
    }
    db.drop_job(3);
    db.runtime().shutdown();
    db.crash(2);
    assert_eq!(db.view(2), expected(to, 2));
}

#[test]
fn an_operator_is_woken_when_it_asks() {
    let clock: Arc<dyn crate::Clock> = Arc::new(crate::SystemClock);
    let mut db = Db::with(2, Tuning::default(), None, clock, 256 << 20);
    let growing = TestSource::new(vec![rows(0, 10)], false);
    let rung = Arc::new(AtomicI64::new(0));
    let alarm = Alarm { every: 1000, rung: Arc::clone(&rung), schema: source_schema() };
    db.create(source(1, &growing, None));
    db.create(definition(2, JobKind::View, vec![(vec![from_source(1, &[0], false)], vec![Arc::new(alarm)])]));
    let first = rung.load(Ordering::SeqCst);
    while rung.load(Ordering::SeqCst) < first + 10_000 {
        std::thread::yield_now();
    }
}

#[test]
fn an_orderly_end_keeps_everything() {
    let mut db = Db::new(2);
    let growing = TestSource::new(vec![rows(0, 500)], false);
    db.create(source(1, &growing, None));
    db.create(count_by_key(2, 1));
    db.flush();
    db.runtime().shutdown();
    assert!(matches!(db.try_flush(), Err(RuntimeError::ShuttingDown)));
    db.crash(3);
    assert_eq!(db.view(2), expected(500, 1));
}
