//! SQL to job graphs, and to DataFusion plans for batch queries. No I/O.
//!
//! ```text
//! syntax tree ── bind ──► logical plan ─┬─ optimize ──► lower ──► JobGraph        a view, a sink
//!                                       └─ DataFusion's optimizer ──► QueryPlan   a batch query
//! ```

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the enums of sqlparser, arrow and DataFusion list what every database knows"
)]

mod aggregates;
mod api;
mod bind;
mod columns;
mod error;
mod explain;
mod graph;
mod lower;
mod names;
mod optimize;
mod properties;
mod query;
mod refuse;
mod relation;
mod session;
mod state;
mod storage_type;
mod text_length;
mod window;
mod wrong;

pub use api::{BatchTables, PlanContext, PlannedRelation, QueryPlan};
pub use columns::relation_schema;
pub use explain::explain_text;
pub use query::{plan_query, plan_query_with_parameters};
pub use relation::plan_relation;
