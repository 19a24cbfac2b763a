//! The optimizer rules a view's plan goes through.
//!
//! DataFusion's own list is made for batch: it turns `count(DISTINCT …)` into two aggregates,
//! subqueries into joins and filters into limits of scans. A view takes only rules that leave the
//! kinds of nodes as they are, so that what the user wrote is what is lowered, and the same text
//! gives the same graph at every start.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerContext, OptimizerRule};

/// Optimizes an analyzed plan of a view.
pub(crate) fn optimize(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let optimizer = Optimizer::with_rules(vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(PushDownFilters::default()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ]);
    // A context of its own has an alias generator of its own: generated names begin anew. It has
    // no time either, so nothing that depends on the clock is folded.
    let context = OptimizerContext::new_with_config_options(Arc::clone(state.config_options()))
        .without_query_execution_start_time();
    optimizer.optimize(plan, &context, |_, _| {})
}

/// The rules of a batch query: DataFusion's, with ours in the place of the one it corrects, and without
/// the one that sums sums, which have another type than what was summed.
pub(crate) fn batch_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let ours = Arc::new(PushDownFilters::default());
    let corrected = |rule: Arc<dyn OptimizerRule + Send + Sync>| {
        if rule.name() == ours.name() { Arc::<PushDownFilters>::clone(&ours) } else { rule }
    };
    let sums_sums = |rule: &Arc<dyn OptimizerRule + Send + Sync>| {
        rule.name() == "single_distinct_aggregation_to_group_by"
    };
    Optimizer::new().rules.into_iter().filter(|rule| !sums_sums(rule)).map(corrected).collect()
}

/// DataFusion's rule, but for a condition without columns over an aggregate without groups: below
/// it, a condition that is false would leave the one row of the aggregate standing.
#[derive(Debug, Default)]
struct PushDownFilters(PushDownFilter);

impl OptimizerRule for PushDownFilters {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if stays_above(&plan) { Ok(Transformed::no(plan)) } else { self.0.rewrite(plan, config) }
    }
}

fn stays_above(plan: &LogicalPlan) -> bool {
    let (mut input, mut is_constant) = (plan, false);
    // Filters on top of each other would be merged and pushed down together.
    while let LogicalPlan::Filter(filter) = input {
        let conditions = split_conjunction(&filter.predicate);
        is_constant |= conditions.iter().any(|condition| condition.column_refs().is_empty());
        input = filter.input.as_ref();
    }
    is_constant && matches!(input, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}
