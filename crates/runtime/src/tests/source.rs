//! A source over rows in memory, cut into chunks of random sizes; it can grow.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use dataflow::{Chunk, DecodeError, Decoded, Decoder, ReadOutcome, Result, Source, Split, SplitReader};
use parking_lot::Mutex;

/// Key, event time, value.
pub(super) type Row = (i64, Option<i64>, i64);

/// A record with this value does not decode.
pub(super) const BAD: i64 = -77;

pub(super) fn source_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("v", DataType::Int64, true),
    ]))
}

type Splits = Arc<Mutex<Vec<Vec<Row>>>>;

#[derive(Debug, Clone)]
pub(super) struct TestSource {
    pub(super) splits: Splits,
    pub(super) is_bounded: bool,
    /// Seed of the chunk sizes, and the largest.
    pub(super) seed: u64,
    pub(super) rows_max: u64,
}

impl TestSource {
    pub(super) fn new(splits: Vec<Vec<Row>>, is_bounded: bool) -> Self {
        Self { splits: Arc::new(Mutex::new(splits)), is_bounded, seed: 1, rows_max: 7 }
    }

    pub(super) fn push(&self, split: usize, rows: &[Row]) {
        let mut splits = self.splits.lock();
        if splits.len() <= split {
            splits.resize(split + 1, Vec::new());
        }
        splits[split].extend_from_slice(rows);
    }
}

impl Source for TestSource {
    fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    fn splits(&self) -> Result<Vec<Split>> {
        let splits = self.splits.lock();
        let split = |(idx, rows): (usize, &Vec<Row>)| Split {
            name: idx.to_string(),
            start: 0,
            end: Some(rows.len() as i64),
        };
        Ok(splits.iter().enumerate().map(split).collect())
    }

    fn open(&self, split: &Split, position: i64) -> Result<Box<dyn SplitReader>> {
        let source = self.clone();
        let idx = split.name.parse().unwrap();
        Ok(Box::new(Reader { random: source.seed ^ position as u64, source, idx, end: split.end, position }))
    }

    fn decoder(&self, columns: &[usize]) -> Result<Arc<dyn Decoder>> {
        Ok(Arc::new(TestDecoder { columns: columns.to_vec() }))
    }
}

struct Reader {
    source: TestSource,
    idx: usize,
    end: Option<i64>,
    position: i64,
    random: u64,
}

impl SplitReader for Reader {
    fn read(&mut self, _bytes_max: usize) -> Result<ReadOutcome> {
        self.random = xxhash_rust::xxh3::xxh3_64(&self.random.to_le_bytes());
        let rows = (1 + self.random % self.source.rows_max) as i64;
        let splits = self.source.splits.lock();
        let there = splits[self.idx].len() as i64;
        let end = self.end.unwrap_or(if self.source.is_bounded { there } else { i64::MAX });
        if self.position >= end {
            return Ok(ReadOutcome::End);
        }
        let to = (self.position + rows).min(end).min(there);
        if to == self.position {
            return Ok(ReadOutcome::Pending);
        }
        let mut bytes = Vec::new();
        for (k, ts, v) in &splits[self.idx][self.position as usize..to as usize] {
            for value in [*k, ts.unwrap_or(i64::MIN), *v] {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        let start = std::mem::replace(&mut self.position, to);
        Ok(ReadOutcome::Chunk(Chunk { start, end: to, bytes: Bytes::from(bytes) }))
    }
}

#[derive(Debug)]
struct TestDecoder {
    columns: Vec<usize>,
}

impl Decoder for TestDecoder {
    fn decode(&self, chunk: &Chunk) -> Result<Decoded> {
        let (mut k, mut ts, mut v, mut positions, mut errors) = (vec![], vec![], vec![], vec![], vec![]);
        let numbers: Vec<i64> =
            chunk.bytes.chunks(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect();
        for (idx, row) in numbers.chunks(3).enumerate() {
            let position = chunk.start + idx as i64;
            if row[2] == BAD {
                let raw = Bytes::from_static(b"bad");
                errors.push(DecodeError {
                    position,
                    sqlstate: "22P02",
                    message: "bad record".to_owned(),
                    raw,
                });
                continue;
            }
            let wanted = |column: usize, value: i64| {
                (self.columns.contains(&column) && value != i64::MIN).then_some(value)
            };
            k.push(wanted(0, row[0]));
            ts.push(wanted(1, row[1]));
            v.push(wanted(2, row[2]));
            positions.push(position);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(k)),
            Arc::new(TimestampMicrosecondArray::from(ts)),
            Arc::new(Int64Array::from(v)),
        ];
        let rows = RecordBatch::try_new(source_schema(), columns)?;
        Ok(Decoded { rows, positions: Int64Array::from(positions), errors })
    }
}
