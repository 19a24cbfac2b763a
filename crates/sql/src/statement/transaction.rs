//! `BEGIN`, `COMMIT`, `ROLLBACK` and the modes of a transaction.

use sqlparser::tokenizer::Token;

use crate::parser::grammar::{Grammar, Result};
use crate::statement::Statement;

/// As written; what each means is the engine's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl IsolationLevel {
    /// The value of the setting `transaction_isolation`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read uncommitted",
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }
}

/// `None`: not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionModes {
    pub isolation: Option<IsolationLevel>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    if grammar.take(&["START", "TRANSACTION"]) {
        return Ok(Statement::StartTransaction(optional_modes(grammar)?));
    }
    if grammar.take(&["BEGIN"]) {
        transaction_word(grammar);
        return Ok(Statement::Begin(optional_modes(grammar)?));
    }
    if grammar.at(&["COMMIT", "PREPARED"]) {
        return Err(grammar.unsupported("COMMIT PREPARED"));
    }
    if grammar.at(&["ROLLBACK", "PREPARED"]) {
        return Err(grammar.unsupported("ROLLBACK PREPARED"));
    }
    let start = grammar.position();
    let commits = grammar.take(&["COMMIT"]) || grammar.take(&["END"]);
    if !commits && !grammar.take(&["ROLLBACK"]) {
        grammar.expect(&["ABORT"])?;
    }
    transaction_word(grammar);
    if grammar.at(&["AND", "CHAIN"]) {
        return Err(grammar.unsupported("AND CHAIN"));
    }
    grammar.take(&["AND", "NO", "CHAIN"]);
    if !commits && grammar.at(&["TO"]) {
        return Err(crate::SqlErrorKind::unsupported("ROLLBACK TO SAVEPOINT").at(start));
    }
    Ok(if commits { Statement::Commit } else { Statement::Rollback })
}

fn transaction_word(grammar: &mut Grammar<'_>) {
    if !grammar.take(&["WORK"]) {
        grammar.take(&["TRANSACTION"]);
    }
}

fn optional_modes(grammar: &mut Grammar<'_>) -> Result<TransactionModes> {
    if grammar.at_end() { Ok(TransactionModes::default()) } else { modes(grammar) }
}

/// One mode or more, with or without commas between.
pub(crate) fn modes(grammar: &mut Grammar<'_>) -> Result<TransactionModes> {
    let mut modes = TransactionModes::default();
    loop {
        if grammar.take(&["ISOLATION", "LEVEL"]) {
            modes.isolation = Some(isolation_level(grammar)?);
        } else if grammar.take(&["READ", "ONLY"]) {
            modes.read_only = Some(true);
        } else if grammar.take(&["READ", "WRITE"]) {
            modes.read_only = Some(false);
        } else if grammar.take(&["NOT", "DEFERRABLE"]) {
            modes.deferrable = Some(false);
        } else if grammar.take(&["DEFERRABLE"]) {
            modes.deferrable = Some(true);
        } else {
            return Err(grammar.unexpected());
        }
        if !grammar.take_token(&Token::Comma) && grammar.at_end() {
            return Ok(modes);
        }
    }
}

fn isolation_level(grammar: &mut Grammar<'_>) -> Result<IsolationLevel> {
    if grammar.take(&["READ", "UNCOMMITTED"]) {
        Ok(IsolationLevel::ReadUncommitted)
    } else if grammar.take(&["READ", "COMMITTED"]) {
        Ok(IsolationLevel::ReadCommitted)
    } else if grammar.take(&["REPEATABLE", "READ"]) {
        Ok(IsolationLevel::RepeatableRead)
    } else if grammar.take(&["SERIALIZABLE"]) {
        Ok(IsolationLevel::Serializable)
    } else {
        Err(grammar.unexpected())
    }
}
