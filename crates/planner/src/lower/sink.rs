//! The end of a sink's graph: its rows go to a connector.

use std::sync::Arc;

use dataflow::Sink;
use operators::SinkWrite;

use super::{Flow, Lowering};

impl Lowering<'_> {
    /// Writes the rows of a flow, arranged as the sink was told, to a sink.
    pub(crate) fn sink(&mut self, mut flow: Flow, name: String, sink: Arc<dyn Sink>) {
        let spec = SinkWrite { name, sink, schema: Arc::clone(&flow.rows), kind: flow.stream.kind };
        let vertex = self.vertex(&mut flow);
        self.graph.push(vertex, spec);
    }

    /// Brings the rows of a flow under these names, for a sink.
    pub(crate) fn sink_rows(&mut self, flow: Flow, names: &[String]) -> Flow {
        let all: Vec<usize> = (0..names.len()).collect();
        self.arrange(flow, &all, names)
    }
}

impl Flow {
    /// Columns of the rows.
    pub(crate) fn rows(&self) -> arrow::datatypes::SchemaRef {
        Arc::clone(&self.rows)
    }
}
