//! Freshness: from the moment before a row is written until a SELECT of another session shows it.
//!
//! Rows carry ascending numbers and are written in small groups at a steady pace. A reader asks for
//! the greatest number in a view, again and again; a group has become visible when the answer has
//! reached its last number.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_postgres::Client;

use crate::server::Server;
use crate::{report, run};

const ROWS_PER_SECOND: i64 = 50_000;
const SECONDS: i64 = 20;
/// How often a group of rows is written.
const FILE_TICK: Duration = Duration::from_millis(2);
const INSERT_TICK: Duration = Duration::from_millis(10);
/// Between an answer and the next question.
const READ_PAUSE: Duration = Duration::from_millis(1);
const KEYS: i64 = 10_000;
/// Groups written before this are not counted: the first ones meet a cold server.
const WARM_UP: Duration = Duration::from_secs(2);

/// Groups that were written: the last number of each, and when.
type Written = Arc<Mutex<Vec<(i64, Instant)>>>;

/// Rows appended to a followed file.
pub(crate) async fn file(server: &Server, folder: &Path) {
    let path = folder.join("fresh.json");
    let mut file = File::create(&path).expect("the file can be made");
    let client = server.client().await;
    run(
        &client,
        "CREATE SOURCE s (id BIGINT, k BIGINT, v BIGINT) \
         WITH (connector = 'file', path = 'fresh.json', format = 'json', follow = true)",
    )
    .await;
    create_views(&client).await;
    let written = Written::default();
    let log = Arc::clone(&written);
    let writer = std::thread::spawn(move || {
        let mut next = 0;
        pace(FILE_TICK, |rows| {
            let mut text = Vec::new();
            for id in next..next + rows {
                writeln!(text, "{{\"id\":{id},\"k\":{},\"v\":{}}}", id % KEYS, id % 1000)
                    .expect("memory takes text");
            }
            next += rows;
            let begin = Instant::now();
            file.write_all(&text).expect("the disk has room");
            push(&log, next - 1, begin);
        });
    });
    let reader = server.client().await;
    let (mut times, mut reads) = watch(&reader, &written, ROWS_PER_SECOND * SECONDS - 1).await;
    writer.join().expect("the writer does not panic");
    report_freshness("freshness of a followed file", &mut times, &mut reads);
}

/// Rows inserted into a table by one session.
pub(crate) async fn insert(server: &Server) {
    let client = server.client().await;
    run(&client, "CREATE TABLE s (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT)").await;
    create_views(&client).await;
    let written = Written::default();
    let log = Arc::clone(&written);
    let writer = server.client().await;
    let writing = tokio::spawn(async move {
        let (mut next, mut acknowledged) = (0, Vec::new());
        let mut ticks = tokio::time::interval(INSERT_TICK);
        let group = ROWS_PER_SECOND * INSERT_TICK.as_micros() as i64 / 1_000_000;
        while next < ROWS_PER_SECOND * SECONDS {
            ticks.tick().await;
            let rows: Vec<String> =
                (next..next + group).map(|id| format!("({id}, {}, {})", id % KEYS, id % 1000)).collect();
            let text = format!("INSERT INTO s VALUES {}", rows.join(", "));
            next += group;
            let begin = Instant::now();
            push(&log, next - 1, begin);
            run(&writer, &text).await;
            acknowledged.push(begin.elapsed());
        }
        acknowledged
    });
    let reader = server.client().await;
    let (mut times, mut reads) = watch(&reader, &written, ROWS_PER_SECOND * SECONDS - 1).await;
    let mut acknowledged = writing.await.expect("the writer does not panic");
    report_freshness("freshness of INSERT", &mut times, &mut reads);
    report("INSERT until its answer", &mut acknowledged, json!({}));
}

async fn create_views(client: &Client) {
    run(client, "CREATE MATERIALIZED VIEW last AS SELECT max(id) AS id FROM s").await;
    run(
        client,
        "CREATE MATERIALIZED VIEW by_key AS SELECT k, count(*) AS n, sum(v) AS total FROM s GROUP BY k",
    )
    .await;
}

fn push(log: &Written, last: i64, at: Instant) {
    log.lock().expect("no thread panics with the lock").push((last, at));
}

/// Calls `write` with a number of rows at every tick, so that the rate is kept whatever it takes.
fn pace(tick: Duration, mut write: impl FnMut(i64)) {
    let begin = Instant::now();
    let (mut written, total) = (0, ROWS_PER_SECOND * SECONDS);
    while written < total {
        std::thread::sleep(tick);
        let due = (begin.elapsed().as_micros() as i64 * ROWS_PER_SECOND / 1_000_000).min(total);
        if due > written {
            write(due - written);
            written = due;
        }
    }
}

/// Reads until number `end` shows; how long each group took, and each read.
async fn watch(client: &Client, written: &Written, end: i64) -> (Vec<Duration>, Vec<Duration>) {
    const PATIENCE: Duration = Duration::from_secs(60);
    let statement = client.prepare("SELECT id FROM last").await.expect("it can be prepared");
    let (mut times, mut reads, mut seen) = (Vec::new(), Vec::new(), 0);
    let begin = Instant::now();
    let mut shown = -1;
    while shown < end {
        assert!(begin.elapsed() < PATIENCE, "only rows up to {shown} became visible");
        let asked = Instant::now();
        shown = client
            .query_one(&statement, &[])
            .await
            .expect("the view has a row")
            .get::<_, Option<i64>>(0)
            .unwrap_or(-1);
        let now = Instant::now();
        reads.push(now - asked);
        {
            let groups = written.lock().expect("no thread panics with the lock");
            while let Some((_, at)) = groups.get(seen).filter(|(last, _)| *last <= shown) {
                if *at - begin > WARM_UP {
                    times.push(now - *at);
                }
                seen += 1;
            }
        }
        tokio::time::sleep(READ_PAUSE).await;
    }
    (times, reads)
}

fn report_freshness(case: &str, times: &mut [Duration], reads: &mut [Duration]) {
    let more = json!({ "rows_per_s": ROWS_PER_SECOND, "goal_ms": { "p50": 25, "p99": 100 } });
    report(case, times, more);
    report("SELECT beside it", reads, json!({}));
}
