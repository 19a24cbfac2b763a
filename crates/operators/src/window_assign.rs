//! Window assignment: appends the bounds of the window each row falls into, and drops late rows.
//!
//! | | |
//! |---|---|
//! | input     | append or retract |
//! | output    | same kind as the input; columns `window_start`, `window_end`, `window_time` appended |
//! | state     | none |
//! | watermark | forwarded |
//!
//! A row is late if and only if `window_end + allowed lateness <=` the watermark its split had
//! just before the row (semantics: time and lateness, rule 1). Rows without origin come from an
//! operator that has decided lateness before, and are never late. A NULL event time fails a row
//! that has an origin; without one it gives NULL bounds, as `date_bin` does.
//!
//! **Invariant.** What is late depends on the row alone: not on batching, epochs or parallelism.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, PrimitiveArray, RecordBatch};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use dataflow::{
    BuildContext, ChangeBatch, ChangelogKind, DataflowError, LateRows, Operator, OperatorContext,
    OperatorSpec, Result, RowError, RowOrigin,
};

/// Which windows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    /// Windows of one length, end to end.
    Tumble {
        /// Length in microseconds, positive.
        size: i64,
        /// Start of one of the windows, in microseconds since 1970.
        offset: i64,
    },
}

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct WindowAssign {
    /// Columns of the input.
    pub input: SchemaRef,
    /// Kind of the input, and of the output.
    pub kind: ChangelogKind,
    /// The event-time column: `Timestamp(µs)` with or without zone.
    pub time_column: usize,
    /// Which windows.
    pub window: Window,
    /// How far behind the watermark a window stays open, in microseconds.
    pub allowed_lateness: i64,
}

impl WindowAssign {
    /// The three appended columns: `window_start`, `window_end`, `window_time`, of the type of
    /// the time column.
    #[must_use]
    pub fn window_fields(time: &Field) -> [FieldRef; 3] {
        ["window_start", "window_end", "window_time"]
            .map(|name| Arc::new(Field::new(name, time.data_type().clone(), true)))
    }
}

