//! What DataFusion plans with another meaning than SQL's, refused in every query.
//!
//! | construct | what DataFusion does |
//! |---|---|
//! | `FULL`/`RIGHT JOIN` with `USING` or `NATURAL` | the shared column is that of the left side, NULL for rows of the right |
//! | `SIMILAR TO` | takes the pattern for a regular expression |
//! | `EXCEPT ALL`, `INTERSECT ALL` | forget how many copies there are on the right side |

use std::ops::ControlFlow;

use sql::{SqlError, SqlErrorKind};
use sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, Query, Select, SetExpr, SetOperator, SetQuantifier, Spanned, Visit,
    Visitor,
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

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        if let Expr::SimilarTo { pattern, .. } = expr {
            let error = error_at(SqlErrorKind::unsupported("SIMILAR TO"), pattern.span());
            return ControlFlow::Break(error.hint("Use LIKE, or ~ with a regular expression."));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
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

fn set_operation(body: &SetExpr) -> Option<SqlError> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return None };
    let is_all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
    if is_all && matches!(op, SetOperator::Except | SetOperator::Minus | SetOperator::Intersect) {
        let error = error_at(SqlErrorKind::unsupported(format!("{op} ALL")), right.span());
        return Some(error.hint("Number the copies with row_number() and leave out ALL."));
    }
    set_operation(left).or_else(|| set_operation(right))
}
