//! `SET` and `RESET` of session settings, in PostgreSQL's many spellings.

use sqlparser::tokenizer::Token;

use crate::parser::grammar::{Grammar, Result};
use crate::statement::{Statement, transaction};

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    grammar.expect(&["SET"])?;
    if grammar.take(&["SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"]) {
        let modes = transaction::modes(grammar)?;
        return Ok(Statement::SetTransaction { modes, session: true });
    }
    if grammar.take(&["TRANSACTION"]) {
        if grammar.at(&["SNAPSHOT"]) {
            return Err(grammar.unsupported("SET TRANSACTION SNAPSHOT"));
        }
        let modes = transaction::modes(grammar)?;
        return Ok(Statement::SetTransaction { modes, session: false });
    }
    let local = grammar.take(&["LOCAL"]);
    if !local {
        grammar.take(&["SESSION"]);
    }
    match grammar.peek_word(0).as_deref() {
        Some("AUTHORIZATION") => return Err(grammar.unsupported("SET SESSION AUTHORIZATION")),
        Some("ROLE") => return Err(grammar.unsupported("SET ROLE")),
        Some("CONSTRAINTS") => return Err(grammar.unsupported("SET CONSTRAINTS")),
        _ => {}
    }
    if grammar.take(&["TIME", "ZONE"]) {
        return time_zone(grammar, local);
    }
    if grammar.take(&["NAMES"]) {
        let value = grammar.literal()?;
        return Ok(set("client_encoding", vec![value], local));
    }
    let name = grammar.setting_name()?;
    if !grammar.take(&["TO"]) {
        grammar.expect_token(&Token::Eq)?;
    }
    if grammar.take(&["DEFAULT"]) {
        return Ok(Statement::Reset { name: Some(name) });
    }
    let value = grammar.comma_separated(Grammar::literal)?;
    Ok(Statement::Set { name, value, local })
}

fn time_zone(grammar: &mut Grammar<'_>, local: bool) -> Result<Statement> {
    if grammar.take(&["LOCAL"]) || grammar.take(&["DEFAULT"]) {
        return Ok(Statement::Reset { name: Some("timezone".to_owned()) });
    }
    // `INTERVAL '+02:00' HOUR TO MINUTE`: the text says it all.
    if grammar.take(&["INTERVAL"]) {
        let value = grammar.literal()?;
        grammar.take(&["HOUR", "TO", "MINUTE"]);
        return Ok(set("timezone", vec![value], local));
    }
    let value = grammar.literal()?;
    Ok(set("timezone", vec![value], local))
}

fn set(name: &str, value: Vec<String>, local: bool) -> Statement {
    Statement::Set { name: name.to_owned(), value, local }
}

pub(crate) fn parse_reset(grammar: &mut Grammar<'_>) -> Result<Statement> {
    grammar.expect(&["RESET"])?;
    if grammar.take(&["ALL"]) {
        return Ok(Statement::Reset { name: None });
    }
    let name = if grammar.take(&["TIME", "ZONE"]) {
        "timezone".to_owned()
    } else if grammar.take(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
        "transaction_isolation".to_owned()
    } else if grammar.at(&["SESSION", "AUTHORIZATION"]) {
        return Err(grammar.unsupported("RESET SESSION AUTHORIZATION"));
    } else if grammar.at(&["ROLE"]) {
        return Err(grammar.unsupported("RESET ROLE"));
    } else {
        grammar.setting_name()?
    };
    Ok(Statement::Reset { name: Some(name) })
}
