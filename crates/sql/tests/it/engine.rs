//! Runs queries with our dialect, types and functions, as the planner sets DataFusion up.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::config::Dialect;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as PlannedStatement;
use sql::types::column_type;
use sql::{SqlError, Statement};
use sqlparser::ast;

/// A session with the tables that `CREATE TABLE` statements of `setup` describe and `INSERT`
/// statements fill.
pub(crate) fn session() -> SessionContext {
    let mut config = SessionConfig::new();
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = true;
    options.sql_parser.collect_spans = true;
    options.execution.time_zone = Some("UTC".to_owned());
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_type_planner(Arc::new(sql::types::SqlTypes))
        .build();
    sql::functions::register(&mut state);
    SessionContext::new_with_state(state)
}

/// An empty table with the columns of a CREATE TABLE.
pub(crate) fn create(session: &SessionContext, text: &str) {
    let Statement::CreateTable(table) = sql::parse(text).unwrap().remove(0).statement else {
        panic!("{text}")
    };
    let fields: Vec<_> = table
        .columns
        .iter()
        .map(|column| column_type(&column.data_type).unwrap().field(&column.name))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::new_empty(Arc::clone(&schema));
    let table_data = MemTable::try_new(schema, vec![vec![batch]]).unwrap();
    session.register_table(table.name.name.as_str(), Arc::new(table_data)).unwrap();
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The logical plan of a query.
pub(crate) fn plan(session: &SessionContext, text: &str) -> Result<LogicalPlan, SqlError> {
    let Statement::Query(query) = sql::parse(text)?.remove(0).statement else { panic!("{text}") };
    let statement = PlannedStatement::Statement(Box::new(ast::Statement::Query(query)));
    block_on(async { session.state().statement_to_plan(statement).await }).map_err(sql::from_datafusion)
}

/// All rows of a query; columns as `value type`.
pub(crate) fn rows(session: &SessionContext, text: &str) -> Result<Vec<String>, SqlError> {
    let plan = plan(session, text)?;
    let batches = block_on(async { session.execute_logical_plan(plan).await?.collect().await });
    let batches = batches.map_err(sql::from_datafusion)?;
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().zip(batch.columns()).map(|(column, array)| {
                format!("{} {}", column.value(row), sql::type_name(array.data_type()))
            });
            rows.push(values.collect::<Vec<_>>().join(" | "));
        }
    }
    Ok(rows)
}

/// The first row, or the error with its place.
pub(crate) fn outcome(session: &SessionContext, text: &str) -> String {
    match rows(session, text) {
        Ok(rows) => rows.first().cloned().unwrap_or_else(|| "no row".to_owned()),
        Err(error) => {
            let position = error.position.map_or_else(|| "-".to_owned(), |position| position.to_string());
            let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{} {position} {error}{hint}", error.sqlstate())
        }
    }
}
