//! `CREATE SOURCE name (columns) WITH (…) FORMAT … ENCODE …`.

use std::collections::BTreeMap;

use crate::error::SqlErrorKind;
use crate::parser::grammar::{Grammar, Result};
use crate::statement::columns::{self, ColumnDefinition, ColumnList, WatermarkDefinition};
use crate::statement::options::{self, FormatDefinition};
use crate::statement::{QualifiedName, Statement};

#[derive(Debug, Clone)]
pub struct CreateSource {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDefinition>,
    pub watermark: Option<WatermarkDefinition>,
    /// Lower-case names; `connector` among them; `format`/`encode` moved into `format`.
    pub options: BTreeMap<String, String>,
    pub format: FormatDefinition,
}

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    grammar.expect(&["CREATE", "SOURCE"])?;
    let if_not_exists = grammar.if_not_exists();
    let name = grammar.name()?;
    let list = columns::parse(grammar)?;
    if grammar.at(&["INCLUDE"]) {
        return Err(grammar.unsupported("INCLUDE"));
    }
    let place = grammar.position();
    let options = options::parse_with(grammar)?;
    if !options.contains_key("connector") {
        let message = "option \"connector\" is missing".to_owned();
        return Err(SqlErrorKind::InvalidOption { message }
            .at(place)
            .hint("Write WITH (connector = 'file', …)."));
    }
    finish(grammar, name, if_not_exists, list, options)
}

/// What follows `WITH (…)`, for CREATE SOURCE and CREATE TABLE with a connector.
pub(crate) fn finish(
    grammar: &mut Grammar<'_>,
    name: QualifiedName,
    if_not_exists: bool,
    list: ColumnList,
    mut options: BTreeMap<String, String>,
) -> Result<Statement> {
    let format = options::parse_format(grammar, &mut options)?;
    if let Some((_, position)) = list.primary_key {
        let feature = "PRIMARY KEY of a relation with a connector";
        return Err(SqlErrorKind::unsupported(feature).at(position));
    }
    Ok(Statement::CreateSource(CreateSource {
        name,
        if_not_exists,
        columns: list.columns,
        watermark: list.watermark,
        options,
        format,
    }))
}
