//! `sum` and `avg` over integers and decimals: totals in 128 or 256 bits, checked when they are
//! read, so that a total may leave the range of the result inside an epoch and come back.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, Decimal256Array, Int64Array,
    PrimitiveArray,
};
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, Int16Type, Int32Type, Int64Type, i256,
};
use dataflow::{DataflowError, Result};

use super::accumulator::{Accumulator, Failures, Input, Moves, nulls_where_not, out_of_range, wrong_column};
use super::call::AggregateFunction;

/// A total wide enough for any number of values.
pub(crate) trait Total: Copy + Default + Send {
    /// What is added up.
    type Value: Copy;
    const STATE_TYPE: DataType;
    fn add(&mut self, value: Self::Value, diff: i64);
    fn widened(self) -> i256;
    fn to_i128(self) -> Option<i128>;
    fn save(totals: impl Iterator<Item = Self>) -> Result<ArrayRef>;
    fn load(column: &ArrayRef) -> Vec<Self>;
}

impl Total for i128 {
    type Value = i64;
    // A total of 2⁶³ values of 2⁶³ still has 38 digits.
    const STATE_TYPE: DataType = DataType::Decimal128(38, 0);

    #[inline]
    fn add(&mut self, value: i64, diff: i64) {
        *self += i128::from(value) * i128::from(diff);
    }

    fn widened(self) -> i256 {
        i256::from_i128(self)
    }

    fn to_i128(self) -> Option<i128> {
        Some(self)
    }

    fn save(totals: impl Iterator<Item = Self>) -> Result<ArrayRef> {
        Ok(Arc::new(Decimal128Array::from_iter_values(totals).with_precision_and_scale(38, 0)?))
    }

    fn load(column: &ArrayRef) -> Vec<Self> {
        column.as_primitive::<Decimal128Type>().values().to_vec()
    }
}

impl Total for i256 {
    type Value = i128;
    const STATE_TYPE: DataType = DataType::Decimal256(76, 0);

    #[inline]
    fn add(&mut self, value: i128, diff: i64) {
        let term = if diff == 1 {
            Self::from_i128(value)
        } else {
            Self::from_i128(value).wrapping_mul(Self::from_i128(i128::from(diff)))
        };
        *self = self.wrapping_add(term);
    }

    fn widened(self) -> i256 {
        self
    }

    fn to_i128(self) -> Option<i128> {
        i256::to_i128(self)
    }

    fn save(totals: impl Iterator<Item = Self>) -> Result<ArrayRef> {
        Ok(Arc::new(Decimal256Array::from_iter_values(totals).with_precision_and_scale(76, 0)?))
    }

    fn load(column: &ArrayRef) -> Vec<Self> {
        column.as_primitive::<Decimal256Type>().values().to_vec()
    }
}

/// Total and number of values.
pub(crate) struct ExactSum<P, T> {
    entries: Vec<Entry<T>>,
    /// Digits behind the point of the values.
    scale: i8,
    values: PhantomData<fn() -> P>,
}

#[derive(Clone, Copy, Default)]
struct Entry<T> {
    total: T,
    count: i64,
}

/// The accumulator for an argument of type `argument`, unless that is neither an integer nor a
/// decimal.
#[expect(clippy::wildcard_enum_match_arm, reason = "a few of the many types of Arrow")]
pub(crate) fn exact_sum(argument: &DataType) -> Option<Box<dyn Accumulator>> {
    fn new<P, T>(scale: i8) -> Option<Box<dyn Accumulator>>
    where
        P: ArrowPrimitiveType,
        P::Native: Into<T::Value>,
        T: Total + 'static,
    {
        Some(Box::new(ExactSum::<P, T> { entries: Vec::new(), scale, values: PhantomData }))
    }
    match argument {
        DataType::Int16 => new::<Int16Type, i128>(0),
        DataType::Int32 => new::<Int32Type, i128>(0),
        DataType::Int64 => new::<Int64Type, i128>(0),
        DataType::Decimal128(_, scale) => new::<Decimal128Type, i256>(*scale),
        _ => None,
    }
}

