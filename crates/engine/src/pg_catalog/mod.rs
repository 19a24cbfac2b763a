//! `pg_catalog`: what psql, drivers and BI tools read to find out what exists.
//!
//! One file a table; [`empty`] holds those that never have a row.

mod empty;
pub(crate) mod objects;
mod pg_am;
mod pg_attrdef;
mod pg_attribute;
mod pg_class;
mod pg_constraint;
mod pg_database;
mod pg_index;
mod pg_indexes;
mod pg_matviews;
mod pg_namespace;
mod pg_roles;
mod pg_settings;
mod pg_stat_user_tables;
mod pg_tables;
mod pg_tablespace;
mod pg_type;
mod pg_user;
mod pg_views;
pub(crate) mod types;

use crate::system::SystemTable;

/// The tables that have rows.
const TABLES: &[SystemTable] = &[
    pg_am::PG_AM,
    pg_attrdef::PG_ATTRDEF,
    pg_attribute::PG_ATTRIBUTE,
    pg_class::PG_CLASS,
    pg_constraint::PG_CONSTRAINT,
    pg_database::PG_DATABASE,
    pg_index::PG_INDEX,
    pg_indexes::PG_INDEXES,
    pg_matviews::PG_MATVIEWS,
    pg_namespace::PG_NAMESPACE,
    pg_roles::PG_ROLES,
    pg_settings::PG_SETTINGS,
    pg_stat_user_tables::PG_STAT_USER_TABLES,
    pg_tables::PG_TABLES,
    pg_tablespace::PG_TABLESPACE,
    pg_type::PG_TYPE,
    pg_user::PG_USER,
    pg_views::PG_VIEWS,
];

pub(crate) fn find(name: &str) -> Option<SystemTable> {
    if let Some(table) = TABLES.iter().find(|table| table.name == name) {
        return Some(*table);
    }
    let (name, columns) = empty::EMPTY.iter().find(|(empty, _)| *empty == name)?;
    Some(SystemTable { name, columns, rows: |_| Vec::new() })
}

pub(crate) fn is_always_empty(name: &str) -> bool {
    empty::EMPTY.iter().any(|(empty, _)| *empty == name)
}
