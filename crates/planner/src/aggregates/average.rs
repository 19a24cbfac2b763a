//! `avg`: exact for integers and decimals, rounded half away from zero; DataFusion's for floats.
//!
//! | state | |
//! |---|---|
//! | `sum`   | `Decimal128(38, scale of the argument)` |
//! | `count` | `Int64` |
//!
//! `avg(DISTINCT …)` keeps the distinct values instead.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Int64Type, i256,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::average::Avg as InnerAvg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use operators::AggregateFunction;

use super::{coerce_argument, result_type};

/// `avg` with PostgreSQL's result types.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Avg {
    inner: InnerAvg,
    signature: Signature,
}

impl Default for Avg {
    fn default() -> Self {
        Self { inner: InnerAvg::new(), signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Avg {
    fn name(&self) -> &str {
        "avg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let mut arguments = coerce_argument(AggregateFunction::Avg, arguments)?;
        if arguments[0] == DataType::Float32 {
            arguments[0] = DataType::Float64;
        }
        Ok(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        result_type(AggregateFunction::Avg, arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let Some(mean) = Mean::of(args.expr_fields[0].data_type(), args.return_type()) else {
            return self.inner.accumulator(args);
        };
        Ok(if args.is_distinct {
            Box::new(DistinctAverage { mean, values: HashSet::new() })
        } else {
            Box::new(Average { mean, sum: 0, count: 0 })
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match Mean::of(args.expr_fields[0].data_type(), args.return_type()) {
            Some(_) => self.accumulator(args),
            None => self.inner.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let Some(mean) = Mean::of(args.input_fields[0].data_type(), args.return_type()) else {
            return self.inner.state_fields(args);
        };
        let field =
            |part: &str, data_type| Arc::new(Field::new(format!("{}[{part}]", args.name), data_type, true));
        Ok(if args.is_distinct {
            let item = Arc::new(Field::new_list_field(mean.sum_type(), true));
            vec![field("values", DataType::List(item))]
        } else {
            vec![field("sum", mean.sum_type()), field("count", DataType::Int64)]
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        match Mean::of(args.expr_fields[0].data_type(), args.return_type()) {
            Some(_) => !args.is_distinct,
            None => self.inner.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match Mean::of(args.expr_fields[0].data_type(), args.return_type()) {
            Some(mean) => Ok(Box::new(GroupAverages { mean, sums: Vec::new(), counts: Vec::new() })),
            None => self.inner.create_groups_accumulator(args),
        }
    }
}

/// How a sum and a count become a mean.
#[derive(Debug, Clone, Copy)]
struct Mean {
    /// Scale of the values and of their sum.
    scale: i8,
    /// Type of the result.
    result_precision: u8,
    result_scale: i8,
}

impl Mean {
    /// `None`: the argument is a float.
    fn of(argument: &DataType, result: &DataType) -> Option<Self> {
        let DataType::Decimal128(result_precision, result_scale) = *result else {
            return None;
        };
        let scale = if let DataType::Decimal128(_, scale) = *argument { scale } else { 0 };
        Some(Self { scale, result_precision, result_scale })
    }

    fn sum_type(self) -> DataType {
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, self.scale)
    }

    fn result_type(self) -> DataType {
        DataType::Decimal128(self.result_precision, self.result_scale)
    }

    fn values(self, array: &ArrayRef) -> Result<Decimal128Array> {
        Ok(cast(array, &self.sum_type())?.as_primitive::<Decimal128Type>().clone())
    }

    fn mean(self, sum: i128, count: i64) -> Result<Option<i128>> {
        if count == 0 {
            return Ok(None);
        }
        let up = i256::from_i128(10).wrapping_pow(u32::from((self.result_scale - self.scale).unsigned_abs()));
        let count = i256::from_i128(i128::from(count));
        // |sum| < 2^127 and up <= 10^38 < 2^127: twice their product stays below 2^255.
        let scaled = i256::from_i128(sum).wrapping_mul(up);
        let quotient = scaled.wrapping_div(count);
        let remainder = scaled.wrapping_sub(quotient.wrapping_mul(count)).wrapping_abs();
        let rounds_up = remainder.wrapping_add(remainder) >= count;
        let away = i256::from_i128(i128::from(rounds_up) * if sum < 0 { -1 } else { 1 });
        let limit = 10_i128.pow(u32::from(self.result_precision));
        match quotient.wrapping_add(away).to_i128() {
            Some(mean) if -limit < mean && mean < limit => Ok(Some(mean)),
            _ => Err(overflow()),
        }
    }

    fn scalar(self, mean: Option<i128>) -> ScalarValue {
        ScalarValue::Decimal128(mean, self.result_precision, self.result_scale)
    }
}

fn overflow() -> DataFusionError {
    sql::EvaluationError::out_of_range("numeric").into()
}

fn add(sum: &mut i128, value: i128) -> Result<()> {
    *sum = sum.checked_add(value).ok_or_else(overflow)?;
    Ok(())
}

#[derive(Debug)]
struct Average {
    mean: Mean,
    sum: i128,
    count: i64,
}

impl Accumulator for Average {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = self.mean.values(&values[0])?;
        for value in values.iter().flatten() {
            add(&mut self.sum, value)?;
        }
        self.count += (values.len() - values.null_count()) as i64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = self.mean.values(&values[0])?;
        for value in values.iter().flatten() {
            add(&mut self.sum, -value)?;
        }
        self.count -= (values.len() - values.null_count()) as i64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.mean.scalar(self.mean.mean(self.sum, self.count)?))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = ScalarValue::Decimal128(Some(self.sum), DECIMAL128_MAX_PRECISION, self.mean.scale);
        Ok(vec![sum, ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for sum in states[0].as_primitive::<Decimal128Type>().iter().flatten() {
            add(&mut self.sum, sum)?;
        }
        self.count += states[1].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        Ok(())
    }
}

#[derive(Debug)]
struct DistinctAverage {
    mean: Mean,
    values: HashSet<i128>,
}

impl Accumulator for DistinctAverage {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(self.mean.values(&values[0])?.iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum = 0;
        for value in &self.values {
            add(&mut sum, *value)?;
        }
        Ok(self.mean.scalar(self.mean.mean(sum, self.values.len() as i64)?))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * (size_of::<i128>() + 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let scalar =
            |value: &i128| ScalarValue::Decimal128(Some(*value), DECIMAL128_MAX_PRECISION, self.mean.scale);
        let values: Vec<ScalarValue> = self.values.iter().map(scalar).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.mean.sum_type()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.values.extend(values.as_primitive::<Decimal128Type>().iter().flatten());
        }
        Ok(())
    }
}

/// Sums and counts by group.
struct GroupAverages {
    mean: Mean,
    sums: Vec<i128>,
    counts: Vec<i64>,
}

impl GroupAverages {
    fn grow(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.counts.resize(groups, 0);
    }

    fn sum_array(&self, sums: Vec<i128>) -> Result<ArrayRef> {
        Ok(Arc::new(Decimal128Array::from(sums).with_data_type(self.mean.sum_type())))
    }
}

impl GroupsAccumulator for GroupAverages {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        let values = self.mean.values(&values[0])?;
        for (row, &group) in group_indices.iter().enumerate() {
            let kept = opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if kept && values.is_valid(row) {
                add(&mut self.sums[group], values.value(row))?;
                self.counts[group] += 1;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let counts = emit_to.take_needed(&mut self.counts);
        let means: Result<PrimitiveArray<Decimal128Type>> =
            sums.iter().zip(&counts).map(|(&sum, &count)| self.mean.mean(sum, count)).collect();
        Ok(Arc::new(means?.with_data_type(self.mean.result_type())))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums = emit_to.take_needed(&mut self.sums);
        let counts = emit_to.take_needed(&mut self.counts);
        Ok(vec![self.sum_array(sums)?, Arc::new(Int64Array::from(counts))])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        let sums = values[0].as_primitive::<Decimal128Type>();
        let counts = values[1].as_primitive::<Int64Type>();
        for (row, &group) in group_indices.iter().enumerate() {
            if counts.is_valid(row) {
                add(&mut self.sums[group], sums.value(row))?;
                self.counts[group] += counts.value(row);
            }
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = self.mean.values(&values[0])?;
        let kept = |row: usize| {
            values.is_valid(row) && opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
        };
        let sums = (0..values.len()).map(|row| if kept(row) { values.value(row) } else { 0 }).collect();
        let counts = Int64Array::from_iter_values((0..values.len()).map(|row| i64::from(kept(row))));
        Ok(vec![self.sum_array(sums)?, Arc::new(counts)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_rounded_half_away_from_zero() {
        let mean = Mean { scale: 0, result_precision: 38, result_scale: 1 };
        assert_eq!(mean.mean(1, 4).unwrap(), Some(3), "0.25 is 0.3");
        assert_eq!(mean.mean(-1, 4).unwrap(), Some(-3));
        assert_eq!(mean.mean(1, 8).unwrap(), Some(1), "0.125 is 0.1");
        assert_eq!(mean.mean(-7, 10).unwrap(), Some(-7));
        assert_eq!(mean.mean(0, 0).unwrap(), None);
    }

    #[test]
    fn a_mean_that_has_too_many_digits_is_an_error() {
        let mean = Mean { scale: 0, result_precision: 38, result_scale: 16 };
        assert!(mean.mean(10_i128.pow(22), 1).is_err());
        assert_eq!(mean.mean(10_i128.pow(21), 1).unwrap(), Some(10_i128.pow(37)));
        assert!(mean.mean(i128::MAX, 1).is_err());
    }
}
