//! Row changes of tables: how a statement collects them and how a commit makes them last.
//!
//! ```text
//!  INSERT/UPDATE/DELETE ─► Writes (by key: row before, row after) ─► WriteLog::commit ─► inbox
//!                            └─ read by later statements of the same transaction
//! ```

mod assign;
mod columns;
mod commit;
mod held_rows;
mod literals;
mod row_ids;
mod writes;

pub(crate) use assign::assign;
pub(crate) use columns::TableColumns;
pub(crate) use commit::{Committed, WriteLog};
pub(crate) use held_rows::HeldRows;
pub(crate) use literals::{Cell, literal_rows};
pub(crate) use writes::{TableWrites, Writes};