impl<P, T> Accumulator for ExactSum<P, T>
where
    P: ArrowPrimitiveType,
    P::Native: Into<T::Value>,
    T: Total,
{
    fn resize(&mut self, slots: usize) {
        self.entries.resize(slots, Entry::default());
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let column = input.values.ok_or_else(|| wrong_column("a sum", &DataType::Null))?;
        let values = column
            .as_any()
            .downcast_ref::<PrimitiveArray<P>>()
            .ok_or_else(|| wrong_column("a sum", column.data_type()))?
            .values();
        let values = &values[..input.slots.len()];
        let entries = self.entries.as_mut_slice();
        input.for_each(|row, slot, diff| {
            let entry = &mut entries[slot];
            entry.total.add(values[row].into(), diff);
            entry.count += diff;
        });
        Ok(())
    }

    fn clear(&mut self, slots: &[u32]) {
        slots.iter().for_each(|&slot| self.entries[slot as usize] = Entry::default());
    }

    fn compact(&mut self, moves: &Moves) {
        moves.apply(&mut self.entries);
    }

    fn evaluate(
        &self,
        function: AggregateFunction,
        output: &DataType,
        slots: &[u32],
        failures: &mut Failures,
    ) -> Result<ArrayRef> {
        let entries = slots.iter().map(|&slot| self.entries[slot as usize]);
        let nulls = nulls_where_not(slots.len(), |place| self.entries[slots[place] as usize].count > 0);
        if let DataType::Int64 = output {
            let mut values = Vec::with_capacity(slots.len());
            for (place, entry) in entries.enumerate() {
                let total = entry.total.to_i128().and_then(|total| i64::try_from(total).ok());
                values.push(total.unwrap_or_else(|| fail(failures, place, "bigint out of range")));
            }
            return Ok(Arc::new(Int64Array::new(values.into(), nulls)));
        }
        let &DataType::Decimal128(precision, scale) = output else {
            return Err(wrong_column(function.name(), output));
        };
        let is_mean = function == AggregateFunction::Avg;
        let mut values = Vec::with_capacity(slots.len());
        for (place, entry) in entries.enumerate() {
            let value = if !is_mean {
                entry.total.to_i128()
            } else if entry.count > 0 {
                mean(entry.total, entry.count, (scale - self.scale) as u32)
            } else {
                Some(0)
            };
            let value = value.filter(|value| value.unsigned_abs() < LIMIT);
            values.push(value.unwrap_or_else(|| fail(failures, place, "numeric field overflow")));
        }
        let decimals = Decimal128Array::new(values.into(), nulls);
        Ok(Arc::new(decimals.with_precision_and_scale(precision, scale)?))
    }

    fn state_fields(&self, name: &str) -> Vec<Field> {
        vec![
            Field::new(format!("sum_{name}"), T::STATE_TYPE, false),
            Field::new(format!("count_{name}"), DataType::Int64, false),
        ]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let entries = slots.iter().map(|&slot| self.entries[slot as usize]);
        let counts = entries.clone().map(|entry| entry.count).collect::<Int64Array>();
        Ok(vec![T::save(entries.map(|entry| entry.total))?, Arc::new(counts)])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let counts = columns[1].as_primitive::<Int64Type>().values();
        for ((&slot, total), &count) in slots.iter().zip(T::load(&columns[0])).zip(counts) {
            self.entries[slot as usize] = Entry { total, count };
        }
        Ok(())
    }

    fn bytes_per_slot(&self) -> usize {
        size_of::<Entry<T>>()
    }
}

/// One more than the greatest magnitude of 38 digits.
const LIMIT: u128 = 10_u128.pow(38);

fn fail<V: Default>(failures: &mut Failures, place: usize, message: &str) -> V {
    failures.entry(place).or_insert_with(|| out_of_range(message));
    V::default()
}

/// `total / count` with `digits` more digits behind the point, halves rounded away from zero.
fn mean<T: Total>(total: T, count: i64, digits: u32) -> Option<i128> {
    let factor = 10_i128.checked_pow(digits)?;
    let count = i128::from(count);
    if let Some(scaled) = total.to_i128().and_then(|total| total.checked_mul(factor)) {
        let (quotient, rest) = (scaled / count, scaled % count);
        let away = if rest.unsigned_abs() * 2 >= count.unsigned_abs() { rest.signum() } else { 0 };
        return Some(quotient + away);
    }
    let scaled = total.widened().checked_mul(i256::from_i128(factor))?;
    let wide_count = i256::from_i128(count);
    let quotient = scaled.checked_div(wide_count)?.to_i128()?;
    let rest = scaled.checked_rem(wide_count)?.to_i128()?;
    let away = if rest.unsigned_abs() * 2 >= count.unsigned_abs() { rest.signum() } else { 0 };
    quotient.checked_add(away)
}

/// The error for a planner that asked for a sum over another type.
pub(crate) fn no_sum(argument: &DataType) -> DataflowError {
    wrong_column("a sum", argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_rounds_halves_away_from_zero() {
        assert_eq!(mean(1_i128, 2, 0), Some(1));
        assert_eq!(mean(-1_i128, 2, 0), Some(-1));
        assert_eq!(mean(1_i128, 3, 4), Some(3333));
        assert_eq!(mean(-2_i128, 3, 4), Some(-6667));
    }

    #[test]
    fn a_mean_is_exact_where_the_scaled_total_needs_more_than_128_bits() {
        let total = i128::from(i64::MAX) * 1_000_000_007;
        assert_eq!(mean(total, 1_000_000_007, 16), Some(i128::from(i64::MAX) * 10_i128.pow(16)));
        let wide = i256::from_i128(i128::MAX).wrapping_add(i256::from_i128(i128::MAX));
        assert_eq!(mean(wide, 2, 0), Some(i128::MAX));
    }
}
