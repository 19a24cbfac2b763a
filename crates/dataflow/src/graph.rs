//! Job graphs: what a relation's query was compiled to.
//!
//! A job graph is a value. The planner builds it, EXPLAIN prints it (see `Display`), tests compare
//! the print, and the runtime builds tasks from it. Same SQL, same catalog, same settings: same
//! graph, with the same operator ids.
//!
//! ```text
//! JobGraph ─► JobVertex (a chain of operators, `parallelism` tasks)
//!               ├─ inputs: exchanges within the job, outputs of other jobs, a source, an inbox
//!               └─ chain:  OperatorNode*   (only the first may have more than one input)
//! ```

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::physical_expr::PhysicalExpr;
use state::{TableId, TableSchema};

use crate::{OperatorSpec, Source, StateTableSpec, ViewTableSpec};

/// Names a job. Equal to the id of the relation it computes in the catalog; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// Names a vertex of one graph: its index in [`JobGraph::vertices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexId(pub u32);

/// Names an operator of one graph, stable as long as the printed graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperatorId(pub u32);

/// What kind of relation a job computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// Reads and decodes a connector for all its followers.
    Source,
    /// Applies the inbox of a table that users write with INSERT, UPDATE and DELETE.
    Table,
    /// Keeps a materialized view.
    View,
    /// Feeds an outside system.
    Sink,
}

/// A query compiled for the runtime.
#[derive(Debug, Clone)]
pub struct JobGraph {
    /// In topological order: a vertex only reads from vertices before it. The output of the last
    /// one is what the followers of this job receive.
    pub vertices: Vec<JobVertex>,
    /// Where late and failing rows go.
    pub side_tables: SideTables,
}

/// Where the late and failing rows of a job are stored.
///
/// Their schemas are the same for every job: [`SideTables::late_schema`] and
/// [`SideTables::errors_schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideTables {
    /// `"<name>$late"`; only jobs that assign windows have one.
    pub late: Option<TableId>,
    /// `"<name>$errors"`.
    pub errors: TableId,
}

/// A chain of operators that run as one task per subtask, by plain method calls.
#[derive(Debug, Clone)]
pub struct JobVertex {
    /// Its own index.
    pub id: VertexId,
    /// What the first operator of the chain reads, by input number. A vertex with an empty chain
    /// passes its one input on (e.g. the reader of a source job).
    pub inputs: Vec<VertexInput>,
    /// In the order rows pass them.
    pub chain: Vec<OperatorNode>,
}

/// One operator of a chain and the ids of its state tables.
#[derive(Debug, Clone)]
pub struct OperatorNode {
    /// Stable id.
    pub id: OperatorId,
    /// What the planner decided.
    pub spec: Arc<dyn OperatorSpec>,
    /// One per [`OperatorSpec::state_tables`], in that order.
    pub tables: Vec<StateTable>,
}

/// A state table with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTable {
    /// Never reused.
    pub id: TableId,
    /// Its columns.
    pub spec: StateTableSpec,
}

/// How rows travel between the tasks of two vertices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    /// Subtask i sends to subtask i.
    Forward,
    /// Each row goes to the subtask that owns the key group of these columns.
    /// No column: everything goes to the owner of the key group of the empty key.
    Hash(Vec<usize>),
    /// Every row goes to every subtask.
    Broadcast,
    /// Batches are dealt out in turn.
    Rebalance,
}

/// Where an input of a vertex comes from.
#[derive(Debug, Clone)]
pub enum VertexInput {
    /// Another vertex of the same job.
    Exchange {
        /// The vertex that sends.
        from: VertexId,
        /// How rows are distributed.
        exchange: Exchange,
    },
    /// The output of another job, by a forward exchange of shared batches.
    Relation {
        /// The job that sends.
        job: JobId,
        /// Its name, for EXPLAIN.
        name: String,
        /// Schema of what it sends.
        schema: SchemaRef,
        /// Which of its columns are read, for sources: those not read may arrive as NULLs.
        columns: Vec<usize>,
        /// Whether rows must carry their origin.
        needs_origin: bool,
        /// How a new follower gets what was there before it: a stored relation is scanned,
        /// a source (`None`) is read again from its pinned start.
        stored: Option<ViewTableSpec>,
    },
    /// The splits of a connector; only in a source job.
    Source(Arc<SourceSpec>),
    /// The row changes of a table, from the inbox; only in a table job. Rows have the columns of
    /// the table's view table (with `$rowid` first where it has no primary key).
    Inbox {
        /// The table's job.
        job: JobId,
        /// Columns of the inbox rows.
        schema: SchemaRef,
    },
}

/// What a source job reads and how it stamps event time.
#[derive(Debug)]
pub struct SourceSpec {
    /// The source's job.
    pub job: JobId,
    /// Its name, for EXPLAIN and errors.
    pub name: String,
    /// The connector's side.
    pub source: Arc<dyn Source>,
    /// Declared columns.
    pub schema: SchemaRef,
    /// `WATERMARK FOR column AS expression`.
    pub watermark: Option<WatermarkSpec>,
    /// A split without input for this long no longer holds the watermark back (microseconds).
    pub idle_timeout: Option<i64>,
    /// Event times further than this beyond the wall clock go to `$errors` (microseconds);
    /// `None` for bounded sources.
    pub future_max: Option<i64>,
}

