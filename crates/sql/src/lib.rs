//! Everything a user can type: dialect, statements, functions, settings, types, SQL errors.

mod dialect;
mod error;
pub mod literals;
mod parser;
pub mod statement;

pub use dialect::HighwaterDialect;
pub use error::{SqlError, SqlErrorKind};
pub use parser::{Parsed, parse};
pub use statement::Statement;
