//! `pg_catalog.pg_index`: primary keys, as the indexes they are.

use super::objects::{index_oid, keyed_relations, primary_key};
use crate::system::ColumnType::{Bool, Int2, Oid, Text};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_INDEX: SystemTable = SystemTable {
    name: "pg_index",
    columns: &[
        ("indexrelid", Oid),
        ("indrelid", Oid),
        ("indnatts", Int2),
        ("indnkeyatts", Int2),
        ("indisunique", Bool),
        ("indnullsnotdistinct", Bool),
        ("indisprimary", Bool),
        ("indisexclusion", Bool),
        ("indimmediate", Bool),
        ("indisclustered", Bool),
        ("indisvalid", Bool),
        ("indcheckxmin", Bool),
        ("indisready", Bool),
        ("indislive", Bool),
        ("indisreplident", Bool),
        ("indkey", Text),
        ("indcollation", Text),
        ("indclass", Text),
        ("indoption", Text),
        ("indexprs", Text),
        ("indpred", Text),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    keyed_relations(&ctx.live)
        .map(|relation| {
            let key = primary_key(relation);
            let columns: Vec<String> = key.iter().map(|column| (column + 1).to_string()).collect();
            let zeros = vec!["0"; key.len()].join(" ");
            vec![
                ("indexrelid", index_oid(relation).into()),
                ("indrelid", relation.id.0.into()),
                ("indnatts", key.len().into()),
                ("indnkeyatts", key.len().into()),
                ("indisunique", true.into()),
                ("indisprimary", true.into()),
                ("indimmediate", true.into()),
                ("indisvalid", true.into()),
                ("indisready", true.into()),
                ("indislive", true.into()),
                ("indkey", columns.join(" ").into()),
                ("indcollation", zeros.clone().into()),
                ("indclass", zeros.clone().into()),
                ("indoption", zeros.into()),
            ]
        })
        .collect()
}
