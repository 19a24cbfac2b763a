//! The same disordered files, fed slowly, at once and before the views are made; at parallelism 1
//! and 4; killed in the middle or not; on both backends: always the same rows, the same late rows
//! and the same errors, and those that a small program computes from the files.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;

use testkit::crash::Random;
use testkit::database::{Backend, Database, Row};

use super::block_on;
use super::feed::{Feed, Reference, reference, timestamp};

const SEED: u64 = 20_240_102;
const PATIENCE_MS: i64 = 7_000;

/// How the files come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feeding {
    /// Piece by piece, cut anywhere, with FLUSH in between.
    Slow,
    /// Whole files, then the views.
    Fast,
    /// Whole files, read by another view before these are made.
    Backfill,
}

#[derive(Debug, Clone, Copy)]
struct Way {
    feeding: Feeding,
    backend: Backend,
    parallelism: usize,
    is_killed: bool,
    is_bounded: bool,
}

/// Everything that has to be the same, by relation; sorted.
type Contents = BTreeMap<&'static str, Vec<Row>>;

const RELATIONS: &[&str] = &[
    "on_update",
    "on_close",
    "patient",
    "risky",
    "above",
    "copy",
    "\"on_update$late\"",
    "\"on_close$late\"",
    "\"patient$late\"",
    "\"risky$late\"",
    "\"on_update$errors\"",
    "\"on_close$errors\"",
    "\"patient$errors\"",
    "\"risky$errors\"",
    "\"above$errors\"",
    "\"copy$errors\"",
    "\"event$errors\"",
];

fn views() -> Vec<String> {
    let windows = |columns: &str| {
        format!(
            "SELECT {columns} FROM TUMBLE(event, ts, INTERVAL '10 seconds') GROUP BY k, window_start, window_end"
        )
    };
    let counted = windows(
        "k, window_start, window_end, count(*) AS n, sum(v) AS total, min(v) AS lo, max(v) AS hi, \
         count(DISTINCT v) AS kinds",
    );
    vec![
        format!("CREATE MATERIALIZED VIEW on_update AS {counted}"),
        format!("CREATE MATERIALIZED VIEW on_close AS {counted} EMIT ON WINDOW CLOSE"),
        format!(
            "CREATE MATERIALIZED VIEW patient AS {counted} \
             EMIT ON WINDOW CLOSE ALLOWED LATENESS INTERVAL '7 seconds'"
        ),
        format!("CREATE MATERIALIZED VIEW risky AS {}", windows("k, window_start, sum(100 / v) AS shares")),
        "CREATE MATERIALIZED VIEW above AS SELECT window_start, window_end, count(*) AS keys, sum(n) AS n \
         FROM on_close GROUP BY window_start, window_end EMIT ON WINDOW CLOSE"
            .to_owned(),
        "CREATE MATERIALIZED VIEW copy AS SELECT k, v FROM event".to_owned(),
    ]
}

fn file(database: &Database, split: usize) -> std::path::PathBuf {
    database.folder().join(format!("event-{split}.jsonl"))
}

fn append(database: &Database, split: usize, bytes: &[u8]) {
    let file = OpenOptions::new().create(true).append(true).open(file(database, split));
    file.unwrap().write_all(bytes).unwrap();
}

async fn run(database: &Database, text: &str) -> Vec<Row> {
    database.run(text).await.unwrap_or_else(|error| panic!("{text}: {error}"))
}

async fn create_source(database: &Database, is_bounded: bool) {
    let options = if is_bounded { "" } else { ", follow = true, idle_timeout = 'off'" };
    let text = format!(
        "CREATE SOURCE event (id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP, \
         WATERMARK FOR ts AS ts - INTERVAL '5 seconds') \
         WITH (connector = 'file', path = '{}'{options}) FORMAT PLAIN ENCODE JSON",
        database.folder().join("event-*.jsonl").display(),
    );
    run(database, &text).await;
}

