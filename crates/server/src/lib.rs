//! The outside world: the PostgreSQL protocol, the command line, configuration.

pub mod cli;
mod config;
mod pg;
mod run;
mod serve;

pub use config::Config;
pub use pg::{PG_TYPE, TextRows};
pub use serve::{Server, ServerError};
