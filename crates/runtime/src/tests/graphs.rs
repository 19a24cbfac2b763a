//! Job graphs for tests.

use std::sync::Arc;

use dataflow::{
    Exchange, JobGraph, JobId, JobKind, JobVertex, OperatorId, OperatorNode, OperatorSpec, SideTables,
    SourceSpec, StateTable, VertexId, VertexInput, ViewTableSpec, WatermarkSpec,
};
use datafusion::logical_expr::Operator as BinaryOperator;
use datafusion::physical_expr::expressions::{binary, col, lit};
use datafusion::scalar::ScalarValue;
use state::{TableId, TableSchema};

use super::operators::{Count, Materialize, Window, int_schema};
use super::source::{TestSource, source_schema};
use crate::JobDefinition;

/// Table ids of a job: view, late, errors, then state.
pub(super) fn view_table(job: u32) -> TableId {
    TableId(job * 100)
}
pub(super) fn late_table(job: u32) -> TableId {
    TableId(job * 100 + 1)
}
pub(super) fn errors_table(job: u32) -> TableId {
    TableId(job * 100 + 2)
}

type Chain = Vec<Arc<dyn OperatorSpec>>;

pub(super) fn definition(id: u32, kind: JobKind, vertices: Vec<(Vec<VertexInput>, Chain)>) -> JobDefinition {
    let mut operators = 0;
    let vertices = vertices.into_iter().enumerate().map(|(idx, (inputs, chain))| {
        let chain = chain.into_iter().map(|spec| {
            operators += 1;
            let table = |(number, table)| StateTable {
                id: TableId(id * 100 + 10 * operators + number as u32),
                spec: table,
            };
            let tables = spec.state_tables().into_iter().enumerate().map(table).collect();
            OperatorNode { id: OperatorId(operators), spec, tables }
        });
        JobVertex { id: VertexId(idx as u32), inputs, chain: chain.collect() }
    });
    let side_tables = SideTables { late: Some(late_table(id)), errors: errors_table(id) };
    let graph = JobGraph { vertices: vertices.collect(), side_tables };
    JobDefinition { id: JobId(id), name: format!("job{id}"), kind, graph }
}

/// A source whose watermark is the event time less a delay.
pub(super) fn source(id: u32, source: &TestSource, delay: Option<i64>) -> JobDefinition {
    source_with(id, source, delay, None)
}

pub(super) fn source_with(
    id: u32,
    source: &TestSource,
    delay: Option<i64>,
    idle_timeout: Option<i64>,
) -> JobDefinition {
    let schema = source_schema();
    let watermark = delay.map(|delay| WatermarkSpec {
        column: 1,
        expression: binary(
            col("ts", &schema).unwrap(),
            BinaryOperator::Minus,
            lit(ScalarValue::DurationMicrosecond(Some(delay))),
            &schema,
        )
        .unwrap(),
    });
    let spec = SourceSpec {
        job: JobId(id),
        name: format!("source{id}"),
        source: Arc::new(source.clone()),
        schema,
        watermark,
        idle_timeout,
        future_max: None,
    };
    definition(id, JobKind::Source, vec![(vec![VertexInput::Source(Arc::new(spec))], vec![])])
}

pub(super) fn from_source(job: u32, columns: &[usize], needs_origin: bool) -> VertexInput {
    VertexInput::Relation {
        job: JobId(job),
        name: format!("source{job}"),
        schema: source_schema(),
        columns: columns.to_vec(),
        needs_origin,
        stored: None,
    }
}

pub(super) fn hash(from: u32, columns: &[usize]) -> VertexInput {
    VertexInput::Exchange { from: VertexId(from), exchange: Exchange::Hash(columns.to_vec()) }
}

/// A keyed view table of `bigint` columns.
pub(super) fn keyed(job: u32, names: &[&str], key_len: usize) -> Materialize {
    let output = int_schema(names);
    let schema = Arc::new(TableSchema { columns: Arc::clone(&output), key_len });
    let table = ViewTableSpec { table: view_table(job), schema, output: (0..names.len()).collect() };
    Materialize { table, output }
}

/// `SELECT k, count(*) … GROUP BY k` over a source.
pub(super) fn count_by_key(id: u32, source: u32) -> JobDefinition {
    definition(
        id,
        JobKind::View,
        vec![
            (vec![from_source(source, &[0], false)], vec![]),
            (
                vec![hash(0, &[0])],
                vec![Arc::new(Count { keys: vec![0], window: false }), Arc::new(keyed(id, &["k", "n"], 1))],
            ),
        ],
    )
}

/// `SELECT window_end, k, count(*) … GROUP BY window_end, k` over a source.
pub(super) fn count_by_window(id: u32, source: u32, size: i64) -> JobDefinition {
    definition(
        id,
        JobKind::View,
        vec![
            (vec![from_source(source, &[0, 1], true)], vec![Arc::new(Window { size })]),
            (
                vec![hash(0, &[0, 1])],
                vec![
                    Arc::new(Count { keys: vec![0, 1], window: true }),
                    Arc::new(keyed(id, &["window_end", "k", "n"], 2)),
                ],
            ),
        ],
    )
}

/// Counts the rows of another view by one of its columns.
pub(super) fn count_over(id: u32, upstream: &JobDefinition, key: usize) -> JobDefinition {
    let stored = upstream.graph.view_table().unwrap();
    let schema = upstream.graph.operators().last().unwrap().spec.output_schema();
    let input = VertexInput::Relation {
        job: upstream.id,
        name: upstream.name.clone(),
        columns: (0..schema.fields().len()).collect(),
        schema,
        needs_origin: false,
        stored: Some(stored),
    };
    definition(
        id,
        JobKind::View,
        vec![
            (vec![input], vec![]),
            (
                vec![hash(0, &[key])],
                vec![Arc::new(Count { keys: vec![key], window: false }), Arc::new(keyed(id, &["k", "n"], 1))],
            ),
        ],
    )
}

/// A table of (k, v) with key k.
pub(super) fn table(id: u32) -> JobDefinition {
    table_behind(id, vec![])
}

/// A table whose rows pass some operators first.
pub(super) fn table_behind(id: u32, chain: Chain) -> JobDefinition {
    let input = VertexInput::Inbox { job: JobId(id), schema: int_schema(&["k", "v"]) };
    definition(
        id,
        JobKind::Table,
        vec![(vec![input], chain), (vec![hash(0, &[0])], vec![Arc::new(keyed(id, &["k", "v"], 1))])],
    )
}