async fn feed_slowly(database: &mut Database, feed: &Feed, way: Way) {
    (0..feed.texts.len()).for_each(|split| append(database, split, b""));
    create_source(database, way.is_bounded).await;
    for view in views() {
        run(database, &view).await;
    }
    let mut random = Random::new(SEED + way.parallelism as u64);
    let mut rest: Vec<&[u8]> = feed.texts.iter().map(|text| text.as_bytes()).collect();
    let mut rounds = 0;
    while rest.iter().any(|bytes| !bytes.is_empty()) {
        for (split, bytes) in rest.iter_mut().enumerate() {
            // A piece can end in the middle of a line, and a file can stand still for a while.
            let most = usize::try_from(random.below(3_000)).unwrap();
            let (piece, behind) = bytes.split_at(most.min(bytes.len()));
            append(database, split, piece);
            *bytes = behind;
        }
        rounds += 1;
        if way.is_killed && rounds % 5 == 2 {
            // Before anybody knows how far it has read.
            database.kill_and_restart(5 - way.parallelism).await;
        }
        run(database, "FLUSH").await;
        if way.is_killed && rounds % 5 == 4 {
            database.kill_and_restart(way.parallelism).await;
        }
    }
    assert!(rounds > 8, "fed in {rounds} pieces only");
}

async fn feed_at_once(database: &mut Database, feed: &Feed, way: Way) {
    for (split, text) in feed.texts.iter().enumerate() {
        append(database, split, text.as_bytes());
    }
    create_source(database, way.is_bounded).await;
    if way.feeding == Feeding::Backfill {
        run(database, "CREATE MATERIALIZED VIEW early AS SELECT count(v) AS n FROM event").await;
        run(database, "FLUSH").await;
    }
    for (number, view) in views().iter().enumerate() {
        run(database, view).await;
        if way.is_killed && number % 3 == 1 {
            database.kill_and_restart(5 - way.parallelism).await;
        }
    }
}

async fn contents(database: &Database) -> Contents {
    let mut contents = Contents::new();
    for relation in RELATIONS {
        let mut rows = run(database, &format!("SELECT * FROM {relation}")).await;
        rows.sort_unstable();
        contents.insert(relation, rows);
    }
    contents
}

async fn read(way: Way, feed: &Feed) -> Contents {
    let mut database = Database::open(way.backend, way.parallelism).await;
    match way.feeding {
        Feeding::Slow => feed_slowly(&mut database, feed, way).await,
        Feeding::Fast | Feeding::Backfill => feed_at_once(&mut database, feed, way).await,
    }
    run(&database, "FLUSH").await;
    contents(&database).await
}

fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// The rows of a view over the groups whose window `is_shown`.
fn counted(told: &Reference, is_shown: impl Fn(i64) -> bool) -> Vec<Row> {
    let shown = told.groups.iter().filter(|((start, _), _)| is_shown(*start));
    let mut rows: Vec<Row> = shown
        .map(|((start, k), values)| {
            let kinds: std::collections::BTreeSet<&i64> = values.iter().collect();
            vec![
                text(k),
                text(timestamp(*start)),
                text(timestamp(start + super::feed::WINDOW_MS)),
                text(values.len()),
                text(values.iter().sum::<i64>()),
                text(values.iter().min().unwrap()),
                text(values.iter().max().unwrap()),
                text(kinds.len()),
            ]
        })
        .collect();
    rows.sort_unstable();
    rows
}

fn above(told: &Reference) -> Vec<Row> {
    let mut windows: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
    for ((start, _), values) in told.groups.iter().filter(|((start, _), _)| told.is_closed(*start, 0)) {
        let window = windows.entry(*start).or_default();
        *window = (window.0 + 1, window.1 + values.len());
    }
    let rows = windows.into_iter().map(|(start, (keys, rows))| {
        vec![text(timestamp(start)), text(timestamp(start + super::feed::WINDOW_MS)), text(keys), text(rows)]
    });
    rows.collect()
}

fn risky(told: &Reference) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for ((start, k), values) in &told.groups {
        let shares: Vec<i64> = values.iter().filter(|v| **v != 0).map(|v| 100 / v).collect();
        if !shares.is_empty() {
            rows.push(vec![text(k), text(timestamp(*start)), text(shares.iter().sum::<i64>())]);
        }
    }
    rows.sort_unstable();
    rows
}

/// The columns of rows that the reference knows about.
fn columns(rows: &[Row], which: &[usize]) -> Vec<Row> {
    let mut picked: Vec<Row> =
        rows.iter().map(|row| which.iter().map(|column| row[*column].clone()).collect()).collect();
    picked.sort_unstable();
    picked
}

/// `$split` of the source, which is the first relation made: its number in the high 32 bits.
fn split(rows: &[Row], number: usize) -> Option<String> {
    let first: i64 = rows.iter().map(|row| row[1].as_ref().unwrap().parse::<i64>().unwrap() >> 32).min()?;
    text((first << 32) + i64::try_from(number).unwrap())
}

