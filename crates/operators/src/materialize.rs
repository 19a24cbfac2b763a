//! Materialize: keeps the rows of a view or table for readers, and passes them on to followers.
//!
//! | | |
//! |---|---|
//! | input     | append or retract |
//! | output    | same kind as the input: the visible columns, in SELECT order, at once |
//! | state     | the view table, published at the end of each epoch |
//! | watermark | forwarded |
//!
//! **Invariant.** The table after epoch N is the sum of all changes up to N; readers see all of
//! an epoch or none of it, because the run of the epoch is published as a whole.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use dataflow::{
    BuildContext, ChangeBatch, ChangelogKind, DataflowError, EpochEnd, MemoryUse, Operator, OperatorContext,
    OperatorSpec, Progress, Result, ViewTableSpec,
};
use state::{TableId, TableSchema, ViewWriter};

/// What names a row of the view table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaterializeMode {
    /// The first `key_len` columns, which the planner knows to be unique.
    Keyed,
    /// Where the row entered: (split, position, ordinal). Append-only input with origins.
    ByOrigin,
    /// The whole row; the table's last column `$count` is its multiplicity.
    Multiset,
}

/// Where a stored column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredColumn {
    /// A column of the input.
    Input(usize),
    /// The split the row came from.
    Split,
    /// Its position in the split.
    Position,
    /// Which of the rows made from that record it is.
    Ordinal,
}

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct Materialize {
    /// Columns of the input.
    pub input: SchemaRef,
    /// Kind of the input, and of the output.
    pub input_kind: ChangelogKind,
    /// Where the rows are stored.
    pub table: TableId,
    /// Columns of the view table, key first; with `$count` last for a multiset.
    pub schema: Arc<TableSchema>,
    /// What names a row.
    pub mode: MaterializeMode,
    /// Where each column of the view table comes from (without `$count`).
    pub columns: Vec<StoredColumn>,
    /// The input columns that users and followers see, in SELECT order.
    pub output: Vec<usize>,
}

impl Materialize {
    /// For each visible column, which column of the view table holds it.
    fn stored_output(&self) -> Vec<usize> {
        let stored = |column: &usize| self.columns.iter().position(|at| *at == StoredColumn::Input(*column));
        self.output.iter().filter_map(stored).collect()
    }
}