impl OperatorSpec for WindowAssign {
    fn name(&self) -> &'static str {
        "window_assign"
    }

    fn detail(&self) -> String {
        let time = self.input.field(self.time_column).name();
        let Window::Tumble { size, offset } = self.window;
        let mut text = format!("tumble {time} size {size}us");
        if offset != 0 {
            text += &format!(" offset {offset}us");
        }
        if self.allowed_lateness != 0 {
            text += &format!(" allowed lateness {}us", self.allowed_lateness);
        }
        text
    }

    fn output_schema(&self) -> SchemaRef {
        let mut fields = self.input.fields().to_vec();
        fields.extend(Self::window_fields(self.input.field(self.time_column)));
        Arc::new(Schema::new(fields))
    }

    fn output_kind(&self) -> ChangelogKind {
        self.kind
    }

    fn needs_origin(&self) -> bool {
        true
    }

    fn build(&self, _ctx: &BuildContext) -> Result<Box<dyn Operator>> {
        let DataType::Timestamp(TimeUnit::Microsecond, zone) =
            self.input.field(self.time_column).data_type().clone()
        else {
            return Err(DataflowError::Internal("an event-time column is not a timestamp".to_owned()));
        };
        Ok(Box::new(WindowAssignOperator { spec: self.clone(), zone, output: self.output_schema() }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct WindowAssignOperator {
    spec: WindowAssign,
    zone: Option<Arc<str>>,
    output: SchemaRef,
}

/// Window bounds of the rows of a batch, in microseconds; what stands for a NULL time is
/// undefined.
struct Bounds {
    starts: Vec<i64>,
    ends: Vec<i64>,
}

impl WindowAssignOperator {
    /// The bounds of each row, and whether every row with a time has some that can be
    /// represented. Bounds beyond the range of a timestamp are set to 0.
    fn bounds(&self, times: &PrimitiveArray<TimestampMicrosecondType>) -> (Bounds, bool) {
        let Window::Tumble { size, offset } = self.spec.window;
        let mut starts = Vec::with_capacity(times.len());
        let mut ends = Vec::with_capacity(times.len());
        let mut all_in_range = true;
        // Only times within one window of the ends of i64 can leave its range.
        let safe = (i64::MIN / 2)..(i64::MAX / 2);
        let is_plain = safe.contains(&size) && safe.contains(&offset);
        for &time in times.values() {
            let bounds = if is_plain && safe.contains(&time) {
                // `rem_euclid` rounds down for times before 1970 as well.
                let start = time - (time - offset).rem_euclid(size);
                Some((start, start.wrapping_add(size)))
            } else {
                exact_bounds(time, size, offset)
            };
            let bounds = bounds.filter(|(start, end)| start < end);
            all_in_range &= bounds.is_some();
            let (start, end) = bounds.unwrap_or((0, 0));
            starts.push(start);
            ends.push(end);
        }
        (Bounds { starts, ends }, all_in_range)
    }

    /// Sends the rows of which `failed` is true to `$errors` and gives back the others.
    fn drop_failed(
        batch: ChangeBatch,
        bounds: Bounds,
        failed: &BooleanArray,
        error: RowError,
        ctx: &mut OperatorContext<'_>,
    ) -> Result<(ChangeBatch, Bounds)> {
        let failing = batch.filter(failed)?;
        if failing.is_empty() {
            return Ok((batch, bounds));
        }
        let errors = vec![error; failing.len()];
        ctx.row_errors(failing, errors);
        let keep = arrow::compute::not(failed)?;
        Ok((batch.filter(&keep)?, bounds.filter(&keep)))
    }

    /// Sends late rows to `$late` and gives back the others.
    fn drop_late(
        &self,
        batch: ChangeBatch,
        bounds: Bounds,
        ctx: &mut OperatorContext<'_>,
    ) -> Result<(ChangeBatch, Bounds)> {
        let Some(origin) = &batch.origin else { return Ok((batch, bounds)) };
        let lateness = self.spec.allowed_lateness;
        let marks = origin.watermarks.values();
        let is_late = |(&end, &mark): (&i64, &i64)| end.saturating_add(lateness) <= mark;
        let late_rows = bounds.ends.iter().zip(marks).filter(|row| is_late(*row)).count();
        if late_rows == 0 {
            return Ok((batch, bounds));
        }
        let late = BooleanArray::from_iter(bounds.ends.iter().zip(marks).map(|row| Some(is_late(row))));
        let late_batch = batch.filter(&late)?;
        let late_bounds = bounds.filter_copy(&late);
        if let Some(origin) = late_batch.origin {
            ctx.late(LateRows {
                rows: late_batch.rows,
                origin,
                window_starts: Int64Array::from(late_bounds.starts),
                window_ends: Int64Array::from(late_bounds.ends),
            });
        }
        let keep = arrow::compute::not(&late)?;
        Ok((batch.filter(&keep)?, bounds.filter(&keep)))
    }

    fn time_array(&self, values: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
        let array = PrimitiveArray::<TimestampMicrosecondType>::new(ScalarBuffer::from(values), nulls);
        Arc::new(array.with_timezone_opt(self.zone.clone()))
    }

    fn times<'a>(&self, batch: &'a ChangeBatch) -> Result<&'a PrimitiveArray<TimestampMicrosecondType>> {
        let column = batch.rows.column(self.spec.time_column);
        let wrong = || DataflowError::Internal("an event-time column is not a timestamp".to_owned());
        column.as_any().downcast_ref().ok_or_else(wrong)
    }
}

/// The bounds computed without overflow, for times and windows near the ends of the range.
fn exact_bounds(time: i64, size: i64, offset: i64) -> Option<(i64, i64)> {
    let since = (i128::from(time) - i128::from(offset)).rem_euclid(i128::from(size));
    let start = i128::from(time) - since;
    Some((i64::try_from(start).ok()?, i64::try_from(start + i128::from(size)).ok()?))
}

impl Bounds {
    fn filter(self, keep: &BooleanArray) -> Self {
        self.filter_copy(keep)
    }

    fn filter_copy(&self, keep: &BooleanArray) -> Self {
        let kept = |values: &[i64]| keep.values().set_indices().map(|row| values[row]).collect();
        Self { starts: kept(&self.starts), ends: kept(&self.ends) }
    }
}

/// Rows of which the event time is NULL although they come straight from a source.
fn null_times(times: &dyn Array, origin: Option<&RowOrigin>) -> Option<BooleanArray> {
    origin?;
    let nulls = times.nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(BooleanArray::new(!nulls.inner(), None))
}

impl Operator for WindowAssignOperator {
    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let times = self.times(&batch)?;
        let nulls = null_times(times, batch.origin.as_ref());
        let (mut bounds, all_in_range) = self.bounds(times);
        let mut batch = batch;
        if let Some(nulls) = nulls {
            let error = RowError { sqlstate: "22004", message: "null event time".to_owned() };
            (batch, bounds) = Self::drop_failed(batch, bounds, &nulls, error, ctx)?;
        }
        if !all_in_range {
            let times = self.times(&batch)?;
            let out = |row: usize| times.is_valid(row) && bounds.starts[row] == bounds.ends[row];
            let failed = BooleanArray::from_iter((0..times.len()).map(|row| Some(out(row))));
            let error = RowError { sqlstate: "22008", message: "timestamp out of range".to_owned() };
            (batch, bounds) = Self::drop_failed(batch, bounds, &failed, error, ctx)?;
        }
        let (batch, bounds) = self.drop_late(batch, bounds, ctx)?;

        let nulls = self.times(&batch)?.nulls().cloned();
        let last = bounds.ends.iter().map(|end| end.wrapping_sub(1)).collect();
        let mut columns = batch.rows.columns().to_vec();
        columns.push(self.time_array(bounds.starts, nulls.clone()));
        columns.push(self.time_array(bounds.ends, nulls.clone()));
        columns.push(self.time_array(last, nulls));
        let rows = RecordBatch::try_new(Arc::clone(&self.output), columns)?;
        ctx.emit(batch.with_rows(rows));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::testing::check_operator;

    fn tumble(size: i64, offset: i64, allowed_lateness: i64) -> (WindowAssign, SchemaRef) {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let input: SchemaRef = Arc::new(Schema::new(vec![Field::new("ts", time, true)]));
        let spec = WindowAssign {
            input: Arc::clone(&input),
            kind: ChangelogKind::Append,
            time_column: 0,
            window: Window::Tumble { size, offset },
            allowed_lateness,
        };
        (spec, input)
    }

    #[test]
    fn windows_are_aligned_to_the_offset_before_1970_too() {
        let (spec, input) = tumble(10_000_000, 2_000_000, 0);
        check_operator(
            spec,
            &input,
            "
            + 1970-01-01T00:00:02
            + 1970-01-01T00:00:01.999999
            + 1969-12-31T23:59:52
            + 1969-12-31T23:59:51.999999
            + null
            ",
            expect![[r#"
                + 1970-01-01T00:00:02 1970-01-01T00:00:02 1970-01-01T00:00:12 1970-01-01T00:00:11.999999
                + 1970-01-01T00:00:01.999999 1969-12-31T23:59:52 1970-01-01T00:00:02 1970-01-01T00:00:01.999999
                + 1969-12-31T23:59:52 1969-12-31T23:59:52 1970-01-01T00:00:02 1970-01-01T00:00:01.999999
                + 1969-12-31T23:59:51.999999 1969-12-31T23:59:42 1969-12-31T23:59:52 1969-12-31T23:59:51.999999
                + null null null null
            "#]],
        );
    }

    #[test]
    fn a_row_is_late_exactly_when_its_window_closed_before_it_came() {
        let (spec, input) = tumble(10_000_000, 0, 1_000_000);
        check_operator(
            spec,
            &input,
            "
            + 1970-01-01T00:00:09 @10999999
            + 1970-01-01T00:00:09 @11000000
            + 1970-01-01T00:00:10 @11000000
            + null @11000000
            ",
            expect![[r#"
                + 1970-01-01T00:00:09 1970-01-01T00:00:00 1970-01-01T00:00:10 1970-01-01T00:00:09.999999
                + 1970-01-01T00:00:10 1970-01-01T00:00:10 1970-01-01T00:00:20 1970-01-01T00:00:19.999999
                error + null: 22004 null event time
                late 1970-01-01T00:00:09 for (0, 10000000) at 11000000us
            "#]],
        );
    }

    #[test]
    fn a_window_beyond_the_range_of_timestamps_is_an_error_of_the_row() {
        assert_eq!(exact_bounds(i64::MAX, 10, 0), None);
        assert_eq!(exact_bounds(i64::MIN, 10, 0), None);
        assert_eq!(exact_bounds(i64::MIN + 8, 10, 0), Some((i64::MIN + 8, i64::MIN + 18)));
        assert_eq!(exact_bounds(5, 10, i64::MAX), Some((-3, 7)));
    }
}
