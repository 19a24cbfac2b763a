//! What several tables of `pg_catalog` say about the same object: numbers, names, kinds.

use catalog::{Relation, RelationKind};
use sqlparser::ast;

use crate::live::Live;

/// The one role.
pub(crate) const OWNER: u32 = 10;
/// Access method of tables and materialized views.
pub(crate) const HEAP: u32 = 2;
/// Access method of primary keys.
pub(crate) const BTREE: u32 = 403;
pub(crate) const PG_CATALOG: u32 = 11;
pub(crate) const DATABASE_OID: u32 = 5;
pub(crate) const TABLESPACE: u32 = 1663;
/// First number of column defaults.
pub(crate) const DEFAULTS: u32 = 1_300_000_000;

const INFORMATION_SCHEMA: u32 = 12_000;
const PUBLIC: u32 = 2200;
const HIGHWATER: u32 = 12_001;
/// First number of user schemas: relations have the numbers from 16384 on.
const SCHEMAS: u32 = 1_200_000_000;
/// A primary key's index and constraint have the number of their relation plus these.
const INDEXES: u32 = 1_000_000_000;
const CONSTRAINTS: u32 = 1_100_000_000;

/// Numbers and names of all schemas.
pub(crate) fn namespaces(live: &Live) -> Vec<(u32, String)> {
    let mut all = vec![
        (PG_CATALOG, "pg_catalog".to_owned()),
        (INFORMATION_SCHEMA, "information_schema".to_owned()),
        (HIGHWATER, crate::system::DATABASE.to_owned()),
    ];
    all.extend(live.catalog.schemas().into_iter().map(|name| (schema_oid(name), name.to_owned())));
    all
}

/// Number of a schema; 0: there is none.
pub(crate) fn namespace_oid(live: &Live, name: &str) -> u32 {
    namespaces(live).into_iter().find(|(_, other)| other == name).map_or(0, |(oid, _)| oid)
}

/// A hash of the name: stable without being stored.
fn schema_oid(name: &str) -> u32 {
    if name == catalog::Catalog::PUBLIC {
        return PUBLIC;
    }
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    SCHEMAS + hash % 100_000_000
}

/// `relkind`; sinks are no relations for PostgreSQL.
pub(crate) fn relation_kind(relation: &Relation) -> Option<&'static str> {
    match relation.kind {
        RelationKind::Source { .. } | RelationKind::Table { .. } | RelationKind::Side { .. } => Some("r"),
        RelationKind::View => Some("v"),
        RelationKind::MaterializedView => Some("m"),
        RelationKind::Sink => None,
    }
}

/// Relations whose `relkind` is `kind`, side relations left out.
pub(crate) fn relations_of_kind<'a>(
    live: &'a Live,
    kind: &'static str,
) -> impl Iterator<Item = &'a Relation> {
    live.catalog
        .relations()
        .into_iter()
        .filter(move |relation| relation_kind(relation) == Some(kind) && relation.parent().is_none())
}

/// Columns of the primary key, in key order.
pub(crate) fn primary_key(relation: &Relation) -> &[usize] {
    match &relation.kind {
        RelationKind::Table { primary_key } => primary_key,
        RelationKind::Source { .. }
        | RelationKind::View
        | RelationKind::MaterializedView
        | RelationKind::Sink
        | RelationKind::Side { .. } => &[],
    }
}

/// Relations with a primary key.
pub(crate) fn keyed_relations(live: &Live) -> impl Iterator<Item = &Relation> {
    live.catalog.relations().into_iter().filter(|relation| !primary_key(relation).is_empty())
}

pub(crate) fn index_oid(relation: &Relation) -> u32 {
    INDEXES + relation.id.0
}

pub(crate) fn constraint_oid(relation: &Relation) -> u32 {
    CONSTRAINTS + relation.id.0
}

/// Name of the primary key, as index and as constraint.
pub(crate) fn index_name(relation: &Relation) -> String {
    format!("{}_pkey", relation.name)
}

/// The relation a primary key's index or constraint belongs to.
pub(crate) fn keyed_relation(live: &Live, oid: i64) -> Option<&Relation> {
    keyed_relations(live)
        .find(|relation| oid == i64::from(index_oid(relation)) || oid == i64::from(constraint_oid(relation)))
}

/// Names of the key columns, quoted where SQL needs it.
pub(crate) fn key_columns(relation: &Relation) -> Vec<String> {
    primary_key(relation).iter().map(|&column| quote_identifier(&relation.columns[column].name)).collect()
}

/// `CREATE UNIQUE INDEX …`, as `pg_get_indexdef` shows it.
pub(crate) fn index_definition(relation: &Relation) -> String {
    format!(
        "CREATE UNIQUE INDEX {} ON {}.{} USING btree ({})",
        quote_identifier(&index_name(relation)),
        quote_identifier(&relation.schema),
        quote_identifier(&relation.name),
        key_columns(relation).join(", "),
    )
}

/// A name as SQL: quoted unless it is lower case and begins like a name.
pub(crate) fn quote_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '$');
    if plain { name.to_owned() } else { ast::Ident::with_quote('"', name).to_string() }
}

/// The query of a view.
pub(crate) fn view_definition(relation: &Relation) -> Option<String> {
    let parsed = sql::parse(&relation.definition).ok()?;
    let statement = &parsed.first()?.statement;
    if let sql::Statement::CreateView(view) = statement {
        return Some(format!(" {};", view.query_text));
    }
    if let sql::Statement::CreateMaterializedView(view) = statement {
        return Some(format!(" {};", view.query_text));
    }
    None
}
