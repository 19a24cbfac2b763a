//! `CREATE SCHEMA [IF NOT EXISTS] name`.

use crate::parser::grammar::{Grammar, Result};
use crate::statement::Statement;

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    grammar.expect(&["CREATE", "SCHEMA"])?;
    let if_not_exists = grammar.if_not_exists();
    if grammar.at(&["AUTHORIZATION"]) {
        return Err(grammar.unsupported("CREATE SCHEMA AUTHORIZATION"));
    }
    let name = grammar.identifier()?;
    if !grammar.at_end() {
        let refused = match grammar.peek_word(0).as_deref() {
            Some("AUTHORIZATION") => "CREATE SCHEMA AUTHORIZATION",
            Some("CREATE" | "GRANT") => "CREATE SCHEMA with elements",
            _ => return Err(grammar.unexpected()),
        };
        return Err(grammar.unsupported(refused));
    }
    Ok(Statement::CreateSchema { name, if_not_exists })
}
