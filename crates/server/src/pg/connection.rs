//! One client's connection: its session, and the guard around everything that runs for it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::error::DataFusionError;
use engine::{Engine, Output, Rows, Session};
use futures::{Stream, StreamExt};
use parking_lot::Mutex as SyncMutex;
use pgwire::api::results::FieldInfo;
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::DataRow;
use pgwire::messages::response::{NoticeResponse, TransactionStatus};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep_until};

use super::cancel::{CancelWatch, Cancellations, Registration};
use super::disconnect::DisconnectWatch;
use super::error::{cancelled, fatal, timed_out, wire_error};
use super::messages::serve_messages;
use super::rows::RowEncoder;
use super::types::{pg_type, type_modifier, type_size};

/// State shared by the handlers of one connection.
pub(crate) struct Connection {
    pub(super) engine: Engine,
    /// Made when the start-up message has named the user.
    pub(super) session: Mutex<Option<Session>>,
    pub(super) cancellations: Arc<Cancellations>,
    pub(super) registration: SyncMutex<Option<Registration>>,
    disconnect: Arc<DisconnectWatch>,
    /// When `statement_timeout` is over for what runs now.
    deadline: Arc<SyncMutex<Option<Instant>>>,
}

/// Serves one client until it leaves or the server stops.
pub(crate) async fn serve_connection(
    stream: TcpStream,
    engine: Engine,
    cancellations: Arc<Cancellations>,
    stopped: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let disconnect = Arc::new(DisconnectWatch::new(&stream)?);
    let connection = Connection {
        engine,
        session: Mutex::new(None),
        cancellations,
        registration: SyncMutex::new(None),
        disconnect,
        deadline: Arc::default(),
    };
    serve_messages(stream, &Arc::new(connection), stopped).await
}

/// What ends a statement before its time.
#[derive(Clone)]
pub(super) struct StatementGuard {
    cancel: Option<CancelWatch>,
    disconnect: Arc<DisconnectWatch>,
    deadline: Arc<SyncMutex<Option<Instant>>>,
}

