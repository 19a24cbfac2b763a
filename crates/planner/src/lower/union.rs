//! UNION ALL.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema};
use dataflow::Exchange;
use datafusion::logical_expr::Union;
use operators::Union as UnionSpec;

use super::project::computed_field;
use super::{Flow, Head, Lowering, Result};
use crate::properties::Stream;

impl Lowering<'_> {
    pub(super) fn union(&mut self, union: &Union) -> Result<Flow> {
        let fields: Vec<FieldRef> = union.schema.fields().iter().map(|field| computed_field(field)).collect();
        let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let logical: Vec<usize> = (0..fields.len()).collect();
        let mut streams = Vec::with_capacity(union.inputs.len());
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for input in &union.inputs {
            let flow = self.query(input)?;
            let flow = self.arrange(flow, &logical, &names);
            streams.push(flow.stream.clone());
            inputs.push(self.as_input(flow, Exchange::Forward));
        }
        let stream = Stream::union(&streams);
        let rows = Arc::new(Schema::new(fields));
        let spec = UnionSpec { inputs: inputs.len(), schema: Arc::clone(&rows), kind: stream.kind };
        let vertex = self.graph.vertex(inputs);
        self.graph.push(vertex, spec);
        Ok(Flow { head: Head::Vertex(vertex), rows, columns: logical, stream })
    }
}