fn late(told: &Reference, rows: &[Row]) -> Vec<Row> {
    let mut expected: Vec<Row> = told
        .late
        .iter()
        .map(|late| {
            let start = late.window_start_ms;
            vec![
                split(rows, late.split),
                text(late.position),
                text(timestamp(start + super::feed::WINDOW_MS)),
                text(timestamp(start)),
                text(timestamp(late.watermark_ms)),
            ]
        })
        .collect();
    expected.sort_unstable();
    expected
}

fn places(of: impl IntoIterator<Item = (usize, i64)>, rows: &[Row]) -> Vec<Row> {
    let mut expected: Vec<Row> =
        of.into_iter().map(|(number, position)| vec![split(rows, number), text(position)]).collect();
    expected.sort_unstable();
    expected
}

fn check_against_reference(feed: &Feed, is_bounded: bool, found: &Contents) {
    let told = reference(feed, 0, is_bounded);
    let patient = reference(feed, PATIENCE_MS, is_bounded);
    assert!(told.late.len() > 20 && patient.late.len() < told.late.len(), "{:?}", told.late);
    assert!(told.zeros.len() > 5 && told.refused.len() > 20);
    let open = told.groups.keys().filter(|(start, _)| !told.is_closed(*start, 0)).count();
    assert_eq!(open == 0, is_bounded);

    assert_eq!(found["on_update"], counted(&told, |_| true), "on_update");
    assert_eq!(found["on_close"], counted(&told, |start| told.is_closed(start, 0)), "on_close");
    let closed = counted(&patient, |start| patient.is_closed(start, PATIENCE_MS));
    assert_eq!(found["patient"], closed, "patient");
    assert_eq!(found["above"], above(&told), "above");
    assert_eq!(found["risky"], risky(&told), "risky");
    let mut rows: Vec<Row> = told.rows.iter().map(|(k, v)| vec![text(k), text(v)]).collect();
    rows.sort_unstable();
    assert_eq!(found["copy"], rows, "copy");

    // Columns of $late: operator, split, position, ordinal, window_end, window_start, watermark, row.
    for (relation, told) in [
        ("\"on_update$late\"", &told),
        ("\"on_close$late\"", &told),
        ("\"risky$late\"", &told),
        ("\"patient$late\"", &patient),
    ] {
        let found = &found[relation];
        assert_eq!(columns(found, &[1, 2, 4, 5, 6]), late(told, found), "{relation}");
    }
    // Columns of $errors: operator, split, position, sqlstate, message, row.
    let refused = &found["\"event$errors\""];
    assert_eq!(columns(refused, &[1, 2]), places(told.refused.iter().copied(), refused), "event$errors");
    let zeros = &found["\"risky$errors\""];
    assert_eq!(columns(zeros, &[1, 2]), places(told.zeros.iter().copied(), zeros), "risky$errors");
    assert!(zeros.iter().all(|row| row[3].as_deref() == Some("22012")), "{zeros:?}");
    for view in ["on_update", "on_close", "patient", "above", "copy"] {
        let errors = &found[format!("\"{view}$errors\"").as_str()];
        assert!(errors.is_empty(), "{view}$errors: {errors:?}");
    }
}

/// Reads the same files in every way on one backend.
fn every_way(backend: Backend, is_bounded: bool) {
    let feed = Feed::new(SEED, !is_bounded);
    let mut first: Option<Contents> = None;
    for feeding in [Feeding::Slow, Feeding::Fast, Feeding::Backfill] {
        // A bounded source reads the length its files have when it starts.
        if is_bounded && feeding == Feeding::Slow {
            continue;
        }
        for (parallelism, is_killed) in [(1, false), (1, true), (4, false), (4, true)] {
            let way = Way { feeding, backend, parallelism, is_killed, is_bounded };
            println!("{way:?}");
            let found = block_on(read(way, &feed));
            check_against_reference(&feed, is_bounded, &found);
            let first = first.get_or_insert_with(|| found.clone());
            for relation in RELATIONS {
                assert_eq!(found[relation], first[relation], "{relation} {way:?}");
            }
        }
    }
}

#[test]
fn what_is_late_depends_on_the_data_alone_in_memory() {
    every_way(Backend::Memory, false);
}

#[test]
fn what_is_late_depends_on_the_data_alone_on_disk() {
    every_way(Backend::RocksDb, false);
}

#[test]
fn every_window_closes_when_a_bounded_source_ends_in_memory() {
    every_way(Backend::Memory, true);
}

#[test]
fn every_window_closes_when_a_bounded_source_ends_on_disk() {
    every_way(Backend::RocksDb, true);
}
