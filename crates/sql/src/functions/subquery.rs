//! `NOT IN (SELECT …)`, `ANY` and `ALL` in conditions, with NULL in the set or on the left.
//!
//! A row passes a condition if it is true; false and unknown are the same. That gives each of them an `EXISTS` that
//! asks for exactly the rows that decide, and `EXISTS` is never unknown:
//!
//! | condition | is true if | that is |
//! |---|---|---|
//! | `x NOT IN (S)`     | every comparison `x = s` is false    | `NOT EXISTS (S WHERE (x = s) IS NOT FALSE)` |
//! | `x op ANY (S)`     | some comparison is true              | `EXISTS (S WHERE (x op s) IS TRUE)` |
//! | `NOT x op ANY (S)` | every comparison is false            | `NOT EXISTS (S WHERE (x op s) IS NOT FALSE)` |
//! | `x op ALL (S)`     | no comparison is false or unknown    | `NOT EXISTS (S WHERE (x op s) IS NOT TRUE)` |
//! | `NOT x op ALL (S)` | some comparison is false             | `EXISTS (S WHERE (x op s) IS FALSE)` |
//!
//! DataFusion's own joins for them forget NULL where S is correlated, where x is a constant and under OR, and mix up
//! columns where S reads the same table. `x IN (S)` needs no rule: a semi-join keeps exactly the rows where it is true.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema, Result};
use datafusion::logical_expr::expr::{BinaryExpr, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery};
use datafusion::optimizer::AnalyzerRule;

use super::refuse;
use crate::error::SqlErrorKind;

/// The name of the value of a set; a name of our own cannot be that of a column outside.
const MEMBER: &str = "$member";

#[derive(Debug)]
pub(super) struct SubqueryConditions;

impl AnalyzerRule for SubqueryConditions {
    fn name(&self) -> &'static str {
        "postgresql_subquery_conditions"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(filter)?.data)
    }
}

fn filter(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
    let is_set = |expr: &Expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::SetComparison(_)));
    if !filter.predicate.exists(is_set)? {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let schema = Arc::clone(filter.input.schema());
    let parts = split_conjunction_owned(filter.predicate)
        .into_iter()
        .map(|part| if is_null_aware_join(&part) { Ok(part) } else { truth(part, false, &schema) });
    let Some(predicate) = conjunction(parts.collect::<Result<Vec<_>>>()?) else {
        return Ok(Transformed::no(Arc::unwrap_or_clone(filter.input)));
    };
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
}

/// What DataFusion has a join for that knows of NULL.
fn is_null_aware_join(expr: &Expr) -> bool {
    match expr {
        Expr::InSubquery(set) => {
            set.negated && set.subquery.outer_ref_columns.is_empty() && set.expr.any_column_refs()
        }
        _ => false,
    }
}

/// A condition that is true where `expr` is, or where NOT `expr` is.
fn truth(expr: Expr, negated: bool, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::Not(inner) => truth(*inner, !negated, schema),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            // NOT (a AND b) is NOT a OR NOT b, in three values as well.
            let op = match (op, negated) {
                (Operator::And, false) | (Operator::Or, true) => Operator::And,
                _ => Operator::Or,
            };
            let (left, right) = (truth(*left, negated, schema)?, truth(*right, negated, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::Exists(Exists { subquery, negated: is_not }) => {
            Ok(Expr::Exists(Exists { subquery, negated: is_not != negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated: is_not }) => {
            if is_not == negated {
                return Ok(Expr::InSubquery(InSubquery { expr, subquery, negated: false }));
            }
            let comparison = compare(*expr, Operator::Eq, schema)?;
            exists(&subquery, Expr::IsNotFalse(Box::new(comparison)), true)
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let comparison = Box::new(compare(*expr, op, schema)?);
            match (quantifier, negated) {
                (SetQuantifier::Any, false) => exists(&subquery, Expr::IsTrue(comparison), false),
                (SetQuantifier::Any, true) => exists(&subquery, Expr::IsNotFalse(comparison), true),
                (SetQuantifier::All, false) => exists(&subquery, Expr::IsNotTrue(comparison), true),
                (SetQuantifier::All, true) => exists(&subquery, Expr::IsFalse(comparison), false),
            }
        }
        other => {
            let is_not_in = |expr: &Expr| Ok(matches!(expr, Expr::InSubquery(set) if set.negated));
            if other.exists(is_not_in)? {
                return Err(refuse(SqlErrorKind::unsupported(
                    "NOT IN (SELECT …) inside of another expression",
                )));
            }
            Ok(if negated { Expr::Not(Box::new(other)) } else { other })
        }
    }
}

/// `x op member`, seen from inside of the sub-query.
fn compare(expr: Expr, op: Operator, schema: &DFSchema) -> Result<Expr> {
    let outer = expr.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    let member = Expr::Column(Column::new_unqualified(MEMBER));
    Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(outer.data), op, Box::new(member))))
}

/// `[NOT] EXISTS` of the members for which a condition is true.
fn exists(set: &Subquery, condition: Expr, negated: bool) -> Result<Expr> {
    let member = Expr::Column(Column::from(set.subquery.schema().qualified_field(0)));
    let plan = LogicalPlanBuilder::from(Arc::clone(&set.subquery))
        .project([member.alias(MEMBER)])?
        .filter(condition)?
        .build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: set.spans.clone() };
    Ok(Expr::Exists(Exists { subquery, negated }))
}
