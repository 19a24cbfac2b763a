//! Errors of the engine as ErrorResponse fields.

use pgwire::error::{ErrorInfo, PgWireError};
use sql::SqlError;

/// An ERROR with SQLSTATE, text, detail, hint and position.
pub(super) fn error_info(error: &SqlError) -> ErrorInfo {
    let mut info = ErrorInfo::new("ERROR".to_owned(), error.kind.sqlstate().to_owned(), error.to_string());
    info.severity_nonlocalized = Some("ERROR".to_owned());
    info.detail.clone_from(&error.detail);
    info.hint.clone_from(&error.hint);
    info.position = error.position.map(|position| position.to_string());
    info
}

/// The same as the error type of `pgwire`.
pub(super) fn wire_error(error: &SqlError) -> PgWireError {
    PgWireError::UserError(Box::new(error_info(error)))
}

/// An ERROR that only the protocol layer can raise.
pub(super) fn protocol_error(sqlstate: &str, message: String) -> PgWireError {
    let mut info = ErrorInfo::new("ERROR".to_owned(), sqlstate.to_owned(), message);
    info.severity_nonlocalized = Some("ERROR".to_owned());
    PgWireError::UserError(Box::new(info))
}

/// A FATAL error: the connection ends with it.
pub(super) fn fatal(sqlstate: &str, message: &str) -> PgWireError {
    let mut info = ErrorInfo::new("FATAL".to_owned(), sqlstate.to_owned(), message.to_owned());
    info.severity_nonlocalized = Some("FATAL".to_owned());
    PgWireError::UserError(Box::new(info))
}

/// What a statement that ran longer than `statement_timeout` answers.
pub(super) fn timed_out() -> PgWireError {
    protocol_error("57014", "canceling statement due to statement timeout".to_owned())
}

/// What a statement that was cancelled answers.
pub(super) fn cancelled() -> PgWireError {
    protocol_error("57014", "canceling statement due to user request".to_owned())
}
