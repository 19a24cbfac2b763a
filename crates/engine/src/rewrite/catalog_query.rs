//! Queries over the catalog, in a form that can be planned.
//!
//! | written | planned as |
//! |---|---|
//! | a SELECT that joins a table which never has rows | the same columns, no rows |
//! | `(SELECT x FROM … WHERE correlated)` | `(SELECT max(x) …)`: it has at most one row |
//! | … `AND outer.flag)` | `CASE WHEN outer.flag THEN (…) END` |
//! | `EXISTS (…)` in a select list | `(SELECT count(*) …) > 0` |
//! | `ARRAY(SELECT x …)` | `(SELECT array_agg(x) …)` |

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DataType, Expr, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, JoinOperator,
    Query, Select, SelectItem, SetExpr, TableFactor, Value, VisitMut, VisitorMut,
};
use sqlparser::tokenizer::Span;

use super::names::{UNNAMED, boolean, call, call2, cast, column_name, null, text};
use super::{table_name, take};
use crate::system;

const AGGREGATES: &[&str] = &[
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "array_agg",
    "string_agg",
    "bool_and",
    "bool_or",
    "every",
    "json_agg",
];

/// A query without rows needs no order, and what it is ordered by may be gone.
pub(super) fn drop_empty(query: &mut Query) {
    if let SetExpr::Select(select) = query.body.as_ref()
        && never_has_rows(select)
    {
        query.order_by = None;
    }
}

/// Replaces a SELECT that can have no rows by its columns.
pub(super) fn empty_select(select: &mut Select) {
    if !never_has_rows(select) {
        return;
    }
    for item in &mut select.projection {
        let name = match item {
            SelectItem::UnnamedExpr(expr) => column_name(expr),
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            _ => continue,
        };
        let nothing = cast(null(), DataType::Text);
        *item = if name == UNNAMED {
            SelectItem::UnnamedExpr(nothing)
        } else {
            SelectItem::ExprWithAlias { expr: nothing, alias: Ident::with_quote('"', name) }
        };
    }
    select.from.clear();
    select.selection = Some(boolean(false));
}

/// Whether one of the tables that all rows come from never has a row.
fn never_has_rows(select: &Select) -> bool {
    let is_plain = select.having.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(expressions, _) if expressions.is_empty())
        && select.projection.iter().all(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => !is_aggregate(expr),
            _ => false,
        });
    is_plain
        && select.from.iter().any(|table| {
            is_empty_table(&table.relation)
                || table
                    .joins
                    .iter()
                    .any(|join| is_inner(&join.join_operator) && is_empty_table(&join.relation))
        })
}

fn is_inner(join: &JoinOperator) -> bool {
    matches!(join, JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_))
}

fn is_empty_table(factor: &TableFactor) -> bool {
    let TableFactor::Table { name, .. } = factor else { return false };
    table_name(name).is_some_and(|(schema, table)| system::is_always_empty(schema.as_deref(), &table))
}

fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function)
        if function.name.0.last().and_then(super::part_name).is_some_and(|name| AGGREGATES.contains(&name.as_str())))
}

/// `EXISTS` in the select list becomes a count.
pub(super) fn count_exists(select: &mut Select) {
    struct Counter;
    impl VisitorMut for Counter {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            let Expr::Exists { subquery, negated } = expr else { return ControlFlow::Continue(()) };
            let SetExpr::Select(select) = subquery.body.as_mut() else { return ControlFlow::Continue(()) };
            let op = if *negated { BinaryOperator::Eq } else { BinaryOperator::Gt };
            if never_has_rows(select) {
                *expr = boolean(*negated);
                return ControlFlow::Continue(());
            }
            select.projection = vec![SelectItem::UnnamedExpr(call("count", FunctionArgExpr::Wildcard))];
            let zero = Expr::Value(Value::Number("0".to_owned(), false).with_span(Span::empty()));
            let count = Expr::Subquery(subquery.clone());
            *expr = Expr::BinaryOp { left: Box::new(count), op, right: Box::new(zero) };
            ControlFlow::Continue(())
        }
    }
    for item in &mut select.projection {
        let _ = VisitMut::visit(item, &mut Counter);
    }
}

