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

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use datafusion::logical_expr::Operator as Op;
    use datafusion::physical_expr::expressions::{CastExpr, binary, col, lit};
    use expect_test::expect;

    use super::*;
    use crate::testing::check_operator;

    #[test]
    fn literals_fill_the_column_and_a_failing_row_goes_to_the_errors_as_it_came() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8View, true)]));
        let number = CastExpr::new(col("t", &schema).unwrap(), DataType::Int64, None);
        let expressions: Vec<(Arc<dyn PhysicalExpr>, FieldRef)> = vec![
            (Arc::new(number), Arc::new(Field::new("n", DataType::Int64, true))),
            (lit(7_i32), Arc::new(Field::new("seven", DataType::Int32, false))),
        ];
        let spec = Project { expressions, kind: ChangelogKind::Retract };
        assert_eq!(spec.detail(), "CAST(t@0 AS Int64) as n, 7 as seven");
        check_operator(
            spec,
            &schema,
            "
            + 1
            - x
            + null
            - 2
            ",
            expect![[r#"
                + 1 7
                + null 7
                - 2 7
                error - x: 22P02 invalid input syntax for type bigint: "x"
            "#]],
        );
    }

    #[test]
    fn without_expressions_the_rows_remain() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
        let spec = Project { expressions: Vec::new(), kind: ChangelogKind::Append };
        check_operator(spec, &schema, "+ 1\n+ 2", expect![["+ \n+ \n"]]);
        let quotient = binary(lit(1_i64), Op::Divide, col("x", &schema).unwrap(), &schema).unwrap();
        let field = Arc::new(Field::new("q", DataType::Int64, true));
        let spec = Project { expressions: vec![(quotient, field)], kind: ChangelogKind::Append };
        check_operator(spec, &schema, "+ 0", expect![["error + 0: 22012 division by zero\n"]]);
    }
}
