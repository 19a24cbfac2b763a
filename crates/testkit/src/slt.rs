//! Runs `.slt` files against a [`Database`], in process or over the PostgreSQL protocol.
//!
//! | way | backend | in the middle |
//! |---|---|---|
//! | straight | RocksDB or memory | nothing |
//! | restarted | RocksDB or memory | after every third statement the engine is killed and comes back at another parallelism |
//!
//! After every FLUSH and at the end of the file each materialized view is compared with its own
//! SELECT in batch (see [`oracle`](crate::oracle)), whatever the file asks.
//!
//! Values are compared as text, as the simple protocol gives them; NULL is `NULL`, an empty text
//! is `(empty)`. Every way must give the same results.

use std::path::Path;

use async_trait::async_trait;
use engine::Session;
use futures::StreamExt;
use server::{Server, TextRows};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Record, Runner};
use tokio_postgres::SimpleQueryMessage;

use crate::database::{Backend, Database};
use crate::oracle::check_views;
use crate::shape::{Shape, shaped};

/// How a file is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub backend: Backend,
    pub parallelism: usize,
    /// Kill and restart in between.
    pub restart: bool,
    /// Over the PostgreSQL protocol instead of in process.
    pub over_the_wire: bool,
    /// The order of the statements.
    pub shape: Shape,
}

/// An error as a test sees it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct StatementError {
    message: String,
    sqlstate: String,
}

impl From<sql::SqlError> for StatementError {
    fn from(error: sql::SqlError) -> Self {
        Self { message: error.to_string(), sqlstate: error.kind.sqlstate().to_owned() }
    }
}

impl From<tokio_postgres::Error> for StatementError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) => {
                Self { message: error.message().to_owned(), sqlstate: error.code().code().to_owned() }
            }
            None => Self { message: error.to_string(), sqlstate: "08006".to_owned() },
        }
    }
}

/// One connection of a test.
enum Client {
    InProcess(Box<Session>),
    Wire(tokio_postgres::Client),
}

#[async_trait]
impl AsyncDB for Client {
    type Error = StatementError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, text: &str) -> Result<DBOutput<DefaultColumnType>, StatementError> {
        match self {
            Self::InProcess(session) => run_in_process(session, text).await,
            Self::Wire(client) => run_over_the_wire(client, text).await,
        }
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &'static str {
        "highwater"
    }

    fn error_sql_state(error: &StatementError) -> Option<String> {
        Some(error.sqlstate.clone())
    }
}

fn shown(value: Option<String>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some(text) if text.is_empty() => "(empty)".to_owned(),
        Some(text) => text,
    }
}

async fn run_in_process(
    session: &mut Session,
    text: &str,
) -> Result<DBOutput<DefaultColumnType>, StatementError> {
    let mut last = DBOutput::StatementComplete(0);
    for parsed in session.parse(text)? {
        let output = session.execute(&parsed).await?;
        let Some(mut result) = output.rows else {
            last = DBOutput::StatementComplete(output.affected.unwrap_or(0));
            continue;
        };
        let mut encoder = TextRows::new(&result.schema);
        let mut rows = Vec::new();
        while let Some(batch) = result.stream.next().await {
            let batch = batch.map_err(sql::from_datafusion)?;
            let texts = encoder.rows(&batch).map_err(|error| sql::from_datafusion(error.into()))?;
            rows.extend(texts.into_iter().map(|row| row.into_iter().map(shown).collect::<Vec<_>>()));
        }
        last = DBOutput::Rows { types: vec![DefaultColumnType::Any; result.schema.fields().len()], rows };
    }
    Ok(last)
}

async fn run_over_the_wire(
    client: &tokio_postgres::Client,
    text: &str,
) -> Result<DBOutput<DefaultColumnType>, StatementError> {
    let mut rows = Vec::new();
    let mut columns = None;
    let mut count = 0;
    for message in client.simple_query(text).await? {
        match message {
            SimpleQueryMessage::RowDescription(description) => columns = Some(description.len()),
            SimpleQueryMessage::Row(row) => {
                columns = Some(row.len());
                rows.push((0..row.len()).map(|at| shown(row.get(at).map(str::to_owned))).collect());
            }
            SimpleQueryMessage::CommandComplete(affected) => count = affected,
            _ => {}
        }
    }
    Ok(match columns {
        Some(columns) => DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows },
        None => DBOutput::StatementComplete(count),
    })
}

async fn connect(server: &Server) -> tokio_postgres::Client {
    let mut config = tokio_postgres::Config::new();
    config
        .host(server.address().ip().to_string())
        .port(server.address().port())
        .user("tester")
        .dbname("highwater");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.expect("the server lets us in");
    tokio::task::spawn(connection);
    client
}

/// How many statements run between two kills.
const STATEMENTS_PER_LIFE: usize = 3;

/// Runs one file one way; the error says where it differs.
pub async fn run_file(path: &Path, way: Way) -> Result<(), String> {
    let records = sqllogictest::parse_file::<DefaultColumnType>(path).map_err(|error| error.to_string())?;
    let records = shaped(records, way.shape);
    let mut database = Database::open(way.backend, way.parallelism).await;
    let mut parallelism = way.parallelism;
    let mut statements = 0;
    let mut lives: Vec<Vec<Record<DefaultColumnType>>> = vec![Vec::new()];
    for record in records {
        let is_statement = matches!(record, Record::Statement { .. });
        if let Some(life) = lives.last_mut() {
            life.push(record);
        }
        statements += usize::from(is_statement);
        if way.restart && is_statement && statements % STATEMENTS_PER_LIFE == 0 {
            lives.push(Vec::new());
        }
    }
    for (number, records) in lives.into_iter().enumerate() {
        if number > 0 {
            parallelism = if parallelism == 1 { 3 } else { 1 };
            database.kill_and_restart(parallelism).await;
            catch_up(&database).await?;
        }
        run_life(&database, records, way)
            .await
            .map_err(|error| format!("{way:?}, life {number} at parallelism {parallelism}: {error}"))?;
    }
    catch_up(&database).await?;
    check_views(&mut database.engine().session("tester"))
        .await
        .map_err(|error| format!("{way:?}: {error}"))?;
    Ok(())
}

/// A kill takes reads back to the last checkpoint until the input behind it has been read again.
async fn catch_up(database: &Database) -> Result<(), String> {
    let mut session = database.engine().session("tester");
    run_in_process(&mut session, "FLUSH")
        .await
        .map(drop)
        .map_err(|error| format!("FLUSH after a restart: {error}"))
}

async fn run_life(
    database: &Database,
    records: Vec<Record<DefaultColumnType>>,
    way: Way,
) -> Result<(), String> {
    let server = match way.over_the_wire {
        true => Some(
            Server::start(database.engine().clone(), "127.0.0.1:0")
                .await
                .map_err(|error| error.to_string())?,
        ),
        false => None,
    };
    let mut runner = Runner::new(|| async {
        Ok(match &server {
            Some(server) => Client::Wire(connect(server).await),
            None => Client::InProcess(Box::new(database.engine().session("tester"))),
        })
    });
    for record in records {
        let is_flush = matches!(&record, Record::Statement { sql, .. } if sql.eq_ignore_ascii_case("flush"));
        runner.run_async(record).await.map_err(|error| error.display(false).to_string())?;
        if is_flush {
            check_views(&mut database.engine().session("tester")).await?;
        }
    }
    if let Some(server) = server {
        server.stop();
    }
    Ok(())
}
