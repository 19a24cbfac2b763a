//! `sum` and `avg` over floating-point numbers, and the variances of every kind of number, over
//! exact sums: no drift, whatever is added and taken back in whatever order.
//!
//! Variances are double precision for all arguments: those that are not are converted first.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, Float32Array, Float64Array, Int64Array,
};
use arrow::compute;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int64Type};
use dataflow::Result;

use super::accumulator::{Accumulator, Failures, Input, Moves, nulls_where_not, out_of_range, wrong_column};
use super::call::AggregateFunction;
use super::exact_float::{Big, ExactFloat};

/// Exact total and number of values.
#[derive(Default)]
pub(crate) struct FloatSum {
    entries: Vec<SumEntry>,
}

#[derive(Debug, Clone, Default)]
struct SumEntry {
    total: ExactFloat,
    count: i64,
}

impl Accumulator for FloatSum {
    fn resize(&mut self, slots: usize) {
        self.entries.resize_with(slots, SumEntry::default);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let column = input.values.ok_or_else(|| wrong_column("a sum", &DataType::Null))?;
        if let Some(floats) = column.as_primitive_opt::<Float64Type>() {
            let values = floats.values();
            input.for_each(|row, slot, diff| self.entries[slot].add(values[row], diff));
        } else if let Some(floats) = column.as_primitive_opt::<Float32Type>() {
            let values = floats.values();
            input.for_each(|row, slot, diff| self.entries[slot].add(f64::from(values[row]), diff));
        } else {
            return Err(wrong_column("a sum", column.data_type()));
        }
        Ok(())
    }

    fn clear(&mut self, slots: &[u32]) {
        slots.iter().for_each(|&slot| self.entries[slot as usize] = SumEntry::default());
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
        let is_mean = function == AggregateFunction::Avg;
        let is_single = *output == DataType::Float32;
        let entries = slots.iter().map(|&slot| &self.entries[slot as usize]);
        let nulls = nulls_where_not(slots.len(), |place| self.entries[slots[place] as usize].count > 0);
        let mut values = Vec::with_capacity(slots.len());
        for (place, entry) in entries.enumerate() {
            let value = match entry.total.special() {
                Some(special) => special,
                None => {
                    let finite = entry.finite(is_mean);
                    let is_too_great = finite.is_infinite() || (is_single && (finite as f32).is_infinite());
                    if is_too_great {
                        let error = out_of_range("value out of range: overflow");
                        failures.entry(place).or_insert(error);
                    }
                    finite
                }
            };
            values.push(value);
        }
        Ok(if is_single {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            Arc::new(Float32Array::new(values.into(), nulls))
        } else {
            Arc::new(Float64Array::new(values.into(), nulls))
        })
    }

    fn state_fields(&self, name: &str) -> Vec<Field> {
        vec![
            Field::new(format!("sum_{name}"), DataType::Binary, false),
            Field::new(format!("count_{name}"), DataType::Int64, false),
        ]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let entries = slots.iter().map(|&slot| &self.entries[slot as usize]);
        let counts = entries.clone().map(|entry| entry.count).collect::<Int64Array>();
        Ok(vec![save_sums(entries.map(|entry| &entry.total)), Arc::new(counts)])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let totals = columns[0].as_binary::<i32>();
        let counts = columns[1].as_primitive::<Int64Type>().values();
        for (row, &slot) in slots.iter().enumerate() {
            let total = ExactFloat::read(totals.value(row))?;
            self.entries[slot as usize] = SumEntry { total, count: counts[row] };
        }
        Ok(())
    }

    fn bytes_per_slot(&self) -> usize {
        size_of::<SumEntry>()
    }
}

impl SumEntry {
    #[inline]
    fn add(&mut self, value: f64, diff: i64) {
        self.total.add(value, diff);
        self.count += diff;
    }

    fn finite(&self, is_mean: bool) -> f64 {
        let total = self.total.finite();
        if !is_mean || self.count <= 0 {
            return total;
        }
        if total.is_finite() {
            return total / self.count as f64;
        }
        // The total is too great for a double, the mean is not.
        let scaled = self.total.to_big().times(&Big::new(1, -64)).to_f64();
        scaled / self.count as f64 * 2_f64.powi(64)
    }
}

fn save_sums<'a>(sums: impl Iterator<Item = &'a ExactFloat>) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    let mut bytes = Vec::new();
    for sum in sums {
        bytes.clear();
        sum.write(&mut bytes);
        builder.append_value(&bytes);
    }
    Arc::new(builder.finish())
}

/// Exact sums of the values and of their squares, and the number of values.
#[derive(Default)]
pub(crate) struct Moments {
    entries: Vec<MomentsEntry>,
}

#[derive(Debug, Clone, Default)]
struct MomentsEntry {
    total: ExactFloat,
    squares: ExactFloat,
    count: i64,
}

