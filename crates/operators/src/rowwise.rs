//! Expressions over batches in which single rows may fail.
//!
//! A batch is evaluated as a whole. Only if that fails is it halved, again and again, until the
//! failing rows are single; so the usual case costs nothing, and a row fails if and only if the
//! expression fails on that row alone.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use dataflow::{ChangeBatch, OperatorContext, Result, RowError};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;

use crate::row_error::row_error_of;

/// Expressions over the rows of a batch, evaluated together.
pub(crate) struct Projection {
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    output: SchemaRef,
}

impl Projection {
    /// Makes each expression's column have the type of its field.
    pub(crate) fn new(expressions: &[(Arc<dyn PhysicalExpr>, FieldRef)]) -> Self {
        let (expressions, fields): (Vec<_>, Vec<_>) = expressions.iter().cloned().unzip();
        Self { expressions, output: Arc::new(Schema::new(fields)) }
    }

    /// The projected rows; failing ones go to `$errors` as they came.
    pub(crate) fn apply(&self, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<ChangeBatch> {
        let (batch, projected) =
            evaluate_rowwise_on_error(batch, &self.output, &|rows| self.evaluate(rows), ctx)?;
        Ok(batch.with_rows(projected))
    }

    fn evaluate(&self, rows: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
        let mut columns = Vec::with_capacity(self.expressions.len());
        for (expression, field) in self.expressions.iter().zip(self.output.fields()) {
            let column = expression.evaluate(rows)?.into_array_of_size(rows.num_rows())?;
            columns.push(with_type(column, field.data_type())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }
}

fn with_type(column: ArrayRef, wanted: &DataType) -> Result<ArrayRef, DataFusionError> {
    if column.data_type() == wanted {
        return Ok(column);
    }
    let options = compute::CastOptions { safe: false, ..Default::default() };
    Ok(compute::cast_with_options(&column, wanted, &options)?)
}

/// The rows on which `predicate` is true; NULL is not true.
pub(crate) fn filter_rows(
    predicate: &Arc<dyn PhysicalExpr>,
    batch: ChangeBatch,
    ctx: &mut OperatorContext<'_>,
) -> Result<ChangeBatch> {
    let (batch, keep) = passing_rows(predicate, batch, ctx)?;
    match keep {
        Some(keep) => batch.filter(&keep),
        None => Ok(batch),
    }
}

/// The rows on which `predicate` does not fail, and on which of them it is true (`None`: all).
pub(crate) fn passing_rows(
    predicate: &Arc<dyn PhysicalExpr>,
    batch: ChangeBatch,
    ctx: &mut OperatorContext<'_>,
) -> Result<(ChangeBatch, Option<BooleanArray>)> {
    let schema = Arc::new(Schema::new(vec![Field::new("keep", DataType::Boolean, true)]));
    let evaluate = |rows: &RecordBatch| {
        let keep = predicate.evaluate(rows)?.into_array_of_size(rows.num_rows())?;
        let keep = with_type(keep, &DataType::Boolean)?;
        Ok(RecordBatch::try_new(Arc::clone(&schema), vec![keep])?)
    };
    let (batch, keep) = evaluate_rowwise_on_error(batch, &schema, &evaluate, ctx)?;
    let keep = keep.column(0).as_boolean().clone();
    let all = keep.null_count() == 0 && keep.true_count() == keep.len();
    Ok((batch, (!all).then_some(keep)))
}

/// Evaluates `evaluate`, which gives one row of `schema` per row, on all rows of a batch that do not fail.
/// Returns those rows and what they gave; the others go to `$errors` with their diffs and origins.
pub(crate) fn evaluate_rowwise_on_error(
    batch: ChangeBatch,
    schema: &SchemaRef,
    evaluate: &dyn Fn(&RecordBatch) -> Result<RecordBatch, DataFusionError>,
    ctx: &mut OperatorContext<'_>,
) -> Result<(ChangeBatch, RecordBatch)> {
    let error = match evaluate(&batch.rows) {
        Ok(evaluated) => return Ok((batch, evaluated)),
        Err(error) => error,
    };
    let mut search = FailingRows {
        rows: &batch.rows,
        evaluate,
        evaluated: Vec::new(),
        passed: Vec::new(),
        failed: Vec::new(),
        errors: Vec::new(),
    };
    search.halve(0, batch.len(), error);
    let FailingRows { evaluated, passed, failed, errors, .. } = search;
    let evaluated = if evaluated.is_empty() {
        RecordBatch::new_empty(Arc::clone(schema))
    } else {
        compute::concat_batches(schema, &evaluated)?
    };
    ctx.row_errors(batch.take(&UInt32Array::from(failed))?, errors);
    Ok((batch.take(&UInt32Array::from(passed))?, evaluated))
}

/// The search for the rows that make a batch fail.
struct FailingRows<'a> {
    rows: &'a RecordBatch,
    evaluate: &'a dyn Fn(&RecordBatch) -> Result<RecordBatch, DataFusionError>,
    evaluated: Vec<RecordBatch>,
    passed: Vec<u32>,
    failed: Vec<u32>,
    errors: Vec<RowError>,
}

impl FailingRows<'_> {
    /// `error` is what the rows `start..end` gave together.
    fn halve(&mut self, start: usize, end: usize, error: DataFusionError) {
        if end - start <= 1 {
            self.failed.extend(start as u32..end as u32);
            self.errors.extend((start..end).map(|_| row_error_of(&error)));
            return;
        }
        let middle = start + (end - start) / 2;
        self.search(start, middle);
        self.search(middle, end);
    }

    fn search(&mut self, start: usize, end: usize) {
        match (self.evaluate)(&self.rows.slice(start, end - start)) {
            Ok(evaluated) => {
                self.passed.extend(start as u32..end as u32);
                self.evaluated.push(evaluated);
            }
            Err(error) => self.halve(start, end, error),
        }
    }
}
