//! CREATE statements to jobs, one file a kind of relation.

mod definition;
mod options;
mod sink;
mod source;
mod table;
mod view;

use catalog::RelationId;
use sql::{SqlError, SqlErrorKind, Statement};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use table::TableLayout;
pub(crate) use view::plan_view_graph;

use crate::api::{PlanContext, PlannedRelation};
use crate::session::PlanSession;
use crate::state::Mode;

/// Plans a CREATE SOURCE/TABLE/VIEW/MATERIALIZED VIEW/SINK. Deterministic: the same statement,
/// catalog, settings, `id` and `first_table` give the same graph. Refuses what is not supported.
pub fn plan_relation(
    statement: &Statement,
    id: RelationId,
    first_table: u32,
    ctx: &PlanContext,
) -> Result<PlannedRelation, SqlError> {
    let session = PlanSession::new(ctx, Mode::Streaming);
    let mut planned = match statement {
        Statement::CreateSource(source) => source::plan(&session, source, id, first_table)?,
        Statement::CreateTable(table) => table::plan(table, id, first_table)?,
        Statement::CreateView(view) => view::plan_view(&session, view)?,
        Statement::CreateMaterializedView(view) => view::plan_materialized(&session, view, first_table)?,
        Statement::CreateSink(sink) => sink::plan(&session, sink, first_table)?,
        other => return Err(SqlErrorKind::internal(format!("{other:?} creates no relation")).into()),
    };
    if let Some(graph) = &planned.graph {
        planned.graph_hash = xxh3_64(graph.to_string().as_bytes());
    }
    Ok(planned)
}
