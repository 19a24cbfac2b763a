//! `highwater run job.sql`: a script on an embedded engine, without a server.
//!
//! Statements run in order and print their rows as psql's unaligned format does (`|` between
//! values); what is created keeps running until its bounded sources have ended.

use std::io::Write;
use std::path::Path;

use arrow::datatypes::SchemaRef;
use engine::{Output, Session};
use futures::StreamExt;

use crate::config::{Config, StateBackendKind};
use crate::pg::TextRows;
use crate::serve::open;

/// Runs a script. Without an explicit data folder everything is kept in memory.
pub(crate) async fn run(script: &Path, mut config: Config, is_data_given: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(script)
        .map_err(|error| format!("cannot read {}: {error}", script.display()))?;
    if is_data_given {
        config.check_folder()?;
    } else {
        config.state_backend = StateBackendKind::Memory;
    }
    let engine = open(&config, connectors::registry()).await?;
    let mut session = engine.session("postgres");
    let outcome = run_statements(&mut session, &text, script).await;
    engine.shutdown().await;
    outcome
}

async fn run_statements(session: &mut Session, text: &str, script: &Path) -> Result<(), String> {
    let located = |error: &sql::SqlError, offset: u32| describe(error, offset, text, script);
    let statements = session.parse(text).map_err(|error| located(&error, 0))?;
    for parsed in &statements {
        let output = session.execute(parsed).await.map_err(|error| located(&error, parsed.offset))?;
        print(output).await.map_err(|error| located(&error, parsed.offset))?;
    }
    // What was created goes on until its bounded sources have ended.
    let flush = session.parse("FLUSH").map_err(|error| located(&error, 0))?;
    for parsed in &flush {
        session.execute(parsed).await.map_err(|error| located(&error, 0))?;
    }
    Ok(())
}

/// `file:line: ERROR: message`, with detail and hint.
fn describe(error: &sql::SqlError, offset: u32, text: &str, script: &Path) -> String {
    let characters = (error.position.unwrap_or(1) + offset) as usize;
    let line =
        text.chars().take(characters.saturating_sub(1)).filter(|character| *character == '\n').count() + 1;
    let mut message = format!("{}:{line}: ERROR {}: {error}", script.display(), error.kind.sqlstate());
    if let Some(detail) = &error.detail {
        message.push_str(&format!("\nDETAIL: {detail}"));
    }
    if let Some(hint) = &error.hint {
        message.push_str(&format!("\nHINT: {hint}"));
    }
    message
}

async fn print(output: Output) -> Result<(), sql::SqlError> {
    for (severity, text) in &output.notices {
        write_line(&mut std::io::stderr().lock(), &format!("{severity}: {text}"));
    }
    let Some(mut rows) = output.rows else {
        return Ok(());
    };
    let names = header(&rows.schema);
    write_line(&mut std::io::stdout().lock(), &names);
    let mut encoder = TextRows::new(&rows.schema);
    while let Some(batch) = rows.stream.next().await {
        let batch = batch.map_err(sql::from_datafusion)?;
        let mut out = std::io::stdout().lock();
        for row in encoder.rows(&batch).map_err(|error| sql::from_datafusion(error.into()))? {
            let values: Vec<String> =
                row.into_iter().map(|value| value.unwrap_or_else(|| "NULL".to_owned())).collect();
            write_line(&mut out, &values.join("|"));
        }
    }
    Ok(())
}

fn header(schema: &SchemaRef) -> String {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.join("|")
}

/// A closed pipe ends the output, not the job.
fn write_line(out: &mut impl Write, line: &str) {
    let _ = writeln!(out, "{line}");
}
