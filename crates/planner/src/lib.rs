//! SQL to job graphs, and to DataFusion plans for batch queries. No I/O.

mod api;

pub use api::{BatchTables, PlanContext, PlannedRelation, QueryPlan, explain_text, plan_query, plan_relation};
