//! Event time: what is late, where watermarks stand, what goes to `$errors`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use dataflow::{JobId, SideTables, Watermark};

use super::graphs::{count_by_window, errors_table, late_table, source, source_with};
use super::source::{BAD, Row, TestSource};
use super::{Db, TestClock};
use crate::{Clock, JobState, Tuning};

/// Event times that jump back and forth, by a fixed rule.
fn jumping(rows: u64) -> Vec<Row> {
    let time = |n: u64| (n as i64) * 3 - (xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes()) % 60) as i64;
    (0..rows).map(|n| ((n % 3) as i64, Some(time(n)), n as i64)).collect()
}

/// Which rows of a split are late, by the definition.
fn late_positions(rows: &[Row], delay: i64, size: i64) -> Vec<i64> {
    let mut watermark = i64::MIN;
    let mut late = Vec::new();
    for (position, (_, ts, _)) in rows.iter().enumerate() {
        let ts = ts.unwrap();
        if (ts.div_euclid(size) + 1) * size <= watermark {
            late.push(position as i64);
        }
        watermark = watermark.max(ts - delay);
    }
    late
}

#[test]
fn what_is_late_depends_on_the_data_alone() {
    let rows = jumping(2000);
    let expected = late_positions(&rows, 5, 10);
    assert!(expected.len() > 50, "{}", expected.len());
    let mut views = Vec::new();
    for (parallelism, seed) in [(1, 1), (4, 2), (4, 3)] {
        let mut db = Db::new(parallelism);
        let mut rows_of = TestSource::new(vec![rows.clone()], true);
        rows_of.seed = seed;
        db.create(source(1, &rows_of, Some(5)));
        db.create(count_by_window(2, 1, 10));
        // A later view is told the same by its own reader.
        db.create(count_by_window(3, 1, 10));
        db.flush();
        for job in [2, 3] {
            let late = db.late(job);
            assert_eq!(late, expected);
        }
        assert_eq!(db.view(2), db.view(3));
        views.push(db.view(2));
    }
    assert!(views.iter().all(|view| *view == views[0]));
    let counted: i64 = views[0].iter().map(|row| row[2]).sum();
    assert_eq!(counted as usize + expected.len(), 2000);
}

#[test]
fn lateness_is_the_same_across_a_crash() {
    let rows = jumping(3000);
    let growing = TestSource::new(vec![Vec::new()], false);
    let mut db = Db::new(2);
    db.create(source(1, &growing, Some(5)));
    db.create(count_by_window(2, 1, 10));
    for (part, parallelism) in rows.chunks(600).zip([1, 3, 2, 4, 1]) {
        growing.push(0, part);
        db.flush();
        db.crash(parallelism);
    }
    db.flush();
    assert_eq!(db.late(2), late_positions(&rows, 5, 10));
}

impl Db {
    fn late(&self, job: u32) -> Vec<i64> {
        let published = self.runtime().published();
        let schema = SideTables::late_schema();
        let batches = published.scan(late_table(job), &schema, state::ViewRange::default(), 100);
        let positions =
            batches.flat_map(|batch| super::operators::int_rows(&batch.unwrap().project(&[2]).unwrap()));
        positions.flatten().collect()
    }

    fn watermark(&self, job: u32) -> Watermark {
        self.runtime().jobs().into_iter().find(|status| status.id == JobId(job)).unwrap().watermark
    }
}

#[test]
fn the_watermark_is_the_minimum_over_the_splits() {
    let growing = TestSource::new(vec![vec![(0, Some(100), 0)], vec![(0, Some(70), 0)]], false);
    let mut db = Db::new(2);
    db.create(source(1, &growing, Some(5)));
    db.create(count_by_window(2, 1, 10));
    db.flush();
    assert_eq!(db.watermark(2), Watermark(65));
    growing.push(1, &[(0, Some(200), 0)]);
    db.flush();
    assert_eq!(db.watermark(2), Watermark(95));
    // A split found later begins at the watermark the source has, and never takes it back.
    growing.push(2, &[(0, Some(10), 0), (0, Some(90), 0), (0, Some(150), 0)]);
    db.flush();
    assert_eq!(db.watermark(2), Watermark(95));
    assert_eq!(db.late(2), vec![0]);
}

#[test]
fn an_idle_split_no_longer_holds_the_watermark_back() {
    let clock = Arc::new(TestClock(AtomicI64::new(0)));
    let growing = TestSource::new(vec![vec![(0, Some(100), 0)], vec![(0, Some(70), 0)]], false);
    let shared: Arc<dyn Clock> = Arc::<TestClock>::clone(&clock);
    let mut db = Db::with(2, Tuning::default(), None, shared, 256 << 20);
    db.create(source_with(1, &growing, Some(5), Some(1_000_000)));
    db.create(count_by_window(2, 1, 10));
    db.flush();
    assert_eq!(db.watermark(2), Watermark(65));
    clock.0.store(2_000_000, Ordering::SeqCst);
    growing.push(0, &[(0, Some(200), 0)]);
    db.flush();
    assert_eq!(db.watermark(2), Watermark(195));
    // Back from idleness it begins at the watermark of the source: the first row is late.
    growing.push(1, &[(0, Some(80), 0), (0, Some(300), 0)]);
    growing.push(0, &[(0, Some(300), 0)]);
    db.flush();
    assert_eq!(db.watermark(2), Watermark(295));
    assert_eq!(db.late(2), vec![1]);
    // A later reader is told so by the split log.
    db.create(count_by_window(3, 1, 10));
    assert_eq!(db.late(3), vec![1]);
    db.crash(1);
    db.create(count_by_window(4, 1, 10));
    assert_eq!(db.late(4), vec![1]);
}

#[test]
fn the_end_of_a_bounded_source_is_the_end_of_time() {
    let rows_of = TestSource::new(vec![jumping(50), jumping(70)], true);
    let mut db = Db::new(2);
    db.create(source(1, &rows_of, Some(5)));
    db.create(count_by_window(2, 1, 10));
    db.flush();
    db.flush();
    assert_eq!(db.watermark(2), Watermark::MAX);
    assert_eq!(db.state(2), JobState::Finished);
}

#[test]
fn bad_records_and_missing_event_times_go_to_errors() {
    let rows = vec![(0, Some(1), 0), (0, None, 1), (0, Some(2), BAD), (0, Some(3), 3)];
    let rows_of = TestSource::new(vec![rows], true);
    let mut db = Db::new(2);
    db.create(source(1, &rows_of, Some(0)));
    db.create(count_by_window(2, 1, 10));
    db.flush();
    assert_eq!(db.view(2), vec![vec![10, 0, 2]]);
    let published = db.runtime().published();
    let schema = SideTables::errors_schema();
    let batches: Vec<_> = published
        .scan(errors_table(1), &schema, state::ViewRange::default(), 100)
        .collect::<Result<_, _>>()
        .unwrap();
    let text = arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string();
    expect_test::expect![[r#"
        +----------+------------+----------+----------+--------------------------------------+-------------------------+--------+
        | operator | split      | position | sqlstate | message                              | row                     | $count |
        +----------+------------+----------+----------+--------------------------------------+-------------------------+--------+
        | 0        | 4294967296 | 1        | 23502    | null value in event time column "ts" | {"k":0,"ts":null,"v":1} | 1      |
        | 0        | 4294967296 | 2        | 22P02    | bad record                           | bad                     | 1      |
        +----------+------------+----------+----------+--------------------------------------+-------------------------+--------+"#]].assert_eq(&text);
}
