//! EXPLAIN: of a query its batch plan, of a CREATE or an existing relation its job graph.

use std::sync::Arc;

use arrow::array::{RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::displayable;
use planner::{explain_text, plan_relation};
use sql::statement::QualifiedName;
use sql::{SqlError, SqlErrorKind, Statement};

use super::query::{fixed_live, plan, read_view, statement_tables};
use crate::error::{from_arrow, from_datafusion};
use crate::startup::plan_stored;
use crate::{Output, Rows, Session};

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("QUERY PLAN", DataType::Utf8View, false)]))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "every other statement has no plan")]
pub(super) async fn run(
    session: &mut Session,
    statement: &Statement,
    analyze: bool,
    verbose: bool,
) -> Result<Output, SqlError> {
    match statement {
        Statement::Query(query) => {
            let live = fixed_live(session).await?;
            let tables = statement_tables(session, &live);
            let planned = plan(session, &live, query, tables).await?;
            let view = read_view(session, &live, &planned.plan.dependencies).await?;
            let logical = planned.plan.logical.display_indent().to_string();
            let (physical, planned) = planned.physical(session, view).await?;
            if !analyze {
                let text = displayable(physical.as_ref()).indent(verbose).to_string();
                let text = if verbose { format!("{logical}\n{text}") } else { text };
                return answer(&text);
            }
            let task = planned.plan.state.task_ctx();
            let text = session
                .shared
                .workers
                .run(async move {
                    datafusion::physical_plan::collect(Arc::clone(&physical), task)
                        .await
                        .map_err(from_datafusion)?;
                    Ok(DisplayableExecutionPlan::with_metrics(physical.as_ref()).indent(verbose).to_string())
                })
                .await?;
            answer(&text)
        }
        Statement::CreateSource(_)
        | Statement::CreateTable(_)
        | Statement::CreateView(_)
        | Statement::CreateMaterializedView(_)
        | Statement::CreateSink(_) => {
            if analyze {
                return Err(SqlErrorKind::unsupported("EXPLAIN ANALYZE of a CREATE statement").into());
            }
            let live = session.live();
            let mut catalog = (*live.catalog).clone();
            let (id, first_table) = (catalog.allocate_relation(), catalog.allocate_tables(0));
            let ctx = session.plan_context(&live);
            let statement = statement.clone();
            let text = session
                .shared
                .workers
                .run(async move { Ok(explain_text(&plan_relation(&statement, id, first_table, &ctx)?)) })
                .await?;
            answer(&text)
        }
        _ => Err(SqlErrorKind::unsupported("EXPLAIN of this statement").into()),
    }
}

/// `EXPLAIN MATERIALIZED VIEW name`.
pub(super) async fn relation(session: &mut Session, name: &QualifiedName) -> Result<Output, SqlError> {
    let live = session.live();
    let relation =
        live.find(name.schema.as_deref(), &name.name).map_err(|error| error.at(name.position))?.clone();
    if relation.parent().is_some() {
        return Err(SqlErrorKind::WrongObjectType {
            name: relation.name,
            expected: "a relation with a plan of its own",
        }
        .at(name.position));
    }
    let mut ctx = session.plan_context(&live);
    ctx.settings = relation.settings.clone();
    let text =
        session.shared.workers.run(async move { Ok(explain_text(&plan_stored(&relation, &ctx)?.1)) }).await?;
    answer(&text)
}

fn answer(text: &str) -> Result<Output, SqlError> {
    let lines: StringViewArray = text.lines().map(Some).collect();
    let batch = RecordBatch::try_new(schema(), vec![Arc::new(lines)]).map_err(from_arrow)?;
    Ok(Output::rows("EXPLAIN", Rows::from_batches(schema(), vec![batch])))
}
