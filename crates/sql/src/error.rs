//! PLACEHOLDER. Errors a user can cause with SQL text (style.md shows the form).

/// What is wrong. Variants are added as needed; every one has a SQLSTATE.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SqlErrorKind {
    #[error("{message}")]
    Syntax { message: String },
    #[error("{feature} is not supported")]
    Unsupported { feature: String },
    #[error("internal error: {message}")]
    Internal { message: String },
}

impl SqlErrorKind {
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "42601",
            Self::Unsupported { .. } => "0A000",
            Self::Internal { .. } => "XX000",
        }
    }
}

/// A SQL error with the place in the statement it points at.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}")]
pub struct SqlError {
    pub kind: Box<SqlErrorKind>,
    /// 1-based character position in the text given to [`crate::parse`].
    pub position: Option<u32>,
    pub detail: Option<String>,
    pub hint: Option<String>,
}
