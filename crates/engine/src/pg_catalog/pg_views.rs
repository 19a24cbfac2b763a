//! `pg_catalog.pg_views`: plain views.

use super::objects::{relations_of_kind, view_definition};
use crate::system::ColumnType::{Name, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_VIEWS: SystemTable = SystemTable {
    name: "pg_views",
    columns: &[("schemaname", Name), ("viewname", Name), ("viewowner", Name), ("definition", Text)],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    relations_of_kind(&ctx.live, "v")
        .map(|relation| {
            vec![
                ("schemaname", relation.schema.clone().into()),
                ("viewname", relation.name.clone().into()),
                ("viewowner", relation.owner.clone().into()),
                ("definition", view_definition(relation).into()),
            ]
        })
        .collect()
}
