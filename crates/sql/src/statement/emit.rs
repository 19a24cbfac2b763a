//! `EMIT ON UPDATE` and `EMIT ON WINDOW CLOSE [ALLOWED LATENESS interval]`.

use crate::error::SqlErrorKind;
use crate::literals::interval_micros;
use crate::parser::grammar::{Grammar, Result};

/// When a view shows its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Emit {
    /// `EMIT ON WINDOW CLOSE`; otherwise on update.
    pub on_window_close: bool,
    /// `ALLOWED LATENESS`, microseconds.
    pub allowed_lateness: i64,
}

/// Reads the rest of the clause; `EMIT` is taken already.
pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Emit> {
    if grammar.at(&["EVERY"]) {
        return Err(grammar.unsupported("EMIT EVERY"));
    }
    grammar.expect(&["ON"])?;
    let on_window_close = grammar.take(&["WINDOW", "CLOSE"]);
    if !on_window_close {
        grammar.expect(&["UPDATE"])?;
    }
    let mut allowed_lateness = 0;
    if grammar.take(&["ALLOWED", "LATENESS"]) {
        let position = grammar.position();
        allowed_lateness = interval_micros(&grammar.expression()?).map_err(|error| error.at(position))?;
        if allowed_lateness < 0 {
            let message = "allowed lateness must not be negative".to_owned();
            return Err(SqlErrorKind::InvalidArgument { message }.at(position));
        }
    }
    Ok(Emit { on_window_close, allowed_lateness })
}
