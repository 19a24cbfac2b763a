//! `information_schema.views`: plain views.

use crate::pg_catalog::objects::{relations_of_kind, view_definition};
use crate::system::ColumnType::Text;
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const VIEWS: SystemTable = SystemTable {
    name: "views",
    columns: &[
        ("table_catalog", Text),
        ("table_schema", Text),
        ("table_name", Text),
        ("view_definition", Text),
        ("check_option", Text),
        ("is_updatable", Text),
        ("is_insertable_into", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    relations_of_kind(&ctx.live, "v")
        .map(|relation| {
            vec![
                ("table_catalog", ctx.database.clone().into()),
                ("table_schema", relation.schema.clone().into()),
                ("table_name", relation.name.clone().into()),
                ("view_definition", view_definition(relation).into()),
                ("check_option", "NONE".into()),
                ("is_updatable", "NO".into()),
                ("is_insertable_into", "NO".into()),
            ]
        })
        .collect()
}