/// A declared watermark.
#[derive(Debug, Clone)]
pub struct WatermarkSpec {
    /// The event-time column: `Timestamp(µs)` with or without zone.
    pub column: usize,
    /// The watermark a row proposes, over the source's columns; same type as the column.
    pub expression: Arc<dyn PhysicalExpr>,
}

impl JobGraph {
    /// All operators in chain order.
    pub fn operators(&self) -> impl Iterator<Item = &OperatorNode> {
        self.vertices.iter().flat_map(|vertex| &vertex.chain)
    }

    /// The view table the job publishes, if it has one.
    #[must_use]
    pub fn view_table(&self) -> Option<ViewTableSpec> {
        self.operators().find_map(|node| node.spec.view_table())
    }

    /// The jobs it follows, in input order, without repeats.
    #[must_use]
    pub fn upstream_jobs(&self) -> Vec<JobId> {
        let mut jobs = Vec::new();
        for input in self.vertices.iter().flat_map(|vertex| &vertex.inputs) {
            if let VertexInput::Relation { job, .. } = input
                && !jobs.contains(job)
            {
                jobs.push(*job);
            }
        }
        jobs
    }

    /// Whether any operator reads row origins.
    #[must_use]
    pub fn needs_origin(&self) -> bool {
        self.operators().any(|node| node.spec.needs_origin())
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward => f.write_str("forward"),
            Self::Hash(columns) => write!(f, "hash{columns:?}"),
            Self::Broadcast => f.write_str("broadcast"),
            Self::Rebalance => f.write_str("rebalance"),
        }
    }
}

impl fmt::Display for VertexInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange { from, exchange } => write!(f, "vertex {} by {exchange}", from.0),
            Self::Relation { name, columns, schema, .. } => {
                let names: Vec<&str> =
                    columns.iter().map(|&column| schema.field(column).name().as_str()).collect();
                write!(f, "relation {name} ({})", names.join(", "))
            }
            Self::Source(spec) => write!(f, "source {}", spec.name),
            Self::Inbox { .. } => f.write_str("inbox"),
        }
    }
}

/// One line per vertex, input and operator: what EXPLAIN shows and what the graph's hash covers.
impl fmt::Display for JobGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for vertex in &self.vertices {
            writeln!(f, "vertex {}", vertex.id.0)?;
            for (number, input) in vertex.inputs.iter().enumerate() {
                writeln!(f, "  input {number}: {input}")?;
            }
            for node in &vertex.chain {
                let kind = node.spec.output_kind();
                writeln!(f, "  {} [{}] ({kind:?})", node.spec.name(), node.spec.detail())?;
                for table in &node.tables {
                    let schema = &table.spec.schema;
                    let names: Vec<&str> =
                        schema.columns.fields().iter().map(|field| field.name().as_str()).collect();
                    let (key, value) = names.split_at(schema.key_len);
                    writeln!(
                        f,
                        "    state {} key ({}) value ({})",
                        table.spec.name,
                        key.join(", "),
                        value.join(", "),
                    )?;
                }
                if let Some(note) = node.spec.state_note() {
                    writeln!(f, "    {note}")?;
                }
            }
        }
        Ok(())
    }
}

impl SideTables {
    /// Columns of every `$late` table. The key names one (operator, row, window).
    #[must_use]
    pub fn late_schema() -> Arc<TableSchema> {
        let columns = Schema::new(vec![
            Field::new("operator", DataType::Int64, false),
            Field::new("split", DataType::Int64, false),
            Field::new("position", DataType::Int64, false),
            Field::new("ordinal", DataType::Int64, false),
            Field::new("window_end", DataType::Timestamp(TimeUnit::Microsecond, None), false),
            Field::new("window_start", DataType::Timestamp(TimeUnit::Microsecond, None), false),
            Field::new("watermark", DataType::Timestamp(TimeUnit::Microsecond, None), false),
            Field::new("row", DataType::Utf8View, false),
        ]);
        Arc::new(TableSchema { columns: Arc::new(columns), key_len: 5 })
    }

    /// Columns of every `$errors` table: a multiset of (where, why, row as JSON or raw text).
    /// `split` and `position` are NULL for rows that have passed a stateful operator.
    #[must_use]
    pub fn errors_schema() -> Arc<TableSchema> {
        let columns = Schema::new(vec![
            Field::new("operator", DataType::Int64, false),
            Field::new("split", DataType::Int64, true),
            Field::new("position", DataType::Int64, true),
            Field::new("sqlstate", DataType::Utf8View, false),
            Field::new("message", DataType::Utf8View, false),
            Field::new("row", DataType::Utf8View, true),
            Field::new("$count", DataType::Int64, false),
        ]);
        Arc::new(TableSchema { columns: Arc::new(columns), key_len: 6 })
    }
}
