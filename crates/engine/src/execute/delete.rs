//! DELETE: the rows to remove are read with their hidden key, then removed.

use std::sync::Arc;

use arrow::array::RecordBatch;
use sql::{SqlError, SqlErrorKind};
use sqlparser::ast::{Delete, FromTable, Ident, Query, SelectItem};

use super::Signature;
use super::dml::{
    ATTEMPTS, Change, Outcome, carry_out, column_of, first_of_each, returning, returning_schema, select_mut,
    target_of, template,
};
use super::query::{fixed_live, plan, read_view, statement_tables};
use crate::batch::TARGET;
use crate::dml::TableColumns;
use crate::error::from_arrow;
use crate::live::Live;
use crate::{Output, Session};

pub(super) async fn run(session: &mut Session, delete: &Delete) -> Result<Output, SqlError> {
    super::refuse_read_only(session, "DELETE")?;
    let live = fixed_live(session).await?;
    let delete = DeletePlan::new(&live, delete)?;
    for _ in 0..ATTEMPTS {
        if let Outcome::Done(output) = delete.attempt(session, &live).await? {
            return Ok(output);
        }
    }
    Err(SqlErrorKind::SerializationFailure.into())
}

pub(super) async fn describe(session: &mut Session, delete: &Delete) -> Result<Signature, SqlError> {
    let live = fixed_live(session).await?;
    let delete = DeletePlan::new(&live, delete)?;
    let mut signature = Signature::default();
    let tables = statement_tables(session, &live).with_target(delete.target.clone());
    plan(session, &live, &delete.query, tables).await?.infer(&mut signature)?;
    signature.schema =
        returning_schema(session, &live, &delete.target, &delete.alias, delete.returning).await?;
    Ok(signature)
}

struct DeletePlan<'a> {
    target: TableColumns,
    alias: String,
    query: Query,
    returning: Option<&'a [SelectItem]>,
}

impl<'a> DeletePlan<'a> {
    fn new(live: &Live, delete: &'a Delete) -> Result<Self, SqlError> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [table] = from.as_slice() else {
            return Err(SqlErrorKind::unsupported("DELETE from several tables").into());
        };
        let (schema, name, alias) = target_of(&table.relation, "DELETE")?;
        let target = TableColumns::find(live, schema.as_deref(), &name, "delete from")?;
        target.refuse_append_only("DELETE")?;
        let mut query = template(TARGET, &alias)?;
        let select = select_mut(&mut query)?;
        let stored = target.stored.schema.columns.fields().iter();
        select.projection = stored
            .enumerate()
            .map(|(at, field)| SelectItem::ExprWithAlias {
                expr: column_of(&alias, field.name()),
                alias: Ident::with_quote('"', format!("$old{at}")),
            })
            .collect();
        select.selection = delete.selection.clone();
        select.from.extend(delete.using.iter().flatten().cloned());
        Ok(Self { target, alias, query, returning: delete.returning.as_deref() })
    }

    async fn attempt(&self, session: &mut Session, live: &Arc<Live>) -> Result<Outcome, SqlError> {
        let tables = statement_tables(session, live).with_target(self.target.clone());
        let planned = plan(session, live, &self.query, tables).await?;
        let mut relations = planned.plan.dependencies.clone();
        relations.push(self.target.relation.id);
        let view = read_view(session, live, &relations).await?;
        let rows = planned.collect(session, view.clone()).await?;
        let rows = first_of_each(&rows, &self.target)?;
        let schema = Arc::clone(&self.target.stored.schema.columns);
        let rows = RecordBatch::try_new(schema, rows.columns().to_vec()).map_err(from_arrow)?;
        let change = Change::Delete(rows);
        let returned = returning(session, live, &self.target, &self.alias, self.returning, &change).await?;
        carry_out(session, &self.target, view, change, "DELETE", returned).await
    }
}
