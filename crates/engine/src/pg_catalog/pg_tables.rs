//! `pg_catalog.pg_tables`: tables and sources.

use super::objects::{primary_key, relations_of_kind};
use crate::system::ColumnType::{Bool, Name};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_TABLES: SystemTable = SystemTable {
    name: "pg_tables",
    columns: &[
        ("schemaname", Name),
        ("tablename", Name),
        ("tableowner", Name),
        ("tablespace", Name),
        ("hasindexes", Bool),
        ("hasrules", Bool),
        ("hastriggers", Bool),
        ("rowsecurity", Bool),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    relations_of_kind(&ctx.live, "r")
        .map(|relation| {
            vec![
                ("schemaname", relation.schema.clone().into()),
                ("tablename", relation.name.clone().into()),
                ("tableowner", relation.owner.clone().into()),
                ("hasindexes", (!primary_key(relation).is_empty()).into()),
            ]
        })
        .collect()
}
