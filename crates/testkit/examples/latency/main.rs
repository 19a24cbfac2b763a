//! Measures what a client of the real server waits for. Prints one JSON object a line.
//!
//! ```text
//! cargo build --release -p server
//! cargo run --release -p testkit --example latency -- [port] [folder] [case …]
//! ```
//!
//! Cases: `create_view`, `idle`, `point`, `freshness_file`, `freshness_insert`; all of them by
//! default, each on a server and a data folder of its own. Every line carries the load average,
//! because a machine that does other work answers later; a goal that is met under load is met.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures wall time and paces its load")]

mod freshness;
mod server;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_postgres::Client;

use server::Server;

const VIEW_ROWS: i64 = 1_000_000;
const POINT_READS: usize = 20_000;
const VIEWS: usize = 20;
const IDLE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(7433);
    let folder =
        arguments.next().map_or_else(|| std::env::temp_dir().join("highwater-latency"), PathBuf::from);
    let cases: Vec<String> = arguments.collect();
    let is_wanted = |case: &str| cases.is_empty() || cases.iter().any(|wanted| wanted == case);
    if is_wanted("create_view") {
        create_view(&Server::start(&folder, port).await).await;
    }
    if is_wanted("idle") {
        idle(&Server::start(&folder, port).await, &folder).await;
    }
    if is_wanted("point") {
        point(&Server::start(&folder, port).await).await;
    }
    if is_wanted("freshness_file") {
        freshness::file(&Server::start(&folder, port).await, &folder).await;
    }
    if is_wanted("freshness_insert") {
        freshness::insert(&Server::start(&folder, port).await).await;
    }
}

/// `CREATE MATERIALIZED VIEW` over a source that has no rows.
async fn create_view(server: &Server) {
    let client = server.client().await;
    run(
        &client,
        "CREATE SOURCE s (id BIGINT, at TIMESTAMP, v BIGINT, WATERMARK FOR at AS at - INTERVAL '4 seconds') \
         WITH (connector = 'file', path = 'none*.json', format = 'json', follow = true)",
    )
    .await;
    let mut times = Vec::new();
    for number in 0..VIEWS {
        let text = format!(
            "CREATE MATERIALIZED VIEW v{number} AS SELECT id, window_end, count(*) AS n, sum(v) AS total \
             FROM TUMBLE(s, at, INTERVAL '10 seconds') GROUP BY id, window_end"
        );
        let begin = Instant::now();
        run(&client, &text).await;
        times.push(begin.elapsed());
    }
    report("create view over an empty source", &mut times, json!({ "goal_ms": { "p50": 100 } }));
}

/// What a server costs that nobody asks anything.
async fn idle(server: &Server, folder: &Path) {
    let client = server.client().await;
    std::fs::write(folder.join("idle.json"), "{\"id\":1,\"v\":2}\n").expect("the file can be written");
    run(&client, "CREATE SOURCE s (id BIGINT, v BIGINT) WITH (connector = 'file', path = 'idle.json', format = 'json', follow = true)").await;
    run(&client, "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)").await;
    for (view, of) in [("a", "s"), ("b", "s"), ("c", "t")] {
        run(
            &client,
            &format!("CREATE MATERIALIZED VIEW {view} AS SELECT v, count(*) AS n FROM {of} GROUP BY v"),
        )
        .await;
    }
    run(&client, "INSERT INTO t VALUES (1, 1), (2, 1)").await;
    run(&client, "FLUSH").await;
    // What the statements above have started comes to its end.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (begin, cpu) = (Instant::now(), server.cpu_seconds());
    tokio::time::sleep(IDLE).await;
    let percent = (server.cpu_seconds() - cpu) / begin.elapsed().as_secs_f64() * 100.0;
    say(&json!({
        "case": "idle",
        "cpu_percent": round(percent),
        "rss_mib": server.memory_mib("VmRSS:"),
        "peak_rss_mib": server.memory_mib("VmHWM:"),
        "goal": { "cpu_percent": 2, "rss_mib": 150 },
        "load": load(),
    }));
}

/// One key of a large view, by a prepared statement, one after the other.
async fn point(server: &Server) {
    let client = server.client().await;
    run(&client, &format!("CREATE SOURCE s (id BIGINT, v BIGINT, name TEXT) WITH (connector = 'datagen', rows = '{VIEW_ROWS}', \
         fields.id.kind = 'sequence', fields.id.start = '0')")).await;
    run(&client, "CREATE MATERIALIZED VIEW big AS SELECT id, count(*) AS n, max(v) AS v, max(name) AS name FROM s GROUP BY id").await;
    run(&client, "FLUSH").await;
    let rows: i64 = client.query_one("SELECT count(*) FROM big", &[]).await.expect("a count").get(0);
    assert_eq!(rows, VIEW_ROWS, "the view holds every key");
    // Whatever the load has left to do behind the answer.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let statement =
        client.prepare("SELECT id, n, v, name FROM big WHERE id = $1").await.expect("it can be prepared");
    let mut random = Random(7);
    let mut times = Vec::with_capacity(POINT_READS);
    for _ in 0..POINT_READS {
        let key = random.below(VIEW_ROWS);
        let begin = Instant::now();
        let row = client.query_one(&statement, &[&key]).await.expect("the key is there");
        times.push(begin.elapsed());
        assert_eq!(row.get::<_, i64>(0), key);
    }
    let more = json!({ "rows": VIEW_ROWS, "rss_mib": server.memory_mib("VmRSS:"), "goal_ms": { "p50": 0.3, "p99": 2 } });
    report("point select", &mut times, more);
}

/// Runs statements without rows.
pub(crate) async fn run(client: &Client, text: &str) {
    client.batch_execute(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
}

/// Prints percentiles of what was measured.
pub(crate) fn report(case: &str, times: &mut [Duration], more: Value) {
    times.sort_unstable();
    let at = |share: f64| {
        let idx = (times.len().saturating_sub(1)) as f64 * share;
        times.get(idx.round() as usize).map_or(0.0, |time| round(time.as_secs_f64() * 1e3))
    };
    let mut line = json!({
        "case": case,
        "samples": times.len(),
        "p50_ms": at(0.5),
        "p90_ms": at(0.9),
        "p99_ms": at(0.99),
        "max_ms": at(1.0),
        "load": load(),
    });
    if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
        line.extend(more);
    }
    say(&line);
}

#[allow(clippy::print_stdout, reason = "the result of the benchmark")]
fn say(line: &Value) {
    println!("{line}");
}

fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// Processes that wanted a core in the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Keys that follow no order.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        // Knuth's MMIX constants; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as i64) % end
    }
}
