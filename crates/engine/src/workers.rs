//! The threads on which statements are planned and executed.
//!
//! They are a tokio runtime of the engine's own, so that neither a long query nor a wait for the
//! disk ever holds up the threads that serve the network. A panic on them ends the statement, not
//! the process.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use sql::{SqlError, SqlErrorKind};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::error::from_datafusion;

/// Batches a query may be ahead of its client.
const BATCHES_AHEAD: usize = 2;
/// Threads that may wait for an fsync at the same time.
const BLOCKING_THREADS_MAX: usize = 64;
/// Stack of every thread that parses, plans or drops statements, in bytes: all of that descends by
/// recursion, as deep as the parser's bounds on nesting allow.
pub const STACK_BYTES: usize = 8 << 20;

pub(crate) struct Workers {
    /// `Some` until dropped: a runtime must not be dropped in the ordinary way inside of another.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Workers {
    pub(crate) fn new(threads: usize) -> Result<Self, SqlError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("hw-query")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| SqlErrorKind::Io { message: format!("cannot start threads: {error}") })?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle })
    }

    /// Runs a future on the workers. Dropping the returned future cancels it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, SqlError> {
        match CancelOnDrop(self.handle.spawn(future)).await {
            Ok(result) => result,
            Err(error) => Err(from_join(error)),
        }
    }

    /// Runs a future to its end, also when nobody waits for it any more.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, SqlError> {
        match self.handle.spawn(future).await {
            Ok(result) => result,
            Err(error) => Err(from_join(error)),
        }
    }

    /// Runs code that waits for the disk, or computes for long without a pause.
    pub(crate) async fn block<T: Send + 'static>(
        &self,
        code: impl FnOnce() -> Result<T, SqlError> + Send + 'static,
    ) -> Result<T, SqlError> {
        match self.handle.spawn_blocking(code).await {
            Ok(result) => result,
            Err(error) => Err(from_join(error)),
        }
    }

    /// Executes a plan on the workers; `schema` renames its columns. Dropping the stream cancels
    /// it, and an error sets `failed`.
    pub(crate) fn stream(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        task: Arc<TaskContext>,
        schema: SchemaRef,
        failed: Arc<AtomicBool>,
    ) -> SendableRecordBatchStream {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let names = Arc::clone(&schema);
        let task = self.handle.spawn(async move {
            let mut stream = match execute_stream(plan, task) {
                Ok(stream) => stream,
                Err(error) => {
                    let _ = sender.send(Err(from_datafusion(error))).await;
                    return;
                }
            };
            while let Some(batch) = stream.next().await {
                let batch = batch.map_err(from_datafusion).and_then(|batch| renamed(&batch, &names));
                let is_error = batch.is_err();
                // The client has gone: dropping the stream ends the query.
                if sender.send(batch).await.is_err() || is_error {
                    return;
                }
            }
        });
        let state = StreamState { receiver, task: Some(CancelOnDrop(task)), failed };
        let batches = futures::stream::unfold(state, StreamState::next);
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct StreamState {
    receiver: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    task: Option<CancelOnDrop<()>>,
    failed: Arc<AtomicBool>,
}

impl StreamState {
    async fn next(mut self) -> Option<(Result<RecordBatch, DataFusionError>, Self)> {
        let error = match self.receiver.recv().await {
            Some(Ok(batch)) => return Some((Ok(batch), self)),
            Some(Err(error)) => error,
            // The sender is gone: done, or it panicked.
            None => match self.task.take()?.await {
                Ok(()) => return None,
                Err(error) => from_join(error),
            },
        };
        self.task = None;
        self.receiver.close();
        self.failed.store(true, Ordering::Release);
        Some((Err(DataFusionError::External(Box::new(error))), self))
    }
}

/// The same columns under the names of `schema`.
pub(crate) fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, SqlError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options).map_err(
        |error| SqlErrorKind::internal(format!("a result does not fit its description: {error}")).into(),
    )
}

/// A task that ends with whoever waits for it.
struct CancelOnDrop<T>(JoinHandle<T>);

impl<T> Future for CancelOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(ctx)
    }
}

impl<T> Drop for CancelOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn from_join(error: JoinError) -> SqlError {
    match error.try_into_panic() {
        Ok(payload) => from_panic(payload.as_ref()),
        Err(_) => SqlErrorKind::AdminShutdown.into(),
    }
}

/// A panic as the internal error it is.
pub(crate) fn from_panic(payload: &(dyn Any + Send)) -> SqlError {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    tracing::error!(panic = %text, "a statement panicked");
    SqlErrorKind::internal(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_statement_only() {
        let workers = Workers::new(1).unwrap();
        let result: Result<(), SqlError> = workers.run(async { panic!("broken promise") }).await;
        let error = result.unwrap_err();
        assert_eq!(error.sqlstate(), "XX000");
        assert!(error.to_string().contains("broken promise"));
        assert_eq!(workers.run(async { Ok(7) }).await.unwrap(), 7);
    }
}
