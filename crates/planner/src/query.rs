//! Batch queries: bound and optimized here, executed by DataFusion in the engine.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::execution::FunctionRegistry;
use sql::SqlError;

use crate::api::{BatchTables, PlanContext, QueryPlan};
use crate::bind::{Binder, Tables};
use crate::session::PlanSession;
use crate::state::Mode;

/// Plans a query (or the query part of a DML statement) for batch execution. The types of its
/// parameters are inferred and found in the plan.
///
/// Functions of the current time are left in the plan: the engine sets the start of execution in
/// `state` and the physical planner takes it from there, so a plan can be kept and executed again.
pub fn plan_query(
    query: &sqlparser::ast::Query,
    ctx: &PlanContext,
    tables: &Arc<dyn BatchTables>,
) -> Result<QueryPlan, SqlError> {
    plan_query_with_parameters(query, ctx, tables, &[])
}

/// As [`plan_query`], where the client has said of which types `$1 …` are.
pub fn plan_query_with_parameters(
    query: &sqlparser::ast::Query,
    ctx: &PlanContext,
    tables: &Arc<dyn BatchTables>,
    parameters: &[Option<DataType>],
) -> Result<QueryPlan, SqlError> {
    let mut session = PlanSession::new(ctx, Mode::Batch);
    for function in tables.functions() {
        session.state.register_udf(function).map_err(sql::from_datafusion)?;
    }
    let bound = Binder::new(&session, Tables::Batch(tables)).bind(query, parameters)?;
    let state = session.state;
    let logical = state.optimizer().optimize(bound.plan, &state, |_, _| {}).map_err(sql::from_datafusion)?;
    Ok(QueryPlan { logical, state, names: bound.names, dependencies: bound.reads })
}
