//! What the data alone does not decide: files that appear later and splits that fall silent. It is
//! in the split log before any row behind it shows, so a kill and every later reader repeat it.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use testkit::database::{Backend, Database, NEVER, Row, TestClock};

use super::block_on;
use super::feed::{START_MS, timestamp};

const BACKENDS: [Backend; 2] = [Backend::Memory, Backend::RocksDb];

/// A database by a clock of its own that takes no checkpoint unless one is asked for.
struct Test {
    database: Database,
    clock: Arc<TestClock>,
}

impl Test {
    async fn new(backend: Backend) -> Self {
        let clock = TestClock::at(START_MS * 1_000);
        let database = Database::open_with(backend, 2, NEVER, Some(Arc::clone(&clock))).await;
        Self { database, clock }
    }

    async fn run(&self, text: &str) -> Vec<Row> {
        self.database.run(text).await.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Appends events at these seconds.
    fn append(&self, file: &str, seconds: &[i64]) {
        let path = self.database.folder().join(file);
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        for second in seconds {
            let ts = timestamp(START_MS + second * 1_000);
            writeln!(file, r#"{{"v":{second},"ts":"{ts}"}}"#).unwrap();
        }
    }

    /// A source over files, 5 s behind the greatest time.
    async fn create_source(&self, name: &str, files: &str, options: &str) {
        let path = self.database.folder().join(files);
        let text = format!(
            "CREATE SOURCE {name} (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') \
             WITH (connector = 'file', path = '{}', format = 'json'{options})",
            path.display(),
        );
        self.run(&text).await;
    }

    /// Windows of 10 s over a relation, shown when they are closed.
    async fn create_view(&self, name: &str, from: &str) {
        let text = format!(
            "CREATE MATERIALIZED VIEW {name} AS SELECT window_start, count(*) AS n, sum(v) AS total \
             FROM TUMBLE({from}, ts, INTERVAL '10 seconds') GROUP BY window_start, window_end EMIT ON WINDOW CLOSE"
        );
        self.run(&text).await;
    }

    async fn flush(&self) {
        self.run("FLUSH").await;
    }

    /// The closed windows: start in seconds, and rows.
    async fn closed(&self, view: &str) -> Vec<(i64, i64)> {
        let rows = self.run(&format!("SELECT window_start, n FROM {view} ORDER BY window_start")).await;
        let text = |value: &Option<String>| value.clone().unwrap();
        rows.iter().map(|row| (seconds(&text(&row[0])), text(&row[1]).parse().unwrap())).collect()
    }

    /// The late rows: whole, and in the order of their splits.
    async fn late(&self, view: &str) -> Vec<Row> {
        self.run(&format!("SELECT * FROM \"{view}$late\" ORDER BY split, position")).await
    }

    /// `FLUSHes` until a view's watermark is at a second: that a split has been silent for long
    /// enough is noticed between the barriers, not by one of them.
    async fn reach(&self, view: &str, second: i64) {
        let expected = Some(timestamp(START_MS + second * 1_000));
        let text = format!("SELECT watermark FROM highwater.jobs WHERE name = '{view}'");
        let mut found = Vec::new();
        for _ in 0..2_000 {
            self.flush().await;
            found = self.run(&text).await;
            if found[0][0] == expected {
                return;
            }
        }
        panic!("the watermark of {view} is {found:?} and not {expected:?}");
    }

    async fn kill(&mut self, parallelism: usize) {
        self.database.kill_and_restart(parallelism).await;
    }
}

/// Watermarks in `$late`, in seconds.
fn watermarks(late: &[Row]) -> Vec<Option<&str>> {
    late.iter().map(|row| row[6].as_deref()).collect()
}

/// The second of a timestamp without fraction.
fn seconds(timestamp: &str) -> i64 {
    let number = |range: std::ops::Range<usize>| timestamp[range].parse::<i64>().unwrap();
    (number(8..10) - 2) * 86_400 + number(11..13) * 3_600 + number(14..16) * 60 + number(17..19)
}

fn at(second: i64) -> String {
    timestamp(START_MS + second * 1_000)
}

async fn a_file_found_later(backend: Backend) {
    let mut test = Test::new(backend).await;
    test.append("a.jsonl", &[1, 12, 40]);
    test.create_source("event", "*.jsonl", ", follow = true, idle_timeout = 'off'").await;
    test.create_view("w", "event").await;
    test.flush().await;
    assert_eq!(test.closed("w").await, [(0, 1), (10, 1)]);

    // The source is at second 35: what closed before that is closed for the new file, too.
    test.append("b.jsonl", &[13, 31, 2, 50, 29]);
    test.flush().await;
    let late = test.late("w").await;
    assert_eq!(watermarks(&late), [&*at(35), &*at(35), &*at(45)].map(Some));
    // Nothing but the split log is on disk, and it says the same again. With the file read from
    // the start of time, the row at 13 would not be late.
    test.kill(3).await;
    test.append("a.jsonl", &[60]);
    test.flush().await;
    assert_eq!(test.late("w").await, late);
    assert_eq!(test.closed("w").await, [(0, 1), (10, 1), (30, 1)]);

    // So does a view that reads everything again.
    test.create_view("later", "event").await;
    assert_eq!(test.late("later").await, late);
    assert_eq!(test.closed("later").await, test.closed("w").await);
    test.kill(1).await;
    test.flush().await;
    assert_eq!(test.late("later").await, late);

    // Files that are there at the start are sequences of their own: only the row that is behind
    // its own file is late.
    let whole = Test::new(backend).await;
    whole.append("a.jsonl", &[1, 12, 40, 60]);
    whole.append("b.jsonl", &[13, 31, 2, 50, 29]);
    whole.create_source("event", "*.jsonl", ", follow = true, idle_timeout = 'off'").await;
    whole.create_view("w", "event").await;
    whole.flush().await;
    assert_eq!(watermarks(&whole.late("w").await), [&*at(26), &*at(45)].map(Some));
}

async fn a_split_that_falls_silent(backend: Backend) {
    let mut test = Test::new(backend).await;
    test.append("a.jsonl", &[100]);
    test.append("b.jsonl", &[20]);
    test.create_source("event", "*.jsonl", ", follow = true, idle_timeout = '10s'").await;
    test.create_view("w", "event").await;
    test.flush().await;
    assert_eq!(test.closed("w").await, []);
    test.reach("w", 15).await;

    test.clock.advance(Duration::from_secs(11));
    test.append("a.jsonl", &[120]);
    test.reach("w", 115).await;
    assert_eq!(test.closed("w").await, [(20, 1), (100, 1)]);
    // The windows that idleness closed stay closed over a kill, although the clock that said so
    // begins anew: 21 is late, 118 is not.
    test.run("FLUSH DURABLE").await;
    test.kill(1).await;
    test.append("b.jsonl", &[21, 118]);
    test.flush().await;
    let late = test.late("w").await;
    assert_eq!(watermarks(&late), [Some(&*at(115))]);
    assert_eq!(test.closed("w").await, [(20, 1), (100, 1)]);

    // The way back is logged, so that a kill right behind it repeats it.
    test.append("a.jsonl", &[140]);
    test.append("b.jsonl", &[141]);
    test.reach("w", 135).await;
    let closed = test.closed("w").await;
    assert_eq!(closed, [(20, 1), (100, 1), (110, 1), (120, 1)]);
    test.kill(2).await;
    test.reach("w", 135).await;
    assert_eq!(test.late("w").await, late);
    assert_eq!(test.closed("w").await, closed);
    test.create_view("later", "event").await;
    assert_eq!(test.late("later").await, late);
    assert_eq!(test.closed("later").await, closed);
}

/// All splits idle: the watermark stands still, and goes on with the first row.
async fn nothing_but_silent_splits(backend: Backend) {
    let test = Test::new(backend).await;
    test.append("a.jsonl", &[100]);
    test.append("b.jsonl", &[50]);
    test.create_source("event", "*.jsonl", ", follow = true, idle_timeout = '10s'").await;
    test.create_view("w", "event").await;
    test.reach("w", 45).await;
    test.clock.advance(Duration::from_secs(60));
    for _ in 0..20 {
        test.flush().await;
    }
    test.reach("w", 45).await;
    test.append("a.jsonl", &[101]);
    test.reach("w", 96).await;
    assert_eq!(test.closed("w").await, [(50, 1)]);
}

async fn two_sources(backend: Backend) {
    let mut test = Test::new(backend).await;
    test.append("fast.jsonl", &[10, 100]);
    test.append("slow.jsonl", &[11, 40]);
    test.append("ended.jsonl", &[12, 20]);
    test.create_source("fast", "fast.jsonl", ", follow = true, idle_timeout = 'off'").await;
    test.create_source("slow", "slow.jsonl", ", follow = true, idle_timeout = 'off'").await;
    test.create_source("ended", "ended.jsonl", "").await;
    let union = "(SELECT v, ts FROM fast UNION ALL SELECT v, ts FROM slow UNION ALL SELECT v, ts FROM ended)";
    test.create_view("w", union).await;
    test.flush().await;
    // The source that has ended does not hold the others back.
    test.reach("w", 35).await;
    assert_eq!(test.closed("w").await, [(10, 3), (20, 1)]);
    // What is late is decided by the source of each row alone.
    test.append("slow.jsonl", &[41, 36, 200]);
    test.append("fast.jsonl", &[96, 84]);
    test.reach("w", 95).await;
    let closed = test.closed("w").await;
    assert_eq!(closed, [(10, 3), (20, 1), (30, 1), (40, 2)]);
    assert_eq!(watermarks(&test.late("w").await), [Some(&*at(95))]);
    test.kill(4).await;
    test.reach("w", 95).await;
    assert_eq!(test.closed("w").await, closed);
    test.create_view("later", union).await;
    assert_eq!(test.closed("later").await, closed);
    assert_eq!(watermarks(&test.late("later").await), [Some(&*at(95))]);
}

const DAY: i64 = 86_400;

async fn a_day_ahead(backend: Backend) {
    let test = Test::new(backend).await;
    test.append("a.jsonl", &[1, DAY, DAY + 1, 2]);
    test.create_source("event", "a.jsonl", ", follow = true").await;
    test.create_view("w", "event").await;
    test.flush().await;
    // The one beyond the day moves nothing, the one at its end does.
    assert_eq!(watermarks(&test.late("w").await), [Some(&*at(DAY - 5))]);
    let errors = test.run("SELECT sqlstate FROM \"event$errors\"").await;
    assert_eq!(errors, [[Some("22008".to_owned())]]);
    assert!(test.run("SELECT * FROM \"w$errors\"").await.is_empty());
    test.clock.advance(Duration::from_secs(1));
    test.append("a.jsonl", &[DAY + 1]);
    test.reach("w", DAY - 4).await;
}

/// A line that does not decode is an error of the source, once, whoever reads it.
async fn errors_of_a_backfill(backend: Backend) {
    let test = Test::new(backend).await;
    test.append("a.jsonl", &[1]);
    let path = test.database.folder().join("a.jsonl");
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    writeln!(file, "{{\n{{\"v\":7,\"ts\":null}}\n{{\"v\":\"many\",\"ts\":\"{}\"}}", at(2)).unwrap();
    test.append("a.jsonl", &[3]);
    test.create_source("event", "a.jsonl", "").await;
    test.run("CREATE MATERIALIZED VIEW times AS SELECT ts FROM event").await;
    test.flush().await;
    // A value that is no number is an error, whether anybody reads the column or not.
    let errors = "SELECT position, sqlstate, row FROM \"event$errors\" ORDER BY position";
    let found = test.run(errors).await;
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(test.run("SELECT * FROM times").await.len(), 2);
    test.run("CREATE MATERIALIZED VIEW numbers AS SELECT v FROM event").await;
    test.run("CREATE MATERIALIZED VIEW again AS SELECT v FROM event").await;
    test.flush().await;
    assert_eq!(test.run(errors).await, found);
    assert!(found.iter().any(|row| row[2].as_ref().is_some_and(|row| row.contains("\"v\":7"))), "{found:?}");
    for view in ["times", "numbers", "again"] {
        let errors = test.run(&format!("SELECT * FROM \"{view}$errors\"")).await;
        assert!(errors.is_empty(), "{view}: {errors:?}");
    }
}

fn on_every_backend<F: Future<Output = ()>>(test: impl Fn(Backend) -> F) {
    for backend in BACKENDS {
        println!("{backend:?}");
        block_on(test(backend));
    }
}

#[test]
fn a_file_found_later_enters_at_the_watermark_of_its_source() {
    on_every_backend(a_file_found_later);
}

#[test]
fn a_silent_split_no_longer_holds_the_watermark_back() {
    on_every_backend(a_split_that_falls_silent);
}

#[test]
fn the_watermark_stands_still_while_every_split_is_silent() {
    on_every_backend(nothing_but_silent_splits);
}

#[test]
fn a_view_over_several_sources_has_the_least_watermark() {
    on_every_backend(two_sources);
}

#[test]
fn an_event_more_than_a_day_ahead_is_an_error_and_moves_nothing() {
    on_every_backend(a_day_ahead);
}

#[test]
fn a_record_that_is_refused_is_an_error_of_its_source_once() {
    on_every_backend(errors_of_a_backfill);
}
