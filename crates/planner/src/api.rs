//! What goes in and comes out of the planner.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Catalog, Column, Relation, RelationId, RelationKind};
use dataflow::{ConnectorContext, ConnectorRegistry, JobGraph, JobKind};
use datafusion::catalog::TableProvider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, ScalarUDF};
use sql::SqlError;

/// What planning depends on.
#[derive(Clone)]
pub struct PlanContext {
    pub catalog: Arc<Catalog>,
    pub connectors: ConnectorRegistry,
    pub connector_context: ConnectorContext,
    /// Session settings that change plans, e.g. `timezone`, `dialect`.
    pub settings: BTreeMap<String, String>,
}

/// A relation ready to be created (or started again).
#[derive(Debug)]
pub struct PlannedRelation {
    pub kind: RelationKind,
    pub job: JobKind,
    /// Visible columns.
    pub columns: Vec<Column>,
    /// The canonical CREATE statement.
    pub definition: String,
    pub dependencies: Vec<RelationId>,
    /// `None` for a plain view.
    pub graph: Option<JobGraph>,
    /// Hash of the printed graph.
    pub graph_hash: u64,
    /// Table ids used from `first_table` on.
    pub table_count: u32,
    /// What to tell the user: mappings, default emission, unbounded state.
    pub notices: Vec<String>,
    /// The optimized logical plan, for EXPLAIN; empty where there is no query.
    pub plan: String,
}

/// Gives the planner the data behind relations for batch queries.
pub trait BatchTables: Send + Sync {
    /// A provider with exactly the relation's visible columns; also for system tables
    /// (`pg_catalog`, `information_schema`), which are not in the catalog.
    fn table(&self, relation: &Relation) -> Result<Arc<dyn TableProvider>, SqlError>;
    /// A table the engine provides itself, by schema and name.
    fn system_table(&self, schema: Option<&str>, name: &str) -> Option<Arc<dyn TableProvider>>;
    /// Functions of the session (`current_setting`, `pg_get_viewdef` …) to register beside the
    /// built-in ones; one of the same name replaces a built-in one.
    fn functions(&self) -> Vec<Arc<ScalarUDF>> {
        Vec::new()
    }
}

/// A batch query: an optimized logical plan and the state that executes it.
pub struct QueryPlan {
    pub logical: LogicalPlan,
    pub state: SessionState,
    /// Output names as PostgreSQL gives them; as many as the plan has columns.
    pub names: Vec<String>,
    /// Relations it reads.
    pub dependencies: Vec<RelationId>,
}
