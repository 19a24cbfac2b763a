//! `pg_catalog.pg_matviews`: materialized views.

use super::objects::{relations_of_kind, view_definition};
use crate::system::ColumnType::{Bool, Name, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_MATVIEWS: SystemTable = SystemTable {
    name: "pg_matviews",
    columns: &[
        ("schemaname", Name),
        ("matviewname", Name),
        ("matviewowner", Name),
        ("tablespace", Name),
        ("hasindexes", Bool),
        ("ispopulated", Bool),
        ("definition", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    relations_of_kind(&ctx.live, "m")
        .map(|relation| {
            vec![
                ("schemaname", relation.schema.clone().into()),
                ("matviewname", relation.name.clone().into()),
                ("matviewowner", relation.owner.clone().into()),
                ("ispopulated", true.into()),
                ("definition", view_definition(relation).into()),
            ]
        })
        .collect()
}