impl Accumulator for Moments {
    fn resize(&mut self, slots: usize) {
        self.entries.resize_with(slots, MomentsEntry::default);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let column = input.values.ok_or_else(|| wrong_column("a variance", &DataType::Null))?;
        let floats = compute::cast(column, &DataType::Float64)?;
        let values = floats.as_primitive::<Float64Type>().values();
        input.for_each(|row, slot, diff| self.entries[slot].add(values[row], diff));
        Ok(())
    }

    fn clear(&mut self, slots: &[u32]) {
        slots.iter().for_each(|&slot| self.entries[slot as usize] = MomentsEntry::default());
    }

    fn compact(&mut self, moves: &Moves) {
        moves.apply(&mut self.entries);
    }

    fn evaluate(
        &self,
        function: AggregateFunction,
        _output: &DataType,
        slots: &[u32],
        failures: &mut Failures,
    ) -> Result<ArrayRef> {
        let is_sample = matches!(function, AggregateFunction::StddevSamp | AggregateFunction::VarSamp);
        let is_deviation = matches!(function, AggregateFunction::StddevSamp | AggregateFunction::StddevPop);
        let mut values = Vec::with_capacity(slots.len());
        for (place, &slot) in slots.iter().enumerate() {
            let entry = &self.entries[slot as usize];
            let variance = entry.variance(is_sample);
            if variance.is_some_and(f64::is_infinite) {
                failures.entry(place).or_insert_with(|| out_of_range("value out of range: overflow"));
            }
            values.push(if is_deviation { variance.map(f64::sqrt) } else { variance });
        }
        Ok(Arc::new(Float64Array::from(values)))
    }

    fn state_fields(&self, name: &str) -> Vec<Field> {
        vec![
            Field::new(format!("sum_{name}"), DataType::Binary, false),
            Field::new(format!("squares_{name}"), DataType::Binary, false),
            Field::new(format!("count_{name}"), DataType::Int64, false),
        ]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let entries = slots.iter().map(|&slot| &self.entries[slot as usize]);
        let counts = entries.clone().map(|entry| entry.count).collect::<Int64Array>();
        Ok(vec![
            save_sums(entries.clone().map(|entry| &entry.total)),
            save_sums(entries.map(|entry| &entry.squares)),
            Arc::new(counts),
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let (totals, squares): (&BinaryArray, &BinaryArray) =
            (columns[0].as_binary(), columns[1].as_binary());
        let counts = columns[2].as_primitive::<Int64Type>().values();
        for (row, &slot) in slots.iter().enumerate() {
            self.entries[slot as usize] = MomentsEntry {
                total: ExactFloat::read(totals.value(row))?,
                squares: ExactFloat::read(squares.value(row))?,
                count: counts[row],
            };
        }
        Ok(())
    }

    fn bytes_per_slot(&self) -> usize {
        size_of::<MomentsEntry>()
    }
}

impl MomentsEntry {
    fn add(&mut self, value: f64, diff: i64) {
        self.total.add(value, diff);
        self.count += diff;
        // The square is the sum of two doubles: itself rounded and what that left out. Even
        // where the second is inexact (tiny squares), a retraction takes back the same two.
        let square = value * value;
        self.squares.add(square, diff);
        if square.is_finite() {
            self.squares.add(value.mul_add(value, -square), diff);
        }
    }

    /// (n Σx² − (Σx)²) / (n (n − 1)), the numerator exact; or / n² for a population.
    fn variance(&self, is_sample: bool) -> Option<f64> {
        let n = self.count;
        if n < if is_sample { 2 } else { 1 } {
            return None;
        }
        if self.total.special().is_some() {
            return Some(f64::NAN);
        }
        if let Some(overflow) = self.squares.special() {
            return Some(overflow);
        }
        let squares = self.squares.to_big().times(&Big::new(i128::from(n), 0));
        let total = self.total.to_big();
        let numerator = squares.minus_or_zero(&total.times(&total)).to_f64();
        let n = n as f64;
        Some(numerator / n / if is_sample { n - 1.0 } else { n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variance_of(values: &[f64], is_sample: bool) -> Option<f64> {
        let mut entry = MomentsEntry::default();
        values.iter().for_each(|&value| entry.add(value, 1));
        entry.variance(is_sample)
    }

    #[test]
    fn a_variance_does_not_cancel() {
        assert_eq!(variance_of(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0], true), Some(1.0));
        assert_eq!(variance_of(&[0.1; 7], false), Some(0.0));
        assert_eq!(variance_of(&[1.0, 2.0, 3.0, 4.0], false), Some(1.25));
        assert_eq!(variance_of(&[5.0], true), None);
        assert_eq!(variance_of(&[5.0], false), Some(0.0));
        assert!(variance_of(&[5.0, f64::INFINITY], false).is_some_and(f64::is_nan));
    }
}
