//! `information_schema.schemata`: all schemas.

use crate::pg_catalog::objects::namespaces;
use crate::system::ColumnType::Text;
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const SCHEMATA: SystemTable = SystemTable {
    name: "schemata",
    columns: &[
        ("catalog_name", Text),
        ("schema_name", Text),
        ("schema_owner", Text),
        ("default_character_set_catalog", Text),
        ("default_character_set_schema", Text),
        ("default_character_set_name", Text),
        ("sql_path", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    namespaces(&ctx.live)
        .into_iter()
        .map(|(_, name)| {
            vec![
                ("catalog_name", ctx.database.clone().into()),
                ("schema_name", name.into()),
                ("schema_owner", ctx.user.clone().into()),
            ]
        })
        .collect()
}
