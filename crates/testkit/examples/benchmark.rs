//! Compares views with DataFusion's batch execution of the same SELECT, in one run, on the same
//! file, with the same number of threads. Prints one JSON object a line.
//!
//! ```text
//! cargo run --release -p testkit --example benchmark -- [events] [threads] [folder] [rounds] [case]
//! ```
//!
//! Ours is the time from CREATE MATERIALIZED VIEW (or SINK) to the answer of FLUSH, on RocksDB
//! with a checkpoint every second; DataFusion's is the time to plan the query and to collect its
//! result in memory, over its own reader of the same file with the same schema. The two take turns
//! and the best round of each counts, because other work may share the machine. The last round
//! also compares what both came to, row by row.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures wall time")]

use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::datasource::MemTable;
use datafusion::execution::options::{CsvReadOptions, JsonReadOptions};
use datafusion::prelude::{SessionConfig, SessionContext};
use engine::{Engine, EngineOptions, Session};
use futures::StreamExt;

/// What the server uses, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const COLUMNS: &str = "auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT, url TEXT, date_time TIMESTAMP, \
     extra TEXT, WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds'";

struct Case {
    name: &'static str,
    format: &'static str,
    /// What Highwater runs, over the source `bid`.
    ours: &'static str,
    /// Makes the view that is compared, where `ours` keeps no rows.
    kept: Option<&'static str>,
    /// The same SELECT for DataFusion.
    batch: &'static str,
    /// What is compared of the result `v`.
    check: &'static str,
    /// How fast ours has to be: a multiple of DataFusion's speed, or rows a second.
    goal: Goal,
}

#[derive(Clone, Copy)]
enum Goal {
    Ratio(f64),
    RowsPerSecond(f64),
}

const AGGREGATE: &str = "CREATE MATERIALIZED VIEW v AS SELECT bidder, window_start, window_end, count(*) AS bids, \
     avg(price) AS avg_price, max(price) AS max_price FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') \
     GROUP BY bidder, window_start, window_end";
const AGGREGATE_BATCH: &str = "SELECT bidder, date_bin(INTERVAL '10 seconds', date_time) AS window_start, count(*) AS bids, \
     avg(price) AS avg_price, max(price) AS max_price FROM bid GROUP BY 1, 2";
/// The averages have different types; times the count they are the same whole number.
const AGGREGATE_CHECK: &str = "SELECT bidder, window_start, bids, max_price, \
     CAST(round(CAST(avg_price AS DOUBLE PRECISION) * bids) AS BIGINT) AS total FROM v";
const Q2_SINK: &str =
    "CREATE SINK v AS SELECT auction, price FROM bid WHERE auction % 123 = 0 WITH (connector = 'blackhole')";
const Q2_VIEW: &str = "CREATE MATERIALIZED VIEW v AS SELECT auction, price FROM bid WHERE auction % 123 = 0";
const Q2_BATCH: &str = "SELECT auction, price FROM bid WHERE auction % 123 = 0";
const Q0_VIEW: &str =
    "CREATE MATERIALIZED VIEW v AS SELECT auction, bidder, price, date_time, extra FROM bid";
const Q0_BATCH: &str = "SELECT auction, bidder, price, date_time, extra FROM bid";
const EVERYTHING: &str = "SELECT * FROM v";

const CASES: &[Case] = &[
    Case {
        name: "tumbling aggregate",
        format: "json",
        ours: AGGREGATE,
        kept: None,
        batch: AGGREGATE_BATCH,
        check: AGGREGATE_CHECK,
        goal: Goal::Ratio(0.8),
    },
    Case {
        name: "q2 into blackhole",
        format: "json",
        ours: Q2_SINK,
        kept: Some(Q2_VIEW),
        batch: Q2_BATCH,
        check: EVERYTHING,
        goal: Goal::Ratio(1.0),
    },
    Case {
        name: "q0 stored",
        format: "json",
        ours: Q0_VIEW,
        kept: None,
        batch: Q0_BATCH,
        check: EVERYTHING,
        goal: Goal::RowsPerSecond(400_000.0),
    },
    Case {
        name: "tumbling aggregate",
        format: "csv",
        ours: AGGREGATE,
        kept: None,
        batch: AGGREGATE_BATCH,
        check: AGGREGATE_CHECK,
        goal: Goal::Ratio(0.6),
    },
    Case {
        name: "q2 into blackhole",
        format: "csv",
        ours: Q2_SINK,
        kept: Some(Q2_VIEW),
        batch: Q2_BATCH,
        check: EVERYTHING,
        goal: Goal::Ratio(0.6),
    },
    Case {
        name: "q0 stored",
        format: "csv",
        ours: Q0_VIEW,
        kept: None,
        batch: Q0_BATCH,
        check: EVERYTHING,
        goal: Goal::RowsPerSecond(400_000.0),
    },
];

struct Setting {
    folder: PathBuf,
    events: u64,
    threads: usize,
}

