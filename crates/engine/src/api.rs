//! PLACEHOLDER. What the server (and an embedder) asks of the engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::scalar::ScalarValue;
use dataflow::ConnectorRegistry;
use sql::SqlError;

#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The data folder; `None` keeps everything in memory.
    pub data: Option<PathBuf>,
    pub allowed_paths: Vec<PathBuf>,
    pub memory: usize,
    pub parallelism: usize,
    pub epoch_min: Duration,
    pub epoch_max: Duration,
    pub checkpoint_interval: Duration,
}

/// An open database. Cheap to clone.
#[derive(Clone)]
pub struct Engine {}

impl Engine {
    /// Opens (or makes) the database and starts its jobs. Must be called inside a tokio runtime.
    pub async fn open(options: EngineOptions, connectors: ConnectorRegistry) -> Result<Self, SqlError> {
        let _ = (options, connectors);
        unimplemented!()
    }

    /// A new session.
    #[must_use]
    pub fn session(&self, user: &str) -> Session {
        let _ = user;
        unimplemented!()
    }

    /// Last checkpoint, then the end of all jobs.
    pub async fn shutdown(&self) {
        unimplemented!()
    }
}

/// Rows of a result, as they come.
pub struct Rows {
    /// Column names as PostgreSQL gives them; Arrow types. Types Arrow does not have (oid, name,
    /// regclass, jsonb, uuid …) are in the field metadata `pg_type`.
    pub schema: SchemaRef,
    pub stream: SendableRecordBatchStream,
}

/// What a statement gave.
pub struct Output {
    /// Command tag without the row count, e.g. `SELECT`, `CREATE MATERIALIZED VIEW`.
    pub tag: String,
    /// Rows affected by DML (`INSERT 0 n`, `UPDATE n`); for rows the server counts what it sends.
    pub affected: Option<u64>,
    pub rows: Option<Rows>,
    /// Severity and text.
    pub notices: Vec<(&'static str, String)>,
}

/// What kind of statement was prepared, for the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    Query,
    /// DML; returns rows when it has RETURNING.
    Dml,
    Other,
    Empty,
}

/// A parsed and planned statement.
#[derive(Clone)]
pub struct Prepared {
    pub kind: StatementKind,
    /// Types of `$1 …`, given or inferred.
    pub parameters: Vec<DataType>,
    /// Columns it returns, if any.
    pub schema: Option<SchemaRef>,
    #[doc(hidden)]
    pub inner: Arc<dyn std::any::Any + Send + Sync>,
}

/// One client's session: settings, transaction, prepared plans. Not shared between clients.
pub struct Session {}

impl Session {
    /// Splits a text into statements (a syntax error refuses the whole text). Each can then be
    /// given to [`Self::execute`].
    pub fn parse(&self, text: &str) -> Result<Vec<sql::Parsed>, SqlError> {
        let _ = text;
        unimplemented!()
    }

    /// Runs one statement without parameters. Rows are streamed; dropping the future or the
    /// stream cancels the statement.
    pub async fn execute(&mut self, statement: &sql::Parsed) -> Result<Output, SqlError> {
        let _ = statement;
        unimplemented!()
    }

    /// Plans one statement with parameters; `parameters[i] = None`: infer.
    pub async fn prepare(&mut self, text: &str, parameters: &[Option<DataType>]) -> Result<Prepared, SqlError> {
        let _ = (text, parameters);
        unimplemented!()
    }

    /// Runs a prepared statement.
    pub async fn execute_prepared(&mut self, prepared: &Prepared, values: Vec<ScalarValue>) -> Result<Output, SqlError> {
        let _ = (prepared, values);
        unimplemented!()
    }

    /// `I` idle, `T` in a transaction, `E` in a failed transaction.
    #[must_use]
    pub fn transaction_status(&self) -> u8 {
        unimplemented!()
    }

    /// Value of a session setting, e.g. for ParameterStatus.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<String> {
        let _ = name;
        unimplemented!()
    }
}
