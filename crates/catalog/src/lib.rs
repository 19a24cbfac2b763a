//! What exists and who depends on whom.
//!
//! A [`Catalog`] is an immutable value: a DDL statement makes a new one, together with the `meta`
//! entries that store it, and the engine swaps it when the runtime has made the change durable.

mod catalog;
mod entry;
mod error;
mod relation;

pub use catalog::Catalog;
pub use entry::MetaWrites;
pub use error::CatalogError;
pub use relation::{Column, Relation, RelationId, RelationKind, SideKind};
