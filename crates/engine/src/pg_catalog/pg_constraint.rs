//! `pg_catalog.pg_constraint`: primary keys, as the constraints they are.

use super::objects::{constraint_oid, index_name, index_oid, keyed_relations, namespace_oid, primary_key};
use crate::system::ColumnType::{Bool, Char, Int4, Name, Oid, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_CONSTRAINT: SystemTable = SystemTable {
    name: "pg_constraint",
    columns: &[
        ("oid", Oid),
        ("conname", Name),
        ("connamespace", Oid),
        ("contype", Char),
        ("condeferrable", Bool),
        ("condeferred", Bool),
        ("convalidated", Bool),
        ("conrelid", Oid),
        ("contypid", Oid),
        ("conindid", Oid),
        ("conparentid", Oid),
        ("confrelid", Oid),
        ("confupdtype", Char),
        ("confdeltype", Char),
        ("confmatchtype", Char),
        ("conislocal", Bool),
        ("coninhcount", Int4),
        ("connoinherit", Bool),
        ("conkey", Text),
        ("confkey", Text),
        ("conpfeqop", Text),
        ("conppeqop", Text),
        ("conffeqop", Text),
        ("confdelsetcols", Text),
        ("conexclop", Text),
        ("conbin", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    keyed_relations(&ctx.live)
        .map(|relation| {
            let columns: Vec<String> =
                primary_key(relation).iter().map(|column| (column + 1).to_string()).collect();
            vec![
                ("oid", constraint_oid(relation).into()),
                ("conname", index_name(relation).into()),
                ("connamespace", namespace_oid(&ctx.live, &relation.schema).into()),
                ("contype", "p".into()),
                ("convalidated", true.into()),
                ("conrelid", relation.id.0.into()),
                ("conindid", index_oid(relation).into()),
                ("confupdtype", " ".into()),
                ("confdeltype", " ".into()),
                ("confmatchtype", " ".into()),
                ("conislocal", true.into()),
                ("connoinherit", true.into()),
                ("conkey", format!("{{{}}}", columns.join(",")).into()),
            ]
        })
        .collect()
}
