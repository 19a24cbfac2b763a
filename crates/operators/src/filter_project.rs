//! Filter and project in one pass: only the columns that the expressions read are copied.
//!
//! | | |
//! |---|---|
//! | input     | append or retract |
//! | output    | same kind as the input |
//! | state     | none |
//! | watermark | forwarded |
//!
//! **Invariant.** Gives exactly what [`crate::Filter`] followed by [`crate::Project`] gives: an
//! expression never sees, and so never fails on, a row that the predicate drops.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, SchemaRef};
use dataflow::{BuildContext, ChangeBatch, ChangelogKind, Operator, OperatorContext, OperatorSpec, Result};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

use crate::project::{expressions_detail, expressions_schema};
use crate::rowwise::{Projection, passing_rows};

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct FilterProject {
    /// A boolean expression over the input's columns.
    pub predicate: Arc<dyn PhysicalExpr>,
    /// Expressions over the input's columns, and the output column each one makes.
    pub expressions: Vec<(Arc<dyn PhysicalExpr>, FieldRef)>,
    /// Columns of the input.
    pub input: SchemaRef,
    /// Kind of the input, and of the output.
    pub kind: ChangelogKind,
}

impl OperatorSpec for FilterProject {
    fn name(&self) -> &'static str {
        "filter_project"
    }

    fn detail(&self) -> String {
        format!("{} where {}", expressions_detail(&self.expressions), self.predicate)
    }

    fn output_schema(&self) -> SchemaRef {
        expressions_schema(&self.expressions)
    }

    fn output_kind(&self) -> ChangelogKind {
        self.kind
    }

    fn build(&self, _ctx: &BuildContext) -> Result<Box<dyn Operator>> {
        Ok(Box::new(FilterProjectOperator::new(self)?))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct FilterProjectOperator {
    predicate: Arc<dyn PhysicalExpr>,
    /// The input columns that the expressions read; the projection is over these alone.
    read: Vec<usize>,
    projection: Projection,
}

impl FilterProjectOperator {
    fn new(spec: &FilterProject) -> Result<Self> {
        let mut read: Vec<usize> = spec
            .expressions
            .iter()
            .flat_map(|(expression, _)| collect_columns(expression))
            .map(|column| column.index())
            .collect();
        read.sort_unstable();
        read.dedup();
        let place: BTreeMap<usize, usize> = read.iter().enumerate().map(|(new, &old)| (old, new)).collect();
        let mut expressions = Vec::with_capacity(spec.expressions.len());
        for (expression, field) in &spec.expressions {
            expressions.push((renumber(Arc::clone(expression), &place)?, Arc::clone(field)));
        }
        let projection = Projection::new(&expressions);
        Ok(Self { predicate: Arc::clone(&spec.predicate), read, projection })
    }
}

/// The expression with each column index replaced by its place among the columns that are kept.
fn renumber(
    expression: Arc<dyn PhysicalExpr>,
    place: &BTreeMap<usize, usize>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let renumbered = expression.transform(|node| {
        let moved =
            node.downcast_ref::<Column>().map(|column| Column::new(column.name(), place[&column.index()]));
        Ok(match moved {
            Some(column) => Transformed::yes(Arc::new(column) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(node),
        })
    })?;
    Ok(renumbered.data)
}

impl Operator for FilterProjectOperator {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let (batch, keep) = passing_rows(&self.predicate, batch, ctx)?;
        let narrow = RecordBatch::try_new_with_options(
            Arc::new(batch.schema().project(&self.read)?),
            self.read.iter().map(|&column| Arc::clone(batch.rows.column(column))).collect(),
            &RecordBatchOptions::new().with_row_count(Some(batch.len())),
        )?;
        let narrow = batch.with_rows(narrow);
        let kept = match keep {
            Some(keep) => narrow.filter(&keep)?,
            None => narrow,
        };
        let projected = self.projection.apply(kept, ctx)?;
        ctx.emit(projected);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::Operator as Op;
    use datafusion::physical_expr::expressions::{binary, col, lit};
    use expect_test::expect;

    use super::*;
    use crate::testing::check_operator;

    #[test]
    fn an_expression_never_sees_a_row_that_the_predicate_drops() {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let input: SchemaRef = Arc::new(Schema::new(vec![field("a"), field("unread"), field("b")]));
        let predicate = binary(col("a", &input).unwrap(), Op::Gt, lit(1_i64), &input).unwrap();
        let quotient = binary(lit(12_i64), Op::Divide, col("b", &input).unwrap(), &input).unwrap();
        let sum = binary(quotient, Op::Plus, col("a", &input).unwrap(), &input).unwrap();
        let spec = FilterProject {
            predicate,
            expressions: vec![(sum, Arc::new(field("sum")))],
            input: Arc::clone(&input),
            kind: ChangelogKind::Retract,
        };
        check_operator(
            spec,
            &input,
            "
            + 1 9 0
            + 2 9 3
            - 3 9 0
            - 2 9 4
            ",
            expect![[r#"
                + 6
                - 5
                error - 3 0: 22012 division by zero
            "#]],
        );
    }
}
