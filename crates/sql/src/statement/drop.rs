//! `DROP kind [IF EXISTS] name, … [CASCADE | RESTRICT]`.

use crate::parser::grammar::{Grammar, Result};
use crate::statement::{QualifiedName, Statement, unsupported};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectType {
    Source,
    Table,
    View,
    MaterializedView,
    Sink,
    Schema,
}

impl ObjectType {
    /// As SQL writes it.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Source => "SOURCE",
            Self::Table => "TABLE",
            Self::View => "VIEW",
            Self::MaterializedView => "MATERIALIZED VIEW",
            Self::Sink => "SINK",
            Self::Schema => "SCHEMA",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Drop {
    pub object: ObjectType,
    pub names: Vec<QualifiedName>,
    pub if_exists: bool,
    pub cascade: bool,
}

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    let object = match (grammar.peek_word(1).as_deref(), grammar.peek_word(2).as_deref()) {
        (Some("SOURCE"), _) => ObjectType::Source,
        (Some("TABLE"), _) => ObjectType::Table,
        (Some("VIEW"), _) => ObjectType::View,
        (Some("MATERIALIZED"), Some("VIEW")) => ObjectType::MaterializedView,
        (Some("SINK"), _) => ObjectType::Sink,
        (Some("SCHEMA"), _) => ObjectType::Schema,
        _ => return Err(unsupported::refuse(grammar)),
    };
    grammar.expect(&["DROP"])?;
    for word in object.keyword().split(' ') {
        grammar.expect(&[word])?;
    }
    let if_exists = grammar.if_exists();
    let names = grammar.comma_separated(Grammar::name)?;
    let cascade = grammar.take(&["CASCADE"]);
    if !cascade {
        grammar.take(&["RESTRICT"]);
    }
    Ok(Statement::Drop(Drop { object, names, if_exists, cascade }))
}
