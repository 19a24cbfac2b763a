//! One file a statement; this is the one list of them.

#![allow(clippy::needless_pass_by_ref_mut, reason = "all statements are called alike")]

mod begin;
mod create;
mod create_schema;
mod delete;
mod describe;
mod discard;
mod dml;
mod drop;
mod explain;
mod flush;
mod insert;
mod query;
mod reset;
mod set;
mod show;
mod update;

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use sql::{Parsed, SqlError, SqlErrorKind, Statement};

use crate::parameters::{self, Parameter};
use crate::session::PreparedStatement;
use crate::{Output, Prepared, Session, StatementKind};

/// Runs a statement.
pub(crate) async fn run(session: &mut Session, parsed: &Parsed) -> Result<Output, SqlError> {
    match &parsed.statement {
        Statement::Query(query) => query::run(session, query).await,
        Statement::Insert(insert) => insert::run(session, insert).await,
        Statement::Update(update) => update::run(session, update).await,
        Statement::Delete(delete) => delete::run(session, delete).await,
        Statement::CreateSource(_)
        | Statement::CreateTable(_)
        | Statement::CreateView(_)
        | Statement::CreateMaterializedView(_)
        | Statement::CreateSink(_) => create::run(session, &parsed.statement).await,
        Statement::CreateSchema { name, if_not_exists } => {
            create_schema::run(session, name, *if_not_exists).await
        }
        Statement::Drop(drop) => drop::run(session, drop).await,
        Statement::Explain { analyze, verbose, statement } => {
            explain::run(session, statement, *analyze, *verbose).await
        }
        Statement::ExplainRelation(name) => explain::relation(session, name).await,
        Statement::Show(show) => show::run(session, show),
        Statement::Describe(name) => describe::run(session, name),
        Statement::Set { name, value, local } => set::run(session, name, value, *local),
        Statement::SetTransaction { modes, session: whole_session } => {
            set::transaction(session, *modes, *whole_session)
        }
        Statement::Reset { name } => reset::run(session, name.as_deref()),
        Statement::Flush { durable } => flush::run(session, *durable).await,
        Statement::Begin(modes) => begin::begin(session, *modes, "BEGIN"),
        Statement::StartTransaction(modes) => begin::begin(session, *modes, "START TRANSACTION"),
        Statement::Commit => begin::commit(session).await,
        Statement::Rollback => Ok(begin::rollback(session)),
        Statement::Discard { tag } => discard::run(session, tag),
        Statement::Empty => Ok(Output::tag("")),
    }
}

/// Finds out what a statement takes and gives, without running it.
pub(crate) async fn prepare(
    session: &mut Session,
    parsed: Parsed,
    types: &[Option<DataType>],
) -> Result<Prepared, SqlError> {
    if session.transaction_status() == b'E'
        && !matches!(parsed.statement, Statement::Commit | Statement::Rollback)
    {
        return Err(SqlErrorKind::InFailedTransaction.into());
    }
    let given: Vec<Parameter> =
        types.iter().map(|known| known.clone().map_or(Parameter::Unknown, Parameter::Type)).collect();
    let declared = parameters::declared(&parsed.statement);
    let mut typed = parsed.statement.clone();
    let count = parameters::bind(&mut typed, &given)?;
    let (kind, signature) = match &typed {
        Statement::Query(query) => (StatementKind::Query, query::describe(session, query).await?),
        Statement::Insert(insert) => (StatementKind::Dml, insert::describe(session, insert).await?),
        Statement::Update(update) => (StatementKind::Dml, update::describe(session, update).await?),
        Statement::Delete(delete) => (StatementKind::Dml, delete::describe(session, delete).await?),
        Statement::Show(show) => (StatementKind::Other, Signature::rows(show::schema(show))),
        Statement::Describe(_) => (StatementKind::Other, Signature::rows(describe::schema())),
        Statement::Explain { .. } | Statement::ExplainRelation(_) => {
            (StatementKind::Other, Signature::rows(explain::schema()))
        }
        Statement::Empty => (StatementKind::Empty, Signature::default()),
        Statement::CreateSource(_)
        | Statement::CreateTable(_)
        | Statement::CreateView(_)
        | Statement::CreateMaterializedView(_)
        | Statement::CreateSink(_)
        | Statement::CreateSchema { .. }
        | Statement::Drop(_)
        | Statement::Set { .. }
        | Statement::SetTransaction { .. }
        | Statement::Reset { .. }
        | Statement::Flush { .. }
        | Statement::Begin(_)
        | Statement::StartTransaction(_)
        | Statement::Commit
        | Statement::Rollback
        | Statement::Discard { .. } => (StatementKind::Other, Signature::default()),
    };
    let parameters: Vec<DataType> = (0..count.max(types.len()))
        .map(|at| {
            let given = types.get(at).cloned().flatten();
            let declared = || {
                declared.iter().find(|(number, _)| *number == at + 1).map(|(_, data_type)| data_type.clone())
            };
            // What nothing says anything about is text, as in PostgreSQL.
            given.or_else(declared).or_else(|| signature.parameter(at)).unwrap_or(DataType::Utf8View)
        })
        .collect();
    let inner = Arc::new(PreparedStatement { parsed, parameters: parameters.clone() });
    Ok(Prepared { kind, parameters, schema: signature.schema, inner })
}

/// What a statement takes and gives.
#[derive(Debug, Default)]
struct Signature {
    /// By parameter number, from 0; `None`: not inferred.
    parameters: Vec<Option<DataType>>,
    schema: Option<SchemaRef>,
}

impl Signature {
    fn rows(schema: SchemaRef) -> Self {
        Self { parameters: Vec::new(), schema: Some(schema) }
    }

    fn parameter(&self, at: usize) -> Option<DataType> {
        self.parameters.get(at).cloned().flatten()
    }

    /// Notes what was inferred for `$number`; the first inference counts.
    fn infer(&mut self, number: usize, data_type: DataType) {
        if number == 0 {
            return;
        }
        if self.parameters.len() < number {
            self.parameters.resize(number, None);
        }
        self.parameters[number - 1].get_or_insert(data_type);
    }
}

/// Refuses statements that are applied at a barrier and durable at once: they cannot be undone by
/// ROLLBACK.
fn refuse_in_block(session: &Session, statement: &str) -> Result<(), SqlError> {
    if session.transaction.is_some() {
        return Err(SqlErrorKind::InTransactionBlock { statement: statement.to_owned() }
            .hint("Highwater makes it durable at once; run it outside of BEGIN ... COMMIT."));
    }
    Ok(())
}

/// Refuses changes in a read-only transaction.
fn refuse_read_only(session: &Session, statement: &str) -> Result<(), SqlError> {
    if session.settings.is_on("transaction_read_only") {
        return Err(SqlErrorKind::ReadOnlyTransaction { statement: statement.to_owned() }.into());
    }
    Ok(())
}
