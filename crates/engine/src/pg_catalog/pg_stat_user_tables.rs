//! `pg_catalog.pg_stat_user_tables`: counters of tables.

use super::objects::relations_of_kind;
use crate::system::ColumnType::{Int8, Name, Oid, Timestamptz};
use crate::system::{Row, SystemContext, SystemTable};

pub(crate) const PG_STAT_USER_TABLES: SystemTable = SystemTable {
    name: "pg_stat_user_tables",
    columns: &[
        ("relid", Oid),
        ("schemaname", Name),
        ("relname", Name),
        ("seq_scan", Int8),
        ("seq_tup_read", Int8),
        ("idx_scan", Int8),
        ("idx_tup_fetch", Int8),
        ("n_tup_ins", Int8),
        ("n_tup_upd", Int8),
        ("n_tup_del", Int8),
        ("n_tup_hot_upd", Int8),
        ("n_live_tup", Int8),
        ("n_dead_tup", Int8),
        ("n_mod_since_analyze", Int8),
        ("n_ins_since_vacuum", Int8),
        ("last_vacuum", Timestamptz),
        ("last_autovacuum", Timestamptz),
        ("last_analyze", Timestamptz),
        ("last_autoanalyze", Timestamptz),
        ("vacuum_count", Int8),
        ("autovacuum_count", Int8),
        ("analyze_count", Int8),
        ("autoanalyze_count", Int8),
    ],
    rows,
};

fn rows(ctx: &SystemContext) -> Vec<Row> {
    relations_of_kind(&ctx.live, "r")
        .map(|relation| {
            vec![
                ("relid", relation.id.0.into()),
                ("schemaname", relation.schema.clone().into()),
                ("relname", relation.name.clone().into()),
            ]
        })
        .collect()
}
