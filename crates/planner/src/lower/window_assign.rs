//! TUMBLE: appends the window of each row and drops late rows.

use std::sync::Arc;

use dataflow::OperatorSpec;
use operators::{Window, WindowAssign as WindowAssignSpec};

use super::{Flow, Lowering, Result};
use crate::window::{WINDOW_COLUMNS, WindowAssign};

impl Lowering<'_> {
    pub(super) fn window_assign(&mut self, assign: &WindowAssign) -> Result<Flow> {
        let mut flow = self.query(&assign.input)?;
        let time = assign.time_column()?;
        let before = flow.columns.len();
        let spec = WindowAssignSpec {
            input: Arc::clone(&flow.rows),
            kind: flow.stream.kind,
            time_column: flow.columns[time],
            window: Window::Tumble { size: assign.size, offset: assign.offset },
            allowed_lateness: self.pending_lateness(&flow),
        };
        let appended = flow.rows.fields().len();
        flow.rows = spec.output_schema();
        let vertex = self.vertex(&mut flow);
        self.graph.push(vertex, spec);
        flow.columns.extend((0..WINDOW_COLUMNS.len()).map(|bound| appended + bound));
        flow.stream = flow.stream.with_window(time, before, assign.size);
        Ok(flow)
    }

    /// How long windows over these rows stay open behind the watermark. Allowed lateness counts
    /// once, where lateness is decided: behind that the watermark itself is held back by it.
    pub(super) fn pending_lateness(&self, flow: &Flow) -> i64 {
        if flow.stream.has_origin { self.emit.allowed_lateness } else { 0 }
    }
}
