//! CREATE SOURCE: a connector's splits, decoded once for all followers.

use std::sync::Arc;

use arrow::datatypes::DataType;
use catalog::{Column, RelationId, RelationKind};
use dataflow::{JobId, JobKind, SourceDefinition, SourceSpec, VertexInput, WatermarkSpec};
use datafusion::common::{DFSchema, TableReference};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use sql::statement::{CreateSource, WatermarkDefinition};
use sql::{SqlError, SqlErrorKind};

use super::definition;
use super::options::{SourceOptions, connector, format, option_error};
use crate::api::PlannedRelation;
use crate::bind::{Binder, Tables};
use crate::columns::{columns_of_definitions, relation_schema};
use crate::graph::{GraphBuilder, TableIds};
use crate::properties::is_event_time;
use crate::refuse::is_immutable;
use crate::session::PlanSession;

/// Event times further than this beyond the wall clock are errors, in unbounded sources.
const FUTURE_MAX: i64 = 86_400_000_000;

pub(super) fn plan(
    session: &PlanSession<'_>,
    source: &CreateSource,
    id: RelationId,
    first_table: u32,
) -> Result<PlannedRelation, SqlError> {
    let columns = columns_of_definitions(&source.columns)?;
    if let Some(with_default) = source.columns.iter().find(|column| column.default.is_some()) {
        return Err(SqlErrorKind::unsupported("DEFAULT of a source's column").at(with_default.position));
    }
    let (name, connector) = connector(session, &source.options, source.name.position)?;
    let (own, options) = SourceOptions::split(&source.options)?;
    let schema = relation_schema(&columns);
    let defined = SourceDefinition {
        name: source.name.name.clone(),
        schema: Arc::clone(&schema),
        options,
        format: format(&source.format),
    };
    let reader = connector.source(&defined, &session.ctx.connector_context).map_err(option_error)?;
    let watermark = match &source.watermark {
        Some(watermark) => Some(watermark_spec(session, source, watermark, &columns)?),
        None => None,
    };
    let bounded = reader.is_bounded();
    let spec = SourceSpec {
        job: JobId(id.0),
        name: source.name.name.clone(),
        source: reader,
        schema,
        watermark,
        idle_timeout: own.idle_timeout(bounded),
        future_max: (!bounded).then_some(FUTURE_MAX),
    };
    let mut ids = TableIds::from(first_table);
    let mut graph = GraphBuilder::default();
    graph.vertex(vec![VertexInput::Source(Arc::new(spec))]);
    Ok(PlannedRelation {
        kind: RelationKind::Source { connector: name, bounded },
        job: JobKind::Source,
        columns,
        definition: definition::of_source(source),
        dependencies: Vec::new(),
        graph: Some(graph.finish(&mut ids)),
        graph_hash: 0,
        table_count: ids.count(),
        notices: Vec::new(),
        plan: String::new(),
    })
}

fn watermark_spec(
    session: &PlanSession<'_>,
    source: &CreateSource,
    watermark: &WatermarkDefinition,
    columns: &[Column],
) -> Result<WatermarkSpec, SqlError> {
    let place = columns.iter().position(|column| column.name == watermark.column);
    let Some(place) = place else {
        return Err(SqlErrorKind::undefined_column(None, &watermark.column).at(watermark.position));
    };
    let column = &columns[place];
    if !is_event_time(&column.data_type) {
        let actual = sql::type_name(&column.data_type);
        return Err(
            SqlErrorKind::WatermarkType { column: column.name.clone(), actual }.at(watermark.position)
        );
    }
    let place_error = |error| {
        let error: SqlError = sql::from_datafusion(error);
        if error.position.is_some() { error } else { error.at(watermark.position) }
    };
    let relation = TableReference::bare(source.name.name.clone());
    let schema = relation_schema(columns);
    let schema = DFSchema::try_from_qualified_schema(relation, &schema).map_err(place_error)?;
    let binder = Binder::new(session, Tables::Followed);
    let expression = binder.expression(&watermark.expression, &schema).map_err(place_error)?;
    if !is_immutable(&expression) {
        let message = "a watermark must depend on the columns of its row alone".to_owned();
        return Err(SqlErrorKind::InvalidObjectDefinition { message }.at(watermark.position));
    }
    let data_type = expression.get_type(&schema).map_err(place_error)?;
    if !is_event_time(&data_type) && data_type != DataType::Date32 {
        let message = format!(
            "watermark of column \"{}\" must be a timestamp, not {}",
            column.name,
            sql::type_name(&data_type)
        );
        return Err(SqlErrorKind::DatatypeMismatch { message }.at(watermark.position));
    }
    let expression = as_type_of(expression, column, &schema).map_err(place_error)?;
    let physical = session.state.create_physical_expr(expression, &schema).map_err(place_error)?;
    Ok(WatermarkSpec { column: place, expression: physical })
}

/// A watermark has the type of its column: a timestamp can be computed in another precision.
fn as_type_of(expression: Expr, column: &Column, schema: &DFSchema) -> datafusion::common::Result<Expr> {
    let data_type = expression.get_type(schema)?;
    Ok(if data_type == column.data_type { expression } else { cast(expression, column.data_type.clone()) })
}
