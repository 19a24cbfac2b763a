//! PLACEHOLDER. SQL text to statements.

use crate::{SqlError, Statement};

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

/// Splits a text into statements and parses each. Nothing is returned when any of them is wrong.
pub fn parse(text: &str) -> Result<Vec<Parsed>, SqlError> {
    let _ = text;
    unimplemented!()
}
