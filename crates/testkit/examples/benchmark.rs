//! Compares views with DataFusion's batch execution of the same SELECT, in one run, on the same
//! file, with the same number of threads. Prints one JSON object a line.
//!
//! ```text
//! cargo run --release -p testkit --example benchmark -- [events] [threads] [folder]
//! ```
//!
//! Ours is the time from CREATE MATERIALIZED VIEW (or SINK) to the answer of FLUSH, on RocksDB
//! with a checkpoint every second; DataFusion's is the time to collect the result in memory. Each
//! is run twice and the better run counts, because other work may share the machine.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures wall time")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::execution::options::{CsvReadOptions, JsonReadOptions};
use datafusion::prelude::{SessionConfig, SessionContext};
use engine::{Engine, EngineOptions, Session};
use futures::StreamExt;

const COLUMNS: &str = "auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT, url TEXT, date_time TIMESTAMP, \
     extra TEXT, WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds'";

struct Case {
    name: &'static str,
    format: &'static str,
    /// What Highwater runs, over the source `bid`.
    ours: &'static str,
    /// The same SELECT for DataFusion.
    batch: &'static str,
}

const AGGREGATE: &str = "CREATE MATERIALIZED VIEW v AS SELECT bidder, window_start, window_end, count(*) AS bids, \
     avg(price) AS avg_price, max(price) AS max_price FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') \
     GROUP BY bidder, window_start, window_end";
const AGGREGATE_BATCH: &str = "SELECT bidder, date_bin(INTERVAL '10 seconds', date_time) AS window_start, count(*) AS bids, \
     avg(price) AS avg_price, max(price) AS max_price FROM bid GROUP BY 1, 2";

const CASES: &[Case] = &[
    Case { name: "tumbling aggregate", format: "json", ours: AGGREGATE, batch: AGGREGATE_BATCH },
    Case {
        name: "q2 into blackhole",
        format: "json",
        ours: "CREATE SINK v AS SELECT auction, price FROM bid WHERE auction % 123 = 0 WITH (connector = 'blackhole')",
        batch: "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    },
    Case {
        name: "q0 stored",
        format: "json",
        ours: "CREATE MATERIALIZED VIEW v AS SELECT auction, bidder, price, date_time, extra FROM bid",
        batch: "SELECT auction, bidder, price, date_time, extra FROM bid",
    },
    Case { name: "tumbling aggregate", format: "csv", ours: AGGREGATE, batch: AGGREGATE_BATCH },
];

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let events: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let threads: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let folder =
        arguments.next().map_or_else(|| std::env::temp_dir().join("highwater-benchmark"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let rows = make_files(&folder, events).await;
    for case in CASES {
        let file = folder.join(format!("bid-{events}.{}", case.format));
        let mut ours = Duration::MAX;
        let mut batch = Duration::MAX;
        for _ in 0..2 {
            batch = batch.min(run_batch(case, &file, threads).await);
            ours = ours.min(run_ours(case, &folder, &file, threads).await);
        }
        report(case, rows, threads, ours, batch);
    }
}

#[allow(clippy::print_stdout, reason = "the result of the benchmark")]
fn report(case: &Case, rows: u64, threads: usize, ours: Duration, batch: Duration) {
    let line = serde_json::json!({
        "case": case.name,
        "format": case.format,
        "threads": threads,
        "rows": rows,
        "ours_s": ours.as_secs_f64(),
        "batch_s": batch.as_secs_f64(),
        "ours_rows_per_s": (rows as f64 / ours.as_secs_f64()).round(),
        "batch_rows_per_s": (rows as f64 / batch.as_secs_f64()).round(),
        "ratio": (batch.as_secs_f64() / ours.as_secs_f64() * 100.0).round() / 100.0,
        "peak_rss_mib": peak_rss_mib(),
    });
    println!("{line}");
}

/// Of the whole process so far, DataFusion's part included.
fn peak_rss_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_ascii_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) >> 10
}

async fn open(folder: &Path, data: Option<PathBuf>, threads: usize) -> Engine {
    let options = EngineOptions {
        data,
        allowed_paths: vec![folder.to_owned()],
        memory: 4 << 30,
        parallelism: threads,
        epoch_min: Duration::from_millis(10),
        epoch_max: Duration::from_millis(200),
        checkpoint_interval: Duration::from_secs(1),
    };
    Engine::open(options, connectors::registry()).await.expect("the engine opens")
}

