//! Rules that give plans PostgreSQL's meaning.
//!
//! Two passes around DataFusion's type coercion:
//!
//! | before: what has another **type** | |
//! |---|---|
//! | integer literals | `integer` if they fit, not `bigint` |
//! | `EXTRACT(… FROM …)` | our `extract` |
//! | `/` on NUMERIC | `numeric_divide` |
//! | `mod(a, b)` | `a % b` |
//! | `(regexp_match(…))[n]` | `regexp_match_group` |
//! | floats beside other numbers | PostgreSQL's common type: see [`floats`] |
//!
//! | after: what has another **value** | |
//! |---|---|
//! | `+ - * / %` and `-x` on integers | checked functions |
//! | casts of NUMERIC and floats to integers | rounding functions |
//! | casts of times, intervals, floats and bytes to text | `to_text` |
//! | casts of text to intervals | `to_interval` |
//! | `count(DISTINCT …)` of floats | counts 0 and -0 once |
//!
//! Conditions with `NOT IN (SELECT …)`, `ANY` and `ALL` are between the two: see [`subquery`].
//!
//! Comparisons are left alone, so that filters are still pushed down. Column names do not change: a
//! rewritten expression that would print otherwise gets its old name as an alias.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::error::DataFusionError;
use datafusion::functions::datetime::date_part::DatePartFunc;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;

use super::{
    arithmetic, bytea, canonical_float, extract, floats, interval, modulo, numeric, refuse, regexp, subquery,
    text,
};
use crate::error::SqlErrorKind;

type Rule = Arc<dyn AnalyzerRule + Send + Sync>;

/// DataFusion's rules between ours.
pub(super) fn rules(existing: &[Rule]) -> Vec<Rule> {
    let before: Rule =
        Arc::new(Pass { name: "postgresql_types", changes_types: true, rewrite: before_coercion });
    let after: Rule =
        Arc::new(Pass { name: "postgresql_values", changes_types: false, rewrite: after_coercion });
    let conditions: Rule = Arc::new(subquery::SubqueryConditions);
    let is_ours = |rule: &Rule| [before.name(), conditions.name(), after.name()].contains(&rule.name());
    let between: Vec<Rule> = existing.iter().filter(|rule| !is_ours(rule)).cloned().collect();
    [vec![before], between, vec![conditions, after]].concat()
}

/// A rewrite of every expression of a plan.
#[derive(Debug)]
struct Pass {
    name: &'static str,
    changes_types: bool,
    rewrite: fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
}

impl AnalyzerRule for Pass {
    fn name(&self) -> &str {
        self.name
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if self.changes_types && has_recursion(&plan)? {
            return Ok(plan);
        }
        Ok(plan.transform_up_with_subqueries(|plan| self.rewrite_plan(plan))?.data)
    }
}

impl Pass {
    fn rewrite_plan(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            schema
                .merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
        }
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| (self.rewrite)(expr, &schema))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })?;
        let plan = plan.transform_data(|plan| {
            if self.changes_types { floats::common_columns(plan) } else { Ok(Transformed::no(plan)) }
        })?;
        // Types may have changed here or in an input.
        plan.map_data(|plan| match plan {
            LogicalPlan::Values(values) if self.changes_types => {
                let rows = values.values.into_iter().map(|row| row.into_iter().map(untyped_null).collect());
                LogicalPlanBuilder::values(rows.collect())?.build()
            }
            LogicalPlan::Values(values) => LogicalPlanBuilder::values(values.values)?.build(),
            plan => plan.recompute_schema(),
        })
    }
}

/// A NULL among integers was given the type that DataFusion gives integers: it takes the others'.
fn untyped_null(cell: Expr) -> Expr {
    match cell {
        Expr::Literal(ScalarValue::Int64(None), metadata) => Expr::Literal(ScalarValue::Null, metadata),
        cell => cell,
    }
}

/// The types of a recursive query's own rows are fixed before its terms are analyzed: such a
/// statement keeps DataFusion's.
fn has_recursion(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        found |= matches!(plan, LogicalPlan::RecursiveQuery(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn call(function: Arc<ScalarUDF>, arguments: Vec<Expr>) -> Transformed<Expr> {
    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments)))
}

