//! Everything a user can type: dialect, statements, functions, settings, types, SQL errors.

mod error;
mod parser;
pub mod statement;

pub use error::{SqlError, SqlErrorKind};
pub use parser::{Parsed, parse};
pub use statement::Statement;
