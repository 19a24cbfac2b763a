//! Sink: hands rows to a connector's writer and ties its commits to checkpoints.
//!
//! | | |
//! |---|---|
//! | input     | append or retract, as the connector's definition says |
//! | output    | none |
//! | state     | none of ours: the writer's prepared output lies with the target |
//! | watermark | forwarded |
//!
//! **Invariant.** `commit(epoch)` is called only when the checkpoint that contains `epoch` is
//! durable, and again after a restart, because the process may have ended between the two.

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dataflow::{
    BuildContext, ChangeBatch, ChangelogKind, DataflowError, EpochEnd, Operator, OperatorContext,
    OperatorSpec, Progress, Result, Sink, SinkWriter, Start,
};
use state::Epoch;

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct SinkWrite {
    /// The connector and target, for EXPLAIN.
    pub name: String,
    /// Opens writers.
    pub sink: Arc<dyn Sink>,
    /// Columns of the input.
    pub schema: SchemaRef,
    /// Kind of the input.
    pub kind: ChangelogKind,
}

impl OperatorSpec for SinkWrite {
    fn name(&self) -> &'static str {
        "sink"
    }

    fn detail(&self) -> String {
        self.name.clone()
    }

    fn output_schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn output_kind(&self) -> ChangelogKind {
        self.kind
    }

    fn build(&self, ctx: &BuildContext) -> Result<Box<dyn Operator>> {
        Ok(Box::new(SinkOperator { writer: self.sink.open(ctx.subtask)?, failed_commit: None }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct SinkOperator {
    writer: Box<dyn SinkWriter>,
    /// Why the last commit failed; the next call reports it, because durability itself cannot.
    failed_commit: Option<DataflowError>,
}

impl SinkOperator {
    fn check_commit(&mut self) -> Result<()> {
        self.failed_commit.take().map_or(Ok(()), Err)
    }
}

impl Operator for SinkOperator {
    fn open(&mut self, start: &Start, _ctx: &mut OperatorContext<'_>) -> Result<()> {
        if start.is_new { Ok(()) } else { self.writer.commit(start.epoch) }
    }

    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, _ctx: &mut OperatorContext<'_>) -> Result<()> {
        self.check_commit()?;
        self.writer.write(&batch)
    }

    fn on_epoch_end(&mut self, end: &EpochEnd, _ctx: &mut OperatorContext<'_>) -> Result<Progress> {
        self.check_commit()?;
        if end.is_checkpoint {
            self.writer.prepare(end.epoch)?;
        }
        Ok(Progress::Done)
    }

    fn on_checkpoint_durable(&mut self, epoch: Epoch) {
        if let Err(error) = self.writer.commit(epoch) {
            self.failed_commit = Some(error);
        }
    }
}
