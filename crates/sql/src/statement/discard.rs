//! Statements of clients that pool connections: accepted and answered with their tag.

use sqlparser::tokenizer::Token;

use crate::parser::grammar::{Grammar, Result};
use crate::statement::Statement;

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    let tag = match grammar.peek_word(0).as_deref() {
        Some("DISCARD") => discard(grammar)?,
        Some("DEALLOCATE") => deallocate(grammar)?,
        Some("CLOSE") => close(grammar)?,
        _ => {
            grammar.expect(&["UNLISTEN"])?;
            if !grammar.take_token(&Token::Mul) {
                grammar.identifier()?;
            }
            "UNLISTEN"
        }
    };
    Ok(Statement::Discard { tag })
}

fn discard(grammar: &mut Grammar<'_>) -> Result<&'static str> {
    grammar.advance();
    let kinds = [
        ("ALL", "DISCARD ALL"),
        ("PLANS", "DISCARD PLANS"),
        ("SEQUENCES", "DISCARD SEQUENCES"),
        ("TEMP", "DISCARD TEMP"),
        ("TEMPORARY", "DISCARD TEMP"),
    ];
    let found = kinds.into_iter().find(|(word, _)| grammar.take(&[word]));
    found.map(|(_, tag)| tag).ok_or_else(|| grammar.unexpected())
}

fn deallocate(grammar: &mut Grammar<'_>) -> Result<&'static str> {
    grammar.advance();
    grammar.take(&["PREPARE"]);
    if grammar.take(&["ALL"]) {
        return Ok("DEALLOCATE ALL");
    }
    grammar.identifier()?;
    Ok("DEALLOCATE")
}

fn close(grammar: &mut Grammar<'_>) -> Result<&'static str> {
    if !grammar.at(&["CLOSE", "ALL"]) {
        return Err(grammar.unsupported("CLOSE of a cursor"));
    }
    grammar.take(&["CLOSE", "ALL"]);
    Ok("CLOSE CURSOR ALL")
}
