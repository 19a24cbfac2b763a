//! SQL to job graphs, and to DataFusion plans for batch queries. No I/O.
//!
//! ```text
//! syntax tree ── bind ──► logical plan ─┬─ optimize ──► lower ──► JobGraph        a view, a sink
//!                                       └─ DataFusion's optimizer ──► QueryPlan   a batch query
//! ```

mod api;
mod state;
mod session;
mod bind;
mod names;
mod columns;
mod storage_type;
mod window;
mod aggregates;
mod optimize;
mod refuse;
mod properties;
mod lower;
mod graph;
mod relation;
mod query;
mod explain;
mod error;

pub use api::{BatchTables, PlanContext, PlannedRelation, QueryPlan};
pub use columns::relation_schema;
pub use explain::explain_text;
pub use query::{plan_query, plan_query_with_parameters};
pub use relation::plan_relation;
