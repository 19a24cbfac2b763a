//! What leaves a task sideways: late and failing rows on their way to `$late` and `$errors`.
//!
//! Tasks turn rows into JSON text (in parallel); the coordinator collects the epoch's side rows of
//! all tasks of a job in one [`SideWriter`], because two tasks may touch the same entry.
//!
//! What a reader of a source refuses belongs to the source, whoever reads: the shared reader and
//! every backfill report the same records, which are kept once.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringViewArray, StringViewBuilder, TimestampMicrosecondArray,
};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use dataflow::{
    ChangeBatch, DecodeError, JobGraph, JobId, LateRows, OperatorId, Result, RowError, SideOutput,
    SideTables, VertexInput,
};
use state::{Published, Run, TableId, ViewWriter};

/// Which side table rows go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideKind {
    Late,
    Errors,
}

/// Rows of a side table.
#[derive(Debug)]
pub(crate) struct SideRows {
    pub(crate) kind: SideKind,
    /// The source whose reader they come from; `None`: the job that reports them.
    pub(crate) source: Option<JobId>,
    pub(crate) rows: RecordBatch,
    pub(crate) diffs: Option<Int64Array>,
}

impl SideRows {
    /// The side rows of what an operator sent sideways.
    pub(crate) fn of_operator(operator: OperatorId, output: SideOutput) -> Result<Self> {
        match output {
            SideOutput::Late(late) => late_rows(operator, &late),
            SideOutput::Errors { rows, errors } | SideOutput::GroupErrors { keys: rows, errors } => {
                error_rows(operator, &rows, &errors)
            }
        }
    }

    /// The side rows of records that did not decode.
    pub(crate) fn of_decode_errors(source: JobId, split: i64, errors: &[DecodeError]) -> Result<Self> {
        let count = errors.len();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_value(0, count)),
            Arc::new(Int64Array::from_value(split, count)),
            Arc::new(Int64Array::from_iter_values(errors.iter().map(|error| error.position))),
            Arc::new(StringViewArray::from_iter_values(errors.iter().map(|error| error.sqlstate))),
            Arc::new(StringViewArray::from_iter_values(errors.iter().map(|error| &error.message))),
            Arc::new(StringViewArray::from_iter_values(
                errors.iter().map(|error| String::from_utf8_lossy(&error.raw)),
            )),
        ];
        let rows = RecordBatch::try_new(errors_columns(), columns)?;
        Ok(Self { kind: SideKind::Errors, source: Some(source), rows, diffs: None })
    }

    /// The side rows of records whose event time cannot be used.
    pub(crate) fn of_refused_rows(source: JobId, rows: &ChangeBatch, errors: &[RowError]) -> Result<Self> {
        Ok(Self { source: Some(source), ..error_rows(OperatorId(0), rows, errors)? })
    }
}

/// Columns of `$errors` as a [`ViewWriter`] takes them: without `$count`.
fn errors_columns() -> SchemaRef {
    let fields = SideTables::errors_schema().columns.fields().clone();
    Arc::new(Schema::new(fields.iter().take(fields.len() - 1).cloned().collect::<Vec<_>>()))
}

fn late_rows(operator: OperatorId, late: &LateRows) -> Result<SideRows> {
    let count = late.rows.num_rows();
    let timestamps = |values: &Int64Array| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::new(values.values().clone(), None))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_value(i64::from(operator.0), count)),
        Arc::new(late.origin.splits.clone()),
        Arc::new(late.origin.positions.clone()),
        Arc::new(late.origin.ordinals.clone()),
        timestamps(&late.window_ends),
        timestamps(&late.window_starts),
        timestamps(&late.origin.watermarks),
        Arc::new(json_text(&late.rows)?),
    ];
    let rows = RecordBatch::try_new(Arc::clone(&SideTables::late_schema().columns), columns)?;
    Ok(SideRows { kind: SideKind::Late, source: None, rows, diffs: None })
}

fn error_rows(operator: OperatorId, rows: &ChangeBatch, errors: &[RowError]) -> Result<SideRows> {
    let count = rows.len();
    let (splits, positions) = match &rows.origin {
        Some(origin) => (origin.splits.clone(), origin.positions.clone()),
        None => (Int64Array::new_null(count), Int64Array::new_null(count)),
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_value(i64::from(operator.0), count)),
        Arc::new(splits),
        Arc::new(positions),
        Arc::new(StringViewArray::from_iter_values(errors.iter().map(|error| error.sqlstate))),
        Arc::new(StringViewArray::from_iter_values(errors.iter().map(|error| &error.message))),
        Arc::new(json_text(&rows.rows)?),
    ];
    let diffs = rows.diffs.clone();
    let rows = RecordBatch::try_new(errors_columns(), columns)?;
    Ok(SideRows { kind: SideKind::Errors, source: None, rows, diffs })
}

/// Rows of `$errors` with their multiplicity, 1.
fn counted_once(rows: &RecordBatch) -> Result<RecordBatch> {
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(Int64Array::from_value(1, rows.num_rows())));
    Ok(RecordBatch::try_new(Arc::clone(&SideTables::errors_schema().columns), columns)?)
}

/// Each row as one line of JSON.
fn json_text(rows: &RecordBatch) -> Result<StringViewArray> {
    let mut text = Vec::new();
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut text);
    writer.write(rows)?;
    writer.finish()?;
    drop(writer);
    let text = String::from_utf8_lossy(&text);
    let mut lines = StringViewBuilder::with_capacity(rows.num_rows());
    for line in text.lines().take(rows.num_rows()) {
        lines.append_value(line);
    }
    Ok(lines.finish())
}

/// The side tables of one job while an epoch is collected.
pub(crate) struct SideWriter {
    late: Option<(TableId, ViewWriter)>,
    errors: (TableId, ViewWriter),
    is_source: bool,
    is_empty: bool,
}

impl SideWriter {
    pub(crate) fn new(graph: &JobGraph) -> Self {
        let tables = graph.side_tables;
        let late = |table| (table, ViewWriter::new(table, SideTables::late_schema(), false));
        let mut inputs = graph.vertices.iter().flat_map(|vertex| &vertex.inputs);
        let is_source = inputs.any(|input| matches!(input, VertexInput::Source(_)));
        let errors = if is_source {
            ViewWriter::idempotent(tables.errors, SideTables::errors_schema())
        } else {
            ViewWriter::new(tables.errors, SideTables::errors_schema(), true)
        };
        Self { late: tables.late.map(late), errors: (tables.errors, errors), is_source, is_empty: true }
    }

    pub(crate) fn push(&mut self, side: SideRows) -> Result<()> {
        self.is_empty = false;
        match (side.kind, &mut self.late) {
            (SideKind::Late, Some((_, late))) => late.push(side.rows, side.diffs),
            // A job without windows has no late rows.
            (SideKind::Late, None) => {}
            (SideKind::Errors, _) if self.is_source => self.errors.1.push(counted_once(&side.rows)?, None),
            (SideKind::Errors, _) => self.errors.1.push(side.rows, side.diffs),
        }
        Ok(())
    }

    /// What the epoch changed in the side tables.
    pub(crate) fn finish(&mut self, published: &Published) -> Result<Vec<(TableId, Run)>> {
        let mut runs = Vec::new();
        if std::mem::replace(&mut self.is_empty, true) {
            return Ok(runs);
        }
        for (table, writer) in self.late.iter_mut().chain([&mut self.errors]) {
            if let Some(run) = writer.finish(published)? {
                runs.push((*table, run));
            }
        }
        Ok(runs)
    }
}
