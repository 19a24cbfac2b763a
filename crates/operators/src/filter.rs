//! Filter: passes on the rows for which a predicate is true.
//!
//! | | |
//! |---|---|
//! | input     | append or retract |
//! | output    | same kind as the input |
//! | state     | none |
//! | watermark | forwarded |
//!
//! **Invariant.** A row and its retraction meet the same fate: the predicate sees only the row,
//! and a row that makes it fail goes to `$errors` alone, with its diff.

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dataflow::{BuildContext, ChangeBatch, ChangelogKind, Operator, OperatorContext, OperatorSpec, Result};
use datafusion::physical_expr::PhysicalExpr;

use crate::rowwise::filter_rows;

/// What the planner decided: enough to build the operator and to print it in `EXPLAIN`.
#[derive(Debug, Clone)]
pub struct Filter {
    /// A boolean expression over the input's columns.
    pub predicate: Arc<dyn PhysicalExpr>,
    /// Columns of the input, and of the output.
    pub schema: SchemaRef,
    /// Kind of the input, and of the output.
    pub kind: ChangelogKind,
}

impl OperatorSpec for Filter {
    fn name(&self) -> &'static str {
        "filter"
    }

    fn detail(&self) -> String {
        self.predicate.to_string()
    }

    fn output_schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn output_kind(&self) -> ChangelogKind {
        self.kind
    }

    fn build(&self, _ctx: &BuildContext) -> Result<Box<dyn Operator>> {
        Ok(Box::new(FilterOperator { predicate: Arc::clone(&self.predicate) }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct FilterOperator {
    predicate: Arc<dyn PhysicalExpr>,
}

impl Operator for FilterOperator {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let kept = filter_rows(&self.predicate, batch, ctx)?;
        ctx.emit(kept);
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
    fn a_row_fails_alone_and_null_is_not_true() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
        let quotient = binary(lit(12_i64), Op::Divide, col("x", &schema).unwrap(), &schema).unwrap();
        let predicate = binary(quotient, Op::Gt, lit(3_i64), &schema).unwrap();
        let spec = Filter { predicate, schema: Arc::clone(&schema), kind: ChangelogKind::Retract };
        check_operator(
            spec,
            &schema,
            "
            + 1
            - 2
            +3 0
            + 5
            + null
            - 0
            + 3
            batch
            + 0
            ",
            expect![[r#"
                + 1
                - 2
                + 3
                error +3 0: 22012 division by zero
                error - 0: 22012 division by zero
                error + 0: 22012 division by zero
            "#]],
        );
    }
}
