//! A database in memory and a session that speaks text.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::array_value_to_string;
use dataflow::ConnectorRegistry;
use engine::{Engine, EngineOptions, Output, Session};
use futures::TryStreamExt;
use sql::SqlError;

pub(crate) async fn open() -> Engine {
    open_with(ConnectorRegistry::default()).await
}

pub(crate) async fn open_with(connectors: ConnectorRegistry) -> Engine {
    let options = EngineOptions {
        data: None,
        allowed_paths: Vec::new(),
        memory: 256 << 20,
        parallelism: 2,
        epoch_min: Duration::from_millis(2),
        epoch_max: Duration::from_millis(50),
        checkpoint_interval: Duration::from_millis(100),
    };
    Engine::open(options, connectors).await.unwrap()
}

pub(crate) async fn session() -> Session {
    open().await.session("me")
}

/// Runs statements; the result of the last as lines of values, or its tag.
pub(crate) async fn run(session: &mut Session, text: &str) -> Result<String, SqlError> {
    let mut result = String::new();
    for statement in session.parse(text)? {
        result = show(session.execute(&statement).await?).await?;
    }
    Ok(result)
}

/// Runs statements that must succeed.
pub(crate) async fn ok(session: &mut Session, text: &str) -> String {
    run(session, text).await.unwrap_or_else(|error| panic!("{text}: {} {error:?}", error.sqlstate()))
}

/// Runs a statement that must fail: code and text.
pub(crate) async fn err(session: &mut Session, text: &str) -> String {
    match run(session, text).await {
        Ok(result) => panic!("{text} gave {result}"),
        Err(error) => format!("{} {error}", error.sqlstate()),
    }
}

pub(crate) async fn show(output: Output) -> Result<String, SqlError> {
    let Some(rows) = output.rows else {
        return Ok(match output.affected {
            Some(count) => format!("{} {count}", output.tag),
            None => output.tag,
        });
    };
    let batches: Vec<RecordBatch> = rows.stream.try_collect().await.map_err(sql::from_datafusion)?;
    let mut lines = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let values: Vec<String> = batch
                .columns()
                .iter()
                .map(|column| {
                    if column.is_null(row) {
                        "NULL".to_owned()
                    } else {
                        array_value_to_string(column, row).unwrap()
                    }
                })
                .collect();
            lines.push(values.join("|"));
        }
    }
    Ok(lines.join("\n"))
}

/// Column names of a statement's result.
pub(crate) async fn columns(session: &mut Session, text: &str) -> Vec<String> {
    let statement = session.parse(text).unwrap().remove(0);
    let rows = session.execute(&statement).await.unwrap().rows.unwrap();
    rows.schema.fields().iter().map(|field| field.name().clone()).collect()
}
