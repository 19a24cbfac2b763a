//! Nexmark queries over a fixed data set give exactly the expected rows.
//!
//! The expected rows were computed by other engines from the same data. Each query runs to the
//! end, at parallelism 1 and 2, on both backends, with the view made before the data is read
//! and after, and with a kill in the middle.

use std::collections::BTreeMap;

use engine::Session;
use futures::StreamExt;
use server::TextRows;
use testkit::database::{Backend, Database};

const QUERIES: &[&str] = &["q0", "q1", "q2", "q10", "q14", "q15", "q16", "q17", "q21", "q22", "bidder_10s"];

fn file(name: &str) -> String {
    let path = testkit::repository().join("sql-tests/nexmark").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One form for values that are equal: timestamps to milliseconds, decimals without zeros at the end.
fn normalized(value: &str) -> String {
    let is_time = value.len() >= 19 && value.as_bytes()[4] == b'-' && value.as_bytes()[13] == b':';
    if is_time {
        let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
        return format!("{whole}.{fraction:0<3}");
    }
    match value.split_once('.') {
        Some((whole, fraction))
            if fraction.bytes().all(|byte| byte.is_ascii_digit())
                && whole.trim_start_matches('-').parse::<u128>().is_ok() =>
        {
            value.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => value.to_owned(),
    }
}

/// Rows with how often each occurs.
type Multiset = BTreeMap<Vec<String>, usize>;

fn multiset(rows: impl Iterator<Item = Vec<String>>) -> Multiset {
    let mut counted = Multiset::new();
    for row in rows {
        *counted.entry(row.iter().map(|value| normalized(value)).collect()).or_default() += 1;
    }
    counted
}

/// The fields of one line; a field may stand in double quotes, with its own quotes doubled.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => fields.last_mut().unwrap().push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(character),
        }
    }
    fields
}

fn expected(query: &str) -> (String, Multiset) {
    let text = file(&format!("expected/{query}.csv"));
    let (header, body) = text.split_once('\n').unwrap();
    (header.trim().to_owned(), multiset(body.lines().map(fields)))
}

async fn rows(session: &mut Session, text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for parsed in session.parse(text).unwrap_or_else(|error| panic!("{text}: {error}")) {
        let output =
            session.execute(&parsed).await.unwrap_or_else(|error| panic!("{text}: {error} {error:?}"));
        let Some(mut result) = output.rows else { continue };
        let mut encoder = TextRows::new(&result.schema);
        while let Some(batch) = result.stream.next().await {
            for row in encoder.rows(&batch.unwrap()).unwrap() {
                found.push(row.into_iter().map(|value| value.unwrap_or_else(|| "\\N".to_owned())).collect());
            }
        }
    }
    found
}

async fn check(database: &Database, how: &str) {
    let mut session = database.engine().session("tester");
    let mut wrong = Vec::new();
    for query in QUERIES {
        let (columns, expected) = expected(query);
        let found = multiset(rows(&mut session, &format!("SELECT {columns} FROM {query}")).await.into_iter());
        if found != expected {
            let missing = expected.iter().find(|(row, count)| found.get(*row) != Some(count));
            let more = found.iter().find(|(row, count)| expected.get(*row) != Some(count));
            wrong.push(format!("{query}: missing e.g. {missing:?}, unexpected e.g. {more:?}"));
        }
    }
    assert!(wrong.is_empty(), "{how}:\n{}", wrong.join("\n"));
}

async fn create_all(database: &Database) {
    let mut session = database.engine().session("tester");
    rows(&mut session, &file("sources.sql")).await;
    for query in QUERIES {
        rows(&mut session, &file(&format!("{query}.sql"))).await;
    }
}

async fn run(backend: Backend, parallelism: usize) {
    let mut database = Database::open(backend, parallelism).await;
    create_all(&database).await;
    // The kill comes at a moment that differs from run to run; the result must not.
    database.kill_and_restart(3 - parallelism).await;
    rows(&mut database.engine().session("tester"), "FLUSH").await;
    check(&database, &format!("{backend:?}, parallelism {parallelism}, killed")).await;
    database.kill_and_restart(parallelism).await;
    check(&database, &format!("{backend:?}, parallelism {parallelism}, killed after the end")).await;
}

fn block_on(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work);
}

#[test]
fn nexmark_in_memory_at_parallelism_one() {
    block_on(run(Backend::Memory, 1));
}

#[test]
fn nexmark_in_memory_at_parallelism_two() {
    block_on(run(Backend::Memory, 2));
}

#[test]
fn nexmark_on_disk_at_parallelism_one() {
    block_on(run(Backend::RocksDb, 1));
}

#[test]
fn nexmark_on_disk_at_parallelism_two() {
    block_on(run(Backend::RocksDb, 2));
}
