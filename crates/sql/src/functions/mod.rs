//! Functions with PostgreSQL's meaning, where DataFusion has none or another.
//!
//! DataFusion's functions stay; those of [`scalar_functions`] replace their namesakes. Operators,
//! literals and casts are not found by name: `analyze` replaces them in plans.

mod analyze;
mod arithmetic;
mod bytea;
mod canonical_float;
mod extract;
mod floats;
mod interval;
mod lengths;
mod modulo;
mod numeric;
mod regexp;
mod subquery;
mod text;
mod to_char;

use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::logical_expr::ScalarUDF;

use crate::error::{SqlError, SqlErrorKind};

/// Functions found by name.
#[must_use]
pub fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    let mut functions = vec![
        Arc::new(extract::date_part_function()),
        Arc::new(modulo::function()),
        Arc::new(regexp::function()),
        Arc::new(to_char::function()),
    ];
    functions.extend(lengths::functions());
    functions
}

/// Gives a session our functions and our meaning of operators, literals and casts. Batch and
/// streaming plans go through the same rules, so a view and the same SELECT agree.
pub fn register(state: &mut SessionState) {
    let rules = analyze::rules(&state.analyzer().rules);
    *state = SessionStateBuilder::new_from_existing(state.clone()).with_analyzer_rules(rules).build();
    for function in scalar_functions() {
        // A session's own registry takes every function; what is returned is the replaced one.
        drop(state.register_udf(function));
    }
}

/// Carries an error of ours through DataFusion.
fn refuse(kind: SqlErrorKind) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::from(kind)))
}
