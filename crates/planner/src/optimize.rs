//! The optimizer rules a view's plan goes through.
//!
//! DataFusion's own list is made for batch: it turns `count(DISTINCT …)` into two aggregates,
//! subqueries into joins and filters into limits of scans. A view takes only rules that leave the
//! kinds of nodes as they are, so that what the user wrote is what is lowered, and the same text
//! gives the same graph at every start.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerContext};

/// Optimizes an analyzed plan of a view.
pub(crate) fn optimize(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let optimizer = Optimizer::with_rules(vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ]);
    // A context of its own has an alias generator of its own: generated names begin anew. It has
    // no time either, so nothing that depends on the clock is folded.
    let context = OptimizerContext::new_with_config_options(Arc::clone(state.config_options()))
        .without_query_execution_start_time();
    optimizer.optimize(plan, &context, |_, _| {})
}
