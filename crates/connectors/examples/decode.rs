//! Measures decoding of Nexmark bids on one thread, against the decoders of the arrow crates.
//!
//! ```text
//! cargo run --release -p connectors --example decode [events]
//! ```
//!
//! Every decoder gets the same bytes in the same chunks; rounds of all of them alternate and the
//! best of each counts. Times are CPU time of the thread, so that a busy machine disturbs little.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::csv;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::json::{LineDelimitedWriter, ReaderBuilder};
use dataflow::{Chunk, ConnectorContext, FormatOptions, ReadOutcome, Source, SourceDefinition};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What the server uses, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CHUNK_BYTES: usize = 1 << 20;
const ROUNDS: usize = 7;
/// `auction`, `price` and `date_time`, as a query might need.
const SOME_COLUMNS: [usize; 3] = [0, 2, 5];

fn main() -> Result<()> {
    let events = std::env::args().nth(1).unwrap_or_else(|| "500000".to_owned());
    let folder = tempfile::tempdir()?;
    let bids = bids(&events)?;
    let rows: usize = bids.iter().map(RecordBatch::num_rows).sum();
    write_json(&folder.path().join("bid.json"), &bids)?;
    write_csv(&folder.path().join("bid.csv"), &bids)?;
    for format in ["json", "csv"] {
        let source = file(folder.path(), format)?;
        let started = cpu_seconds();
        let chunks = chunks(&*source)?;
        let read = cpu_seconds() - started;
        let bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        say(format, "reader alone", bytes, rows, read);
        compare(format, &*source, &chunks, rows, bytes)?;
    }
    Ok(())
}

fn compare(format: &str, source: &dyn Source, chunks: &[Chunk], rows: usize, bytes: usize) -> Result<()> {
    let all: Vec<usize> = (0..schema().fields().len()).collect();
    let mut best = [f64::MAX; 4];
    for _ in 0..ROUNDS {
        let theirs = if format == "json" { arrow_json } else { arrow_csv };
        best[0] = best[0].min(seconds(|| ours(source, &all, chunks), rows)?);
        best[1] = best[1].min(seconds(|| theirs(None, chunks), rows)?);
        best[2] = best[2].min(seconds(|| ours(source, &SOME_COLUMNS, chunks), rows)?);
        best[3] = best[3].min(seconds(|| theirs(Some(&SOME_COLUMNS), chunks), rows)?);
    }
    for (name, seconds) in ["ours", "arrow", "ours, 3 columns", "arrow, 3 columns"].into_iter().zip(best) {
        say(format, name, bytes, rows, seconds);
    }
    say_ratio(format, "all columns", best[1] / best[0]);
    say_ratio(format, "3 columns", best[3] / best[2]);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result of a measurement")]
fn say(format: &str, name: &str, bytes: usize, rows: usize, seconds: f64) {
    let (megabytes, million_rows) = (bytes as f64 / 1e6 / seconds, rows as f64 / 1e6 / seconds);
    println!("{format:5} {name:18} {megabytes:8.0} MB/s {million_rows:7.2} M rows/s");
}

#[expect(clippy::print_stdout, reason = "the result of a measurement")]
fn say_ratio(format: &str, name: &str, ratio: f64) {
    println!("{format:5} {name:18} {ratio:8.2} times as fast as arrow");
}

/// CPU time of this thread.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result, and that is all that is asked for.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn seconds(work: impl Fn() -> Result<usize>, rows: usize) -> Result<f64> {
    let started = cpu_seconds();
    let decoded = work()?;
    let seconds = cpu_seconds() - started;
    if decoded != rows {
        return Err(format!("{decoded} rows instead of {rows}").into());
    }
    Ok(seconds)
}

fn ours(source: &dyn Source, columns: &[usize], chunks: &[Chunk]) -> Result<usize> {
    let decoder = source.decoder(columns)?;
    let mut rows = 0;
    for chunk in chunks {
        rows += decoder.decode(chunk)?.rows.num_rows();
    }
    Ok(rows)
}

fn projected(columns: Option<&[usize]>) -> Result<SchemaRef> {
    Ok(match columns {
        Some(columns) => Arc::new(schema().project(columns)?),
        None => schema(),
    })
}

fn arrow_json(columns: Option<&[usize]>, chunks: &[Chunk]) -> Result<usize> {
    let mut decoder = ReaderBuilder::new(projected(columns)?).with_batch_size(1 << 20).build_decoder()?;
    let mut rows = 0;
    for chunk in chunks {
        decoder.decode(&chunk.bytes)?;
        rows += decoder.flush()?.map_or(0, |batch| batch.num_rows());
    }
    Ok(rows)
}

fn arrow_csv(columns: Option<&[usize]>, chunks: &[Chunk]) -> Result<usize> {
    let mut rows = 0;
    for chunk in chunks {
        let mut builder = csv::ReaderBuilder::new(schema()).with_batch_size(1 << 16);
        if let Some(columns) = columns {
            builder = builder.with_projection(columns.to_vec());
        }
        for batch in builder.build_buffered(Cursor::new(&chunk.bytes))? {
            rows += batch?.num_rows();
        }
    }
    Ok(rows)
}

fn schema() -> SchemaRef {
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("auction", DataType::Int64),
        field("bidder", DataType::Int64),
        field("price", DataType::Int64),
        field("channel", DataType::Utf8View),
        field("url", DataType::Utf8View),
        field("date_time", DataType::Timestamp(TimeUnit::Microsecond, None)),
        field("extra", DataType::Utf8View),
    ]))
}

fn source(connector: &str, options: &[(&str, &str)], folder: &Path) -> Result<Arc<dyn Source>> {
    let registry = connectors::registry();
    let connector = registry.get(connector).ok_or("no such connector")?;
    let definition = SourceDefinition {
        name: "bid".to_owned(),
        schema: schema(),
        options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        format: FormatOptions::default(),
    };
    Ok(connector.source(&definition, &ConnectorContext { allowed_paths: vec![folder.to_owned()] })?)
}

fn file(folder: &Path, format: &str) -> Result<Arc<dyn Source>> {
    source("file", &[("path", &format!("bid.{format}")), ("format", format)], folder)
}

fn chunks(source: &dyn Source) -> Result<Vec<Chunk>> {
    let mut chunks = Vec::new();
    for split in source.splits()? {
        let mut reader = source.open(&split, split.start)?;
        while let ReadOutcome::Chunk(chunk) = reader.read(CHUNK_BYTES)? {
            chunks.push(chunk);
        }
    }
    Ok(chunks)
}

fn bids(events: &str) -> Result<Vec<RecordBatch>> {
    let source = source("nexmark", &[("table", "bid"), ("events", events)], Path::new("/"))?;
    let decoder = source.decoder(&[0, 1, 2, 3, 4, 5, 6])?;
    let started = cpu_seconds();
    let mut batches = Vec::new();
    for chunk in chunks(&*source)? {
        batches.push(decoder.decode(&chunk)?.rows);
    }
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let bytes = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    say("", "nexmark generator", bytes, rows, cpu_seconds() - started);
    Ok(batches)
}

fn write_json(path: &Path, batches: &[RecordBatch]) -> Result<()> {
    let mut writer = LineDelimitedWriter::new(std::io::BufWriter::new(std::fs::File::create(path)?));
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.finish()?)
}

fn write_csv(path: &Path, batches: &[RecordBatch]) -> Result<()> {
    let file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut writer = csv::WriterBuilder::new().with_header(false).build(file);
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(())
}
