//! `pg_catalog.pg_database`: the one database.

use super::objects::{DATABASE_OID, OWNER, TABLESPACE};
use crate::system::ColumnType::{Bool, Char, Int4, Int8, Name, Oid, Text};
use crate::system::{Datum, Row, SystemContext, SystemTable};

pub(crate) const PG_DATABASE: SystemTable = SystemTable {
    name: "pg_database",
    columns: &[
        ("oid", Oid),
        ("datname", Name),
        ("datdba", Oid),
        ("encoding", Int4),
        ("datlocprovider", Char),
        ("datistemplate", Bool),
        ("datallowconn", Bool),
        ("datconnlimit", Int4),
        ("datfrozenxid", Int8),
        ("datminmxid", Int8),
        ("dattablespace", Oid),
        ("datcollate", Text),
        ("datctype", Text),
        ("daticulocale", Text),
        ("datcollversion", Text),
        ("datacl", Text),
    ],
    rows,
};

/// PostgreSQL's number of the encoding UTF8.
const UTF8: u32 = 6;

fn rows(ctx: &SystemContext) -> Vec<Row> {
    vec![vec![
        ("oid", DATABASE_OID.into()),
        ("datname", ctx.database.clone().into()),
        ("datdba", OWNER.into()),
        ("encoding", UTF8.into()),
        ("datlocprovider", "c".into()),
        ("datallowconn", true.into()),
        ("datconnlimit", Datum::Int(-1)),
        ("dattablespace", TABLESPACE.into()),
        ("datcollate", "C".into()),
        ("datctype", "C".into()),
    ]]
}
