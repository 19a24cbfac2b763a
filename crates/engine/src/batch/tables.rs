//! Gives the planner the tables of one statement.

use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use catalog::{Relation, RelationKind};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::logical_expr::ScalarUDF;
use planner::BatchTables;
use sql::{SqlError, SqlErrorKind};

use super::source::SourceTable;
use super::stored::{StoredTable, ViewSlot};
use crate::dml::TableColumns;
use crate::engine::Shared;
use crate::functions::{self, FunctionContext};
use crate::live::Live;
use crate::system;

/// Schema of the tables a DML statement reads beside those a user can name.
pub(crate) const DML_SCHEMA: &str = "$dml";
/// The target of UPDATE and DELETE, with its hidden key.
pub(crate) const TARGET: &str = "target";
/// The rows RETURNING is about.
pub(crate) const CHANGED: &str = "changed";

/// The tables and functions one statement sees.
pub(crate) struct StatementTables {
    live: Arc<Live>,
    shared: Arc<Shared>,
    functions: Arc<FunctionContext>,
    /// Filled when it is known what to wait for.
    view: ViewSlot,
    target: Option<TableColumns>,
    changed: Option<(SchemaRef, Vec<RecordBatch>)>,
}

impl StatementTables {
    pub(crate) fn new(live: Arc<Live>, shared: Arc<Shared>, functions: Arc<FunctionContext>) -> Self {
        Self { live, shared, functions, view: Arc::new(OnceLock::new()), target: None, changed: None }
    }

    /// With the target of an UPDATE or DELETE.
    pub(crate) fn with_target(mut self, target: TableColumns) -> Self {
        self.target = Some(target);
        self
    }

    /// With the rows of a RETURNING clause.
    pub(crate) fn with_changed(mut self, schema: SchemaRef, rows: Vec<RecordBatch>) -> Self {
        self.changed = Some((schema, rows));
        self
    }

    /// Where the instant goes that the statement reads.
    pub(crate) fn view(&self) -> ViewSlot {
        Arc::clone(&self.view)
    }

    fn dml_table(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        match name {
            TARGET => {
                let target = self.target.as_ref()?;
                let table = StoredTable::new(
                    target.relation.id,
                    &target.relation.name,
                    Arc::clone(&target.stored),
                    Arc::clone(&self.view),
                );
                Some(Arc::new(table.with_hidden_columns()))
            }
            CHANGED => {
                let (schema, rows) = self.changed.as_ref()?;
                let table = MemTable::try_new(Arc::clone(schema), vec![rows.clone()]);
                table.map(|table| Arc::new(table) as Arc<dyn TableProvider>).ok()
            }
            _ => None,
        }
    }
}

impl BatchTables for StatementTables {
    fn table(&self, relation: &Relation) -> Result<Arc<dyn TableProvider>, SqlError> {
        let live = self
            .live
            .relation(relation.id)
            .ok_or_else(|| SqlErrorKind::UndefinedTable { name: relation.name.clone() })?;
        if let RelationKind::Sink = relation.kind {
            return Err(SqlErrorKind::WrongObjectType { name: relation.name.clone(), expected: "a table" }
                .hint("A sink cannot be read."));
        }
        if let Some(spec) = &live.source {
            return Ok(Arc::new(SourceTable::new(Arc::clone(spec), Arc::clone(&self.shared))?));
        }
        let stored = live
            .stored
            .as_ref()
            .ok_or_else(|| SqlErrorKind::internal(format!("{} has no rows", relation.description())))?;
        let view = Arc::clone(&self.view);
        Ok(Arc::new(StoredTable::new(relation.id, &relation.name, Arc::clone(stored), view)))
    }

    fn system_table(&self, schema: Option<&str>, name: &str) -> Option<Arc<dyn TableProvider>> {
        if schema == Some(DML_SCHEMA) {
            return self.dml_table(name);
        }
        let table = system::find(schema, name)?;
        match table.provider(&self.functions.system) {
            Ok(provider) => Some(provider),
            Err(error) => {
                tracing::error!(table = name, %error, "a system table could not be made");
                None
            }
        }
    }

    fn functions(&self) -> Vec<Arc<ScalarUDF>> {
        functions::all(&self.functions)
    }
}
