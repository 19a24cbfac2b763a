//! Errors of the layers below, as errors of a statement.

use arrow::error::ArrowError;
use catalog::CatalogError;
use dataflow::DataflowError;
use datafusion::error::DataFusionError;
use runtime::RuntimeError;
use sql::{SqlError, SqlErrorKind};
use state::StateError;

pub(crate) fn from_state(error: StateError) -> SqlError {
    if error.is_io() {
        return SqlErrorKind::Io { message: error.to_string() }.into();
    }
    match error {
        StateError::Io { .. } => SqlErrorKind::Io { message: error.to_string() }.into(),
        StateError::Damaged { .. } | StateError::Version { .. } => {
            SqlErrorKind::DataCorrupted { message: error.to_string() }.into()
        }
        StateError::Arrow(error) => from_arrow(error),
        StateError::InUse { .. } => SqlErrorKind::Io { message: error.to_string() }.into(),
        StateError::RocksDb(_)
        | StateError::Fatal { .. }
        | StateError::Encoding(_)
        | StateError::Internal(_) => SqlErrorKind::internal(error.to_string()).into(),
    }
}

pub(crate) fn from_runtime(error: RuntimeError) -> SqlError {
    match error {
        RuntimeError::JobFailed { .. } => {
            SqlErrorKind::NotInPrerequisiteState { message: error.to_string() }.into()
        }
        RuntimeError::Connector(message) => SqlErrorKind::Io { message }.into(),
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

/// What went wrong while a plan was executed. Errors of jobs and of the state pass through
/// DataFusion as boxes; all else is `sql`'s to word.
pub(crate) fn from_datafusion(error: DataFusionError) -> SqlError {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<DataflowError>() {
            Ok(error) => from_dataflow(*error),
            Err(inner) => sql::from_datafusion(DataFusionError::External(inner)),
        },
        other => sql::from_datafusion(other),
    }
}
