//! The select list.
//!
//! A projection behind a filter becomes one operator with it, and plain columns of a projection
//! are taken from the operator that computed them.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::logical_expr::Projection;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use operators::{Filter, FilterProject, Project};

use super::{Flow, Head, Lowering, Result, plain_column};

/// Computed columns: an expression over the rows of a flow, and the column it makes.
pub(super) type Computed = Vec<(Arc<dyn PhysicalExpr>, FieldRef)>;

impl Lowering<'_> {
    pub(super) fn projection(&mut self, projection: &Projection) -> Result<Flow> {
        let mut flow = self.query(&projection.input)?;
        let input = projection.input.schema();
        let sources: Vec<Option<usize>> =
            projection.expr.iter().map(|expr| plain_column(expr, input)).collect();
        let stream = flow.stream.project(&sources);
        if let Some(plain) = sources.iter().copied().collect::<Option<Vec<usize>>>() {
            flow.columns = plain.into_iter().map(|column| flow.columns[column]).collect();
            flow.stream = stream;
            return Ok(flow);
        }
        let mut computed = Computed::with_capacity(projection.expr.len());
        for ((expr, source), field) in projection.expr.iter().zip(&sources).zip(projection.schema.fields()) {
            computed.push(match source {
                Some(column) => (flow.column(*column), renamed(&flow, *column, field.name())),
                None => (flow.physical(expr, input)?, computed_field(field)),
            });
        }
        let mut flow = self.compute(flow, computed);
        flow.stream = stream;
        Ok(flow)
    }

    /// Adds a projection, unless the rows are that already or the last projection can give them.
    /// The stream of the result is the caller's to set.
    pub(super) fn compute(&mut self, mut flow: Flow, expressions: Computed) -> Flow {
        let fields: Vec<FieldRef> = expressions.iter().map(|(_, field)| Arc::clone(field)).collect();
        flow.columns = (0..fields.len()).collect();
        let plain: Option<Vec<usize>> =
            expressions.iter().map(|(expression, _)| column_of(expression)).collect();
        if plain.as_ref() == Some(&flow.columns) && flow.rows.fields().as_ref() == fields.as_slice() {
            return flow;
        }
        let is_picked = plain.is_some_and(|plain| self.pick(&flow, &plain, &fields));
        if !is_picked {
            let kind = flow.stream.kind;
            let vertex = self.vertex(&mut flow);
            if let Some(Filter { predicate, .. }) = self.graph.last::<Filter>(vertex) {
                let predicate = Arc::clone(predicate);
                let input = Arc::clone(&flow.rows);
                self.graph.replace_last(vertex, FilterProject { predicate, expressions, input, kind });
            } else {
                self.graph.push(vertex, Project { expressions, kind });
            }
        }
        flow.rows = Arc::new(Schema::new(fields));
        flow
    }

    /// Brings the rows of a flow into the order of these logical columns, under these names.
    pub(super) fn arrange(&mut self, flow: Flow, logical: &[usize], names: &[String]) -> Flow {
        let sources: Vec<Option<usize>> = logical.iter().copied().map(Some).collect();
        let stream = flow.stream.project(&sources);
        let columns = logical.iter().zip(names);
        let expressions =
            columns.map(|(column, name)| (flow.column(*column), renamed(&flow, *column, name))).collect();
        Flow { stream, ..self.compute(flow, expressions) }
    }

    /// Takes columns from the projection that is the last operator of the flow, if one is.
    fn pick(&mut self, flow: &Flow, at: &[usize], fields: &[FieldRef]) -> bool {
        let Head::Vertex(vertex) = flow.head else {
            return false;
        };
        let picked = |from: &Computed| -> Computed {
            at.iter().map(|column| Arc::clone(&from[*column].0)).zip(fields.iter().cloned()).collect()
        };
        if let Some(last) = self.graph.last::<Project>(vertex) {
            let last = Project { expressions: picked(&last.expressions), ..last.clone() };
            self.graph.replace_last(vertex, last);
            return true;
        }
        if let Some(last) = self.graph.last::<FilterProject>(vertex) {
            let last = FilterProject { expressions: picked(&last.expressions), ..last.clone() };
            self.graph.replace_last(vertex, last);
            return true;
        }
        false
    }
}

/// Which column of the rows an expression is, if it is just that.
fn column_of(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

/// The field of a logical column under another name.
pub(super) fn renamed(flow: &Flow, logical: usize, name: &str) -> FieldRef {
    let field = &flow.rows.fields()[flow.columns[logical]];
    if field.name() == name { Arc::clone(field) } else { Arc::new(field.as_ref().clone().with_name(name)) }
}

/// A computed column may be NULL: what DataFusion infers is not relied on where rows are checked.
pub(super) fn computed_field(field: &Field) -> FieldRef {
    Arc::new(field.clone().with_nullable(true))
}
