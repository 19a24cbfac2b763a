//! `CREATE TABLE name (columns)`, and with a connector (Flink, Arroyo) a source in disguise.

use crate::error::SqlErrorKind;
use crate::parser::grammar::{Grammar, Result};
use crate::statement::columns::{self, ColumnDefinition, WatermarkDefinition};
use crate::statement::{QualifiedName, Statement, create_source, options};

/// A table users write to. (`CREATE TABLE … WITH (connector = …)` parses to [`CreateSource`].)
///
/// [`CreateSource`]: crate::statement::CreateSource
#[derive(Debug, Clone)]
pub struct CreateTable {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDefinition>,
    /// Column names in key order; empty: none.
    pub primary_key: Vec<String>,
    pub watermark: Option<WatermarkDefinition>,
}

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    let start = grammar.position();
    grammar.expect(&["CREATE", "TABLE"])?;
    let if_not_exists = grammar.if_not_exists();
    let name = grammar.name()?;
    let refused = match grammar.peek_word(0).as_deref() {
        Some("AS") => Some("CREATE TABLE AS"),
        Some("OF") => Some("CREATE TABLE OF"),
        Some("PARTITION") => Some("CREATE TABLE PARTITION OF"),
        _ => None,
    };
    if let Some(feature) = refused {
        return Err(SqlErrorKind::unsupported(feature).at(start));
    }
    let list = columns::parse(grammar)?;
    match grammar.peek_word(0).as_deref() {
        Some("AS") => return Err(SqlErrorKind::unsupported("CREATE TABLE AS").at(start)),
        Some(word @ ("INHERITS" | "PARTITION" | "TABLESPACE" | "USING" | "COMMENT")) => {
            return Err(grammar.unsupported(format!("CREATE TABLE … {word}")));
        }
        _ => {}
    }
    let place = grammar.position();
    let options = options::parse_with(grammar)?;
    if options.contains_key("connector") {
        let text = format!("CREATE TABLE \"{}\" with a connector was mapped to CREATE SOURCE", name.name);
        grammar.notice(text);
        return create_source::finish(grammar, name, if_not_exists, list, options);
    }
    if let Some(option) = options.keys().next() {
        let message = format!("unrecognized parameter \"{option}\"");
        return Err(SqlErrorKind::InvalidOption { message }
            .at(place)
            .hint("A table that reads from outside needs the option connector."));
    }
    Ok(Statement::CreateTable(CreateTable {
        name,
        if_not_exists,
        columns: list.columns,
        primary_key: list.primary_key.map(|(columns, _)| columns).unwrap_or_default(),
        watermark: list.watermark,
    }))
}
