//! What DataFusion plans with another meaning than SQL's, refused in every query.
//!
//! | construct | what DataFusion does |
//! |---|---|
//! | `FULL`/`RIGHT JOIN` with `USING` or `NATURAL` | the shared column is that of the left side, NULL for rows of the right |
//! | `SIMILAR TO` | takes the pattern for a regular expression |
//! | `EXCEPT ALL`, `INTERSECT ALL` | forget how many copies there are on the right side |
//! | comparisons of rows, `(a, b) = (1, NULL)` | compares NULL like a value |
//! | `TABLESAMPLE` | reads the whole table |
//! | `FROM t, t` | says that a column is there twice, not the table |

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sql::{SqlError, SqlErrorKind, folded};
use sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, ObjectName, Query, Select, SetExpr, SetOperator, SetQuantifier,
    Spanned, TableFactor, TableWithJoins, Visit, Visitor,
};

use crate::error::error_at;

/// Refuses the first such construct.
pub(crate) fn refuse(query: &Query) -> Result<(), SqlError> {
    match query.visit(&mut Search) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Search;

impl Visitor for Search {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        set_operation(&query.body).map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<SqlError> {
        match factor {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                ControlFlow::Break(error_at(SqlErrorKind::unsupported("TABLESAMPLE"), factor.span()))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        if let Expr::SimilarTo { pattern, .. } = expr {
            let error = error_at(SqlErrorKind::unsupported("SIMILAR TO"), pattern.span());
            return ControlFlow::Break(error.hint("Use LIKE, or ~ with a regular expression."));
        }
        if let Some(row) = compared_row(expr) {
            let error = error_at(SqlErrorKind::unsupported("a comparison of rows"), row.span());
            return ControlFlow::Break(error.hint("Compare the columns one by one, with AND and OR."));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
        if let Some(error) = repeated_name(&select.from, &mut BTreeMap::new()) {
            return ControlFlow::Break(error);
        }
        for join in select.from.iter().flat_map(|from| &from.joins) {
            let (side, constraint) = match &join.join_operator {
                JoinOperator::FullOuter(constraint) => ("FULL", constraint),
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                    ("RIGHT", constraint)
                }
                _ => continue,
            };
            let kind = match constraint {
                JoinConstraint::Using(_) => "USING",
                JoinConstraint::Natural => "NATURAL",
                JoinConstraint::On(_) | JoinConstraint::None => continue,
            };
            let feature = format!("{side} JOIN with {kind}");
            let error = error_at(SqlErrorKind::unsupported(feature), join.relation.span());
            return ControlFlow::Break(error.hint("Use ON, and coalesce() for the column of both sides."));
        }
        ControlFlow::Continue(())
    }
}

/// The row of values in a comparison that has one.
fn compared_row(expr: &Expr) -> Option<&Expr> {
    let operands: &[&Expr] = match expr {
        Expr::BinaryOp { left, right, .. } => &[left, right],
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => &[left, right],
        Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::InList { expr: inner, .. }
        | Expr::InSubquery { expr: inner, .. }
        | Expr::Between { expr: inner, .. } => &[inner],
        _ => &[],
    };
    operands.iter().copied().find(|operand| {
        matches!(operand, Expr::Tuple(_))
            || matches!(operand, Expr::Function(function) if is_row(&function.name))
    })
}

/// `ROW(…)`
fn is_row(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|ident| ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("row")))
}

fn set_operation(body: &SetExpr) -> Option<SqlError> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return None };
    let is_all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
    if is_all && matches!(op, SetOperator::Except | SetOperator::Minus | SetOperator::Intersect) {
        let error = error_at(SqlErrorKind::unsupported(format!("{op} ALL")), right.span());
        return Some(error.hint("Number the copies with row_number() and leave out ALL."));
    }
    set_operation(left).or_else(|| set_operation(right))
}

/// Whether two items of a FROM have one name: two aliases, or a table twice
/// (`checkNameSpaceConflicts` of PostgreSQL).
fn repeated_name(from: &[TableWithJoins], seen: &mut BTreeMap<String, Option<String>>) -> Option<SqlError> {
    for item in from {
        let factors = std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation));
        for factor in factors {
            let (name, table) = match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    if let Some(error) = repeated_name(std::slice::from_ref(table_with_joins), seen) {
                        return Some(error);
                    }
                    continue;
                }
                TableFactor::Table { alias: Some(alias), .. }
                | TableFactor::Derived { alias: Some(alias), .. }
                | TableFactor::NestedJoin { alias: Some(alias), .. } => (folded(&alias.name), None),
                TableFactor::Table { name, args: None, .. } => match last_part(name) {
                    Some(last) => (last, Some(name.to_string())),
                    None => continue,
                },
                _ => continue,
            };
            if let Some(other) = seen.get(&name)
                && (table.is_none() || other.is_none() || *other == table)
            {
                return Some(error_at(SqlErrorKind::DuplicateAlias { name }, factor.span()));
            }
            seen.insert(name, table);
        }
    }
    None
}

fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(folded)
}
