//! The statements Highwater knows, as values, one file a family.
//!
//! Bodies of queries and DML stay sqlparser values, because the planner hands them to DataFusion.
//! Every position in them (`span.start.column` of a node, `position` of ours) is the 1-based
//! character position in [`crate::Parsed::text`].

mod columns;
mod create_schema;
mod create_sink;
mod create_source;
mod create_table;
mod create_view;
mod discard;
mod dml;
mod drop;
mod emit;
mod explain;
mod options;
mod query;
mod set;
mod show;
mod transaction;
mod unsupported;

use sqlparser::ast;
use sqlparser::tokenizer::Token;

pub use columns::{ColumnDefinition, WatermarkDefinition};
pub use create_sink::CreateSink;
pub use create_source::CreateSource;
pub use create_table::CreateTable;
pub use create_view::{CreateMaterializedView, CreateView};
pub use drop::{Drop, ObjectType};
pub use emit::Emit;
pub use options::FormatDefinition;
pub use show::Show;
pub use transaction::{IsolationLevel, TransactionModes};

use crate::parser::grammar::{Grammar, Result};

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
    CreateSchema {
        name: String,
        if_not_exists: bool,
    },
    Drop(Drop),
    /// SELECT, VALUES, WITH …, TABLE t.
    Query(Box<ast::Query>),
    Insert(Box<ast::Insert>),
    Update(Box<ast::Update>),
    Delete(Box<ast::Delete>),
    /// `EXPLAIN [ANALYZE] statement`; the inner statement may be a query or CREATE MATERIALIZED VIEW.
    Explain {
        analyze: bool,
        verbose: bool,
        statement: Box<Statement>,
    },
    /// `EXPLAIN MATERIALIZED VIEW name`.
    ExplainRelation(QualifiedName),
    Show(Show),
    Describe(QualifiedName),
    /// `SET [SESSION | LOCAL] name = value, …`; `SET name = DEFAULT` is [`Statement::Reset`].
    Set {
        name: String,
        value: Vec<String>,
        local: bool,
    },
    /// `RESET name`, `RESET ALL`.
    Reset {
        name: Option<String>,
    },
    Flush {
        durable: bool,
    },
    /// `BEGIN`.
    Begin(TransactionModes),
    /// The standard's spelling of BEGIN, which answers with its own tag.
    StartTransaction(TransactionModes),
    /// `SET TRANSACTION …`; with `session`, `SET SESSION CHARACTERISTICS AS TRANSACTION …`.
    SetTransaction {
        modes: TransactionModes,
        session: bool,
    },
    Commit,
    Rollback,
    /// DISCARD, DEALLOCATE, CLOSE ALL, UNLISTEN, LISTEN: accepted as PostgreSQL clients send
    /// them; the tag to answer.
    Discard {
        tag: &'static str,
    },
    /// An empty statement (`;`).
    Empty,
}

/// Reads one statement; the caller checks that nothing is left.
pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    if *grammar.peek_token() == Token::LParen {
        return query::parse(grammar);
    }
    match grammar.peek_word(0).as_deref() {
        Some("SELECT" | "VALUES" | "WITH") => query::parse(grammar),
        Some("INSERT" | "UPDATE" | "DELETE") => dml::parse(grammar),
        Some("CREATE") => parse_create(grammar),
        Some("DROP") => drop::parse(grammar),
        Some("EXPLAIN") => explain::parse(grammar),
        Some("DESCRIBE" | "DESC") => show::parse_describe(grammar),
        Some("SHOW") => show::parse(grammar),
        Some("SET") => set::parse(grammar),
        Some("RESET") => set::parse_reset(grammar),
        Some("FLUSH") => {
            grammar.advance();
            Ok(Statement::Flush { durable: grammar.take(&["DURABLE"]) })
        }
        Some("BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT") => transaction::parse(grammar),
        Some("DISCARD" | "DEALLOCATE" | "CLOSE" | "UNLISTEN") => discard::parse(grammar),
        _ => Err(unsupported::refuse(grammar)),
    }
}

fn parse_create(grammar: &mut Grammar<'_>) -> Result<Statement> {
    if grammar.at(&["CREATE", "SOURCE"]) {
        create_source::parse(grammar)
    } else if grammar.at(&["CREATE", "TABLE"]) {
        create_table::parse(grammar)
    } else if grammar.at(&["CREATE", "SINK"]) {
        create_sink::parse(grammar)
    } else if grammar.at(&["CREATE", "SCHEMA"]) {
        create_schema::parse(grammar)
    } else if create_view::is_next(grammar) {
        create_view::parse(grammar)
    } else {
        Err(unsupported::refuse(grammar))
    }
}