impl Setting {
    fn file(&self, format: &str) -> PathBuf {
        self.folder.join(format!("bid-{}.{format}", self.events))
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let events: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let threads: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let folder =
        arguments.next().map_or_else(|| std::env::temp_dir().join("highwater-benchmark"), PathBuf::from);
    let rounds: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(3);
    let wanted = arguments.next();
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let setting = Setting { folder, events, threads };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.expect("threads can be started").block_on(async {
        let rows = make_files(&setting).await;
        for case in CASES {
            let name = format!("{} {}", case.name, case.format);
            if wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str())) {
                compare(case, &setting, rows, rounds.max(1)).await;
            }
        }
    });
}

async fn compare(case: &Case, setting: &Setting, rows: u64, rounds: usize) {
    let (mut ours, mut batch) = (Measured::default(), Measured::default());
    for round in 1..=rounds {
        let is_last = round == rounds;
        batch.add(run_batch(case, setting, is_last).await);
        ours.add(run_ours(case, setting, is_last).await);
    }
    if case.kept.is_some() {
        ours.digest = Some(kept_digest(case, setting).await);
    }
    assert_eq!(ours.digest, batch.digest, "{}: both come to the same rows", case.name);
    report(case, setting, rows, &ours, &batch);
}

/// The best of several rounds.
#[derive(Default)]
struct Measured {
    times: Vec<Duration>,
    digest: Option<Digest>,
}

impl Measured {
    fn add(&mut self, (time, digest): (Duration, Option<Digest>)) {
        self.times.push(time);
        self.digest = digest.or(self.digest);
    }

    fn best(&self) -> f64 {
        self.times.iter().min().map_or(f64::NAN, Duration::as_secs_f64)
    }

    fn seconds(&self) -> Vec<f64> {
        self.times.iter().map(|time| (time.as_secs_f64() * 1e3).round() / 1e3).collect()
    }
}

