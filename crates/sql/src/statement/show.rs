//! `SHOW …` and `DESCRIBE name`.

use crate::parser::grammar::{Grammar, Result};
use crate::statement::{QualifiedName, Statement};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// `SHOW name`, `SHOW TIME ZONE`.
    Setting(String),
    All,
    Tables,
    Views,
    MaterializedViews,
    Sources,
    Sinks,
    Schemas,
    Jobs,
    Columns(QualifiedName),
    /// What it is said to be (`materialized view`), and its name.
    Create(&'static str, QualifiedName),
}

/// Words behind SHOW that name a list; a setting of the same name does not exist.
const LISTS: &[(&[&str], Show)] = &[
    (&["ALL"], Show::All),
    (&["TABLES"], Show::Tables),
    (&["VIEWS"], Show::Views),
    (&["MATERIALIZED", "VIEWS"], Show::MaterializedViews),
    (&["SOURCES"], Show::Sources),
    (&["SINKS"], Show::Sinks),
    (&["SCHEMAS"], Show::Schemas),
    (&["JOBS"], Show::Jobs),
];

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    grammar.expect(&["SHOW"])?;
    for (words, show) in LISTS {
        if grammar.take(words) {
            return Ok(Statement::Show(show.clone()));
        }
    }
    if grammar.take(&["COLUMNS", "FROM"]) || grammar.take(&["COLUMNS", "IN"]) {
        return Ok(Statement::Show(Show::Columns(grammar.name()?)));
    }
    if grammar.take(&["CREATE"]) {
        let kinds: [(&[&str], &str); 5] = [
            (&["SOURCE"], "source"),
            (&["TABLE"], "table"),
            (&["VIEW"], "view"),
            (&["MATERIALIZED", "VIEW"], "materialized view"),
            (&["SINK"], "sink"),
        ];
        for (words, kind) in kinds {
            if grammar.take(words) {
                return Ok(Statement::Show(Show::Create(kind, grammar.name()?)));
            }
        }
        return Err(grammar.unexpected());
    }
    let name = if grammar.take(&["TIME", "ZONE"]) {
        "timezone".to_owned()
    } else if grammar.take(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
        "transaction_isolation".to_owned()
    } else if grammar.take(&["SESSION", "AUTHORIZATION"]) {
        "session_authorization".to_owned()
    } else {
        grammar.setting_name()?
    };
    Ok(Statement::Show(Show::Setting(name)))
}

pub(crate) fn parse_describe(grammar: &mut Grammar<'_>) -> Result<Statement> {
    grammar.advance();
    Ok(Statement::Describe(grammar.name()?))
}
