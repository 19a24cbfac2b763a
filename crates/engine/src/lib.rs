//! The embeddable database: [`Engine`] and [`Session`].

mod api;

pub use api::{Engine, EngineOptions, Output, Prepared, Rows, Session, StatementKind};
