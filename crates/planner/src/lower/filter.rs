//! WHERE and HAVING.

use std::sync::Arc;

use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, Filter};
use operators::Filter as FilterSpec;

use super::{Flow, Lowering, Result};

impl Lowering<'_> {
    pub(super) fn filter(&mut self, filter: &Filter) -> Result<Flow> {
        let flow = self.query(&filter.input)?;
        self.filter_by(flow, &filter.predicate, filter.input.schema())
    }

    pub(super) fn filter_by(&mut self, mut flow: Flow, predicate: &Expr, schema: &DFSchema) -> Result<Flow> {
        if matches!(predicate, Expr::Literal(ScalarValue::Boolean(Some(true)), _)) {
            return Ok(flow);
        }
        let predicate = flow.physical(predicate, schema)?;
        let vertex = self.vertex(&mut flow);
        let spec = FilterSpec { predicate, schema: Arc::clone(&flow.rows), kind: flow.stream.kind };
        self.graph.push(vertex, spec);
        Ok(flow)
    }
}
