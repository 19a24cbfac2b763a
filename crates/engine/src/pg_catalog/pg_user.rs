//! `pg_catalog.pg_user`: the user of the session.

use super::objects::OWNER;
use crate::system::ColumnType::{Bool, Name, Oid, Text, Timestamptz};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_USER: SystemTable = SystemTable {
    name: "pg_user",
    columns: &[
        ("usename", Name),
        ("usesysid", Oid),
        ("usecreatedb", Bool),
        ("usesuper", Bool),
        ("userepl", Bool),
        ("usebypassrls", Bool),
        ("passwd", Text),
        ("valuntil", Timestamptz),
        ("useconfig", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    vec![vec![
        ("usename", ctx.user.clone().into()),
        ("usesysid", OWNER.into()),
        ("usecreatedb", true.into()),
        ("usesuper", true.into()),
        ("passwd", "********".into()),
    ]]
}
