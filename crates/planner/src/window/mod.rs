//! Windows in logical plans: `FROM TUMBLE(relation, column, size[, offset])`.
//!
//! ```text
//! TUMBLE(…) ── relation.rs ─┬─ in a view:  assign.rs, a plan node of ours, lowered to the
//!                           │              operator that drops late rows
//!                           └─ in a query: a projection with the functions of bounds.rs
//! ```
//!
//! Both append `window_start`, `window_end` and `window_time` to the columns of the relation.

mod assign;
mod bounds;
mod relation;

pub(crate) use assign::WindowAssign;
pub(crate) use relation::WindowRelations;

/// The appended columns, in order.
pub(crate) const WINDOW_COLUMNS: [&str; 3] = ["window_start", "window_end", "window_time"];
