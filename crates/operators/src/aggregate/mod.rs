//! Aggregate: GROUP BY with or without windows, over rows that are added or also taken back.
//!
//! | | |
//! |---|---|
//! | input     | append or retract; with `window_end`, append only |
//! | output    | retract (−old +new); append when emitted on window close, and for a DISTINCT over append |
//! | state     | `groups`: group key → row count and accumulators; `values`: group key, value → count |
//! | watermark | W; with `window_end`, W − allowed lateness |
//!
//! **Invariant.** After every epoch the sum of everything emitted is the aggregate of the sum of
//! everything taken in: a group's old row is remembered at its first touch in an epoch and
//! replaced by its new row at the epoch's end.

mod accumulator;
mod call;
mod count;
mod emission;
mod exact_float;
mod extreme;
mod index;
mod layout;
mod operator;
mod ordered;
mod resident;
mod slot_table;
mod sum_exact;
mod sum_float;
mod values;

#[cfg(test)]
mod tests;

use std::any::Any;
use std::iter;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use dataflow::{BuildContext, ChangelogKind, DataflowError, Operator, OperatorSpec, Result, StateTableSpec};

pub use call::{AggregateCall, AggregateFunction};
use layout::Layout;
use operator::AggregateOperator;

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// Columns of the input.
    pub input: SchemaRef,
    /// Kind of the input.
    pub input_kind: ChangelogKind,
    /// The input columns to group by; none: one group that is always there.
    pub group_columns: Vec<usize>,
    /// What to compute per group; none: the distinct groups.
    pub aggregates: Vec<AggregateCall>,
    /// Which of the `group_columns` (an index into them) is the end of a window that the
    /// watermark closes.
    pub window_end: Option<usize>,
    /// How far behind the watermark a window stays open, in microseconds.
    pub allowed_lateness: i64,
    /// Emit each group once, when its window closes, instead of every change.
    pub emit_on_window_close: bool,
}

impl OperatorSpec for Aggregate {
    fn name(&self) -> &'static str {
        "aggregate"
    }

    fn detail(&self) -> String {
        let names: Vec<&str> =
            self.group_columns.iter().map(|&column| self.input.field(column).name().as_str()).collect();
        let calls: Vec<String> = self.aggregates.iter().map(|call| call.detail(&self.input)).collect();
        let mut text = format!("group by ({}) compute ({})", names.join(", "), calls.join(", "));
        if self.allowed_lateness != 0 {
            text += &format!(" allowed lateness {}us", self.allowed_lateness);
        }
        if self.emit_on_window_close {
            text += " emit on window close";
        }
        text
    }

    /// The group columns, then the aggregates.
    fn output_schema(&self) -> SchemaRef {
        let groups = self.group_columns.iter().map(|&column| Arc::clone(&self.input.fields()[column]));
        let calls = self.aggregates.iter().map(|call| Arc::clone(&call.output));
        Arc::new(Schema::new(groups.chain(calls).collect::<Vec<_>>()))
    }

    fn output_kind(&self) -> ChangelogKind {
        let only_grows = self.aggregates.is_empty() && self.input_kind == ChangelogKind::Append;
        if self.emit_on_window_close || only_grows { ChangelogKind::Append } else { ChangelogKind::Retract }
    }

    fn state_tables(&self) -> Vec<StateTableSpec> {
        // A spec that cannot be laid out is refused when it is built.
        let Ok(layout) = Layout::new(self) else { return Vec::new() };
        let groups = StateTableSpec { name: "groups", schema: layout.groups };
        let values =
            layout.value_sets.into_iter().map(|set| StateTableSpec { name: "values", schema: set.schema });
        iter::once(groups).chain(values).collect()
    }

    fn state_note(&self) -> Option<String> {
        let column = self.group_columns[self.window_end?];
        let name = self.input.field(column).name();
        Some(if self.allowed_lateness == 0 {
            format!("freed when {name} passes the watermark")
        } else {
            format!("freed when {name} + {}us passes the watermark", self.allowed_lateness)
        })
    }

    fn build(&self, _ctx: &BuildContext) -> Result<Box<dyn Operator>> {
        if self.emit_on_window_close && self.window_end.is_none() {
            return Err(DataflowError::Internal("emit on window close without a window".to_owned()));
        }
        if self.window_end.is_some() && self.input_kind == ChangelogKind::Retract {
            return Err(DataflowError::Internal("a window over changing rows cannot close".to_owned()));
        }
        Ok(Box::new(AggregateOperator::new(self, self.output_schema())?))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
