//! Everything a user can type: dialect, statements, functions, types, names, SQL errors.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the enums of sqlparser and arrow list what every database knows"
)]

mod datafusion_error;
mod dialect;
mod error;
mod evaluation;
pub mod functions;
mod interval;
pub mod literals;
mod names;
mod nearest;
mod parser;
pub mod statement;
pub mod types;

pub use datafusion_error::from_datafusion;
pub use dialect::HighwaterDialect;
pub use error::{SqlError, SqlErrorKind};
pub use evaluation::EvaluationError;
pub use interval::parse_interval;
pub use names::{folded, item_name, output_names, quote_identifier};
pub use nearest::nearest;
pub use parser::{Parsed, parse};
pub use statement::Statement;
pub use types::type_name;
