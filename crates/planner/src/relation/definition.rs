//! The canonical text of CREATE statements: what SHOW CREATE prints and a restart plans again.
//!
//! Queries are kept as they were written; everything around them is printed in our own dialect.

use std::collections::BTreeMap;

use sql::statement::{
    ColumnDefinition, CreateMaterializedView, CreateSink, CreateSource, CreateTable, CreateView, Emit,
    FormatDefinition, QualifiedName, WatermarkDefinition,
};

pub(super) fn of_source(source: &CreateSource) -> String {
    let columns = column_list(&source.columns, &[], source.watermark.as_ref());
    let options = with(&source.options);
    format!("CREATE SOURCE {} (\n{columns}\n)\n{options}{}", name(&source.name), format(&source.format))
}

pub(super) fn of_table(table: &CreateTable) -> String {
    let columns = column_list(&table.columns, &table.primary_key, table.watermark.as_ref());
    format!("CREATE TABLE {} (\n{columns}\n)", name(&table.name))
}

pub(super) fn of_view(view: &CreateView) -> String {
    format!("CREATE VIEW {}{} AS\n{}", name(&view.name), aliases(&view.columns), view.query_text)
}

pub(super) fn of_materialized_view(view: &CreateMaterializedView) -> String {
    let aliases = aliases(&view.columns);
    let emit = emit(view.emit);
    format!("CREATE MATERIALIZED VIEW {}{aliases} AS\n{}{emit}", name(&view.name), view.query_text)
}

pub(super) fn of_sink(sink: &CreateSink) -> String {
    let emit = sink.emit.map(emit).unwrap_or_default();
    let options = with(&sink.options);
    let format = format(&sink.format);
    format!("CREATE SINK {} AS\n{}{emit}\n{options}{format}", name(&sink.name), sink.query_text)
}

fn name(name: &QualifiedName) -> String {
    match &name.schema {
        Some(schema) => {
            format!("{}.{}", sql::quote_identifier(schema), sql::quote_identifier(&name.name))
        }
        None => sql::quote_identifier(&name.name),
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| sql::quote_identifier(name)).collect::<Vec<_>>().join(", ")
}

fn aliases(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" ({})", list(names)) }
}

fn column_list(
    columns: &[ColumnDefinition],
    primary_key: &[String],
    watermark: Option<&WatermarkDefinition>,
) -> String {
    let mut lines: Vec<String> = columns.iter().map(|column| column_text(column, primary_key)).collect();
    if !primary_key.is_empty() {
        lines.push(format!("  PRIMARY KEY ({})", list(primary_key)));
    }
    if let Some(watermark) = watermark {
        let column = sql::quote_identifier(&watermark.column);
        lines.push(format!("  WATERMARK FOR {column} AS {}", watermark.expression));
    }
    lines.join(",\n")
}

fn column_text(column: &ColumnDefinition, primary_key: &[String]) -> String {
    let mut text = format!("  {} {}", sql::quote_identifier(&column.name), column.data_type);
    if column.not_null && !primary_key.contains(&column.name) {
        text.push_str(" NOT NULL");
    }
    if let Some(default) = &column.default {
        text.push_str(&format!(" DEFAULT {default}"));
    }
    text
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn pairs(options: &BTreeMap<String, String>) -> String {
    // Quoted keys need no rules for dots and words.
    let pair = |(key, value): (&String, &String)| {
        let is_plain = key.chars().all(|char| char.is_ascii_lowercase() || char == '_');
        let key = if is_plain { key.clone() } else { quoted(key) };
        format!("{key} = {}", quoted(value))
    };
    options.iter().map(pair).collect::<Vec<_>>().join(", ")
}

fn with(options: &BTreeMap<String, String>) -> String {
    format!("WITH ({})", pairs(options))
}

fn format(format: &FormatDefinition) -> String {
    let mut text = String::new();
    if let Some(name) = &format.format {
        text.push_str(&format!("\nFORMAT {}", name.to_uppercase()));
        if let Some(encode) = &format.encode {
            text.push_str(&format!(" ENCODE {}", encode.to_uppercase()));
            if !format.options.is_empty() {
                text.push_str(&format!(" ({})", pairs(&format.options)));
            }
        }
    }
    text
}

fn emit(emit: Emit) -> String {
    if !emit.on_window_close && emit.allowed_lateness == 0 {
        return String::new();
    }
    let when = if emit.on_window_close { "WINDOW CLOSE" } else { "UPDATE" };
    let mut text = format!("\nEMIT ON {when}");
    if emit.allowed_lateness != 0 {
        text.push_str(&format!(" ALLOWED LATENESS INTERVAL '{} microseconds'", emit.allowed_lateness));
    }
    text
}
