//! `CREATE VIEW` and `CREATE MATERIALIZED VIEW`.

use std::collections::BTreeMap;

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::error::SqlErrorKind;
use crate::parser::grammar::{Grammar, Result};
use crate::statement::emit::{self, Emit};
use crate::statement::{QualifiedName, Statement, options};

#[derive(Debug, Clone)]
pub struct CreateView {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    /// `CREATE VIEW v (a, b) AS …`.
    pub columns: Vec<String>,
    pub query: Box<ast::Query>,
    /// The query's own text.
    pub query_text: String,
}

#[derive(Debug, Clone)]
pub struct CreateMaterializedView {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub columns: Vec<String>,
    pub query: Box<ast::Query>,
    pub query_text: String,
    pub emit: Emit,
    pub options: BTreeMap<String, String>,
}

/// `CREATE [MATERIALIZED] VIEW`; `OR REPLACE` is read, to be refused by its name.
pub(crate) fn is_next(grammar: &Grammar<'_>) -> bool {
    [&["CREATE"][..], &["CREATE", "OR", "REPLACE"]].iter().any(|start| {
        [&["VIEW"][..], &["MATERIALIZED", "VIEW"]].iter().any(|rest| grammar.at(&[*start, *rest].concat()))
    })
}

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    let start = grammar.position();
    grammar.expect(&["CREATE"])?;
    let or_replace = grammar.take(&["OR", "REPLACE"]);
    let materialized = grammar.take(&["MATERIALIZED"]);
    grammar.expect(&["VIEW"])?;
    if or_replace {
        let kind = if materialized { "MATERIALIZED VIEW" } else { "VIEW" };
        return Err(SqlErrorKind::unsupported(format!("CREATE OR REPLACE {kind}"))
            .at(start)
            .hint(format!("Use DROP {kind} and CREATE {kind}.")));
    }
    let if_not_exists = grammar.if_not_exists();
    let name = grammar.name()?;
    let columns = column_names(grammar)?;
    let place = grammar.position();
    let options = options::parse_with(grammar)?;
    grammar.expect(&["AS"])?;
    if materialized {
        let (body, has_emit) = grammar.query_to_emit()?;
        let emit = if has_emit { emit::parse(grammar)? } else { Emit::default() };
        no_data(grammar)?;
        return Ok(Statement::CreateMaterializedView(CreateMaterializedView {
            name,
            if_not_exists,
            columns,
            query: body.query,
            query_text: body.text,
            emit,
            options,
        }));
    }
    if !options.is_empty() {
        return Err(SqlErrorKind::unsupported("WITH (…) of a view").at(place));
    }
    let body = grammar.query_with_text()?;
    if grammar.at(&["WITH"]) {
        return Err(grammar.unsupported("WITH CHECK OPTION"));
    }
    Ok(Statement::CreateView(CreateView {
        name,
        if_not_exists,
        columns,
        query: body.query,
        query_text: body.text,
    }))
}

fn column_names(grammar: &mut Grammar<'_>) -> Result<Vec<String>> {
    if *grammar.peek_token() != Token::LParen {
        return Ok(Vec::new());
    }
    let mut names: Vec<String> = Vec::new();
    grammar.parenthesized(|grammar| {
        let position = grammar.position();
        let name = grammar.identifier()?;
        if names.contains(&name) {
            return Err(SqlErrorKind::DuplicateColumn { name }.at(position));
        }
        names.push(name);
        Ok(())
    })?;
    Ok(names)
}

/// `WITH DATA` is what every view does; one without data would never be complete.
fn no_data(grammar: &mut Grammar<'_>) -> Result<()> {
    if grammar.at(&["WITH", "NO", "DATA"]) {
        return Err(grammar.unsupported("WITH NO DATA"));
    }
    grammar.take(&["WITH", "DATA"]);
    Ok(())
}
