//! `pg_catalog.pg_am`: access methods.

use super::objects::{BTREE, HEAP};
use crate::system::ColumnType::{Char, Name, Oid};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_AM: SystemTable = SystemTable {
    name: "pg_am",
    columns: &[("oid", Oid), ("amname", Name), ("amhandler", Oid), ("amtype", Char)],
    rows,
};

fn rows(_: &SystemContext) -> Vec<Row> {
    [(HEAP, "heap", "t"), (BTREE, "btree", "i")]
        .into_iter()
        .map(|(oid, name, kind)| vec![("oid", oid.into()), ("amname", name.into()), ("amtype", kind.into())])
        .collect()
}
