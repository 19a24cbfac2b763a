//! Column names as PostgreSQL gives them, and small expressions.

use sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, SelectItem, SetExpr, Value,
};
use sqlparser::tokenizer::Span;

/// The name of an expression without a name.
pub(super) const UNNAMED: &str = "?column?";

/// The name PostgreSQL gives the column of an expression without alias.
pub(super) fn column_name(expr: &Expr) -> String {
    let folded = |ident: &Ident| {
        if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
    };
    match expr {
        Expr::Identifier(ident) => folded(ident),
        Expr::CompoundIdentifier(parts) => parts.last().map_or_else(|| UNNAMED.to_owned(), folded),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => column_name(inner),
        Expr::Function(function) => {
            function.name.0.last().and_then(super::part_name).unwrap_or_else(|| UNNAMED.to_owned())
        }
        Expr::Cast { expr, data_type, .. } => match column_name(expr) {
            name if name == UNNAMED => data_type.to_string().to_lowercase().replace("pg_catalog.", ""),
            name => name,
        },
        Expr::Case { .. } => "case".to_owned(),
        Expr::Exists { .. } => "exists".to_owned(),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expr)) => column_name(expr),
                Some(SelectItem::ExprWithAlias { alias, .. }) => folded(alias),
                _ => UNNAMED.to_owned(),
            },
            _ => UNNAMED.to_owned(),
        },
        _ => UNNAMED.to_owned(),
    }
}

pub(super) fn null() -> Expr {
    Expr::Value(Value::Null.with_span(Span::empty()))
}

pub(super) fn boolean(value: bool) -> Expr {
    Expr::Value(Value::Boolean(value).with_span(Span::empty()))
}

pub(super) fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).with_span(Span::empty()))
}

pub(super) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::DoubleColon, expr: Box::new(expr), data_type, array: false, format: None }
}

pub(super) fn call(name: &str, argument: FunctionArgExpr) -> Expr {
    call_with(name, vec![argument])
}

pub(super) fn call2(name: &str, first: Expr, second: Expr) -> Expr {
    call_with(name, vec![FunctionArgExpr::Expr(first), FunctionArgExpr::Expr(second)])
}

fn call_with(name: &str, arguments: Vec<FunctionArgExpr>) -> Expr {
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(FunctionArg::Unnamed).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
