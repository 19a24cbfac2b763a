//! Connector `blackhole`: a sink that takes everything and keeps nothing but a count.
//!
//! For measuring a query without its output, and for queries that are run for their metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dataflow::{
    ChangeBatch, Connector, ConnectorContext, Epoch, OptionError, OptionSpec, Result, Sink, SinkDefinition,
    SinkWriter,
};
use tracing::debug;

use crate::options::CheckedOptions;

/// The connector.
pub(crate) struct BlackholeConnector;

impl Connector for BlackholeConnector {
    fn name(&self) -> &'static str {
        "blackhole"
    }

    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn sink(
        &self,
        definition: &SinkDefinition,
        _ctx: &ConnectorContext,
    ) -> Result<Arc<dyn Sink>, OptionError> {
        CheckedOptions::check(self.name(), self.options(), &definition.options)?;
        Ok(Arc::new(Blackhole { name: definition.name.clone(), rows: Arc::default() }))
    }
}

#[derive(Debug)]
struct Blackhole {
    name: String,
    /// Rows of all subtasks in committed epochs.
    rows: Arc<AtomicU64>,
}

impl Sink for Blackhole {
    fn open(&self, subtask: usize) -> Result<Box<dyn SinkWriter>> {
        let rows = Arc::clone(&self.rows);
        Ok(Box::new(BlackholeWriter { sink: self.name.clone(), subtask, rows, written: 0, prepared: 0 }))
    }
}

struct BlackholeWriter {
    sink: String,
    subtask: usize,
    rows: Arc<AtomicU64>,
    written: u64,
    prepared: u64,
}

impl SinkWriter for BlackholeWriter {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        self.written += batch.len() as u64;
        Ok(())
    }

    fn prepare(&mut self, _epoch: Epoch) -> Result<()> {
        self.prepared += std::mem::take(&mut self.written);
        Ok(())
    }

    fn commit(&mut self, epoch: Epoch) -> Result<()> {
        let new = std::mem::take(&mut self.prepared);
        let rows = self.rows.fetch_add(new, Ordering::Relaxed) + new;
        debug!(sink = %self.sink, subtask = self.subtask, ?epoch, rows, "rows dropped");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};
    use dataflow::{ChangelogKind, FormatOptions};

    use super::*;

    #[test]
    fn rows_are_counted_once_when_they_are_committed() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let sink = Blackhole { name: "s".to_owned(), rows: Arc::default() };
        let mut writer = sink.open(0).unwrap();
        let rows = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![1, 2, 3]))]).unwrap();
        writer.write(&ChangeBatch::append(rows)).unwrap();
        writer.prepare(Epoch(1)).unwrap();
        assert_eq!(sink.rows.load(Ordering::Relaxed), 0);
        writer.commit(Epoch(1)).unwrap();
        writer.commit(Epoch(1)).unwrap();
        assert_eq!(sink.rows.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn it_has_no_options() {
        let definition = SinkDefinition {
            name: "s".to_owned(),
            schema: Arc::new(Schema::empty()),
            kind: ChangelogKind::Append,
            options: [("path".to_owned(), "x".to_owned())].into(),
            format: FormatOptions::default(),
        };
        assert!(BlackholeConnector.sink(&definition, &ConnectorContext::default()).is_err());
    }
}
