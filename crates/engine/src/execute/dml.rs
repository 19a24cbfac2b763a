//! What INSERT, UPDATE and DELETE have in common: carrying a change out, and RETURNING.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use sql::{SqlError, SqlErrorKind, folded};
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableFactor,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::query::{plan, read_view, statement_tables};
use crate::batch::{CHANGED, DML_SCHEMA, StatementTables};
use crate::dml::{Committed, TableColumns, Writes};
use crate::engine::Shared;
use crate::error::from_arrow;
use crate::live::Live;
use crate::transaction::ReadView;
use crate::{Output, Rows, Session};

/// How often a single statement is run again because another was first, before that is the
/// client's business.
pub(super) const ATTEMPTS: usize = 100;

/// Rows of a table to add, remove or replace. They have all columns of the view table.
pub(super) enum Change {
    Insert(RecordBatch),
    Delete(RecordBatch),
    /// Row i of the first becomes row i of the second.
    Update(RecordBatch, RecordBatch),
}

impl Change {
    fn row_count(&self) -> usize {
        match self {
            Self::Insert(rows) | Self::Delete(rows) | Self::Update(_, rows) => rows.num_rows(),
        }
    }

    /// The rows RETURNING is about.
    fn rows(&self) -> &RecordBatch {
        match self {
            Self::Insert(rows) | Self::Delete(rows) | Self::Update(_, rows) => rows,
        }
    }

    fn add_to(
        &self,
        shared: &Shared,
        target: &TableColumns,
        view: &ReadView,
        writes: &mut Writes,
    ) -> Result<(), SqlError> {
        if let Self::Update(old, _) = self {
            writes.reserve(shared, old)?;
        }
        writes.reserve(shared, self.rows())?;
        let relation = &target.relation;
        let table = writes.table_mut(relation.id, &relation.name, &target.stored);
        match self {
            Self::Insert(rows) => table.insert(rows, &view.published),
            Self::Delete(rows) => table.delete(rows),
            Self::Update(old, new) => table.update(old, new, &view.published),
        }
    }
}

/// What carrying out a change came to.
pub(super) enum Outcome {
    Done(Output),
    /// Another transaction was first: run the statement again.
    Again,
}

/// Adds a change to the transaction, or commits it where there is none. `view` is what the
/// statement has read; a transaction's own writes are added to its snapshot.
pub(super) async fn carry_out(
    session: &mut Session,
    target: &TableColumns,
    view: ReadView,
    change: Change,
    tag: &str,
    returning: Option<Rows>,
) -> Result<Outcome, SqlError> {
    let affected = change.row_count() as u64;
    let shared = Arc::clone(&session.shared);
    let target = target.clone();
    if let Some(transaction) = &mut session.transaction {
        // The statement's own copy of the writes must not outlive its reads: the table's writes
        // are changed in place only when nobody else holds them.
        drop(view);
        let (_, snapshot) = transaction.snapshot(&shared).await?;
        let mut writes = std::mem::take(&mut snapshot.writes);
        let view = snapshot.clone();
        let workers = Arc::clone(&shared);
        let writes = workers
            .workers
            .block(move || {
                change.add_to(&shared, &target, &view, &mut writes)?;
                Ok(writes)
            })
            .await?;
        snapshot.writes = writes;
    } else if affected > 0 {
        let committed = shared
            .workers
            .finish({
                let shared = Arc::clone(&shared);
                async move {
                    let mut writes = Writes::default();
                    change.add_to(&shared, &target, &view, &mut writes)?;
                    shared.writes.commit(&shared, &view, &writes).await
                }
            })
            .await?;
        if let Committed::Conflict = committed {
            return Ok(Outcome::Again);
        }
    }
    Ok(Outcome::Done(Output { affected: Some(affected), rows: returning, ..Output::tag(tag) }))
}

/// The rows of a RETURNING clause.
pub(super) async fn returning(
    session: &Session,
    live: &Arc<Live>,
    target: &TableColumns,
    alias: &str,
    items: Option<&[SelectItem]>,
    change: &Change,
) -> Result<Option<Rows>, SqlError> {
    let Some(items) = items else { return Ok(None) };
    let rows = target.visible_rows(change.rows())?;
    let tables = changed_table(session, live, target, vec![rows])?;
    let planned = plan(session, live, &returning_query(alias, items)?, tables).await?;
    let view = read_view(session, live, &planned.plan.dependencies).await?;
    let batch = planned.collect(session, view).await?;
    Ok(Some(Rows::from_batches(batch.schema(), vec![batch])))
}

