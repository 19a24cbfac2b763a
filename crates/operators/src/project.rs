//! Project: computes the output columns of each row.
//!
//! | | |
//! |---|---|
//! | input     | append or retract |
//! | output    | same kind as the input |
//! | state     | none |
//! | watermark | forwarded |
//!
//! **Invariant.** A row and its retraction give the same output row, because the expressions are
//! immutable and see only the row; or both fail, and `$errors` is left as if neither had come.

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use dataflow::{BuildContext, ChangeBatch, ChangelogKind, Operator, OperatorContext, OperatorSpec, Result};
use datafusion::physical_expr::PhysicalExpr;

use crate::rowwise::Projection;

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct Project {
    /// Expressions over the input's columns, and the output column each one makes.
    pub expressions: Vec<(Arc<dyn PhysicalExpr>, FieldRef)>,
    /// Kind of the input, and of the output.
    pub kind: ChangelogKind,
}

impl OperatorSpec for Project {
    fn name(&self) -> &'static str {
        "project"
    }

    fn detail(&self) -> String {
        expressions_detail(&self.expressions)
    }

    fn output_schema(&self) -> SchemaRef {
        expressions_schema(&self.expressions)
    }

    fn output_kind(&self) -> ChangelogKind {
        self.kind
    }

    fn build(&self, _ctx: &BuildContext) -> Result<Box<dyn Operator>> {
        Ok(Box::new(ProjectOperator { projection: Projection::new(&self.expressions) }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The output columns of a list of expressions.
pub(crate) fn expressions_schema(expressions: &[(Arc<dyn PhysicalExpr>, FieldRef)]) -> SchemaRef {
    Arc::new(Schema::new(expressions.iter().map(|(_, field)| Arc::clone(field)).collect::<Vec<_>>()))
}

/// `expression as name, …` for EXPLAIN; the name is left out where it is the expression's own.
pub(crate) fn expressions_detail(expressions: &[(Arc<dyn PhysicalExpr>, FieldRef)]) -> String {
    let one = |(expression, field): &(Arc<dyn PhysicalExpr>, FieldRef)| {
        let text = expression.to_string();
        let bare = text.split('@').next().unwrap_or_default();
        if bare == field.name() { text } else { format!("{text} as {}", field.name()) }
    };
    expressions.iter().map(one).collect::<Vec<_>>().join(", ")
}

struct ProjectOperator {
    projection: Projection,
}

impl Operator for ProjectOperator {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let projected = self.projection.apply(batch, ctx)?;
        ctx.emit(projected);
        Ok(())
    }
}
