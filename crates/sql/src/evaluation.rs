//! The error of a function that fails on a row.
//!
//! # Contract
//!
//! Our functions return it inside `DataFusionError::External`. It passes through crates that may
//! not depend on this one, so its text carries the code: `[22003] bigint out of range`. `operators`
//! turns that text into a `RowError`, [`crate::from_datafusion`] into a [`crate::SqlError`].

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// SQLSTATE and message, in PostgreSQL's wording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[{sqlstate}] {message}")]
pub struct EvaluationError {
    pub sqlstate: &'static str,
    pub message: String,
}

impl EvaluationError {
    #[must_use]
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into() }
    }

    /// `bigint out of range`.
    #[must_use]
    pub fn out_of_range(type_name: &str) -> Self {
        Self::new("22003", format!("{type_name} out of range"))
    }

    #[must_use]
    pub fn division_by_zero() -> Self {
        Self::new("22012", "division by zero")
    }

    /// Splits the text of an error that was made from one of these.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let start = text.find('[')?;
        let (code, message) = text[start + 1..].split_once("] ")?;
        let sqlstate = SQLSTATES.iter().copied().find(|known| *known == code)?;
        Some(Self::new(sqlstate, message))
    }
}

impl From<EvaluationError> for DataFusionError {
    fn from(error: EvaluationError) -> Self {
        Self::External(Box::new(error))
    }
}

impl From<EvaluationError> for ArrowError {
    fn from(error: EvaluationError) -> Self {
        Self::ExternalError(Box::new(error))
    }
}

/// Codes of class 22 (data exception) and the others an expression may raise.
const SQLSTATES: &[&str] = &[
    "0A000", "21000", "22000", "22001", "22003", "22004", "22007", "22008", "22009", "2200F", "22011",
    "22012", "22018", "22019", "2201B", "2201E", "2201F", "2201G", "22021", "22023", "22024", "22025",
    "22027", "22P01", "22P02", "22P03", "2202E", "2203A", "42804", "42883", "53200", "54000", "55000",
    "57014", "58030", "XX000", "XX001",
];

#[cfg(test)]
mod tests {
    use super::EvaluationError;

    #[test]
    fn the_text_carries_the_code() {
        let error = EvaluationError::out_of_range("bigint");
        assert_eq!(error.to_string(), "[22003] bigint out of range");
        assert_eq!(EvaluationError::from_text("External error: [22003] bigint out of range"), Some(error));
        assert_eq!(EvaluationError::from_text("array [1, 2] is odd"), None);
    }
}