/// The columns of a RETURNING clause.
pub(super) async fn returning_schema(
    session: &Session,
    live: &Arc<Live>,
    target: &TableColumns,
    alias: &str,
    items: Option<&[SelectItem]>,
) -> Result<Option<SchemaRef>, SqlError> {
    let Some(items) = items else { return Ok(None) };
    let tables = changed_table(session, live, target, Vec::new())?;
    let planned = plan(session, live, &returning_query(alias, items)?, tables).await?;
    Ok(Some(planned.schema))
}

fn changed_table(
    session: &Session,
    live: &Arc<Live>,
    target: &TableColumns,
    rows: Vec<RecordBatch>,
) -> Result<StatementTables, SqlError> {
    // All columns may be NULL as far as the planner knows: nothing is optimised away by a promise.
    let fields: Vec<_> = target
        .stored
        .visible
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let rows = rows
        .into_iter()
        .map(|batch| RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).map_err(from_arrow))
        .collect::<Result<_, SqlError>>()?;
    Ok(statement_tables(session, live).with_changed(schema, rows))
}

fn returning_query(alias: &str, items: &[SelectItem]) -> Result<Query, SqlError> {
    let mut query = template(CHANGED, alias)?;
    select_mut(&mut query)?.projection = items.to_vec();
    Ok(query)
}

/// `SELECT 1 FROM "$dml".<table> AS <alias>`, to be filled.
pub(super) fn template(table: &str, alias: &str) -> Result<Query, SqlError> {
    let alias = Ident::with_quote('"', alias);
    let text = format!("SELECT 1 FROM \"{DML_SCHEMA}\".{table} AS {alias}");
    let query =
        Parser::new(&PostgreSqlDialect {}).try_with_sql(&text).and_then(|mut parser| parser.parse_query());
    query.map(|query| *query).map_err(|error| SqlErrorKind::internal(error.to_string()).into())
}

pub(super) fn select_mut(query: &mut Query) -> Result<&mut Select, SqlError> {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlErrorKind::internal("a template without SELECT").into());
    };
    Ok(select)
}

/// A column of the table named `alias`.
pub(super) fn column_of(alias: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::with_quote('"', alias), Ident::with_quote('"', column)])
}

/// Schema and name as PostgreSQL folds them.
pub(super) fn table_name(name: &ObjectName) -> Result<(Option<String>, String), SqlError> {
    let mut parts: Vec<String> = Vec::with_capacity(2);
    for part in &name.0 {
        let ObjectNamePart::Identifier(ident) = part else {
            return Err(SqlErrorKind::unsupported("a function as a table name").into());
        };
        parts.push(folded(ident));
    }
    let table = parts.pop().unwrap_or_default();
    let schema = parts.pop();
    if parts.is_empty() {
        return Ok((schema, table));
    }
    Err(SqlErrorKind::unsupported("a reference to another database").into())
}

/// A column that is assigned to. It has no qualifier.
pub(super) fn column_name(name: &ObjectName) -> Result<String, SqlError> {
    match table_name(name)? {
        (None, column) => Ok(column),
        (Some(_), _) => Err(SqlErrorKind::unsupported("assignment to a field of a column").into()),
    }
}

/// The table of UPDATE and DELETE: its name, and the name it goes by in the statement.
pub(super) fn target_of(
    factor: &TableFactor,
    statement: &str,
) -> Result<(Option<String>, String, String), SqlError> {
    // All fields, so that none is ever ignored.
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = factor
    else {
        return Err(SqlErrorKind::unsupported(format!("{statement} of anything but a table")).into());
    };
    let has_columns = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
    if has_columns || !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
        let feature = format!("{statement} of a table with hints or column aliases");
        return Err(SqlErrorKind::unsupported(feature).into());
    }
    let (schema, table) = table_name(name)?;
    let alias = alias.as_ref().map_or_else(|| table.clone(), |alias| folded(&alias.name));
    Ok((schema, table, alias))
}

/// The first of several rows for the same key, in order: a join may find a row more than once, and
/// it is changed once.
pub(super) fn first_of_each(rows: &RecordBatch, target: &TableColumns) -> Result<RecordBatch, SqlError> {
    let key_len = target.stored.schema.key_len;
    let keys =
        state::encode_keys(&rows.columns()[..key_len], rows.num_rows()).map_err(crate::error::from_state)?;
    let mut seen = BTreeSet::new();
    let keep: arrow::array::BooleanArray =
        (0..keys.len()).map(|row| Some(seen.insert(keys.get(row)))).collect();
    if keep.true_count() == rows.num_rows() {
        return Ok(rows.clone());
    }
    arrow::compute::filter_record_batch(rows, &keep).map_err(from_arrow)
}
