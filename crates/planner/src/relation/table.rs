//! CREATE TABLE: row changes from the inbox to the table that readers see.
//!
//! ```text
//!  inbox ── hash(key) ──► materialize
//! ```

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use catalog::{Column, Relation, RelationId, RelationKind};
use dataflow::{ChangelogKind, Exchange, JobId, JobKind, VertexInput, ViewTableSpec};
use dataflow::{TableId, TableSchema};
use operators::{Materialize, MaterializeMode, StoredColumn};
use sql::statement::CreateTable;
use sql::{SqlError, SqlErrorKind};

use super::definition;
use crate::api::PlannedRelation;
use crate::columns::{columns_of_definitions, relation_schema};
use crate::graph::{GraphBuilder, TableIds};

pub(super) fn plan(
    table: &CreateTable,
    id: RelationId,
    first_table: u32,
) -> Result<PlannedRelation, SqlError> {
    if let Some(watermark) = &table.watermark {
        return Err(SqlErrorKind::unsupported("WATERMARK of a table")
            .at(watermark.position)
            .detail("Rows of a table can change, and a watermark promises that they do not.")
            .hint("Declare the watermark on a source."));
    }
    let columns = columns_of_definitions(&table.columns)?;
    let primary_key = key_columns(table, &columns)?;
    let layout = TableLayout::new(&columns, &primary_key);
    let mut ids = TableIds::from(first_table);
    let view_table = ids.allot();
    let mut graph = GraphBuilder::default();
    let inbox = VertexInput::Inbox { job: JobId(id.0), schema: Arc::clone(&layout.schema.columns) };
    let from = graph.vertex(vec![inbox]);
    let exchange = Exchange::Hash((0..layout.schema.key_len).collect());
    let vertex = graph.vertex(vec![VertexInput::Exchange { from, exchange }]);
    graph.push(vertex, layout.materialize(view_table));
    Ok(PlannedRelation {
        kind: RelationKind::Table { primary_key },
        job: JobKind::Table,
        columns,
        definition: definition::of_table(table),
        dependencies: Vec::new(),
        graph: Some(graph.finish(&mut ids)),
        graph_hash: 0,
        table_count: ids.count(),
        notices: Vec::new(),
        plan: String::new(),
    })
}

fn key_columns(table: &CreateTable, columns: &[Column]) -> Result<Vec<usize>, SqlError> {
    let place = |name: &String| {
        let missing = || SqlErrorKind::undefined_column(None, name).at(table.name.position);
        columns.iter().position(|column| column.name == *name).ok_or_else(missing)
    };
    table.primary_key.iter().map(place).collect()
}

/// How the rows of a table are stored: key columns first, or a hidden `$rowid` as the key.
#[derive(Debug)]
pub(crate) struct TableLayout {
    /// Columns of the view table and of the inbox.
    schema: Arc<TableSchema>,
    /// For each visible column, where it is stored.
    output: Vec<usize>,
    primary_key: Vec<usize>,
}

impl TableLayout {
    pub(crate) fn of(relation: &Relation) -> Result<Self, SqlError> {
        match &relation.kind {
            RelationKind::Table { primary_key } => Ok(Self::new(&relation.columns, primary_key)),
            other => Err(SqlErrorKind::internal(format!("{} is no table: {other:?}", relation.name)).into()),
        }
    }

    fn new(columns: &[Column], primary_key: &[usize]) -> Self {
        let visible: SchemaRef = relation_schema(columns);
        let rest = (0..columns.len()).filter(|column| !primary_key.contains(column));
        let order: Vec<usize> = primary_key.iter().copied().chain(rest).collect();
        let row_id = primary_key.is_empty().then(|| Arc::new(Field::new("$rowid", DataType::Int64, false)));
        let hidden = usize::from(row_id.is_some());
        let stored = order.iter().map(|column| Arc::clone(&visible.fields()[*column]));
        let fields: Vec<FieldRef> = row_id.into_iter().chain(stored).collect();
        let mut output = vec![0; columns.len()];
        for (place, column) in order.iter().enumerate() {
            output[*column] = place + hidden;
        }
        let key_len = primary_key.len().max(hidden);
        let schema = Arc::new(TableSchema { columns: Arc::new(Schema::new(fields)), key_len });
        Self { schema, output, primary_key: primary_key.to_vec() }
    }

    pub(crate) fn view_table(&self, table: u32) -> ViewTableSpec {
        ViewTableSpec { table: TableId(table), schema: Arc::clone(&self.schema), output: self.output.clone() }
    }

    /// The visible columns that are unique together.
    pub(crate) fn visible_key(&self) -> Option<Vec<usize>> {
        (!self.primary_key.is_empty()).then(|| self.primary_key.clone())
    }

    fn materialize(&self, table: TableId) -> Materialize {
        let stored = self.schema.columns.fields().len();
        Materialize {
            input: Arc::clone(&self.schema.columns),
            input_kind: ChangelogKind::Retract,
            table,
            schema: Arc::clone(&self.schema),
            mode: MaterializeMode::Keyed,
            columns: (0..stored).map(StoredColumn::Input).collect(),
            output: self.output.clone(),
        }
    }
}
