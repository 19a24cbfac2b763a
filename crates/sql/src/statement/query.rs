//! `SELECT`, `VALUES`, `WITH …`, `TABLE t`.

use sqlparser::ast::{self, SetExpr, Spanned};

use crate::error::{SqlError, SqlErrorKind};
use crate::parser::grammar::{Grammar, Result};
use crate::statement::Statement;

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    let query = grammar.query()?;
    check(&query)?;
    Ok(Statement::Query(query))
}

/// Refuses what sqlparser reads as a query and we do not run.
pub(crate) fn check(query: &ast::Query) -> Result<()> {
    let feature = match query.body.as_ref() {
        SetExpr::Insert(_) => "WITH … INSERT",
        SetExpr::Update(_) => "WITH … UPDATE",
        SetExpr::Delete(_) => "WITH … DELETE",
        SetExpr::Merge(_) => "WITH … MERGE",
        SetExpr::Select(select) if select.into.is_some() => "SELECT INTO",
        SetExpr::Select(_)
        | SetExpr::Query(_)
        | SetExpr::SetOperation { .. }
        | SetExpr::Values(_)
        | SetExpr::Table(_) => {
            return Ok(());
        }
    };
    Err(unsupported_at(feature, query.span()))
}

pub(crate) fn unsupported_at(feature: &str, span: sqlparser::tokenizer::Span) -> SqlError {
    let error = SqlError::from(SqlErrorKind::unsupported(feature));
    match u32::try_from(span.start.column) {
        Ok(column) if column > 0 => error.at(column),
        _ => error,
    }
}
