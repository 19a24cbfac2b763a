//! The PostgreSQL protocol: connections, statements, encodings.
//!
//! `pgwire` reads and writes messages; everything about their meaning is here.
//!
//! ```text
//!  socket ─ messages (checked), pgwire codec ─► connection (start-up, simple and extended protocol)
//!                               │   parameters ─► Session (engine) ─► Output
//!                               └── rows ◄── record batches ◄────────────┘
//! ```

mod binary;
mod cancel;
mod connection;
mod disconnect;
mod error;
mod extended;
mod messages;
mod parameters;
mod rows;
mod simple;
mod startup;
mod text;
mod types;

pub(crate) use cancel::Cancellations;
pub(crate) use connection::{Connection, serve_connection};
pub(crate) use messages::refuse_connection;
pub use rows::TextRows;
pub use types::PG_TYPE;
