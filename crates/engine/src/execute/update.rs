//! UPDATE: the rows to change are read with their new values in one query, then replaced.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use sql::{SqlError, SqlErrorKind};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, Query, SelectItem, Update, UpdateTableFromKind,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::Signature;
use super::dml::{
    ATTEMPTS, Change, Outcome, carry_out, column_name, column_of, first_of_each, returning, returning_schema,
    select_mut, target_of, template,
};
use super::insert::{is_default, null};
use super::query::{fixed_live, plan, read_view, statement_tables};
use crate::batch::TARGET;
use crate::dml::{TableColumns, assign};
use crate::error::from_arrow;
use crate::live::Live;
use crate::parameters::{placeholder, typed};
use crate::{Output, Session};

pub(super) async fn run(session: &mut Session, update: &Update) -> Result<Output, SqlError> {
    super::refuse_read_only(session, "UPDATE")?;
    let live = fixed_live(session).await?;
    let update = UpdatePlan::new(&live, update)?;
    for _ in 0..ATTEMPTS {
        if let Outcome::Done(output) = update.attempt(session, &live).await? {
            return Ok(output);
        }
    }
    Err(SqlErrorKind::SerializationFailure.into())
}

pub(super) async fn describe(session: &mut Session, update: &Update) -> Result<Signature, SqlError> {
    let live = fixed_live(session).await?;
    let update = UpdatePlan::new(&live, update)?;
    let mut signature = Signature::default();
    let tables = statement_tables(session, &live).with_target(update.target.clone());
    plan(session, &live, &update.query, tables).await?.infer(&mut signature)?;
    signature.schema =
        returning_schema(session, &live, &update.target, &update.alias, update.returning).await?;
    Ok(signature)
}

struct UpdatePlan<'a> {
    target: TableColumns,
    alias: String,
    /// Stored columns, then the new value of each assigned column.
    query: Query,
    /// Positions of the assigned columns.
    assigned: Vec<usize>,
    returning: Option<&'a [SelectItem]>,
}

impl<'a> UpdatePlan<'a> {
    fn new(live: &Live, update: &'a Update) -> Result<Self, SqlError> {
        let (schema, table, alias) = target_of(&update.table.relation, "UPDATE")?;
        let target = TableColumns::find(live, schema.as_deref(), &table, "update")?;
        target.refuse_append_only("UPDATE")?;
        let mut assigned = Vec::new();
        let mut values = Vec::new();
        for (column, value) in assignments(&update.assignments)? {
            let position = target.position(&column)?;
            if assigned.contains(&position) {
                return Err(SqlErrorKind::Syntax {
                    message: format!("multiple assignments to same column \"{column}\""),
                }
                .into());
            }
            assigned.push(position);
            values.push(new_value(value, &target, position)?);
        }
        let mut query = template(TARGET, &alias)?;
        let select = select_mut(&mut query)?;
        let stored = target.stored.schema.columns.fields().iter();
        let old =
            stored.enumerate().map(|(at, field)| (column_of(&alias, field.name()), format!("$old{at}")));
        let new = values.into_iter().enumerate().map(|(at, value)| (value, format!("$new{at}")));
        select.projection = old
            .chain(new)
            .map(|(expr, name)| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) })
            .collect();
        select.selection = update.selection.clone();
        if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) = &update.from
        {
            select.from.extend(from.iter().cloned());
        }
        Ok(Self { target, alias, query, assigned, returning: update.returning.as_deref() })
    }

    async fn attempt(&self, session: &mut Session, live: &Arc<Live>) -> Result<Outcome, SqlError> {
        let tables = statement_tables(session, live).with_target(self.target.clone());
        let planned = plan(session, live, &self.query, tables).await?;
        let mut relations = planned.plan.dependencies.clone();
        relations.push(self.target.relation.id);
        let view = read_view(session, live, &relations).await?;
        let rows = planned.collect(session, view.clone()).await?;
        let rows = first_of_each(&rows, &self.target)?;
        let (old, new) = self.old_and_new(&rows)?;
        let change = Change::Update(old, new);
        let returned = returning(session, live, &self.target, &self.alias, self.returning, &change).await?;
        carry_out(session, &self.target, view, change, "UPDATE", returned).await
    }

    fn old_and_new(&self, rows: &RecordBatch) -> Result<(RecordBatch, RecordBatch), SqlError> {
        let schema = &self.target.stored.schema.columns;
        let (old, new) = rows.columns().split_at(schema.fields().len());
        let old = RecordBatch::try_new(Arc::clone(schema), old.to_vec()).map_err(from_arrow)?;
        let mut visible: Vec<ArrayRef> =
            self.target.stored.output.iter().map(|&column| Arc::clone(old.column(column))).collect();
        for (values, &position) in new.iter().zip(&self.assigned) {
            visible[position] = assign(values, &self.target.columns()[position])?;
        }
        self.target.check_not_null(&visible)?;
        let hidden_key = self.target.stored.has_hidden_key().then(|| Arc::clone(old.column(0)));
        let new = self.target.stored_rows(&visible, hidden_key)?;
        Ok((old, new))
    }
}

/// `a = x` and `(a, b) = (x, y)`, one by one.
fn assignments(assignments: &[Assignment]) -> Result<Vec<(String, Expr)>, SqlError> {
    let mut all = Vec::new();
    for assignment in assignments {
        match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => {
                all.push((column_name(name)?, value.clone()));
            }
            (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                for (name, value) in names.iter().zip(values) {
                    all.push((column_name(name)?, value.clone()));
                }
            }
            (AssignmentTarget::Tuple(_), _) => {
                return Err(SqlErrorKind::unsupported("assignment of a row value to several columns").into());
            }
        }
    }
    Ok(all)
}

fn new_value(value: Expr, target: &TableColumns, position: usize) -> Result<Expr, SqlError> {
    let column = &target.columns()[position];
    if placeholder(&value).is_some() {
        return typed(value, &column.data_type);
    }
    if !is_default(&value) {
        return Ok(value);
    }
    match &column.default {
        None => Ok(null()),
        Some(text) => Parser::new(&PostgreSqlDialect {})
            .try_with_sql(text)
            .and_then(|mut parser| parser.parse_expr())
            .map_err(|error| SqlErrorKind::internal(format!("default {text}: {error}")).into()),
    }
}
