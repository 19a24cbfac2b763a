//! Connector `nexmark`: the streams of an auction house, made up on the fly.
//!
//! People, auctions and bids in the spirit of the Nexmark benchmark, in integer arithmetic only, so
//! that the same options make the same records everywhere. The three streams are views of one
//! sequence of events: a position is the rank of an event among all three, so `person`, `auction`
//! and `bid` fit together as they would if they came from one house.
//!
//! Event time begins at `start` and does not follow the clock; `rate` decides when an event can be
//! read, counted from when reading began or went on. Out of order by `out_of_order_ms` at the most,
//! so a watermark that far behind makes no record late, except for the `late_permille` of bids that
//! are meant to be.

mod records;
mod timeline;

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit, TimestampMicrosecondType};
use dataflow::{
    Chunk, Connector, ConnectorContext, Decoded, Decoder, OptionError, OptionSpec, Result, Source,
    SourceDefinition, Split, SplitReader,
};

use crate::format::parse_timestamp;
use crate::generate::{GeneratedReader, RATE, SEED, rate};
use crate::nexmark::records::{ColumnSpec, Make, Records, Table};
use crate::nexmark::timeline::{Event, Shape, Timeline};
use crate::options::{CheckedOptions, nearest, optional, required};

const TABLE: OptionSpec =
    required("table", &["type", "nexmark.table.type"], "which stream: 'person', 'auction' or 'bid'");
const EVENTS: OptionSpec = optional(
    "events",
    &["nexmark.event.num"],
    "events of all three streams together; without it, they never end",
);
const START: OptionSpec =
    optional("start", &[], "event time before the first event, default '2024-02-28 23:55:00'");
const GAP: OptionSpec =
    optional("gap_ms", &[], "mean event time between events, default 10, or what fits the rate");
const OUT_OF_ORDER: OptionSpec =
    optional("out_of_order_ms", &["ooo_ms"], "how late an event may arrive, default 3000");
const LATE: OptionSpec =
    optional("late_permille", &[], "bids of a thousand that arrive a minute late, default 0");

const OPTIONS: &[OptionSpec] = &[TABLE, EVENTS, RATE, SEED, START, GAP, OUT_OF_ORDER, LATE];

/// About what a bid takes in memory.
const ROW_BYTES: usize = 160;

/// The connector.
pub(crate) struct NexmarkConnector;

impl Connector for NexmarkConnector {
    fn name(&self) -> &'static str {
        "nexmark"
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn source(
        &self,
        definition: &SourceDefinition,
        _ctx: &ConnectorContext,
    ) -> Result<Arc<dyn Source>, OptionError> {
        let options = CheckedOptions::check(self.name(), OPTIONS, &definition.options)?;
        let missing = || OptionError::Missing { name: TABLE.name, connector: self.name().to_owned() };
        let table = options.one_of(TABLE.name, Table::WORDS)?.ok_or_else(missing)?;
        let rate = rate(&options)?;
        let events = options.integer(EVENTS.name, 0)?;
        let shape = shape(&options, events, rate)?;
        let columns =
            definition.schema.fields().iter().map(|field| column(table, field)).collect::<Result<_, _>>()?;
        let records = Records::new(shape.seed, shape.gap_ms);
        let generator = Generator { timeline: Timeline::new(shape), records, table, columns };
        Ok(Arc::new(NexmarkSource {
            generator: Arc::new(generator),
            schema: Arc::clone(&definition.schema),
            events,
            rate,
        }))
    }
}

fn shape(options: &CheckedOptions, events: Option<i64>, rate: Option<f64>) -> Result<Shape, OptionError> {
    // 2024-02-28 23:55:00
    const START_MS: i64 = 1_709_164_500_000;
    let start = options.parse(START.name, "expected a timestamp", |text| parse_timestamp(text).ok())?;
    // Event time then passes as fast as the clock does.
    let gap_of_rate = |rate: f64| ((1000.0 / rate) as i64).max(1);
    let gap_ms = options.integer(GAP.name, 1)?.unwrap_or(rate.map_or(10, gap_of_rate));
    let at_most = |name: &'static str, value: i64, max: i64| {
        if value > max { Err(options.refuse(name, format!("expected at most {max}"))) } else { Ok(value) }
    };
    Ok(Shape {
        seed: options.integer(SEED.name, 0)?.unwrap_or(1).cast_unsigned(),
        events: events.unwrap_or(i64::MAX),
        start_ms: start.map_or(START_MS, |micros| micros.div_euclid(1000)),
        gap_ms: at_most(GAP.name, gap_ms, 3_600_000)?,
        out_of_order_ms: at_most(
            OUT_OF_ORDER.name,
            options.integer(OUT_OF_ORDER.name, 0)?.unwrap_or(3000),
            3_600_000,
        )?,
        late_permille: at_most(LATE.name, options.integer(LATE.name, 0)?.unwrap_or(0), 1000)?,
    })
}

