//! Rewrites PostgreSQL's ways of saying things into those the planner knows.
//!
//! Clients qualify everything (`OPERATOR(pg_catalog.~)`, `pg_catalog.lower(…)`), set collations and
//! cast to types that stand for catalog entries (`::regclass`). In queries over the catalog they
//! also use correlated subqueries that DataFusion cannot plan as written; see [`catalog_query`].

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

mod casts;
mod catalog_query;
mod names;

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, ObjectName, ObjectNamePart, Query, Select, TableFactor, VisitMut, VisitorMut,
};

use crate::system;

/// Rewrites a query in place.
pub(crate) fn rewrite(query: &mut Query) {
    let over_catalog = reads_catalog(query);
    let mut visitor = Rewriter { over_catalog };
    let _ = VisitMut::visit(query, &mut visitor);
}

struct Rewriter {
    over_catalog: bool,
}

impl VisitorMut for Rewriter {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.over_catalog {
            catalog_query::drop_empty(query);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        casts::keep_names(select);
        if self.over_catalog {
            catalog_query::empty_select(select);
            catalog_query::count_exists(select);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: Some(_), .. } = factor {
            unqualify(name);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        unqualify_expr(expr);
        casts::rewrite(expr);
        if self.over_catalog {
            catalog_query::rewrite(expr);
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query reads a system table.
fn reads_catalog(query: &mut Query) -> bool {
    struct Finder;
    impl VisitorMut for Finder {
        type Break = ();
        fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<()> {
            match table_name(name) {
                Some((schema, table)) if system::find(schema.as_deref(), &table).is_some() => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    VisitMut::visit(query, &mut Finder).is_break()
}

/// Schema and name of a table, folded.
fn table_name(name: &ObjectName) -> Option<(Option<String>, String)> {
    let mut parts = name.0.iter().rev().map(part_name);
    let table = parts.next()??;
    Some((parts.next().flatten(), table))
}

fn part_name(part: &ObjectNamePart) -> Option<String> {
    match part {
        ObjectNamePart::Identifier(ident) if ident.quote_style.is_some() => Some(ident.value.clone()),
        ObjectNamePart::Identifier(ident) => Some(ident.value.to_lowercase()),
        ObjectNamePart::Function(_) => None,
    }
}

/// Takes `pg_catalog.` away.
fn unqualify(name: &mut ObjectName) {
    if name.0.len() == 2 && part_name(&name.0[0]).is_some_and(|schema| schema == "pg_catalog") {
        name.0.remove(0);
    }
}

fn unqualify_expr(expr: &mut Expr) {
    if let Expr::Function(function) = expr {
        unqualify(&mut function.name);
    }
    if let Expr::Collate { expr: inner, .. } = expr {
        *expr = take(inner);
    }
    if let Expr::BinaryOp { op, .. } = expr
        && let BinaryOperator::PGCustomBinaryOperator(parts) = op
        && let Some(plain) = parts.last().and_then(|symbol| operator(symbol))
    {
        *op = plain;
    }
}

fn operator(symbol: &str) -> Option<BinaryOperator> {
    Some(match symbol {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// Moves an expression out of its place.
fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, names::null())
}

#[cfg(test)]
mod tests;
