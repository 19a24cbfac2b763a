//! The DataFusion session state that queries are bound and, in batch, executed with.

use std::sync::{Arc, LazyLock};

use datafusion::config::Dialect;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;

use crate::aggregates;
use crate::optimize;
use crate::window::WindowRelations;

/// What a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A job that runs on: windows are plan nodes of their own.
    Streaming,
    /// One execution by DataFusion.
    Batch,
}

/// A state with our dialect, types and functions.
pub(crate) fn session_state(mode: Mode) -> SessionState {
    // Building one registers hundreds of functions; a copy only counts references.
    static STREAMING: LazyLock<SessionState> = LazyLock::new(|| build(Mode::Streaming));
    static BATCH: LazyLock<SessionState> = LazyLock::new(|| build(Mode::Batch));
    match mode {
        Mode::Streaming => STREAMING.clone(),
        Mode::Batch => BATCH.clone(),
    }
}

fn build(mode: Mode) -> SessionState {
    let windows = WindowRelations { streaming: mode == Mode::Streaming };
    let mut state = SessionStateBuilder::new()
        .with_config(config())
        .with_default_features()
        .with_optimizer_rules(optimize::batch_rules())
        .with_relation_planners(vec![Arc::new(windows)])
        .with_type_planner(Arc::new(sql::types::SqlTypes))
        .build();
    sql::functions::register(&mut state);
    for function in aggregates::functions() {
        // It replaces DataFusion's function of that name, which is what is returned.
        drop(state.register_udaf(function));
    }
    state
}

fn config() -> SessionConfig {
    let mut config = SessionConfig::new();
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = true;
    options.sql_parser.collect_spans = true;
    options.execution.time_zone = Some("UTC".to_owned());
    // DataFusion's plans and its operators disagree whether `p IS TRUE` can be NULL.
    options.execution.skip_physical_aggregate_schema_check = true;
    config
}
