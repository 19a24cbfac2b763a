//! `information_schema.key_column_usage`: the columns of primary keys.

use crate::pg_catalog::objects::{index_name, keyed_relations, primary_key};
use crate::system::ColumnType::{Int4, Text};
use crate::system::{Datum, Row, SystemContext, SystemTable};

pub(crate) const KEY_COLUMN_USAGE: SystemTable = SystemTable {
    name: "key_column_usage",
    columns: &[
        ("constraint_catalog", Text),
        ("constraint_schema", Text),
        ("constraint_name", Text),
        ("table_catalog", Text),
        ("table_schema", Text),
        ("table_name", Text),
        ("column_name", Text),
        ("ordinal_position", Int4),
        ("position_in_unique_constraint", Int4),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in keyed_relations(&ctx.live) {
        for (number, &column) in (1_u32..).zip(primary_key(relation)) {
            rows.push(vec![
                ("constraint_catalog", ctx.database.clone().into()),
                ("constraint_schema", relation.schema.clone().into()),
                ("constraint_name", index_name(relation).into()),
                ("table_catalog", ctx.database.clone().into()),
                ("table_schema", relation.schema.clone().into()),
                ("table_name", relation.name.clone().into()),
                ("column_name", relation.columns[column].name.clone().into()),
                ("ordinal_position", number.into()),
                ("position_in_unique_constraint", Datum::Null),
            ]);
        }
    }
    rows
}
