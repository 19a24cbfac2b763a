//! Every operator over Arrow batches. No threads, no clock, no channels: see [`dataflow::Operator`].
//!
//! An operator is a spec (what the planner decided, a plain struct with public fields that
//! implements [`dataflow::OperatorSpec`]) and the running thing it builds. The planner fills the
//! specs like this:
//!
//! ```text
//! Filter       { predicate, schema, kind }                      predicate over the input's columns
//! Project      { expressions: [(expression, output field)], kind }
//! FilterProject{ predicate, expressions, input, kind }          both in one pass
//! Union        { inputs, schema, kind }                         first operator of its vertex
//! WindowAssign { input, kind, time_column, window: Window::Tumble { size, offset },
//!                allowed_lateness }                             appends start, end, time
//! Aggregate    { input, input_kind, group_columns, aggregates: [AggregateCall], window_end,
//!                allowed_lateness, emit_on_window_close }       columns only: project before
//! Materialize  { input, input_kind, table, schema, mode, columns: [StoredColumn], output }
//! SinkWrite    { name, sink, schema, kind }                     last operator of its vertex
//! ```
//!
//! `SELECT DISTINCT` is an [`Aggregate`] without aggregates. The result type of an aggregate call
//! is [`AggregateFunction::result_type`].

mod aggregate;
mod filter;
mod filter_project;
mod materialize;
mod project;
mod row_error;
mod rowwise;
mod sink;
mod union;
mod window_assign;

#[cfg(test)]
mod testing;

pub use aggregate::{Aggregate, AggregateCall, AggregateFunction};
pub use filter::Filter;
pub use filter_project::FilterProject;
pub use materialize::{Materialize, MaterializeMode, StoredColumn};
pub use project::Project;
pub use row_error::row_error_of;
pub use sink::SinkWrite;
pub use union::Union;
pub use window_assign::{Window, WindowAssign};
