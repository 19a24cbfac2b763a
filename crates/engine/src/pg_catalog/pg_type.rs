//! `pg_catalog.pg_type`: data types.

use super::objects::{OWNER, PG_CATALOG};
use super::types::TYPES;
use crate::system::ColumnType::{Bool, Char, Int2, Int4, Name, Oid, Text};
use crate::system::{Datum, Row, SystemContext, SystemTable};

pub(crate) const PG_TYPE: SystemTable = SystemTable {
    name: "pg_type",
    columns: &[
        ("oid", Oid),
        ("typname", Name),
        ("typnamespace", Oid),
        ("typowner", Oid),
        ("typlen", Int2),
        ("typbyval", Bool),
        ("typtype", Char),
        ("typcategory", Char),
        ("typispreferred", Bool),
        ("typisdefined", Bool),
        ("typdelim", Char),
        ("typrelid", Oid),
        ("typsubscript", Oid),
        ("typelem", Oid),
        ("typarray", Oid),
        ("typinput", Oid),
        ("typoutput", Oid),
        ("typreceive", Oid),
        ("typsend", Oid),
        ("typmodin", Oid),
        ("typmodout", Oid),
        ("typanalyze", Oid),
        ("typalign", Char),
        ("typstorage", Char),
        ("typnotnull", Bool),
        ("typbasetype", Oid),
        ("typtypmod", Int4),
        ("typndims", Int4),
        ("typcollation", Oid),
        ("typdefaultbin", Text),
        ("typdefault", Text),
        ("typacl", Text),
    ],
    rows,
};

fn rows(_: &SystemContext) -> Vec<Row> {
    TYPES
        .iter()
        .map(|entry| {
            vec![
                ("oid", entry.oid.into()),
                ("typname", entry.name.into()),
                ("typnamespace", PG_CATALOG.into()),
                ("typowner", OWNER.into()),
                ("typlen", Datum::Int(entry.length)),
                ("typbyval", (entry.length > 0 && entry.length <= 8).into()),
                ("typtype", entry.kind.into()),
                ("typcategory", entry.category.into()),
                ("typisdefined", true.into()),
                ("typdelim", ",".into()),
                ("typelem", entry.element.into()),
                ("typarray", entry.array.into()),
                ("typalign", "d".into()),
                ("typstorage", if entry.length > 0 { "p".into() } else { "x".into() }),
                ("typtypmod", Datum::Int(-1)),
            ]
        })
        .collect()
}
