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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};
    use state::KeyGroupRange;

    use super::*;
    use crate::testing::TestTask;

    /// A target that writes down what it is told.
    #[derive(Debug, Clone, Default)]
    struct Journal(Arc<Mutex<Vec<String>>>);

    impl Journal {
        fn note(&self, line: String) -> Result<()> {
            self.0.lock().unwrap().push(line);
            Ok(())
        }

        fn take(&self) -> String {
            self.0.lock().unwrap().drain(..).collect::<Vec<_>>().join(", ")
        }
    }

    impl Sink for Journal {
        fn open(&self, subtask: usize) -> Result<Box<dyn SinkWriter>> {
            self.note(format!("open {subtask}"))?;
            Ok(Box::new(self.clone()))
        }
    }

    impl SinkWriter for Journal {
        fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
            self.note(format!("write {}", batch.len()))
        }

        fn prepare(&mut self, epoch: Epoch) -> Result<()> {
            self.note(format!("prepare {epoch}"))
        }

        fn commit(&mut self, epoch: Epoch) -> Result<()> {
            if epoch.0 == 4 {
                return Err(DataflowError::Internal("full".to_owned()));
            }
            self.note(format!("commit {epoch}"))
        }
    }

    #[test]
    fn it_commits_only_what_is_durable_and_again_after_a_restart() {
        let journal = Journal::default();
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
        let spec = SinkWrite {
            name: "journal".to_owned(),
            sink: Arc::new(journal.clone()),
            schema: Arc::clone(&schema),
            kind: ChangelogKind::Append,
        };
        let rows = || {
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![1, 2]))]).unwrap()
        };
        let mut task = TestTask::new(Arc::new(spec), KeyGroupRange::ALL);
        task.push(0, ChangeBatch::append(rows()));
        task.end_epoch(false);
        assert_eq!(journal.take(), "open 0, write 2");
        task.end_epoch(true);
        assert_eq!(journal.take(), "prepare 2");
        task.durable();
        assert_eq!(journal.take(), "commit 2");
        task.restart();
        assert_eq!(journal.take(), "open 0, commit 2");
        // A commit that fails is reported by the next call.
        task.end_epoch(false);
        task.checkpoint();
        assert!(task.try_push(0, ChangeBatch::append(rows())).is_err());
    }
}
