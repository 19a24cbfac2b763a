//! What batch queries read: views, tables and side relations at one instant, bounded sources, and
//! the system's own tables.

mod pushdown;
mod scan;
mod source;
mod stored;
mod tables;

pub(crate) use stored::{ViewSlot, external};
pub(crate) use tables::{CHANGED, DML_SCHEMA, StatementTables, TARGET};
