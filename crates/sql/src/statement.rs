//! The statements Highwater knows, as values.
//!
//! Bodies of queries and DML stay sqlparser values, because the planner hands them to DataFusion.

use std::collections::BTreeMap;

use sqlparser::ast;

/// A possibly schema-qualified name, already folded as PostgreSQL folds (lower case unless quoted).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QualifiedName {
    pub schema: Option<String>,
    pub name: String,
    /// 1-based character position of the name in its text.
    pub position: u32,
}

#[derive(Debug, Clone)]
pub enum Statement {
    CreateSource(CreateSource),
    CreateTable(CreateTable),
    CreateView(CreateView),
    CreateMaterializedView(CreateMaterializedView),
    CreateSink(CreateSink),
    CreateSchema { name: String, if_not_exists: bool },
    Drop(Drop),
    /// SELECT, VALUES, WITH …, TABLE t.
    Query(Box<ast::Query>),
    Insert(Box<ast::Insert>),
    Update(Box<ast::Update>),
    Delete(Box<ast::Delete>),
    /// `EXPLAIN [ANALYZE] statement`; the inner statement may be a query or CREATE MATERIALIZED VIEW.
    Explain { analyze: bool, verbose: bool, statement: Box<Statement> },
    /// `EXPLAIN MATERIALIZED VIEW name`.
    ExplainRelation(QualifiedName),
    Show(Show),
    Describe(QualifiedName),
    Set { name: String, value: Vec<String>, local: bool },
    /// `RESET name`, `RESET ALL`.
    Reset { name: Option<String> },
    Flush { durable: bool },
    Begin,
    Commit,
    Rollback,
    /// DISCARD, DEALLOCATE, CLOSE ALL, UNLISTEN, LISTEN: accepted as PostgreSQL clients send
    /// them; the tag to answer.
    Discard { tag: &'static str },
    /// An empty statement (`;`).
    Empty,
}

#[derive(Debug, Clone)]
pub struct ColumnDefinition {
    pub name: String,
    pub data_type: ast::DataType,
    pub not_null: bool,
    pub default: Option<ast::Expr>,
    pub position: u32,
}

/// `WATERMARK FOR column AS expression`.
#[derive(Debug, Clone)]
pub struct WatermarkDefinition {
    pub column: String,
    pub expression: ast::Expr,
    pub position: u32,
}

/// `FORMAT PLAIN ENCODE JSON (…)`, or the same from `WITH (format = 'json')`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatDefinition {
    pub format: Option<String>,
    pub encode: Option<String>,
    pub options: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub struct CreateSource {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDefinition>,
    pub watermark: Option<WatermarkDefinition>,
    /// Lower-case names; `connector` among them; `format`/`encode` moved into `format`.
    pub options: BTreeMap<String, String>,
    pub format: FormatDefinition,
}

/// A table users write to. (`CREATE TABLE … WITH (connector = …)` parses to [`CreateSource`].)
#[derive(Debug, Clone)]
pub struct CreateTable {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDefinition>,
    /// Column names in key order; empty: none.
    pub primary_key: Vec<String>,
    pub watermark: Option<WatermarkDefinition>,
}

#[derive(Debug, Clone)]
pub struct CreateView {
    pub name: QualifiedName,
    pub or_replace: bool,
    /// `CREATE VIEW v (a, b) AS …`.
    pub columns: Vec<String>,
    pub query: Box<ast::Query>,
    /// The query's own text.
    pub query_text: String,
}

#[derive(Debug, Clone)]
pub struct CreateMaterializedView {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    pub columns: Vec<String>,
    pub query: Box<ast::Query>,
    pub query_text: String,
    pub emit: Emit,
    pub options: BTreeMap<String, String>,
}

/// When a view shows its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Emit {
    /// `EMIT ON WINDOW CLOSE`; otherwise on update.
    pub on_window_close: bool,
    /// `ALLOWED LATENESS`, microseconds.
    pub allowed_lateness: i64,
}

#[derive(Debug, Clone)]
pub struct CreateSink {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    /// `FROM relation` is turned into `SELECT * FROM relation`.
    pub query: Box<ast::Query>,
    pub query_text: String,
    pub emit: Option<Emit>,
    pub options: BTreeMap<String, String>,
    pub format: FormatDefinition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectType {
    Source,
    Table,
    View,
    MaterializedView,
    Sink,
    Schema,
}

#[derive(Debug, Clone)]
pub struct Drop {
    pub object: ObjectType,
    pub names: Vec<QualifiedName>,
    pub if_exists: bool,
    pub cascade: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// `SHOW name`, `SHOW ALL`, `SHOW TIME ZONE`.
    Setting(String),
    All,
    Tables,
    Views,
    MaterializedViews,
    Sources,
    Sinks,
    Schemas,
    Jobs,
    Columns(QualifiedName),
    Create(QualifiedName),
}
