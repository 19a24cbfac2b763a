//! `information_schema.columns`: the columns of everything in `tables`.

#![expect(clippy::wildcard_enum_match_arm, reason = "Arrow's types list more than a table can hold")]

use arrow::datatypes::{DataType, TimeUnit};
use catalog::Column;

use super::{table_type, yes_no};
use crate::pg_catalog::types::column_type;
use crate::system::ColumnType::{Int4, Text};
use crate::system::{Datum, Row, SystemContext, SystemTable};

pub(crate) const COLUMNS: SystemTable = SystemTable {
    name: "columns",
    columns: &[
        ("table_catalog", Text),
        ("table_schema", Text),
        ("table_name", Text),
        ("column_name", Text),
        ("ordinal_position", Int4),
        ("column_default", Text),
        ("is_nullable", Text),
        ("data_type", Text),
        ("character_maximum_length", Int4),
        ("character_octet_length", Int4),
        ("numeric_precision", Int4),
        ("numeric_precision_radix", Int4),
        ("numeric_scale", Int4),
        ("datetime_precision", Int4),
        ("interval_type", Text),
        ("character_set_name", Text),
        ("collation_name", Text),
        ("domain_name", Text),
        ("udt_catalog", Text),
        ("udt_schema", Text),
        ("udt_name", Text),
        ("is_self_referencing", Text),
        ("is_identity", Text),
        ("identity_generation", Text),
        ("is_generated", Text),
        ("generation_expression", Text),
        ("is_updatable", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in ctx.live.catalog.relations() {
        if table_type(relation).is_none() {
            continue;
        }
        for (number, column) in (1_u32..).zip(&relation.columns) {
            let mut row = vec![
                ("table_catalog", ctx.database.clone().into()),
                ("table_schema", relation.schema.clone().into()),
                ("table_name", relation.name.clone().into()),
                ("ordinal_position", number.into()),
            ];
            row.extend(column_facts(column, &ctx.database));
            rows.push(row);
        }
    }
    rows
}

fn column_facts(column: &Column, database: &str) -> Row {
    let data_type = column_type(column);
    let sql_name = if data_type.category == "A" { "ARRAY" } else { data_type.sql_name };
    let (precision, radix, scale) = match column.data_type {
        DataType::Int16 => (Datum::Int(16), Datum::Int(2), Datum::Int(0)),
        DataType::Int32 => (Datum::Int(32), Datum::Int(2), Datum::Int(0)),
        DataType::Int64 => (Datum::Int(64), Datum::Int(2), Datum::Int(0)),
        DataType::Float32 => (Datum::Int(24), Datum::Int(2), Datum::Null),
        DataType::Float64 => (Datum::Int(53), Datum::Int(2), Datum::Null),
        DataType::Decimal128(precision, scale) => {
            (Datum::Int(i64::from(precision)), Datum::Int(10), Datum::Int(i64::from(scale)))
        }
        _ => (Datum::Null, Datum::Null, Datum::Null),
    };
    let datetime_precision = match column.data_type {
        DataType::Timestamp(TimeUnit::Microsecond, _) | DataType::Time64(_) => Datum::Int(6),
        DataType::Date32 => Datum::Int(0),
        _ => Datum::Null,
    };
    vec![
        ("column_name", column.name.clone().into()),
        ("column_default", column.default.clone().into()),
        ("is_nullable", yes_no(column.nullable).into()),
        ("data_type", sql_name.into()),
        ("character_maximum_length", Datum::Null),
        ("character_octet_length", Datum::Null),
        ("numeric_precision", precision),
        ("numeric_precision_radix", radix),
        ("numeric_scale", scale),
        ("datetime_precision", datetime_precision),
        ("udt_catalog", database.into()),
        ("udt_schema", "pg_catalog".into()),
        ("udt_name", data_type.name.into()),
        ("is_self_referencing", "NO".into()),
        ("is_identity", "NO".into()),
        ("is_generated", "NEVER".into()),
        ("is_updatable", "YES".into()),
    ]
}
