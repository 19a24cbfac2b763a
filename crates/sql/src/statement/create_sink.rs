//! `CREATE SINK name FROM relation | AS query [EMIT …] WITH (…) [FORMAT … ENCODE …]`.

use std::collections::BTreeMap;

use sqlparser::ast;

use crate::error::SqlErrorKind;
use crate::parser::grammar::{Grammar, QueryText, Result};
use crate::statement::emit::{self, Emit};
use crate::statement::options::{self, FormatDefinition};
use crate::statement::{QualifiedName, Statement};

#[derive(Debug, Clone)]
pub struct CreateSink {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    /// `FROM relation` is turned into `SELECT * FROM relation`.
    pub query: Box<ast::Query>,
    pub query_text: String,
    pub emit: Option<Emit>,
    pub options: BTreeMap<String, String>,
    pub format: FormatDefinition,
}

/// `WITH (…)` may stand before the query too.
pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    grammar.expect(&["CREATE", "SINK"])?;
    let if_not_exists = grammar.if_not_exists();
    let name = grammar.name()?;
    let place = grammar.position();
    let mut options = options::parse_with(grammar)?;
    let (body, emit) = body(grammar)?;
    if options.is_empty() {
        options = options::parse_with(grammar)?;
    }
    let format = options::parse_format(grammar, &mut options)?;
    if !options.contains_key("connector") {
        let message = "option \"connector\" is missing".to_owned();
        return Err(SqlErrorKind::InvalidOption { message }
            .at(place)
            .hint("Write WITH (connector = 'blackhole')."));
    }
    Ok(Statement::CreateSink(CreateSink {
        name,
        if_not_exists,
        query: body.query,
        query_text: body.text,
        emit,
        options,
        format,
    }))
}

fn body(grammar: &mut Grammar<'_>) -> Result<(QueryText, Option<Emit>)> {
    if grammar.at(&["FROM"]) {
        return Ok((grammar.relation_as_query()?, None));
    }
    grammar.expect(&["AS"])?;
    let (query, has_emit) = grammar.query_to_emit()?;
    let emit = if has_emit { Some(emit::parse(grammar)?) } else { None };
    Ok((query, emit))
}