/// Finds what to fill a declared column with.
fn column(table: Table, field: &Field) -> Result<&'static ColumnSpec, OptionError> {
    let specs = table.columns();
    let Some(spec) = specs.iter().find(|spec| spec.name.eq_ignore_ascii_case(field.name())) else {
        let hint = nearest(field.name(), specs.iter().map(|spec| spec.name))
            .map_or_else(String::new, |name| format!("; perhaps \"{name}\" is meant"));
        return Err(OptionError::Other(format!(
            "the nexmark stream \"{}\" has no column \"{}\"{hint}",
            table.name(),
            field.name()
        )));
    };
    let (fits, expected) = match (&spec.make, field.data_type()) {
        (Make::BigInt(_), data_type) => (*data_type == DataType::Int64, "bigint"),
        (Make::Text(_), data_type) => (*data_type == DataType::Utf8View, "text"),
        (Make::Timestamp(_), data_type) => {
            (matches!(data_type, DataType::Timestamp(TimeUnit::Microsecond, _)), "timestamp")
        }
    };
    if !fits {
        return Err(OptionError::Other(format!(
            "column \"{}\" of connector \"nexmark\" has the type {expected}",
            field.name()
        )));
    }
    if spec.name == "extra" && !field.is_nullable() {
        return Err(OptionError::Other(format!(
            "column \"{}\" of connector \"nexmark\" may be NULL",
            field.name()
        )));
    }
    Ok(spec)
}

/// One stream, shared by its readers and decoders.
#[derive(Debug)]
struct Generator {
    timeline: Timeline,
    records: Records,
    table: Table,
    /// What fills each column of the schema.
    columns: Vec<&'static ColumnSpec>,
}

#[derive(Debug)]
struct NexmarkSource {
    generator: Arc<Generator>,
    schema: SchemaRef,
    events: Option<i64>,
    rate: Option<f64>,
}

impl Source for NexmarkSource {
    fn is_bounded(&self) -> bool {
        self.events.is_some()
    }

    fn splits(&self) -> Result<Vec<Split>> {
        Ok(vec![Split { name: self.generator.table.name().to_owned(), start: 0, end: self.events }])
    }

    fn open(&self, split: &Split, position: i64) -> Result<Box<dyn SplitReader>> {
        let generator = Arc::clone(&self.generator);
        let chunk_end = move |start| generator.timeline.chunk_end(start);
        Ok(Box::new(GeneratedReader::new(position, split.end, self.rate, ROW_BYTES, chunk_end)))
    }

    fn decoder(&self, columns: &[usize]) -> Result<Arc<dyn Decoder>> {
        let is_made = |idx: usize| columns.contains(&idx) || !self.schema.field(idx).is_nullable();
        Ok(Arc::new(NexmarkDecoder {
            generator: Arc::clone(&self.generator),
            schema: Arc::clone(&self.schema),
            is_made: (0..self.schema.fields().len()).map(is_made).collect(),
        }))
    }
}

#[derive(Debug)]
struct NexmarkDecoder {
    generator: Arc<Generator>,
    schema: SchemaRef,
    /// Columns that are needed.
    is_made: Vec<bool>,
}

impl Decoder for NexmarkDecoder {
    fn decode(&self, chunk: &Chunk) -> Result<Decoded> {
        let Generator { timeline, table, .. } = &*self.generator;
        let mut events = Vec::new();
        let mut positions = Vec::new();
        for (event, position) in timeline.events(chunk.start, chunk.end).into_iter().zip(chunk.start..) {
            if table.has(&event) {
                events.push(event);
                positions.push(position);
            }
        }
        let arrays = (0..self.is_made.len()).map(|idx| self.array(idx, &events)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(events.len()));
        Ok(Decoded {
            rows: RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?,
            positions: Int64Array::from(positions),
            errors: Vec::new(),
        })
    }
}

impl NexmarkDecoder {
    fn array(&self, idx: usize, events: &[Event]) -> ArrayRef {
        let data_type = self.schema.field(idx).data_type();
        if !self.is_made[idx] {
            return new_null_array(data_type, events.len());
        }
        let array = self.generator.records.array(&self.generator.columns[idx].make, events);
        match array.as_primitive_opt::<TimestampMicrosecondType>() {
            Some(timestamps) => Arc::new(timestamps.clone().with_data_type(data_type.clone())),
            None => array,
        }
    }
}

#[cfg(test)]
mod tests;
