//! `pg_catalog.pg_attrdef`: column defaults.

use super::objects::DEFAULTS;
use crate::system::ColumnType::{Int2, Oid, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_ATTRDEF: SystemTable = SystemTable {
    name: "pg_attrdef",
    columns: &[("oid", Oid), ("adrelid", Oid), ("adnum", Int2), ("adbin", Text)],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in ctx.live.catalog.relations() {
        for (number, column) in (1_u32..).zip(&relation.columns) {
            if let Some(default) = &column.default {
                let oid = DEFAULTS + rows.len() as u32;
                rows.push(vec![
                    ("oid", oid.into()),
                    ("adrelid", relation.id.0.into()),
                    ("adnum", number.into()),
                    ("adbin", default.clone().into()),
                ]);
            }
        }
    }
    rows
}
