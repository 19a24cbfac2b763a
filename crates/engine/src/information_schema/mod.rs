//! `information_schema`: the same facts as `pg_catalog`, in the standard's words.

mod columns;
mod key_column_usage;
mod schemata;
mod table_constraints;
mod tables;
mod views;

use catalog::{Relation, RelationKind};

use crate::system::ColumnType::{Bool, Int4, Text};
use crate::system::{ColumnList, SystemTable};

const TABLES: &[SystemTable] = &[
    columns::COLUMNS,
    key_column_usage::KEY_COLUMN_USAGE,
    schemata::SCHEMATA,
    table_constraints::TABLE_CONSTRAINTS,
    tables::TABLES,
    views::VIEWS,
];

/// Tables for things Highwater does not have.
const EMPTY: &[(&str, ColumnList)] = &[
    (
        "referential_constraints",
        &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("unique_constraint_catalog", Text),
            ("unique_constraint_schema", Text),
            ("unique_constraint_name", Text),
            ("match_option", Text),
            ("update_rule", Text),
            ("delete_rule", Text),
        ],
    ),
    (
        "constraint_column_usage",
        &[
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("column_name", Text),
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
        ],
    ),
    (
        "routines",
        &[
            ("specific_catalog", Text),
            ("specific_schema", Text),
            ("specific_name", Text),
            ("routine_catalog", Text),
            ("routine_schema", Text),
            ("routine_name", Text),
            ("routine_type", Text),
            ("data_type", Text),
            ("routine_definition", Text),
            ("is_deterministic", Bool),
        ],
    ),
    (
        "sequences",
        &[
            ("sequence_catalog", Text),
            ("sequence_schema", Text),
            ("sequence_name", Text),
            ("data_type", Text),
            ("numeric_precision", Int4),
            ("start_value", Text),
            ("increment", Text),
        ],
    ),
];

pub(crate) fn find(name: &str) -> Option<SystemTable> {
    if let Some(table) = TABLES.iter().find(|table| table.name == name) {
        return Some(*table);
    }
    let (name, columns) = EMPTY.iter().find(|(empty, _)| *empty == name)?;
    Some(SystemTable { name, columns, rows: |_| Vec::new() })
}

/// `table_type` of a relation; sinks are none.
fn table_type(relation: &Relation) -> Option<&'static str> {
    match relation.kind {
        RelationKind::Source { .. } | RelationKind::Table { .. } | RelationKind::Side { .. } => {
            Some("BASE TABLE")
        }
        RelationKind::View => Some("VIEW"),
        RelationKind::MaterializedView => Some("MATERIALIZED VIEW"),
        RelationKind::Sink => None,
    }
}

fn yes_no(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}
