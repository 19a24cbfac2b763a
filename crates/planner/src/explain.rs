//! EXPLAIN of a streaming plan.

use crate::api::PlannedRelation;

/// EXPLAIN of a streaming plan: the optimized logical plan, then the job graph with what each
/// operator does, keeps and frees.
#[must_use]
pub fn explain_text(planned: &PlannedRelation) -> String {
    let mut text = String::new();
    if !planned.plan.is_empty() {
        text.push_str("plan\n");
        for line in planned.plan.lines() {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
    if let Some(graph) = &planned.graph {
        text.push_str(&graph.to_string());
    }
    text
}
