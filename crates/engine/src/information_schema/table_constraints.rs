//! `information_schema.table_constraints`: primary keys.

use crate::pg_catalog::objects::{index_name, keyed_relations};
use crate::system::ColumnType::Text;
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const TABLE_CONSTRAINTS: SystemTable = SystemTable {
    name: "table_constraints",
    columns: &[
        ("constraint_catalog", Text),
        ("constraint_schema", Text),
        ("constraint_name", Text),
        ("table_catalog", Text),
        ("table_schema", Text),
        ("table_name", Text),
        ("constraint_type", Text),
        ("is_deferrable", Text),
        ("initially_deferred", Text),
        ("enforced", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    keyed_relations(&ctx.live)
        .map(|relation| {
            vec![
                ("constraint_catalog", ctx.database.clone().into()),
                ("constraint_schema", relation.schema.clone().into()),
                ("constraint_name", index_name(relation).into()),
                ("table_catalog", ctx.database.clone().into()),
                ("table_schema", relation.schema.clone().into()),
                ("table_name", relation.name.clone().into()),
                ("constraint_type", "PRIMARY KEY".into()),
                ("is_deferrable", "NO".into()),
                ("initially_deferred", "NO".into()),
                ("enforced", "YES".into()),
            ]
        })
        .collect()
}
