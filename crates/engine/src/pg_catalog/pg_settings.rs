//! `pg_catalog.pg_settings`: session settings.

use crate::system::ColumnType::{Bool, Int4, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_SETTINGS: SystemTable = SystemTable {
    name: "pg_settings",
    columns: &[
        ("name", Text),
        ("setting", Text),
        ("unit", Text),
        ("category", Text),
        ("short_desc", Text),
        ("extra_desc", Text),
        ("context", Text),
        ("vartype", Text),
        ("source", Text),
        ("min_val", Text),
        ("max_val", Text),
        ("enumvals", Text),
        ("boot_val", Text),
        ("reset_val", Text),
        ("sourcefile", Text),
        ("sourceline", Int4),
        ("pending_restart", Bool),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    ctx.settings
        .iter()
        .map(|(name, value, description)| {
            vec![
                ("name", name.clone().into()),
                ("setting", value.clone().into()),
                ("category", "Highwater".into()),
                ("short_desc", description.clone().into()),
                ("context", "user".into()),
                ("vartype", "string".into()),
                ("source", "default".into()),
                ("boot_val", value.clone().into()),
                ("reset_val", value.clone().into()),
            ]
        })
        .collect()
}