fn before_coercion(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    floats::common_types(expr, schema)?.transform_data(|expr| meant(expr, schema))
}

fn meant(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => Ok(match i32::try_from(value) {
            Ok(value) => Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(value)), metadata)),
            Err(_) => Transformed::no(Expr::Literal(ScalarValue::Int64(Some(value)), metadata)),
        }),
        Expr::ScalarFunction(function)
            if LENGTHS.contains(&function.func.name())
                && matches!(function.args.as_slice(), [bytes] if bytes.get_type(schema)? == DataType::Binary) =>
        {
            Err(refuse(SqlErrorKind::unsupported(format!("{}(bytea)", function.func.name()))))
        }
        Expr::ScalarFunction(function) => replaced_function(function),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) => {
            if numeric::divides(&left.get_type(schema)?, &right.get_type(schema)?) {
                return Ok(call(numeric::divide(), vec![*left, *right]));
            }
            Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right })))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

/// DataFusion's take bytes for their text.
const LENGTHS: [&str; 4] = ["length", "character_length", "octet_length", "bit_length"];

fn replaced_function(function: ScalarFunction) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, mut args } = function;
    if func.name() == "date_part" && func.inner().is::<DatePartFunc>() {
        return Ok(call(extract::extract(), args));
    }
    // DataFusion's gives one list a row where PostgreSQL gives many rows.
    if matches!(func.name(), "generate_series" | "range") {
        let feature = format!("set-returning function {}() in an expression", func.name());
        let hint = "Write it in FROM: SELECT g FROM generate_series(1, 3) AS s(g).";
        return Err(DataFusionError::External(Box::new(SqlErrorKind::unsupported(feature).hint(hint))));
    }
    // `(regexp_match(…))[n]`
    if func.name() == "array_element"
        && let [Expr::ScalarFunction(inner), subscript @ Expr::Literal(..)] = args.as_slice()
        && inner.func.name() == "regexp_match"
    {
        let arguments = std::iter::once(subscript.clone()).chain(inner.args.iter().cloned()).collect();
        return Ok(call(regexp::group_function(), arguments));
    }
    if func.name() == modulo::NAME && args.len() == 2 {
        let right = args.remove(1);
        let left = args.remove(0);
        return Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(left),
            Operator::Modulo,
            Box::new(right),
        ))));
    }
    Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })))
}

fn after_coercion(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let Some(function) = arithmetic::function_of(op) {
                let left_type = arithmetic::type_of(&left, schema)?;
                let right_type = arithmetic::type_of(&right, schema)?;
                if left_type == right_type && arithmetic::is_integer(&left_type) {
                    return Ok(call(function, vec![*left, *right]));
                }
            }
            Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Negative(inner) => {
            if arithmetic::is_integer(&inner.get_type(schema)?) {
                return Ok(call(arithmetic::negate(), vec![*inner]));
            }
            Ok(Transformed::no(Expr::Negative(inner)))
        }
        Expr::Cast(cast) => {
            let (from, to) = (cast.expr.get_type(schema)?, cast.field.data_type().clone());
            if from.is_string() && matches!(to, DataType::List(_)) {
                return Err(refuse(SqlErrorKind::unsupported("a cast of text to an array")));
            }
            if let Some(function) = numeric::rounding_cast(&from, &to) {
                return Ok(call(function, vec![*cast.expr]));
            }
            if let Some(function) =
                interval::interval_cast(&from, &to).or_else(|| bytea::bytea_cast(&from, &to))
            {
                return Ok(call(function, vec![*cast.expr]));
            }
            let Some(function) = text::text_cast(&from, &to) else {
                return Ok(Transformed::no(Expr::Cast(cast)));
            };
            let text = call(function, vec![*cast.expr]);
            Ok(match to {
                DataType::Utf8View => text,
                _ => text.update_data(|text| Expr::Cast(Cast { expr: Box::new(text), field: cast.field })),
            })
        }
        expr => Ok(canonical_float::distinct_count(expr, schema)),
    }
}
