//! Select lists with the same item twice.
//!
//! PostgreSQL lets `SELECT a, a` have two columns of one name; DataFusion wants names to be
//! unique. Repeated items of the outermost select list get names of ours here; what a client sees
//! comes from `sql::output_names`, which reads the query as it was written.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, visit_expressions_mut};

/// The query with an alias for every select item that would repeat the name of another.
pub(crate) fn with_unique_items(query: &Query) -> Query {
    let mut query = query.clone();
    unique_items(&mut query.body);
    query
}

fn unique_items(body: &mut SetExpr) {
    let select = match body {
        SetExpr::Select(select) => select,
        // The names of the first branch are those of the whole.
        SetExpr::SetOperation { left, .. } => return unique_items(left),
        SetExpr::Query(query) => return unique_items(&mut query.body),
        _ => return,
    };
    let has_wildcard = select
        .projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let mut seen = BTreeSet::new();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let alias = Ident::with_quote('"', format!("${index}"));
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                if !seen.insert(item_name(expr)) || (has_wildcard && is_column) {
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
            SelectItem::ExprWithAlias { alias: given, .. } => {
                if !seen.insert(given.value.clone()) {
                    *given = alias;
                }
            }
            SelectItem::Wildcard(_)
            | SelectItem::QualifiedWildcard(..)
            | SelectItem::ExprWithAliases { .. } => {}
        }
    }
}

/// The name DataFusion will give an item, near enough: equal names are equal here.
fn item_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.clone()).unwrap_or_default(),
        Expr::Nested(inner) => item_name(inner),
        other => {
            let mut bare = other.clone();
            let ControlFlow::Continue(()) = visit_expressions_mut(&mut bare, |expr| {
                without_type(expr);
                ControlFlow::<Infallible>::Continue(())
            });
            bare.to_string()
        }
    }
}

/// DataFusion's names leave out casts, and what a sub-query selects.
fn without_type(expr: &mut Expr) {
    loop {
        *expr = match &*expr {
            Expr::Cast { expr: inner, .. } => (**inner).clone(),
            Expr::TypedString(typed) => Expr::Value(typed.value.clone()),
            Expr::Subquery(_) => Expr::Identifier(Ident::new("(<subquery>)")),
            Expr::Exists { .. } => Expr::Identifier(Ident::new("EXISTS (<subquery>)")),
            _ => return,
        };
    }
}
