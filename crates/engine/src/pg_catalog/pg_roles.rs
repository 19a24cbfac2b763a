//! `pg_catalog.pg_roles`: the roles that can be seen: the user of the session.

use super::objects::OWNER;
use crate::system::ColumnType::{Bool, Int4, Name, Oid, Text, Timestamptz};
use crate::system::{Datum, Row, SystemContext, SystemTable};

pub(crate) const PG_ROLES: SystemTable = SystemTable {
    name: "pg_roles",
    columns: &[
        ("rolname", Name),
        ("rolsuper", Bool),
        ("rolinherit", Bool),
        ("rolcreaterole", Bool),
        ("rolcreatedb", Bool),
        ("rolcanlogin", Bool),
        ("rolreplication", Bool),
        ("rolconnlimit", Int4),
        ("rolpassword", Text),
        ("rolvaliduntil", Timestamptz),
        ("rolbypassrls", Bool),
        ("rolconfig", Text),
        ("oid", Oid),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    vec![vec![
        ("rolname", ctx.user.clone().into()),
        ("rolsuper", true.into()),
        ("rolinherit", true.into()),
        ("rolcreaterole", true.into()),
        ("rolcreatedb", true.into()),
        ("rolcanlogin", true.into()),
        ("rolconnlimit", Datum::Int(-1)),
        ("rolpassword", "********".into()),
        ("oid", OWNER.into()),
    ]]
}
