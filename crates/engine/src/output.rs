//! What a statement gives back.

use std::any::Any;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

/// Rows of a result, as they come.
pub struct Rows {
    /// Column names as PostgreSQL gives them; Arrow types. Types Arrow does not have (oid, name,
    /// regclass, jsonb, uuid …) are in the field metadata `pg_type`.
    pub schema: SchemaRef,
    /// Errors in it are [`sql::SqlError`]s inside of `DataFusionError::External`.
    pub stream: SendableRecordBatchStream,
}

impl Rows {
    /// Rows that are there already.
    pub(crate) fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let stream = futures::stream::iter(batches.into_iter().map(Ok));
        let stream = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), stream));
        Self { schema, stream }
    }
}

/// What a statement gave.
pub struct Output {
    /// Command tag without the row count, e.g. `SELECT`, `CREATE MATERIALIZED VIEW`.
    pub tag: String,
    /// Rows affected by DML (`INSERT 0 n`, `UPDATE n`); for rows the server counts what it sends.
    pub affected: Option<u64>,
    /// The result, if the statement has one.
    pub rows: Option<Rows>,
    /// Severity and text.
    pub notices: Vec<(&'static str, String)>,
}

impl Output {
    /// Only a tag.
    pub(crate) fn tag(tag: impl Into<String>) -> Self {
        Self { tag: tag.into(), affected: None, rows: None, notices: Vec::new() }
    }

    /// A tag and rows.
    pub(crate) fn rows(tag: impl Into<String>, rows: Rows) -> Self {
        Self { rows: Some(rows), ..Self::tag(tag) }
    }

    /// With one more notice.
    pub(crate) fn notice(mut self, text: impl Into<String>) -> Self {
        self.notices.push(("NOTICE", text.into()));
        self
    }

    /// With one more warning.
    pub(crate) fn warning(mut self, text: impl Into<String>) -> Self {
        self.notices.push(("WARNING", text.into()));
        self
    }
}

/// What kind of statement was prepared, for the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// Returns rows and changes nothing.
    Query,
    /// DML; returns rows when it has RETURNING.
    Dml,
    /// Anything else; may return rows (SHOW, EXPLAIN).
    Other,
    /// No statement at all.
    Empty,
}

/// A parsed and planned statement.
#[derive(Clone)]
pub struct Prepared {
    /// What it is.
    pub kind: StatementKind,
    /// Types of `$1 …`, given or inferred.
    pub parameters: Vec<DataType>,
    /// Columns it returns, if any.
    pub schema: Option<SchemaRef>,
    #[doc(hidden)]
    pub inner: Arc<dyn Any + Send + Sync>,
}
