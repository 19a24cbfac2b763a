//! `pg_catalog.pg_attribute`: columns.

use catalog::Column;

use super::objects::{index_oid, primary_key, relation_kind};
use super::types::{column_type, type_modifier};
use crate::system::ColumnType::{Bool, Char, Int2, Int4, Name, Oid, Text};
use crate::system::{Datum, Row, SystemContext, SystemTable};

pub(crate) const PG_ATTRIBUTE: SystemTable = SystemTable {
    name: "pg_attribute",
    columns: &[
        ("attrelid", Oid),
        ("attname", Name),
        ("atttypid", Oid),
        ("attstattarget", Int4),
        ("attlen", Int2),
        ("attnum", Int2),
        ("attndims", Int4),
        ("attcacheoff", Int4),
        ("atttypmod", Int4),
        ("attbyval", Bool),
        ("attalign", Char),
        ("attstorage", Char),
        ("attcompression", Char),
        ("attnotnull", Bool),
        ("atthasdef", Bool),
        ("atthasmissing", Bool),
        ("attidentity", Char),
        ("attgenerated", Char),
        ("attisdropped", Bool),
        ("attislocal", Bool),
        ("attinhcount", Int4),
        ("attcollation", Oid),
        ("attacl", Text),
        ("attoptions", Text),
        ("attfdwoptions", Text),
        ("attmissingval", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in ctx.live.catalog.relations() {
        let Some(kind) = relation_kind(relation) else { continue };
        for (number, column) in (1_u32..).zip(&relation.columns) {
            // Columns of views carry no constraints of their own.
            let not_null = kind == "r" && !column.nullable;
            rows.push(row(relation.id.0, number, column, not_null));
        }
        for (number, &column) in (1_u32..).zip(primary_key(relation)) {
            rows.push(row(index_oid(relation), number, &relation.columns[column], false));
        }
    }
    rows
}

fn row(relation: u32, number: u32, column: &Column, not_null: bool) -> Row {
    let data_type = column_type(column);
    vec![
        ("attrelid", relation.into()),
        ("attname", column.name.clone().into()),
        ("atttypid", data_type.oid.into()),
        ("attstattarget", Datum::Int(-1)),
        ("attlen", Datum::Int(data_type.length)),
        ("attnum", number.into()),
        ("attcacheoff", Datum::Int(-1)),
        ("atttypmod", Datum::Int(type_modifier(column))),
        ("attbyval", (data_type.length > 0 && data_type.length <= 8).into()),
        ("attalign", "d".into()),
        ("attstorage", if data_type.length > 0 { "p".into() } else { "x".into() }),
        ("attnotnull", not_null.into()),
        ("atthasdef", column.default.is_some().into()),
        ("attislocal", true.into()),
    ]
}