#[allow(clippy::print_stdout, reason = "the result of the benchmark")]
fn report(case: &Case, setting: &Setting, rows: u64, ours: &Measured, batch: &Measured) {
    let (rate, ratio) = (rows as f64 / ours.best(), batch.best() / ours.best());
    let (goal, is_met) = match case.goal {
        Goal::Ratio(goal) => (format!("{goal} x batch"), ratio >= goal),
        Goal::RowsPerSecond(goal) => (format!("{goal} rows/s"), rate >= goal),
    };
    let line = serde_json::json!({
        "case": case.name,
        "format": case.format,
        "threads": setting.threads,
        "rows": rows,
        "result_rows": ours.digest.map(|digest| digest.rows),
        "ours_s": ours.seconds(),
        "batch_s": batch.seconds(),
        "ours_rows_per_s": rate.round(),
        "batch_rows_per_s": (rows as f64 / batch.best()).round(),
        "ratio": (ratio * 100.0).round() / 100.0,
        "goal": goal,
        "is_met": is_met,
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

/// A multiset of rows, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Digest {
    rows: u64,
    /// The sum of the hashes of all rows, so that their order does not matter.
    sum: u64,
}

impl Digest {
    fn add(&mut self, batch: &RecordBatch) {
        let text = |column: &ArrayRef| {
            cast(column, &DataType::Utf8).expect("every type of these queries is text, too")
        };
        let columns: Vec<_> = batch.columns().iter().map(text).collect();
        let hasher = foldhash::fast::FixedState::with_seed(7);
        for row in 0..batch.num_rows() {
            let mut hash = hasher.build_hasher();
            for column in &columns {
                hash.write_u8(u8::from(column.is_null(row)));
                hash.write(column.as_string::<i32>().value(row).as_bytes());
                hash.write_u8(0xff);
            }
            self.sum = self.sum.wrapping_add(hash.finish());
        }
        self.rows += batch.num_rows() as u64;
    }
}

async fn open(setting: &Setting, data: Option<PathBuf>, threads: usize) -> Engine {
    let options = EngineOptions {
        data,
        allowed_paths: vec![setting.folder.clone()],
        memory: 4 << 30,
        parallelism: threads,
        epoch_min: Duration::from_millis(10),
        epoch_max: Duration::from_millis(200),
        checkpoint_interval: Duration::from_secs(1),
    };
    Engine::open(options, connectors::registry()).await.expect("the engine opens")
}

/// Runs statements; what the last one returns is given to `take`.
async fn execute(session: &mut Session, text: &str, mut take: impl FnMut(&RecordBatch)) {
    for parsed in session.parse(text).unwrap_or_else(|error| panic!("{text}: {error}")) {
        let output = session.execute(&parsed).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        if let Some(mut rows) = output.rows {
            while let Some(batch) = rows.stream.next().await {
                take(&batch.unwrap_or_else(|error| panic!("{text}: {error}")));
            }
        }
    }
}

/// Writes the bids of a number of Nexmark events as JSON lines and CSV, once; returns their number.
async fn make_files(setting: &Setting) -> u64 {
    let count = setting.file("count");
    if let Ok(text) = std::fs::read_to_string(&count) {
        return text.trim().parse().expect("the count file holds a number");
    }
    let engine = open(setting, None, 1).await;
    let mut session = engine.session("benchmark");
    let events = setting.events;
    let source = format!(
        "CREATE SOURCE bid ({COLUMNS}) WITH (connector = 'nexmark', table = 'bid', events = '{events}')"
    );
    execute(&mut session, &source, |_| {}).await;
    let create = |format| {
        let file = std::fs::File::create(setting.file(format)).expect("the file can be made");
        std::io::BufWriter::with_capacity(1 << 20, file)
    };
    let (mut json, mut csv, mut written) = (create("json"), create("csv"), 0);
    execute(
        &mut session,
        "SELECT auction, bidder, price, channel, url, date_time, extra FROM bid",
        |batch| {
            written += batch.num_rows() as u64;
            let mut writer = datafusion::arrow::json::LineDelimitedWriter::new(&mut json);
            writer.write(batch).expect("a batch can be written");
            let mut writer = datafusion::arrow::csv::WriterBuilder::new().with_header(false).build(&mut csv);
            writer.write(batch).expect("a batch can be written");
        },
    )
    .await;
    json.flush().expect("the disk has room");
    csv.flush().expect("the disk has room");
    std::fs::write(count, written.to_string()).expect("the disk has room");
    engine.shutdown().await;
    written
}

async fn run_ours(case: &Case, setting: &Setting, is_last: bool) -> (Duration, Option<Digest>) {
    let (engine, mut session) = open_with_source(case, setting).await;
    let start = Instant::now();
    execute(&mut session, case.ours, |_| {}).await;
    execute(&mut session, "FLUSH", |_| {}).await;
    let took = start.elapsed();
    let digest = match case.kept {
        None if is_last => Some(digest(&mut session, case).await),
        None | Some(_) => None,
    };
    engine.shutdown().await;
    (took, digest)
}

/// The result of a case whose own statement keeps none.
async fn kept_digest(case: &Case, setting: &Setting) -> Digest {
    let (engine, mut session) = open_with_source(case, setting).await;
    execute(&mut session, case.kept.unwrap_or_default(), |_| {}).await;
    execute(&mut session, "FLUSH", |_| {}).await;
    let digest = digest(&mut session, case).await;
    engine.shutdown().await;
    digest
}

async fn digest(session: &mut Session, case: &Case) -> Digest {
    let mut digest = Digest::default();
    execute(session, case.check, |batch| digest.add(batch)).await;
    digest
}

async fn open_with_source(case: &Case, setting: &Setting) -> (Engine, Session) {
    let data = setting.folder.join("data");
    let _ = std::fs::remove_dir_all(&data);
    let engine = open(setting, Some(data), setting.threads).await;
    let mut session = engine.session("benchmark");
    let (file, format) = (setting.file(case.format), case.format);
    let path = file.file_name().expect("a file has a name").to_string_lossy();
    let source = format!(
        "CREATE SOURCE bid ({COLUMNS}) WITH (connector = 'file', path = '{path}', format = '{format}')"
    );
    execute(&mut session, &source, |_| {}).await;
    (engine, session)
}

async fn run_batch(case: &Case, setting: &Setting, is_last: bool) -> (Duration, Option<Digest>) {
    let schema = Schema::new(vec![
        Field::new("auction", DataType::Int64, true),
        Field::new("bidder", DataType::Int64, true),
        Field::new("price", DataType::Int64, true),
        Field::new("channel", DataType::Utf8View, true),
        Field::new("url", DataType::Utf8View, true),
        Field::new("date_time", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("extra", DataType::Utf8View, true),
    ]);
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(setting.threads));
    let file = setting.file(case.format);
    let path = file.to_string_lossy();
    if case.format == "json" {
        let options = JsonReadOptions::default().schema(&schema);
        ctx.register_json("bid", &*path, options).await.expect("the file can be registered");
    } else {
        let options = CsvReadOptions::new().has_header(false).schema(&schema);
        ctx.register_csv("bid", &*path, options).await.expect("the file can be registered");
    }
    let start = Instant::now();
    let result = ctx.sql(case.batch).await.expect("the query plans").collect().await.expect("the query runs");
    let took = start.elapsed();
    if !is_last {
        return (took, None);
    }
    let mut digest = Digest::default();
    if let Some(schema) = result.first().map(RecordBatch::schema) {
        let table = MemTable::try_new(schema, vec![result]).expect("batches of one query have one schema");
        ctx.register_table("v", Arc::new(table)).expect("no other table has the name");
        let checked =
            ctx.sql(case.check).await.expect("the check plans").collect().await.expect("the check runs");
        checked.iter().for_each(|batch| digest.add(batch));
    }
    (took, Some(digest))
}
