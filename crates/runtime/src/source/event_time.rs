//! Event time of decoded rows: which rows may pass, and the watermark each row carries.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::compute;
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use dataflow::{ChangeBatch, DataflowError, Result, RowError, SourceSpec, Watermark, WatermarkSpec};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};

use super::splits::Raise;

/// Rows of a chunk, split into those that pass and those whose event time cannot be used.
pub(super) struct TimedRows {
    pub(super) rows: RecordBatch,
    pub(super) positions: Int64Array,
    /// The watermark each row proposes; empty without a declared watermark.
    pub(super) proposals: Vec<i64>,
    /// Rows that go to `$errors`, their positions, and why.
    pub(super) refused: Option<(RecordBatch, Int64Array, Vec<RowError>)>,
}

/// Checks event times and evaluates the watermark expression.
pub(super) fn time_rows(
    spec: &SourceSpec,
    rows: RecordBatch,
    positions: Int64Array,
    now: i64,
) -> Result<TimedRows> {
    let Some(watermark) = &spec.watermark else {
        return Ok(TimedRows { rows, positions, proposals: Vec::new(), refused: None });
    };
    let latest = spec.future_max.map_or(i64::MAX, |future| now.saturating_add(future));
    let times = micros(rows.column(watermark.column))?;
    let mut reasons: Vec<Option<RowError>> = Vec::new();
    let is_usable = |row: usize| times.is_valid(row) && times.value(row) <= latest;
    if !(0..rows.num_rows()).all(is_usable) {
        reasons = (0..rows.num_rows()).map(|row| refusal(spec, watermark, &times, row, latest)).collect();
    }
    let (proposals, failed) = propose(watermark, &rows)?;
    if failed.iter().any(Option::is_some) {
        reasons.resize(rows.num_rows(), None);
        for (reason, failure) in reasons.iter_mut().zip(failed) {
            *reason = reason.take().or(failure);
        }
    }
    if reasons.is_empty() {
        return Ok(TimedRows { rows, positions, proposals, refused: None });
    }
    separate(&rows, &positions, &proposals, reasons)
}

fn refusal(
    spec: &SourceSpec,
    watermark: &WatermarkSpec,
    times: &Int64Array,
    row: usize,
    latest: i64,
) -> Option<RowError> {
    let column = spec.schema.field(watermark.column).name();
    if times.is_null(row) {
        return Some(RowError {
            sqlstate: "23502",
            message: format!("null value in event time column \"{column}\""),
        });
    }
    (times.value(row) > latest).then(|| RowError {
        sqlstate: "22008",
        message: format!("event time in column \"{column}\" is too far in the future"),
    })
}

fn separate(
    rows: &RecordBatch,
    positions: &Int64Array,
    proposals: &[i64],
    reasons: Vec<Option<RowError>>,
) -> Result<TimedRows> {
    let keep: BooleanArray = reasons.iter().map(|reason| Some(reason.is_none())).collect();
    let refuse = compute::not(&keep)?;
    let select = |mask: &BooleanArray| -> Result<(RecordBatch, Int64Array)> {
        let positions = compute::filter(positions, mask)?;
        Ok((compute::filter_record_batch(rows, mask)?, Int64Array::from(positions.to_data())))
    };
    let (kept, kept_positions) = select(&keep)?;
    let (refused, refused_positions) = select(&refuse)?;
    let proposals =
        proposals.iter().zip(&reasons).filter(|(_, reason)| reason.is_none()).map(|(at, _)| *at).collect();
    Ok(TimedRows {
        rows: kept,
        positions: kept_positions,
        proposals,
        refused: Some((refused, refused_positions, reasons.into_iter().flatten().collect())),
    })
}

/// The watermark each row proposes (`MIN` where the expression is NULL), and why rows failed.
fn propose(watermark: &WatermarkSpec, rows: &RecordBatch) -> Result<(Vec<i64>, Vec<Option<RowError>>)> {
    match evaluate(watermark, rows) {
        Ok(proposals) => Ok((proposals, Vec::new())),
        // The expression fails on some row: find which, as it fails on that row alone.
        Err(_) => {
            let mut proposals = vec![Watermark::MIN.0; rows.num_rows()];
            let mut failed = vec![None; rows.num_rows()];
            for row in 0..rows.num_rows() {
                match evaluate(watermark, &rows.slice(row, 1)) {
                    Ok(one) => proposals[row] = one[0],
                    Err(error) => {
                        failed[row] = Some(RowError { sqlstate: "22008", message: error.to_string() });
                    }
                }
            }
            Ok((proposals, failed))
        }
    }
}

fn evaluate(watermark: &WatermarkSpec, rows: &RecordBatch) -> Result<Vec<i64>> {
    if let Some(proposals) = evaluate_fixed_delay(watermark, rows) {
        return Ok(proposals);
    }
    let values = watermark.expression.evaluate(rows)?.into_array(rows.num_rows())?;
    let values = micros(&values)?;
    if values.null_count() == 0 {
        return Ok(values.values().to_vec());
    }
    Ok(values.iter().map(|value| value.unwrap_or(Watermark::MIN.0)).collect())
}

