//! SQL text to statements.
//!
//! ```text
//! text ── source::split ──► tokens of one statement, positions counted in characters
//!      ── limits::check ──► nesting that nothing behind can choke on
//!      ── window_table, table_command ──► aliases that sqlparser cannot read, as canonical tokens
//!      ── statement::* over Grammar ──► Statement; bodies by sqlparser's parse_query
//!      ── group_window ──► aliases that need the tree
//! ```

pub(crate) mod grammar;
pub(crate) mod group_window;
pub(crate) mod keywords;
mod limits;
mod rows;
mod source;
mod table_command;
mod window_table;

use crate::parser::grammar::Grammar;
use crate::parser::source::Source;
use crate::{SqlError, Statement, statement};

/// One statement of a text.
#[derive(Debug, Clone)]
pub struct Parsed {
    pub statement: Statement,
    /// Its own text, without the semicolon.
    pub text: String,
    /// Character offset of `text` in the whole text (to shift error positions).
    pub offset: u32,
    /// What was mapped to the canonical dialect, for NOTICEs.
    pub notices: Vec<String>,
}

/// Splits a text into statements and parses each. Nothing is returned when any of them is wrong;
/// the position of the error counts in the whole text. A text without statements gives nothing.
pub fn parse(text: &str) -> Result<Vec<Parsed>, SqlError> {
    source::split(text)?
        .into_iter()
        .map(|source| {
            let offset = source.offset;
            parse_one(source).map_err(|error| error.shift(offset))
        })
        .collect()
}

fn parse_one(source: Source<'_>) -> Result<Parsed, SqlError> {
    let text = source.text.to_owned();
    let offset = source.offset;
    let mut grammar = Grammar::new(source)?;
    let statement = statement::parse(&mut grammar)?;
    grammar.expect_end()?;
    Ok(Parsed { statement, text, offset, notices: grammar.into_notices() })
}