impl OperatorSpec for Materialize {
    fn name(&self) -> &'static str {
        "materialize"
    }

    fn detail(&self) -> String {
        let key: Vec<&str> = self.schema.key_fields().iter().map(|field| field.name().as_str()).collect();
        match self.mode {
            MaterializeMode::Keyed => format!("key ({})", key.join(", ")),
            MaterializeMode::ByOrigin => "key (origin)".to_owned(),
            MaterializeMode::Multiset => "multiset".to_owned(),
        }
    }

    fn output_schema(&self) -> SchemaRef {
        let fields: Vec<_> =
            self.output.iter().map(|&column| Arc::clone(&self.input.fields()[column])).collect();
        Arc::new(Schema::new(fields))
    }

    fn output_kind(&self) -> ChangelogKind {
        self.input_kind
    }

    fn view_table(&self) -> Option<ViewTableSpec> {
        Some(ViewTableSpec {
            table: self.table,
            schema: Arc::clone(&self.schema),
            output: self.stored_output(),
        })
    }

    fn needs_origin(&self) -> bool {
        self.mode == MaterializeMode::ByOrigin
    }

    fn build(&self, _ctx: &BuildContext) -> Result<Box<dyn Operator>> {
        if self.stored_output().len() != self.output.len() {
            return Err(DataflowError::Internal("a visible column is not stored".to_owned()));
        }
        let is_multiset = self.mode == MaterializeMode::Multiset;
        let stored = &self.schema.columns.fields()[..self.columns.len()];
        Ok(Box::new(MaterializeOperator {
            writer: ViewWriter::new(self.table, Arc::clone(&self.schema), is_multiset),
            stored: Arc::new(Schema::new(stored.to_vec())),
            output: self.output_schema(),
            spec: self.clone(),
        }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct MaterializeOperator {
    spec: Materialize,
    writer: ViewWriter,
    /// Columns of the view table without `$count`.
    stored: SchemaRef,
    output: SchemaRef,
}

impl MaterializeOperator {
    fn stored_rows(&self, batch: &ChangeBatch) -> Result<RecordBatch> {
        let origin = || {
            let missing = || DataflowError::Internal("a row to be stored by origin has none".to_owned());
            batch.origin.as_ref().ok_or_else(missing)
        };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.spec.columns.len());
        for column in &self.spec.columns {
            columns.push(match *column {
                StoredColumn::Input(input) => Arc::clone(batch.rows.column(input)),
                StoredColumn::Split => Arc::new(origin()?.splits.clone()),
                StoredColumn::Position => Arc::new(origin()?.positions.clone()),
                StoredColumn::Ordinal => Arc::new(origin()?.ordinals.clone()),
            });
        }
        with_columns(&self.stored, columns, batch.len())
    }
}

fn with_columns(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

impl Operator for MaterializeOperator {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        self.writer.push(self.stored_rows(&batch)?, batch.diffs.clone());
        let visible = self.spec.output.iter().map(|&column| Arc::clone(batch.rows.column(column))).collect();
        let visible = with_columns(&self.output, visible, batch.len())?;
        ctx.emit(batch.with_rows(visible));
        Ok(())
    }

    fn on_epoch_end(&mut self, _end: &EpochEnd, ctx: &mut OperatorContext<'_>) -> Result<Progress> {
        if let Some(run) = self.writer.finish(&ctx.state.published())? {
            ctx.state.publish(self.spec.table, run)?;
        }
        Ok(Progress::Done)
    }

    fn memory(&self) -> MemoryUse {
        // At the end of the epoch the rows are put together, encoded and sorted.
        MemoryUse { dirty: 3 * self.writer.memory(), clean: 0 }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use expect_test::expect;
    use state::{KeyGroupRange, ViewRange};

    use super::*;
    use crate::testing::{TestTask, check_operator, row_texts};

    const TABLE: TableId = TableId(7);

    fn fields(names: &[&str]) -> SchemaRef {
        let fields = names.iter().map(|name| Field::new(*name, DataType::Int64, true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    fn stored(task: &TestTask, spec: &Materialize) -> Vec<String> {
        let published = task.state.views.current();
        let batches = published.scan(TABLE, &spec.schema, ViewRange::default(), 100);
        batches.flat_map(|batch| row_texts(&batch.unwrap())).collect()
    }

    fn batch(input: &SchemaRef, rows: &[(i64, i64, i64)]) -> ChangeBatch {
        let column = |part: fn(&(i64, i64, i64)) -> i64| -> ArrayRef {
            Arc::new(arrow::array::Int64Array::from_iter_values(rows.iter().map(part)))
        };
        let columns = vec![column(|row| row.0), column(|row| row.1)];
        let rows_batch = RecordBatch::try_new(Arc::clone(input), columns).unwrap();
        ChangeBatch::with_diffs(rows_batch, rows.iter().map(|row| Some(row.2)).collect())
    }

    #[test]
    fn a_keyed_view_shows_the_last_row_of_each_key_and_followers_get_the_columns_in_order() {
        let input = fields(&["v", "k"]);
        let spec = Materialize {
            input: Arc::clone(&input),
            input_kind: ChangelogKind::Retract,
            table: TABLE,
            schema: Arc::new(TableSchema { columns: fields(&["k", "v"]), key_len: 1 }),
            mode: MaterializeMode::Keyed,
            columns: vec![StoredColumn::Input(1), StoredColumn::Input(0)],
            output: vec![0, 1],
        };
        assert_eq!(spec.view_table().unwrap().output, [1, 0]);
        let mut task = TestTask::new(Arc::new(spec.clone()), KeyGroupRange::ALL);
        task.push(0, batch(&input, &[(10, 1, 1), (20, 2, 1)]));
        assert_eq!(task.take_text(), "+ 10 1\n+ 20 2\n");
        assert!(stored(&task, &spec).is_empty(), "nothing shows before the epoch ends");
        task.end_epoch(false);
        assert_eq!(stored(&task, &spec), ["1 10", "2 20"]);
        task.push(0, batch(&input, &[(11, 1, 1), (20, 2, -1)]));
        task.push(0, batch(&input, &[(10, 1, -1)]));
        task.checkpoint();
        assert_eq!(stored(&task, &spec), ["1 11"]);
        task.restart();
        assert_eq!(stored(&task, &spec), ["1 11"]);
    }

    #[test]
    fn a_multiset_counts_equal_rows() {
        let input = fields(&["a", "b"]);
        let spec = Materialize {
            input: Arc::clone(&input),
            input_kind: ChangelogKind::Retract,
            table: TABLE,
            schema: Arc::new(TableSchema { columns: fields(&["a", "b", "$count"]), key_len: 2 }),
            mode: MaterializeMode::Multiset,
            columns: vec![StoredColumn::Input(0), StoredColumn::Input(1)],
            output: vec![0, 1],
        };
        let mut task = TestTask::new(Arc::new(spec.clone()), KeyGroupRange::ALL);
        task.push(0, batch(&input, &[(1, 1, 2), (1, 2, 1), (1, 1, 1)]));
        task.end_epoch(false);
        task.push(0, batch(&input, &[(1, 1, -1), (1, 2, -1)]));
        task.end_epoch(false);
        assert_eq!(stored(&task, &spec), ["1 1 2"]);
    }

    #[test]
    fn an_append_only_view_without_key_is_stored_by_origin_and_followers_do_not_see_it() {
        let input = fields(&["a"]);
        let names = ["$split", "$position", "$ordinal", "a"];
        let spec = Materialize {
            input: Arc::clone(&input),
            input_kind: ChangelogKind::Append,
            table: TABLE,
            schema: Arc::new(TableSchema { columns: fields(&names), key_len: 3 }),
            mode: MaterializeMode::ByOrigin,
            columns: vec![
                StoredColumn::Split,
                StoredColumn::Position,
                StoredColumn::Ordinal,
                StoredColumn::Input(0),
            ],
            output: vec![0],
        };
        assert!(spec.needs_origin());
        check_operator(spec, &input, "+ 5 @0\n+ 5 @0\nepoch", expect![["+ 5\n+ 5\n"]]);
    }
}