/// The usual watermark, `column - INTERVAL '4 seconds'`, without the way over calendar dates that
/// general interval arithmetic takes for each row. `None`: not that, or not with the same result.
fn evaluate_fixed_delay(watermark: &WatermarkSpec, rows: &RecordBatch) -> Option<Vec<i64>> {
    /// Far inside of what a calendar date can be, so that the general way would not fail either.
    const CALENDAR: std::ops::RangeInclusive<i64> = -8_000_000_000_000_000_000..=8_000_000_000_000_000_000;
    let difference = watermark.expression.downcast_ref::<BinaryExpr>()?;
    let column = difference.left().downcast_ref::<Column>()?;
    let delay = difference.right().downcast_ref::<Literal>()?;
    let ScalarValue::IntervalMonthDayNano(Some(delay)) = delay.value() else { return None };
    let is_fixed = delay.months == 0 && delay.days == 0 && delay.nanoseconds % 1000 == 0;
    if *difference.op() != Operator::Minus || !is_fixed {
        return None;
    }
    let times = rows.column(column.index()).as_primitive_opt::<TimestampMicrosecondType>()?;
    if times.null_count() > 0 || !times.values().iter().all(|time| CALENDAR.contains(time)) {
        return None;
    }
    // Nanoseconds as microseconds are far too few to leave the range of a number from there.
    let delay = delay.nanoseconds / 1000;
    Some(times.values().iter().map(|time| time - delay).collect())
}

/// A timestamp column as microseconds.
#[allow(clippy::wildcard_enum_match_arm, reason = "the planner allows timestamps only")]
fn micros(column: &ArrayRef) -> Result<Int64Array> {
    let column = match column.data_type() {
        DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _) => Arc::clone(column),
        DataType::Timestamp(_, zone) => {
            let micros = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, zone.clone());
            compute::cast(column, &micros)?
        }
        other => return Err(DataflowError::Internal(format!("a watermark over a column of type {other}"))),
    };
    let values = column.as_primitive::<TimestampMicrosecondType>();
    Ok(Int64Array::new(values.values().clone(), values.nulls().cloned()))
}

/// The watermark each row carries: the split's just before the row. Returns also the one behind
/// the last row. `raises` apply to the rows at or behind their position.
pub(super) fn stamp(prefix: i64, proposals: &[i64], positions: &[i64], raises: &[Raise]) -> (Vec<i64>, i64) {
    let mut watermark = prefix;
    let mut stamped = Vec::with_capacity(positions.len());
    let mut raises = raises.iter().peekable();
    for (proposal, position) in proposals.iter().zip(positions) {
        while let Some(raise) = raises.next_if(|raise| raise.position <= *position) {
            watermark = watermark.max(raise.watermark);
        }
        stamped.push(watermark);
        watermark = watermark.max(*proposal);
    }
    for raise in raises {
        watermark = watermark.max(raise.watermark);
    }
    (stamped, watermark)
}

/// The side rows of refused event times.
pub(super) fn refused_rows(rows: RecordBatch, positions: Int64Array, split: i64) -> ChangeBatch {
    let count = rows.num_rows();
    let mut batch = ChangeBatch::append(rows);
    batch.origin = Some(dataflow::RowOrigin {
        splits: Int64Array::from_value(split, count),
        positions,
        ordinals: Int64Array::from_value(0, count),
        watermarks: Int64Array::from_value(Watermark::MIN.0, count),
    });
    batch
}

#[cfg(test)]
mod tests {
    use arrow::array::PrimitiveArray;
    use arrow::datatypes::{Field, IntervalMonthDayNano, Schema, TimeUnit};

    use super::*;

    #[test]
    fn a_row_carries_the_greatest_proposal_before_it() {
        assert_eq!(stamp(3, &[1, 5, 4, 9], &[0, 1, 2, 3], &[]), (vec![3, 3, 5, 5], 9));
    }

    #[test]
    fn a_fixed_delay_proposes_what_interval_arithmetic_does() {
        let field = |name| Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, None), true);
        let schema = Arc::new(Schema::new(vec![field("a"), field("b")]));
        let delayed = |months, days, nanoseconds| WatermarkSpec {
            column: 1,
            expression: Arc::new(BinaryExpr::new(
                Arc::new(Column::new("b", 1)),
                Operator::Minus,
                Arc::new(Literal::new(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
                    months,
                    days,
                    nanoseconds,
                })))),
            )),
        };
        let rows = |times: Vec<Option<i64>>| {
            let column = |times: Vec<Option<i64>>| -> ArrayRef {
                Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from(times))
            };
            let columns = vec![column(vec![Some(0); times.len()]), column(times)];
            RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
        };
        let times = vec![Some(0), Some(-1), Some(1_709_164_500_123_456), Some(-8_000_000_000_000_000_000)];
        let rows_without_null = rows(times);
        for nanoseconds in [0, 4_000_000_000, -3_000, i64::MAX - i64::MAX % 1000] {
            let watermark = delayed(0, 0, nanoseconds);
            let general = watermark.expression.evaluate(&rows_without_null).unwrap();
            let general = micros(&general.into_array(4).unwrap()).unwrap().values().to_vec();
            assert_eq!(evaluate_fixed_delay(&watermark, &rows_without_null), Some(general));
        }
        // What depends on the calendar, is finer than a microsecond, NULL or far out is not fixed.
        for watermark in [delayed(1, 0, 0), delayed(0, 1, 0), delayed(0, 0, 1)] {
            assert_eq!(evaluate_fixed_delay(&watermark, &rows_without_null), None);
        }
        for time in [None, Some(i64::MAX), Some(i64::MIN)] {
            assert_eq!(evaluate_fixed_delay(&delayed(0, 0, 1000), &rows(vec![time])), None);
        }
    }

    #[test]
    fn a_raise_lifts_the_rows_from_its_position_on() {
        let raises = [Raise { position: 2, watermark: 7 }];
        assert_eq!(stamp(0, &[1, 1, 1], &[0, 1, 2], &raises), (vec![0, 1, 7], 7));
    }
}