impl StatementGuard {
    /// Runs `work` unless the client cancels it or goes away; the work is then dropped.
    pub(super) async fn run<T>(&self, work: impl Future<Output = T>) -> PgWireResult<T> {
        let deadline = *self.deadline.lock();
        let mut cancel = self.cancel.clone();
        let cancelled_by_client = async {
            match &mut cancel {
                Some(watch) => watch.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = cancelled_by_client => Err(cancelled()),
            () = passed(deadline) => Err(timed_out()),
            () = self.disconnect.disconnected() => {
                Err(PgWireError::IoError(std::io::ErrorKind::ConnectionAborted.into()))
            }
        }
    }
}

/// Returns at that time, never without one.
async fn passed(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// How long a client may go on without a statement.
pub(super) struct IdleLimit {
    end: Option<Instant>,
    error: (&'static str, &'static str),
}

impl IdleLimit {
    /// Returns when the time is over, never without a limit.
    pub(super) async fn passed(&self) -> PgWireError {
        passed(self.end).await;
        fatal(self.error.0, self.error.1)
    }
}

impl Connection {
    /// A guard over the statement of `session` that begins now.
    pub(super) fn begin_statement(&self, session: &Session) -> StatementGuard {
        let cancel = self.registration.lock().as_ref().map(|registration| registration.handle.begin());
        self.restart_time_limit(session);
        StatementGuard {
            cancel,
            disconnect: Arc::clone(&self.disconnect),
            deadline: Arc::clone(&self.deadline),
        }
    }

    /// `statement_timeout` counts from each message, also when a portal goes on.
    pub(super) fn restart_time_limit(&self, session: &Session) {
        *self.deadline.lock() = session.time_limit("statement_timeout").map(|limit| Instant::now() + limit);
    }

    /// How long the client may be idle from now on.
    pub(super) async fn idle_limit(&self) -> IdleLimit {
        let session = self.session.lock().await;
        let is_in_transaction = session.as_ref().is_some_and(|session| session.transaction_status() != b'I');
        let (setting, error) = if is_in_transaction {
            let text = "terminating connection due to idle-in-transaction timeout";
            ("idle_in_transaction_session_timeout", ("25P03", text))
        } else {
            ("idle_session_timeout", ("57P05", "terminating connection due to idle-session timeout"))
        };
        let limit = session.as_ref().and_then(|session| session.time_limit(setting));
        IdleLimit { end: limit.map(|limit| Instant::now() + limit), error }
    }

    /// An error outside of any statement fails the transaction too.
    pub(super) async fn fail_transaction(&self) {
        if let Some(session) = self.session.lock().await.as_ref() {
            session.fail_transaction();
        }
    }

    /// The transaction status the session is in, for ReadyForQuery.
    pub(super) async fn transaction_status(&self) -> TransactionStatus {
        match self.session.lock().await.as_ref().map(Session::transaction_status) {
            Some(b'T') => TransactionStatus::Transaction,
            Some(b'E') => TransactionStatus::Error,
            _ => TransactionStatus::Idle,
        }
    }
}

/// RowDescription of a result schema.
pub(super) fn field_infos(
    schema: &arrow::datatypes::Schema,
    format: impl Fn(usize) -> pgwire::api::results::FieldFormat,
) -> Vec<FieldInfo> {
    schema
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| {
            let pg = pg_type(field);
            let size = type_size(&pg);
            let oid = field.metadata().get("pg_table_oid").and_then(|oid| oid.parse().ok());
            let number = field.metadata().get("pg_attnum").and_then(|number| number.parse().ok());
            let modifier = type_modifier(field.data_type());
            FieldInfo::new(field.name().clone(), oid, number, pg, format(at))
                .with_type_size(size)
                .with_type_modifier(modifier)
        })
        .collect()
}

/// The command tag of a statement that returned no rows.
pub(super) fn command_tag(output: &Output) -> String {
    match output.affected {
        Some(rows) if output.tag == "INSERT" => format!("INSERT 0 {rows}"),
        Some(rows) => format!("{} {rows}", output.tag),
        None => output.tag.clone(),
    }
}

/// The command tag of a statement after `rows` rows were sent.
pub(super) fn row_tag(tag: &str, rows: usize) -> String {
    match tag {
        "SHOW" | "EXPLAIN" => tag.to_owned(),
        "INSERT" => format!("INSERT 0 {rows}"),
        _ => format!("{tag} {rows}"),
    }
}

/// A notice as a message.
pub(super) fn notice(severity: &str, text: &str) -> PgWireBackendMessage {
    let code = if severity == "WARNING" { "01000" } else { "00000" };
    PgWireBackendMessage::NoticeResponse(NoticeResponse::new(vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', code.to_owned()),
        (b'M', text.to_owned()),
    ]))
}

/// Rows of a result as DataRow messages, ended by cancellation or the client's leaving.
pub(super) struct DataRows {
    inner: Pin<Box<dyn Stream<Item = PgWireResult<DataRow>> + Send>>,
}

impl DataRows {
    pub(super) fn new(rows: Rows, mut encoder: RowEncoder, guard: StatementGuard) -> Self {
        let batches = futures::stream::unfold(Some((rows.stream, guard)), |state| async {
            let (mut stream, guard) = state?;
            match guard.run(stream.next()).await {
                Ok(Some(Ok(batch))) => Some((Ok(batch), Some((stream, guard)))),
                Ok(Some(Err(error))) => Some((Err(wire_error(&sql::from_datafusion(error))), None)),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        let rows = batches.flat_map(move |batch| {
            let encoded = batch.and_then(|batch| {
                // A value that clients have no form for is an error of the statement, as one of its plan is.
                let refused = |error| wire_error(&sql::from_datafusion(DataFusionError::from(error)));
                encoder.encode(&batch).map_err(refused)
            });
            let messages: Vec<PgWireResult<DataRow>> = match encoded {
                Ok(rows) => rows.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            futures::stream::iter(messages)
        });
        Self { inner: Box::pin(rows) }
    }
}

impl Stream for DataRows {
    type Item = PgWireResult<DataRow>;

    fn poll_next(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(ctx)
    }
}
