//! `pg_catalog.pg_tablespace`: the one tablespace.

use super::objects::{OWNER, TABLESPACE};
use crate::system::ColumnType::{Name, Oid, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_TABLESPACE: SystemTable = SystemTable {
    name: "pg_tablespace",
    columns: &[("oid", Oid), ("spcname", Name), ("spcowner", Oid), ("spcacl", Text), ("spcoptions", Text)],
    rows,
};

fn rows(_: &SystemContext) -> Vec<Row> {
    vec![vec![("oid", TABLESPACE.into()), ("spcname", "pg_default".into()), ("spcowner", OWNER.into())]]
}
