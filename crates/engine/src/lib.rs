//! The embeddable database: [`Engine`] and [`Session`].
//!
//! ```text
//!  Session ── parse ─► execute/<statement> ─┬─ queries ──► planner ─► batch/ (tables at one instant) ─► Rows
//!                                           ├─ DML ──────► dml/ (writes, commit) ─► Runtime::write
//!                                           └─ DDL ──────► planner, catalog ─► Runtime::apply ─► Live
//! ```
//!
//! **Invariant.** A statement sees one [`state::Published`], that is one instant of all views, and
//! one catalog; both are values that nobody changes under it.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the enums of other crates list what every database knows"
)]
#![warn(missing_docs)]

mod engine;
mod output;
mod session;

mod batch;
mod dml;
mod execute;
mod functions;
mod information_schema;
mod pg_catalog;
mod system;

mod error;
mod live;
mod parameters;
mod point_read;
mod rewrite;
mod settings;
mod startup;
mod statement_text;
mod transaction;
mod workers;

pub use engine::{Engine, EngineOptions};
pub use output::{Output, Prepared, Rows, StatementKind};
pub use runtime::Clock;
pub use session::Session;
pub use workers::STACK_BYTES;
