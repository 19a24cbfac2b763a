//! Errors of the layers below, as errors of a statement.

use arrow::error::ArrowError;
use catalog::CatalogError;
use datafusion::error::DataFusionError;
use dataflow::DataflowError;
use runtime::RuntimeError;
use sql::{SqlError, SqlErrorKind};
use state::StateError;

pub(crate) fn from_state(error: StateError) -> SqlError {
    match error {
        StateError::Io { .. } => SqlErrorKind::Io { message: error.to_string() }.into(),
        StateError::Damaged { .. } | StateError::Version { .. } => {
            SqlErrorKind::DataCorrupted { message: error.to_string() }.into()
        }
        StateError::Arrow(error) => from_arrow(error),
        StateError::RocksDb(_) | StateError::Encoding(_) | StateError::Internal(_) => {
            SqlErrorKind::internal(error.to_string()).into()
        }
    }
}

pub(crate) fn from_runtime(error: RuntimeError) -> SqlError {
    match error {
        RuntimeError::JobFailed { .. } => {
            SqlErrorKind::NotInPrerequisiteState { message: error.to_string() }.into()
        }
        RuntimeError::ShuttingDown => SqlErrorKind::AdminShutdown.into(),
        RuntimeError::Internal(message) => SqlErrorKind::internal(message).into(),
    }
}

pub(crate) fn from_catalog(error: CatalogError) -> SqlError {
    match error {
        CatalogError::DuplicateRelation(name) => SqlErrorKind::DuplicateRelation { name }.into(),
        CatalogError::DuplicateSchema(name) => SqlErrorKind::DuplicateSchema { name }.into(),
        CatalogError::ReservedSchema(name) => {
            SqlErrorKind::InvalidName { message: format!("unacceptable schema name \"{name}\"") }
                .detail("The prefix \"pg_\" is reserved for system schemas.")
        }
        CatalogError::UndefinedRelation(name) => SqlErrorKind::UndefinedTable { name }.into(),
        CatalogError::UndefinedSchema(name) => SqlErrorKind::UndefinedSchema { name }.into(),
        CatalogError::Dependents { name, dependents } => SqlErrorKind::DependentObjects { object: name }
            .detail(dependents.join("\n"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."),
        CatalogError::Required { name, owner } => {
            SqlErrorKind::DependentObjects { object: name }.detail(format!("{owner} requires it"))
        }
        CatalogError::Damaged { .. } => SqlErrorKind::DataCorrupted { message: error.to_string() }.into(),
    }
}

pub(crate) fn from_dataflow(error: DataflowError) -> SqlError {
    match error {
        DataflowError::Arrow(error) => from_arrow(error),
        DataflowError::DataFusion(error) => from_datafusion(error),
        DataflowError::State(error) => from_state(error),
        DataflowError::Connector { .. } => SqlErrorKind::Io { message: error.to_string() }.into(),
        DataflowError::OutOfMemory(_) => SqlErrorKind::OutOfMemory.into(),
        DataflowError::Internal(message) => SqlErrorKind::internal(message).into(),
    }
}

pub(crate) fn from_arrow(error: ArrowError) -> SqlError {
    from_datafusion(DataFusionError::ArrowError(Box::new(error), None))
}

/// What went wrong while a plan was executed.
pub(crate) fn from_datafusion(error: DataFusionError) -> SqlError {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<SqlError>() {
            Ok(error) => *error,
            Err(inner) => match inner.downcast::<DataflowError>() {
                Ok(error) => from_dataflow(*error),
                Err(inner) => SqlErrorKind::internal(inner.to_string()).into(),
            },
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_datafusion(*inner),
        other => planner_error(other),
    }
}

/// DataFusion's own errors by their kind; the text of an Arrow error decides where the kind alone
/// does not.
fn planner_error(error: DataFusionError) -> SqlError {
    match error {
        DataFusionError::ArrowError(error, _) => arrow_error(&error),
        DataFusionError::ResourcesExhausted(_) => SqlErrorKind::OutOfMemory.into(),
        DataFusionError::NotImplemented(message) => SqlErrorKind::unsupported(message).into(),
        DataFusionError::Execution(message) if message.contains("more than one row") => {
            SqlErrorKind::CardinalityViolation.into()
        }
        other => SqlErrorKind::internal(other.strip_backtrace()).into(),
    }
}

fn arrow_error(error: &ArrowError) -> SqlError {
    if let ArrowError::DivideByZero = error {
        return SqlErrorKind::DivisionByZero.into();
    }
    let text = error.to_string();
    if text.contains("verflow") || text.contains("out of range") || text.contains("too large") {
        return SqlErrorKind::Evaluation { sqlstate: "22003", message: "value out of range".to_owned() }.into();
    }
    let message = text.split_once(": ").map_or(text.as_str(), |(_, message)| message).to_owned();
    if let ArrowError::CastError(_) | ArrowError::ParseError(_) = error {
        return SqlErrorKind::Evaluation { sqlstate: "22P02", message }.into();
    }
    SqlErrorKind::internal(message).into()
}