pub(super) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Subquery(query) => {
            if let Some(rewritten) = scalar_subquery(query) {
                *expr = rewritten;
            }
        }
        Expr::Function(function) => {
            let name = function.name.0.last().and_then(super::part_name).unwrap_or_default();
            if ["array_to_string", "array_remove"].contains(&name.as_str()) {
                function.name = vec![Ident::new(format!("pg_{name}"))].into();
            }
            if name == "array"
                && let FunctionArguments::Subquery(query) = &mut function.args
                && let Some(rewritten) = array_subquery(query)
            {
                *expr = rewritten;
            }
        }
        // Arrays of the catalog are text like `{a,b}`.
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. }
            if matches!(
                right.as_ref(),
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Nested(_)
            ) =>
        {
            let (element, array) = (take(left), take(right));
            *expr = call2("pg_array_has", array, element);
        }
        _ => {}
    }
}

fn is_without_rows(select: &Select) -> bool {
    select.from.is_empty()
        && matches!(&select.selection, Some(Expr::Value(value)) if value.value == Value::Boolean(false))
}

fn array_subquery(query: &mut Query) -> Option<Expr> {
    query.order_by = None;
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if is_without_rows(select) {
        return Some(text("{}"));
    }
    // Options of a relation: there are none.
    if let [table] = select.from.as_slice()
        && let TableFactor::Table { name, args: Some(_), .. } = &table.relation
        && table_name(name).is_some_and(|(_, name)| name == "unnest")
    {
        return Some(cast(null(), DataType::Text));
    }
    if let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
        select.projection.as_mut_slice()
    {
        let item = take(item);
        select.projection = vec![SelectItem::UnnamedExpr(call("array_agg", FunctionArgExpr::Expr(item)))];
    }
    Some(Expr::Subquery(Box::new(query.clone())))
}

fn scalar_subquery(query: &mut Query) -> Option<Expr> {
    if query.limit_clause.is_some() {
        return None;
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if is_without_rows(select) {
        return Some(cast(null(), DataType::Text));
    }
    let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
        select.projection.as_mut_slice()
    else {
        return None;
    };
    if is_aggregate(item) || select.from.is_empty() {
        return None;
    }
    let item = take(item);
    select.projection = vec![SelectItem::UnnamedExpr(call("max", FunctionArgExpr::Expr(item)))];
    let inner = aliases(select);
    let mut outer_only = Vec::new();
    let mut kept = Vec::new();
    for conjunct in select.selection.take().map(conjuncts).unwrap_or_default() {
        if is_outer_only(&conjunct, &inner) { outer_only.push(conjunct) } else { kept.push(conjunct) }
    }
    select.selection = conjunction(kept);
    let subquery = Expr::Subquery(Box::new(query.clone()));
    Some(match conjunction(outer_only) {
        None => subquery,
        Some(condition) => Expr::Case {
            case_token: sqlparser::ast::helpers::attached_token::AttachedToken::empty(),
            end_token: sqlparser::ast::helpers::attached_token::AttachedToken::empty(),
            operand: None,
            conditions: vec![sqlparser::ast::CaseWhen { condition, result: subquery }],
            else_result: None,
        },
    })
}

/// Names by which the tables of a SELECT can be qualified.
fn aliases(select: &Select) -> Vec<String> {
    let factors = select.from.iter().flat_map(|table| {
        std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation))
    });
    factors
        .filter_map(|factor| match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => Some(alias.name.value.to_lowercase()),
            TableFactor::Table { name, alias: None, .. } => table_name(name).map(|(_, name)| name),
            _ => None,
        })
        .collect()
}

fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut all = conjuncts(*left);
            all.extend(conjuncts(*right));
            all
        }
        other => vec![other],
    }
}

fn conjunction(expressions: Vec<Expr>) -> Option<Expr> {
    expressions.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    })
}

/// Whether a condition is about columns of the enclosing query alone.
fn is_outer_only(expr: &Expr, inner: &[String]) -> bool {
    struct Columns<'a> {
        inner: &'a [String],
        outer: usize,
    }
    impl VisitorMut for Columns<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            match expr {
                // An unqualified column could be either's.
                Expr::Identifier(_) | Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                    ControlFlow::Break(())
                }
                Expr::CompoundIdentifier(parts) => {
                    if parts.first().is_some_and(|table| self.inner.contains(&table.value.to_lowercase())) {
                        return ControlFlow::Break(());
                    }
                    self.outer += 1;
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    let mut columns = Columns { inner, outer: 0 };
    let mut expr = expr.clone();
    VisitMut::visit(&mut expr, &mut columns).is_continue() && columns.outer > 0
}
