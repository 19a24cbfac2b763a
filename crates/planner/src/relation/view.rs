//! CREATE VIEW and CREATE MATERIALIZED VIEW.

use arrow::datatypes::DataType;
use catalog::{Column, RelationId, RelationKind};
use dataflow::{JobGraph, JobKind};
use datafusion::logical_expr::LogicalPlan;
use operators::{Aggregate, MaterializeMode};
use sql::statement::{CreateMaterializedView, CreateView, Emit};
use sql::{SqlError, SqlErrorKind};
use sqlparser::ast::Query;

use super::definition;
use crate::api::PlannedRelation;
use crate::bind::{Binder, Tables, columns_of, with_storage_types};
use crate::graph::{GraphBuilder, TableIds};
use crate::lower::{Flow, LowerError, Lowering};
use crate::optimize::optimize;
use crate::properties::Stream;
use crate::refuse::check_expressions;
use crate::session::PlanSession;

pub(super) fn plan_view(session: &PlanSession<'_>, view: &CreateView) -> Result<PlannedRelation, SqlError> {
    let bound = bind(session, &view.query, &view.columns)?;
    Ok(PlannedRelation {
        kind: RelationKind::View,
        job: JobKind::View,
        columns: columns_of(&bound.plan, &bound.names),
        definition: definition::of_view(view),
        dependencies: bound.reads,
        graph: None,
        graph_hash: 0,
        table_count: 0,
        notices: Vec::new(),
        plan: bound.plan.display_indent().to_string(),
    })
}

pub(super) fn plan_materialized(
    session: &PlanSession<'_>,
    view: &CreateMaterializedView,
    first_table: u32,
) -> Result<PlannedRelation, SqlError> {
    let planned = plan_view_graph(session, view, first_table)?;
    let mut notices = planned.notices;
    if planned.has_windows && !view.emit.on_window_close {
        notices.push(
            "windows are shown and updated while they are open; EMIT ON WINDOW CLOSE shows them once, when final"
                .to_owned(),
        );
    }
    Ok(PlannedRelation {
        kind: RelationKind::MaterializedView,
        job: JobKind::View,
        columns: planned.columns,
        definition: definition::of_materialized_view(view),
        dependencies: planned.reads,
        graph: Some(planned.graph),
        graph_hash: 0,
        table_count: planned.table_count,
        notices,
        plan: planned.plan,
    })
}

/// The graph of a materialized view and what is known of the rows it stores.
pub(crate) struct PlannedView {
    pub(crate) graph: JobGraph,
    pub(crate) stream: Stream,
    /// Whether its rows are those of sources, changed one by one.
    pub(crate) passes_sources_on: bool,
    columns: Vec<Column>,
    reads: Vec<RelationId>,
    table_count: u32,
    notices: Vec<String>,
    has_windows: bool,
    plan: String,
}

/// Plans the job of a materialized view.
pub(crate) fn plan_view_graph(
    session: &PlanSession<'_>,
    view: &CreateMaterializedView,
    first_table: u32,
) -> Result<PlannedView, SqlError> {
    if let Some(option) = view.options.keys().next() {
        let feature = format!("option \"{option}\" of a materialized view");
        return Err(SqlErrorKind::unsupported(feature).at(view.name.position));
    }
    let bound = bind(session, &view.query, &view.columns)?;
    let columns = columns_of(&bound.plan, &bound.names);
    let mut lowered = lower(session, &view.query, bound, view.emit)?;
    if view.emit.on_window_close && !lowered.has_windows() {
        return Err(SqlErrorKind::unsupported("EMIT ON WINDOW CLOSE of a query without GROUP BY")
            .at(view.name.position)
            .hint("Group by the window of TUMBLE over a relation with a WATERMARK, or leave EMIT out."));
    }
    let mut ids = TableIds::from(first_table);
    let flow = lowered.lowering.materialize(lowered.flow, &lowered.names, ids.allot());
    let has_windows = closes_windows(&lowered.lowering.graph);
    let graph = lowered.lowering.graph.finish(&mut ids);
    let by_origin = |spec: &operators::Materialize| spec.mode == MaterializeMode::ByOrigin;
    let passes_sources_on =
        graph.operators().any(|node| node.spec.as_any().downcast_ref().is_some_and(by_origin));
    Ok(PlannedView {
        graph,
        stream: flow.stream,
        passes_sources_on,
        columns,
        reads: lowered.reads,
        table_count: ids.count(),
        notices: lowered.lowering.notices,
        has_windows,
        plan: lowered.plan.display_indent().to_string(),
    })
}

/// A query with its output names; its plan has types that can be stored.
pub(super) struct NamedQuery {
    pub(super) plan: LogicalPlan,
    pub(super) names: Vec<String>,
    reads: Vec<RelationId>,
}

/// Binds the query of a view; `aliases` are the names in `CREATE VIEW v (a, b)`.
pub(super) fn bind(
    session: &PlanSession<'_>,
    query: &Query,
    aliases: &[String],
) -> Result<NamedQuery, SqlError> {
    let bound = Binder::new(session, Tables::Followed).bind(query, &[] as &[Option<DataType>])?;
    let mut names = bound.names;
    if aliases.len() > names.len() {
        let message = "CREATE VIEW specifies more column names than columns".to_owned();
        return Err(SqlErrorKind::Syntax { message }.into());
    }
    names[..aliases.len()].clone_from_slice(aliases);
    if let Some(name) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])).map(|at| &names[at]) {
        return Err(SqlErrorKind::DuplicateColumn { name: name.clone() }.into());
    }
    let plan = with_storage_types(bound.plan, &names).map_err(sql::from_datafusion)?;
    Ok(NamedQuery { plan, names, reads: bound.reads })
}

/// A query lowered to a graph that has no end yet.
pub(super) struct Lowered<'a> {
    pub(super) lowering: Lowering<'a>,
    pub(super) flow: Flow,
    pub(super) names: Vec<String>,
    pub(super) reads: Vec<RelationId>,
    pub(super) plan: LogicalPlan,
}

impl Lowered<'_> {
    pub(super) fn has_windows(&self) -> bool {
        closes_windows(&self.lowering.graph)
    }
}

pub(super) fn lower<'a>(
    session: &'a PlanSession<'a>,
    query: &Query,
    bound: NamedQuery,
    emit: Emit,
) -> Result<Lowered<'a>, SqlError> {
    if let Some(construct) = check_expressions(&bound.plan).map_err(sql::from_datafusion)? {
        return Err(construct.refuse(query));
    }
    let plan = optimize(bound.plan, &session.state).map_err(sql::from_datafusion)?;
    let mut lowering = Lowering { session, graph: GraphBuilder::default(), emit, notices: Vec::new() };
    let flow = lowering.query(&plan).map_err(|error| match error {
        LowerError::Refused(construct) => construct.refuse(query),
        LowerError::Other(error) => error,
    })?;
    Ok(Lowered { lowering, flow, names: bound.names, reads: bound.reads, plan })
}

fn closes_windows(graph: &GraphBuilder) -> bool {
    let closes = |aggregate: &Aggregate| aggregate.window_end.is_some();
    graph.specs().any(|spec| spec.as_any().downcast_ref().is_some_and(closes))
}
