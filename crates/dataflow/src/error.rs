//! What can go wrong inside a job.
//!
//! A [`RowError`] belongs to one row and never stops anything: the row goes to an `$errors`
//! relation. A [`DataflowError`] fails the job it happens in, and only that job.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// Why one row could not be processed, in the words a user sees in `$errors`.
///
/// Functions of ours return it inside `DataFusionError::External`; it then reaches the user as is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{message}")]
pub struct RowError {
    /// Five-character SQLSTATE, e.g. `22012` for a division by zero.
    pub sqlstate: &'static str,
    /// One lower-case clause in PostgreSQL's wording.
    pub message: String,
}

/// An error that fails a job.
#[derive(Debug, thiserror::Error)]
pub enum DataflowError {
    /// An Arrow kernel refused its input.
    #[error("{0}")]
    Arrow(#[from] ArrowError),
    /// A DataFusion expression could not be built or evaluated.
    #[error("{0}")]
    DataFusion(#[from] DataFusionError),
    /// Durable state could not be read or written.
    #[error("{0}")]
    State(#[from] state::StateError),
    /// A connector could not read or write its outside system.
    #[error("connector \"{connector}\": {message}")]
    Connector {
        /// Name of the connector, e.g. `file`.
        connector: &'static str,
        /// What happened, and to which file, topic or address.
        message: String,
    },
    /// The job needs more memory than its budget.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// A promise inside Highwater was broken: a bug.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The result of everything that can fail a job.
pub type Result<T, E = DataflowError> = std::result::Result<T, E>;
