//! Errors on their way through DataFusion's planner, and the places they point at.

use datafusion::error::DataFusionError;
use sql::{SqlError, SqlErrorKind};
use sqlparser::tokenizer::Span;

/// Wraps an error so that `sql::from_datafusion` finds it again.
pub(crate) fn user_error(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The 1-based character position a span starts at. `sql` numbers the columns of all tokens by
/// characters of the statement's own text.
pub(crate) fn position(span: Span) -> Option<u32> {
    u32::try_from(span.start.column).ok().filter(|position| *position > 0)
}

/// An error that points at a span, if the span is known.
pub(crate) fn error_at(kind: SqlErrorKind, span: Span) -> SqlError {
    match position(span) {
        Some(position) => kind.at(position),
        None => kind.into(),
    }
}
