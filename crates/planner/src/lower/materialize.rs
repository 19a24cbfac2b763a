//! The end of a view's graph: its rows are kept for readers.
//!
//! | rows | stored under | exchange |
//! |---|---|---|
//! | with a unique key                   | that key                        | to the owner of the key |
//! | append-only, with origins           | where they entered              | none |
//! | else                                | the whole row, with its count   | to the owner of the row |
//!
//! The exchange is left out where all rows that agree in the key are on one subtask already.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use dataflow::ChangelogKind;
use dataflow::{TableId, TableSchema};
use operators::{Materialize, MaterializeMode, StoredColumn};

use super::{Flow, Lowering};

impl Lowering<'_> {
    /// Stores the rows of a flow under these column names.
    pub(crate) fn materialize(&mut self, flow: Flow, names: &[String], table: TableId) -> Flow {
        let all: Vec<usize> = (0..names.len()).collect();
        let mut flow = self.arrange(flow, &all, names);
        let stream = &flow.stream;
        let (mode, key) = match &stream.key {
            Some(key) => (MaterializeMode::Keyed, key.clone()),
            None if stream.kind == ChangelogKind::Append && stream.has_origin => {
                (MaterializeMode::ByOrigin, Vec::new())
            }
            None => (MaterializeMode::Multiset, all.clone()),
        };
        if mode != MaterializeMode::ByOrigin && !stream.is_together(&key) {
            flow = self.hash(flow, &key);
        }
        let (schema, columns) = table_schema(mode, &key, flow.rows.fields());
        let spec = Materialize {
            input: Arc::clone(&flow.rows),
            input_kind: flow.stream.kind,
            table,
            schema,
            mode,
            columns,
            output: all,
        };
        let vertex = self.vertex(&mut flow);
        self.graph.push(vertex, spec);
        flow
    }
}

/// The columns of a view table over these rows, and where each one comes from.
fn table_schema(
    mode: MaterializeMode,
    key: &[usize],
    rows: &[FieldRef],
) -> (Arc<TableSchema>, Vec<StoredColumn>) {
    let hidden = |name: &str| Arc::new(Field::new(name, DataType::Int64, false));
    let (mut fields, mut columns, key_len) = match mode {
        MaterializeMode::ByOrigin => (
            vec![hidden("$split"), hidden("$position"), hidden("$ordinal")],
            vec![StoredColumn::Split, StoredColumn::Position, StoredColumn::Ordinal],
            3,
        ),
        MaterializeMode::Keyed => (Vec::new(), Vec::new(), key.len()),
        MaterializeMode::Multiset => (Vec::new(), Vec::new(), rows.len()),
    };
    let is_key = |column: &usize| mode == MaterializeMode::Keyed && key.contains(column);
    let key_first = key.iter().copied().filter(is_key);
    for column in key_first.chain((0..rows.len()).filter(|column| !is_key(column))) {
        fields.push(Arc::clone(&rows[column]));
        columns.push(StoredColumn::Input(column));
    }
    if mode == MaterializeMode::Multiset {
        fields.push(hidden("$count"));
    }
    (Arc::new(TableSchema { columns: Arc::new(Schema::new(fields)), key_len }), columns)
}
