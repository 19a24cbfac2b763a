//! `pg_catalog.pg_indexes`: primary keys with their definitions.

use super::objects::{index_definition, index_name, keyed_relations};
use crate::system::ColumnType::{Name, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_INDEXES: SystemTable = SystemTable {
    name: "pg_indexes",
    columns: &[
        ("schemaname", Name),
        ("tablename", Name),
        ("indexname", Name),
        ("tablespace", Name),
        ("indexdef", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    keyed_relations(&ctx.live)
        .map(|relation| {
            vec![
                ("schemaname", relation.schema.clone().into()),
                ("tablename", relation.name.clone().into()),
                ("indexname", index_name(relation).into()),
                ("indexdef", index_definition(relation).into()),
            ]
        })
        .collect()
}
