//! CREATE SINK: a query whose changes go to a connector.

use catalog::RelationKind;
use dataflow::{JobKind, SinkDefinition};
use sql::SqlError;
use sql::statement::{CreateSink, Emit};

use super::definition;
use super::options::{connector, format, option_error};
use super::view::{Lowered, bind, lower};
use crate::api::PlannedRelation;
use crate::bind::columns_of;
use crate::graph::TableIds;
use crate::session::PlanSession;

pub(super) fn plan(
    session: &PlanSession<'_>,
    sink: &CreateSink,
    first_table: u32,
) -> Result<PlannedRelation, SqlError> {
    let (name, connector) = connector(session, &sink.options, sink.name.position)?;
    let bound = bind(session, &sink.query, &[])?;
    let columns = columns_of(&bound.plan, &bound.names);
    let Lowered { mut lowering, flow, names, reads, plan } = lower_with_emission(session, sink)?;
    let flow = lowering.sink_rows(flow, &names);
    let defined = SinkDefinition {
        name: sink.name.name.clone(),
        schema: flow.rows(),
        kind: flow.stream.kind,
        options: sink
            .options
            .iter()
            .filter(|(name, _)| *name != "connector")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        format: format(&sink.format),
    };
    let target = connector.sink(&defined, &session.ctx.connector_context).map_err(option_error)?;
    lowering.sink(flow, name, target);
    let mut ids = TableIds::from(first_table);
    let graph = lowering.graph.finish(&mut ids);
    Ok(PlannedRelation {
        kind: RelationKind::Sink,
        job: JobKind::Sink,
        columns,
        definition: definition::of_sink(sink),
        dependencies: reads,
        graph: Some(graph),
        graph_hash: 0,
        table_count: ids.count(),
        notices: lowering.notices,
        plan: plan.display_indent().to_string(),
    })
}

/// A sink gets each window once, when it closes, if the query lets it and nothing else was asked.
fn lower_with_emission<'a>(session: &'a PlanSession<'a>, sink: &CreateSink) -> Result<Lowered<'a>, SqlError> {
    let lower_as = |emit| lower(session, &sink.query, bind(session, &sink.query, &[])?, emit);
    if let Some(emit) = sink.emit {
        return lower_as(emit);
    }
    let on_close = lower_as(Emit { on_window_close: true, allowed_lateness: 0 });
    match on_close {
        Ok(mut lowered) if lowered.has_windows() => {
            lowered.lowering.notices.push("windows are written once, when they close".to_owned());
            Ok(lowered)
        }
        Ok(_) | Err(_) => lower_as(Emit::default()),
    }
}
