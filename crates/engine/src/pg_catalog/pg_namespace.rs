//! `pg_catalog.pg_namespace`: schemas.

use super::objects::{OWNER, namespaces};
use crate::system::ColumnType::{Name, Oid, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_NAMESPACE: SystemTable = SystemTable {
    name: "pg_namespace",
    columns: &[("oid", Oid), ("nspname", Name), ("nspowner", Oid), ("nspacl", Text)],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    namespaces(&ctx.live)
        .into_iter()
        .map(|(oid, name)| vec![("oid", oid.into()), ("nspname", name.into()), ("nspowner", OWNER.into())])
        .collect()
}
