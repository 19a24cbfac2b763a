//! The outside world: the PostgreSQL protocol, the command line, configuration.

#![allow(clippy::wildcard_enum_match_arm, reason = "the enums of arrow list more types than SQL has")]

pub mod cli;
mod config;
mod pg;
mod run;
mod serve;

pub use config::Config;
pub use pg::{PG_TYPE, TextRows};
pub use serve::{Server, ServerError};
