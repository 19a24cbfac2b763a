//! A table's columns as DML sees them: names to positions, visible rows to stored rows, NOT NULL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use catalog::{Column, Relation, RelationKind};
use sql::{SqlError, SqlErrorKind};

use crate::error::from_arrow;
use crate::live::{Live, Stored};

/// The target of an INSERT, UPDATE or DELETE.
#[derive(Clone)]
pub(crate) struct TableColumns {
    pub(crate) relation: Arc<Relation>,
    pub(crate) stored: Arc<Stored>,
    append_only: bool,
}

impl TableColumns {
    /// `action` as PostgreSQL words it: `insert into`, `update` or `delete from`.
    pub(crate) fn find(
        live: &Live,
        schema: Option<&str>,
        name: &str,
        action: &str,
    ) -> Result<Self, SqlError> {
        let relation = live.find(schema, name)?;
        let refused = |what: &str| -> SqlError {
            let hint = "Rows can be written to tables only.";
            let message = format!("cannot {action} {what} \"{}\"", relation.name);
            SqlErrorKind::Evaluation { sqlstate: "42809", message }.hint(hint)
        };
        match &relation.kind {
            RelationKind::Table { .. } => {}
            RelationKind::Source { .. } => return Err(refused("source")),
            RelationKind::View => return Err(refused("view")),
            RelationKind::MaterializedView => {
                return Err(SqlErrorKind::Evaluation {
                    sqlstate: "42809",
                    message: format!("cannot change materialized view \"{}\"", relation.name),
                }
                .into());
            }
            RelationKind::Sink => {
                return Err(
                    SqlErrorKind::unsupported("INSERT into a sink").hint("Use CREATE SINK ... AS SELECT.")
                );
            }
            RelationKind::Side { .. } => return Err(refused("system relation")),
        }
        let planned = live.relation(relation.id);
        let append_only = planned.is_some_and(|planned| planned.append_only);
        let stored = planned.and_then(|planned| planned.stored.clone());
        let stored = stored.ok_or_else(|| SqlErrorKind::internal("a table without rows"))?;
        Ok(Self { relation: Arc::new(relation.clone()), stored, append_only })
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.relation.columns
    }

    /// Position of a column.
    pub(crate) fn position(&self, name: &str) -> Result<usize, SqlError> {
        self.columns().iter().position(|column| column.name == name).ok_or_else(|| {
            SqlErrorKind::UndefinedColumnOf { column: name.to_owned(), relation: self.relation.name.clone() }
                .into()
        })
    }

    /// Refuses NULL where it is not allowed. `visible`: one array a visible column.
    pub(crate) fn check_not_null(&self, visible: &[ArrayRef]) -> Result<(), SqlError> {
        for (column, values) in self.columns().iter().zip(visible) {
            if !column.nullable && values.null_count() > 0 {
                return Err(SqlErrorKind::NotNullViolation {
                    column: column.name.clone(),
                    relation: self.relation.name.clone(),
                }
                .into());
            }
        }
        Ok(())
    }

    /// Visible columns to a row of the view table; `row_ids` fills the hidden key.
    pub(crate) fn stored_rows(
        &self,
        visible: &[ArrayRef],
        row_ids: Option<ArrayRef>,
    ) -> Result<RecordBatch, SqlError> {
        let schema = &self.stored.schema.columns;
        let mut columns: Vec<Option<ArrayRef>> = vec![None; schema.fields().len()];
        for (values, &place) in visible.iter().zip(&self.stored.output) {
            columns[place] = Some(Arc::clone(values));
        }
        let columns: Option<Vec<ArrayRef>> =
            columns.into_iter().map(|column| column.or_else(|| row_ids.clone())).collect();
        let columns = columns.ok_or_else(|| SqlErrorKind::internal("a stored column without a value"))?;
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(from_arrow)
    }

    /// Ascending ids for `count` new rows.
    pub(crate) fn row_ids(first: i64, count: usize) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((first..).take(count)))
    }

    /// The visible columns of stored rows.
    pub(crate) fn visible_rows(&self, rows: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let columns = self.stored.output.iter().map(|&column| Arc::clone(rows.column(column))).collect();
        RecordBatch::try_new(Arc::clone(&self.stored.visible), columns).map_err(from_arrow)
    }

    /// Whether rows may be changed or removed: a watermark promises that no retraction comes
    /// (semantics 3).
    pub(crate) fn refuse_append_only(&self, statement: &str) -> Result<(), SqlError> {
        if self.append_only {
            return Err(SqlErrorKind::unsupported(format!("{statement} of a table with a watermark")).hint(
                "A watermark promises that no row at or before it changes; drop it to update or delete rows.",
            ));
        }
        Ok(())
    }
}
