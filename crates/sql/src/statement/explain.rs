//! `EXPLAIN [ANALYZE] [VERBOSE] statement`, `EXPLAIN (option, …) statement`,
//! `EXPLAIN MATERIALIZED VIEW name`.

use sqlparser::tokenizer::Token;

use crate::error::SqlErrorKind;
use crate::parser::grammar::{Grammar, Result};
use crate::statement::{self, Statement};

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    grammar.expect(&["EXPLAIN"])?;
    let mut flags = Flags::default();
    if *grammar.peek_token() == Token::LParen && is_option(grammar.peek_word(1).as_deref()) {
        grammar.parenthesized(|grammar| flags.option(grammar))?;
    } else {
        flags.analyze = grammar.take(&["ANALYZE"]) || grammar.take(&["ANALYSE"]);
        flags.verbose = grammar.take(&["VERBOSE"]);
    }
    for kind in [&["MATERIALIZED", "VIEW"][..], &["SOURCE"], &["SINK"], &["VIEW"]] {
        let position = grammar.position();
        if grammar.take(kind) {
            if flags.analyze {
                return Err(SqlErrorKind::unsupported("EXPLAIN ANALYZE of a running job").at(position));
            }
            return Ok(Statement::ExplainRelation(grammar.name()?));
        }
    }
    let position = grammar.position();
    let inner = statement::parse(grammar)?;
    let runs = matches!(
        inner,
        Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    );
    let creates = matches!(
        inner,
        Statement::CreateMaterializedView(_) | Statement::CreateSink(_) | Statement::CreateSource(_)
    );
    if !runs && !creates {
        return Err(SqlErrorKind::unsupported("EXPLAIN of this statement").at(position));
    }
    if creates && flags.analyze {
        return Err(SqlErrorKind::unsupported("EXPLAIN ANALYZE of CREATE").at(position));
    }
    Ok(Statement::Explain { analyze: flags.analyze, verbose: flags.verbose, statement: Box::new(inner) })
}

#[derive(Default)]
struct Flags {
    analyze: bool,
    verbose: bool,
}

/// A bracket behind EXPLAIN begins a list of options, unless it begins a query.
fn is_option(word: Option<&str>) -> bool {
    !matches!(word, None | Some("SELECT" | "VALUES" | "WITH" | "TABLE"))
}

impl Flags {
    fn option(&mut self, grammar: &mut Grammar<'_>) -> Result<()> {
        let position = grammar.position();
        let name = grammar.option_word()?;
        match name.as_str() {
            "analyze" => self.analyze = boolean(grammar, &name)?,
            "verbose" => self.verbose = boolean(grammar, &name)?,
            // They only change what PostgreSQL prints next to a plan.
            "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" | "generic_plan" => {
                boolean(grammar, &name)?;
            }
            "format" => {
                let place = grammar.position();
                let format = grammar.option_word()?;
                if format != "text" {
                    return Err(SqlErrorKind::unsupported(format!("EXPLAIN (FORMAT {format})")).at(place));
                }
            }
            _ => {
                let message = format!("unrecognized EXPLAIN option \"{name}\"");
                return Err(SqlErrorKind::Syntax { message }.at(position));
            }
        }
        Ok(())
    }
}

/// The value behind an option; none means true.
fn boolean(grammar: &mut Grammar<'_>, name: &str) -> Result<bool> {
    if matches!(grammar.peek_token(), Token::Comma | Token::RParen) {
        return Ok(true);
    }
    let position = grammar.position();
    match grammar.option_word()?.as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => {
            let message = format!("{name} requires a Boolean value");
            Err(SqlErrorKind::Syntax { message }.at(position))
        }
    }
}
