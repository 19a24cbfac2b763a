//! Start: every relation is planned again from its stored definition (semantics 26).
//!
//! **Invariant.** A job runs over the state on disk only if the graph planned today prints exactly
//! as the one that state was written by: the hash of the print is stored with the relation.

use std::sync::Arc;

use catalog::{Catalog, Relation, RelationKind};
use dataflow::{ConnectorContext, ConnectorRegistry};
use planner::{PlanContext, PlannedRelation, plan_relation};
use sql::{SqlError, SqlErrorKind, Statement, parse};
use state::Snapshot;

use crate::error::{from_catalog, from_state};
use crate::live::Live;

/// Prefix of the catalog's `meta` entries.
const CATALOG_PREFIX: &[u8] = b"catalog/";

/// The catalog of a checkpoint with all its relations planned.
pub(crate) fn load(
    snapshot: &dyn Snapshot,
    connectors: &ConnectorRegistry,
    connector_context: &ConnectorContext,
) -> Result<Live, SqlError> {
    let entries = snapshot.scan_meta(CATALOG_PREFIX).map_err(from_state)?;
    let catalog = Catalog::load(&entries).map_err(from_catalog)?;
    let mut live = Live::new(catalog);
    let catalog = Arc::clone(&live.catalog);
    for relation in catalog.relations() {
        if let RelationKind::Side { parent, kind } = relation.kind {
            live.insert_side(relation.id, parent, kind);
            continue;
        }
        let ctx = PlanContext {
            catalog: Arc::clone(&catalog),
            connectors: connectors.clone(),
            connector_context: connector_context.clone(),
            settings: relation.settings.clone(),
        };
        let (statement, planned) = plan_stored(relation, &ctx)?;
        live.insert(relation.id, &statement, planned);
    }
    Ok(live)
}

/// Plans a relation as it is stored.
pub(crate) fn plan_stored(
    relation: &Relation,
    ctx: &PlanContext,
) -> Result<(Statement, PlannedRelation), SqlError> {
    let refused = |error: &dyn std::fmt::Display| -> SqlError {
        SqlErrorKind::DataCorrupted {
            message: format!(
                "the stored definition of {} cannot be planned: {error}",
                relation.description()
            ),
        }
        .into()
    };
    let mut statements = parse(&relation.definition).map_err(|error| refused(&error))?;
    if statements.len() != 1 {
        return Err(refused(&"it is not one statement"));
    }
    let statement = statements.remove(0).statement;
    let planned =
        plan_relation(&statement, relation.id, relation.first_table, ctx).map_err(|error| refused(&error))?;
    if planned.graph_hash != relation.graph_hash {
        return Err(SqlErrorKind::NotInPrerequisiteState {
            message: format!("the state of {} belongs to another plan of it", relation.description()),
        }
        .hint("It was written by another version of Highwater: open the folder with that version."));
    }
    Ok((statement, planned))
}