async fn execute(session: &mut Session, text: &str) {
    for parsed in session.parse(text).unwrap_or_else(|error| panic!("{text}: {error}")) {
        let output = session.execute(&parsed).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        if let Some(mut rows) = output.rows {
            while let Some(batch) = rows.stream.next().await {
                batch.unwrap_or_else(|error| panic!("{text}: {error}"));
            }
        }
    }
}

/// Writes the bids of `events` Nexmark events as JSON lines and CSV, once; returns their number.
async fn make_files(folder: &Path, events: u64) -> u64 {
    let json = folder.join(format!("bid-{events}.json"));
    let csv = folder.join(format!("bid-{events}.csv"));
    let count = folder.join(format!("bid-{events}.count"));
    if let Ok(text) = std::fs::read_to_string(&count) {
        return text.trim().parse().expect("the count file holds a number");
    }
    let engine = open(folder, None, 1).await;
    let mut session = engine.session("benchmark");
    execute(
        &mut session,
        &format!(
            "CREATE SOURCE bid ({COLUMNS}) WITH (connector = 'nexmark', table = 'bid', events = '{events}')"
        ),
    )
    .await;
    let select = "SELECT auction, bidder, price, channel, url, date_time, extra FROM bid";
    let parsed = session.parse(select).expect("the query parses");
    let mut rows = session.execute(&parsed[0]).await.expect("the query runs").rows.expect("it has rows");
    let mut json = std::io::BufWriter::new(std::fs::File::create(json).expect("the file can be made"));
    let mut csv = std::io::BufWriter::new(std::fs::File::create(csv).expect("the file can be made"));
    let mut written = 0;
    while let Some(batch) = rows.stream.next().await {
        let batch = batch.expect("the generator does not fail");
        written += batch.num_rows() as u64;
        let mut writer = datafusion::arrow::json::LineDelimitedWriter::new(&mut json);
        writer.write(&batch).expect("a batch can be written");
        let mut writer = datafusion::arrow::csv::WriterBuilder::new().with_header(false).build(&mut csv);
        writer.write(&batch).expect("a batch can be written");
    }
    json.flush().expect("the disk has room");
    csv.flush().expect("the disk has room");
    std::fs::write(count, written.to_string()).expect("the disk has room");
    engine.shutdown().await;
    written
}

async fn run_ours(case: &Case, folder: &Path, file: &Path, threads: usize) -> Duration {
    let data = folder.join("data");
    let _ = std::fs::remove_dir_all(&data);
    let engine = open(folder, Some(data), threads).await;
    let mut session = engine.session("benchmark");
    let path = file.file_name().expect("a file has a name").to_string_lossy();
    let format = case.format;
    execute(
        &mut session,
        &format!(
            "CREATE SOURCE bid ({COLUMNS}) WITH (connector = 'file', path = '{path}', format = '{format}')"
        ),
    )
    .await;
    let start = Instant::now();
    execute(&mut session, case.ours).await;
    execute(&mut session, "FLUSH").await;
    let took = start.elapsed();
    engine.shutdown().await;
    took
}

async fn run_batch(case: &Case, file: &Path, threads: usize) -> Duration {
    let schema = Arc::new(Schema::new(vec![
        Field::new("auction", DataType::Int64, true),
        Field::new("bidder", DataType::Int64, true),
        Field::new("price", DataType::Int64, true),
        Field::new("channel", DataType::Utf8View, true),
        Field::new("url", DataType::Utf8View, true),
        Field::new("date_time", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("extra", DataType::Utf8View, true),
    ]));
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(threads));
    let path = file.to_string_lossy();
    if case.format == "json" {
        let options = JsonReadOptions::default().schema(&schema);
        ctx.register_json("bid", &*path, options).await.expect("the file can be registered");
    } else {
        let options = CsvReadOptions::new().has_header(false).schema(&schema);
        ctx.register_csv("bid", &*path, options).await.expect("the file can be registered");
    }
    let start = Instant::now();
    ctx.sql(case.batch).await.expect("the query plans").collect().await.expect("the query runs");
    start.elapsed()
}
