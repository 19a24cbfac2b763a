//! Everything a user can type: dialect, statements, functions, settings, types, SQL errors.

mod datafusion_error;
mod dialect;
mod error;
mod evaluation;
pub mod literals;
mod nearest;
mod parser;
pub mod statement;
pub mod types;

pub use datafusion_error::from_datafusion;
pub use dialect::HighwaterDialect;
pub use error::{SqlError, SqlErrorKind};
pub use evaluation::EvaluationError;
pub use nearest::nearest;
pub use parser::{Parsed, parse};
pub use statement::Statement;
pub use types::type_name;
