//! `pg_catalog.pg_class`: relations and their indexes.

use super::objects::{BTREE, HEAP, OWNER, index_name, index_oid, namespace_oid, primary_key, relation_kind};
use crate::system::ColumnType::{Bool, Char, Float4, Int2, Int4, Int8, Name, Oid, Text};
use crate::system::{Datum, Row, SystemContext, SystemTable};

pub(crate) const PG_CLASS: SystemTable = SystemTable {
    name: "pg_class",
    columns: &[
        ("oid", Oid),
        ("relname", Name),
        ("relnamespace", Oid),
        ("reltype", Oid),
        ("reloftype", Oid),
        ("relowner", Oid),
        ("relam", Oid),
        ("relfilenode", Oid),
        ("reltablespace", Oid),
        ("relpages", Int4),
        ("reltuples", Float4),
        ("relallvisible", Int4),
        ("reltoastrelid", Oid),
        ("relhasindex", Bool),
        ("relisshared", Bool),
        ("relpersistence", Char),
        ("relkind", Char),
        ("relnatts", Int2),
        ("relchecks", Int2),
        ("relhasrules", Bool),
        ("relhastriggers", Bool),
        ("relhassubclass", Bool),
        ("relrowsecurity", Bool),
        ("relforcerowsecurity", Bool),
        ("relispopulated", Bool),
        ("relreplident", Char),
        ("relispartition", Bool),
        ("relrewrite", Oid),
        ("relfrozenxid", Int8),
        ("relminmxid", Int8),
        ("relacl", Text),
        ("reloptions", Text),
        ("relpartbound", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in ctx.live.catalog.relations() {
        let Some(kind) = relation_kind(relation) else { continue };
        let key = primary_key(relation);
        rows.push(vec![
            ("oid", relation.id.0.into()),
            ("relname", relation.name.clone().into()),
            ("relnamespace", namespace_oid(&ctx.live, &relation.schema).into()),
            ("relowner", OWNER.into()),
            ("relam", if kind == "v" { 0_u32.into() } else { HEAP.into() }),
            ("relfilenode", relation.id.0.into()),
            ("reltuples", Datum::Int(-1)),
            ("relhasindex", (!key.is_empty()).into()),
            ("relpersistence", "p".into()),
            ("relkind", kind.into()),
            ("relnatts", relation.columns.len().into()),
            ("relhasrules", matches!(kind, "v" | "m").into()),
            ("relispopulated", true.into()),
            ("relreplident", "d".into()),
        ]);
        if !key.is_empty() {
            rows.push(vec![
                ("oid", index_oid(relation).into()),
                ("relname", index_name(relation).into()),
                ("relnamespace", namespace_oid(&ctx.live, &relation.schema).into()),
                ("relowner", OWNER.into()),
                ("relam", BTREE.into()),
                ("relfilenode", index_oid(relation).into()),
                ("relpersistence", "p".into()),
                ("relkind", "i".into()),
                ("relnatts", key.len().into()),
                ("relispopulated", true.into()),
                ("relreplident", "n".into()),
            ]);
        }
    }
    rows
}
