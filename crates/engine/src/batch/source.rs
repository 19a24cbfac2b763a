//! A bounded source as a table of batch queries: read from its connector, decoded in parallel.
//!
//! The partitions of the scan share the source's splits: whichever is free takes the next chunk of
//! the split at hand, so one large file keeps all cores decoding.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::compute::{filter_record_batch, is_not_null};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use dataflow::{Chunk, Decoder, ReadOutcome, SourceSpec, Split, SplitReader};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use sql::{SqlError, SqlErrorKind};

use super::scan::{Batches, Scan, ScanExec};
use super::stored::external;
use crate::engine::Shared;
use crate::error::{from_arrow, from_dataflow, from_runtime};

/// Bytes a partition takes at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The rows of a bounded source.
#[derive(Debug)]
pub(crate) struct SourceTable {
    spec: Arc<SourceSpec>,
    partitions: usize,
    shared: Runtime,
}

/// For what the runtime has pinned.
struct Runtime(Arc<Shared>);

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("runtime")
    }
}

impl SourceTable {
    /// Refuses a source that does not end.
    pub(crate) fn new(spec: Arc<SourceSpec>, shared: Arc<Shared>) -> Result<Self, SqlError> {
        if !spec.source.is_bounded() {
            return Err(SqlErrorKind::unsupported(format!(
                "SELECT from the unbounded source \"{}\"",
                spec.name
            ))
            .hint("Create a materialized view over it and read that."));
        }
        Ok(Self { spec, partitions: shared.parallelism.max(1), shared: Runtime(shared) })
    }
}

impl SourceTable {
    /// What the views over the source read, too: pinned when the first of them was made.
    fn splits(&self) -> Result<Vec<Split>, SqlError> {
        match self.shared.0.runtime.pinned_splits(self.spec.job).map_err(from_runtime)? {
            Some(splits) => Ok(splits),
            None => self.spec.source.splits().map_err(from_dataflow),
        }
    }
}

#[async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.spec.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = projection.cloned().unwrap_or_else(|| (0..self.spec.schema.fields().len()).collect());
        let schema = Arc::new(self.spec.schema.project(&columns)?);
        let splits = self.splits().map_err(external)?;
        let event_time = self.spec.watermark.as_ref().map(|watermark| watermark.column);
        let mut decoded = columns.clone();
        decoded.extend(event_time.filter(|column| !columns.contains(column)));
        decoded.sort_unstable();
        let decoder = self.spec.source.decoder(&decoded).map_err(|error| external(from_dataflow(error)))?;
        let scan = SourceScan {
            spec: Arc::clone(&self.spec),
            splits,
            decoder,
            columns,
            event_time,
            schema: Arc::clone(&schema),
            executions: Mutex::default(),
        };
        Ok(Arc::new(ScanExec::new(Arc::new(scan), schema, self.partitions, &[])))
    }
}

struct SourceScan {
    spec: Arc<SourceSpec>,
    splits: Vec<Split>,
    decoder: Arc<dyn Decoder>,
    columns: Vec<usize>,
    /// Rows without an event time are no rows of the source (semantics 7).
    event_time: Option<usize>,
    schema: SchemaRef,
    executions: Mutex<Executions>,
}

impl fmt::Debug for SourceScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl Scan for SourceScan {
    fn batches(&self, partition: usize) -> Result<Batches> {
        let queue = self.executions.lock().queue(partition, || ChunkQueue {
            spec: Arc::clone(&self.spec),
            splits: self.splits.clone().into_iter(),
            reader: None,
        });
        let rows = Rows {
            queue,
            decoder: Arc::clone(&self.decoder),
            columns: self.columns.clone(),
            event_time: self.event_time,
            schema: Arc::clone(&self.schema),
        };
        Ok(Box::new(rows.map(|batch| batch.map_err(external))))
    }

    fn waits(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        format!(
            "SourceScan: {} columns=[{}] splits={}",
            self.spec.name,
            columns.join(", "),
            self.splits.len()
        )
    }
}

/// The queues of a plan that may be executed more than once: the n-th execution of each partition
/// takes part in the n-th queue.
#[derive(Default)]
struct Executions {
    queues: Vec<Arc<Mutex<ChunkQueue>>>,
    /// How often each partition has been executed.
    counts: HashMap<usize, usize>,
}

impl Executions {
    fn queue(&mut self, partition: usize, make: impl FnOnce() -> ChunkQueue) -> Arc<Mutex<ChunkQueue>> {
        let count = self.counts.entry(partition).or_insert(0);
        if *count == self.queues.len() {
            self.queues.push(Arc::new(Mutex::new(make())));
        }
        *count += 1;
        Arc::clone(&self.queues[*count - 1])
    }
}

/// What a queue gives.
enum Next {
    Chunk(Chunk),
    /// Nothing now, but it is not the end.
    Later,
    End,
}

/// The chunks of all splits, in order.
struct ChunkQueue {
    spec: Arc<SourceSpec>,
    splits: std::vec::IntoIter<Split>,
    reader: Option<Box<dyn SplitReader>>,
}

impl ChunkQueue {
    fn next(&mut self) -> Result<Next, SqlError> {
        loop {
            let Some(reader) = &mut self.reader else {
                let Some(split) = self.splits.next() else { return Ok(Next::End) };
                self.reader = Some(self.spec.source.open(&split, split.start).map_err(from_dataflow)?);
                continue;
            };
            match reader.read(CHUNK_BYTES).map_err(from_dataflow)? {
                ReadOutcome::Chunk(chunk) => return Ok(Next::Chunk(chunk)),
                // A generator with a rate, or a reader that has looked at much and found nothing yet.
                ReadOutcome::Pending => return Ok(Next::Later),
                ReadOutcome::End => self.reader = None,
            }
        }
    }
}

/// What one partition makes of the chunks it gets.
struct Rows {
    queue: Arc<Mutex<ChunkQueue>>,
    decoder: Arc<dyn Decoder>,
    columns: Vec<usize>,
    event_time: Option<usize>,
    schema: SchemaRef,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.queue.lock().next();
        match next {
            Ok(Next::Chunk(chunk)) => Some(self.decode(&chunk)),
            Ok(Next::Later) => Some(Ok(RecordBatch::new_empty(Arc::clone(&self.schema)))),
            Ok(Next::End) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl Rows {
    fn decode(&self, chunk: &Chunk) -> Result<RecordBatch, SqlError> {
        let mut rows = self.decoder.decode(chunk).map_err(from_dataflow)?.rows;
        if let Some(column) = self.event_time
            && rows.column(column).null_count() > 0
        {
            let keep = is_not_null(rows.column(column)).map_err(from_arrow)?;
            rows = filter_record_batch(&rows, &keep).map_err(from_arrow)?;
        }
        let columns = self.columns.iter().map(|&column| Arc::clone(rows.column(column))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(from_arrow)
    }
}
