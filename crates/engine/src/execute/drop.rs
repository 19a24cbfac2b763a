//! DROP: detached at a barrier, with its side relations and (CASCADE) all that depends on it.

use std::sync::Arc;

use catalog::{Catalog, Relation, RelationId, RelationKind};
use dataflow::JobId;
use runtime::Change;
use sql::statement::{Drop, ObjectType, QualifiedName};
use sql::{SqlError, SqlErrorKind};
use state::TableId;

use crate::engine::Shared;
use crate::error::from_catalog;
use crate::live::Live;
use crate::{Output, Session};

pub(super) async fn run(session: &mut Session, drop: &Drop) -> Result<Output, SqlError> {
    let tag = format!("DROP {}", words(drop.object).to_uppercase());
    super::refuse_in_block(session, &tag)?;
    let shared = Arc::clone(&session.shared);
    let drop = drop.clone();
    let notices = session.shared.workers.finish(async move { drop_all(&shared, &drop).await }).await?;
    Ok(notices.into_iter().fold(Output::tag(tag), Output::notice))
}

async fn drop_all(shared: &Arc<Shared>, drop: &Drop) -> Result<Vec<String>, SqlError> {
    let _turn = shared.ddl.lock().await;
    let live = shared.live();
    let mut notices = Vec::new();
    let mut catalog = (*live.catalog).clone();
    let mut dropped = Vec::new();
    let mut meta = Vec::new();
    let named = if drop.object == ObjectType::Schema {
        for name in &drop.names {
            if !catalog.schemas().contains(&name.name.as_str()) && drop.if_exists {
                notices.push(format!("schema \"{}\" does not exist, skipping", name.name));
                continue;
            }
            let (relations, writes) = catalog.drop_schema(&name.name, drop.cascade).map_err(from_catalog)?;
            dropped.extend(relations);
            meta.extend(writes);
        }
        Vec::new()
    } else {
        let ids = named_relations(&live, drop, &mut notices)?;
        if !ids.is_empty() {
            let (relations, writes) = catalog.drop_relations(&ids, drop.cascade).map_err(from_catalog)?;
            dropped.extend(relations);
            meta.extend(writes);
        }
        ids
    };
    if meta.is_empty() {
        return Ok(notices);
    }
    notices.extend(cascade_notice(&dropped, &named));
    let mut next = (*live).clone();
    next.catalog = Arc::new(catalog);
    let change = change(&dropped, &live, meta);
    for relation in &dropped {
        next.remove(relation.id);
    }
    shared.apply(change, next).await?;
    for relation in &dropped {
        shared.writes.forget(relation.id).await;
        tracing::info!(relation = %relation.description(), id = relation.id.0, "dropped");
    }
    Ok(notices)
}

fn named_relations(live: &Live, drop: &Drop, notices: &mut Vec<String>) -> Result<Vec<RelationId>, SqlError> {
    let mut ids = Vec::new();
    for name in &drop.names {
        match live.catalog.relation(name.schema.as_deref(), &name.name) {
            Some(relation) => {
                check_kind(relation, drop.object, name)?;
                if !ids.contains(&relation.id) {
                    ids.push(relation.id);
                }
            }
            None if drop.if_exists => {
                notices.push(format!("{} \"{}\" does not exist, skipping", words(drop.object), name.name));
            }
            None => return Err(undefined(drop.object, name)),
        }
    }
    Ok(ids)
}

/// PostgreSQL's code for a missing table, and its words for each kind of thing.
fn undefined(object: ObjectType, name: &QualifiedName) -> SqlError {
    let full = match &name.schema {
        Some(schema) if schema != Catalog::PUBLIC => format!("{schema}.{}", name.name),
        Some(_) | None => name.name.clone(),
    };
    let message = format!("{} \"{full}\" does not exist", words(object));
    SqlErrorKind::Evaluation { sqlstate: "42P01", message }.into()
}

fn check_kind(relation: &Relation, object: ObjectType, name: &QualifiedName) -> Result<(), SqlError> {
    let (fits, expected) = match object {
        ObjectType::Source => (matches!(relation.kind, RelationKind::Source { .. }), "a source"),
        // A source may have been declared as a table.
        ObjectType::Table => {
            (matches!(relation.kind, RelationKind::Table { .. } | RelationKind::Source { .. }), "a table")
        }
        ObjectType::View => (matches!(relation.kind, RelationKind::View), "a view"),
        ObjectType::MaterializedView => {
            (matches!(relation.kind, RelationKind::MaterializedView), "a materialized view")
        }
        ObjectType::Sink => (matches!(relation.kind, RelationKind::Sink), "a sink"),
        ObjectType::Schema => (false, "a schema"),
    };
    if fits {
        return Ok(());
    }
    let hint = match relation.kind {
        RelationKind::Source { .. } => "Use DROP SOURCE to remove a source.",
        RelationKind::Table { .. } => "Use DROP TABLE to remove a table.",
        RelationKind::View => "Use DROP VIEW to remove a view.",
        RelationKind::MaterializedView => "Use DROP MATERIALIZED VIEW to remove a materialized view.",
        RelationKind::Sink => "Use DROP SINK to remove a sink.",
        RelationKind::Side { .. } => "It goes with the relation it belongs to.",
    };
    Err(SqlErrorKind::WrongObjectType { name: relation.name.clone(), expected }.at(name.position).hint(hint))
}

fn words(object: ObjectType) -> &'static str {
    match object {
        ObjectType::Source => "source",
        ObjectType::Table => "table",
        ObjectType::View => "view",
        ObjectType::MaterializedView => "materialized view",
        ObjectType::Sink => "sink",
        ObjectType::Schema => "schema",
    }
}

/// What the runtime has to do so that relations are gone.
pub(super) fn change(dropped: &[Relation], live: &Live, meta: catalog::MetaWrites) -> Change {
    let jobs = dropped.iter().filter(|relation| live.job(relation).is_some());
    Change {
        add: Vec::new(),
        drop: jobs.map(|relation| JobId(relation.id.0)).collect(),
        drop_tables: dropped
            .iter()
            .flat_map(|relation| relation.first_table..relation.first_table + relation.table_count)
            .map(TableId)
            .collect(),
        meta,
    }
}

/// What went along, as PostgreSQL says it.
fn cascade_notice(dropped: &[Relation], named: &[RelationId]) -> Option<String> {
    let others: Vec<&Relation> = dropped
        .iter()
        .filter(|relation| !named.contains(&relation.id) && relation.parent().is_none())
        .collect();
    match others.as_slice() {
        [] => None,
        [one] => Some(format!("drop cascades to {}", one.description())),
        many => Some(format!("drop cascades to {} other objects", many.len())),
    }
}
