//! `min` and `max`: DataFusion's, over floats in PostgreSQL's order.
//!
//! DataFusion compares floats with `<`, for which NaN is neither smaller nor greater than anything:
//! the result would depend on the order of the rows. Here the accumulators see integers that are in
//! PostgreSQL's order: -0 is 0, and NaN is greater than everything.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};
use datafusion::scalar::ScalarValue;

use super::converted::{Conversion, Converted};

/// Both functions.
pub(super) fn functions() -> [Arc<AggregateUDF>; 2] {
    [
        Arc::new(AggregateUDF::new_from_impl(Extreme { inner: Min::new() })),
        Arc::new(AggregateUDF::new_from_impl(Extreme { inner: Max::new() })),
    ]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme<F> {
    inner: F,
}

impl<F: AggregateUDFImpl + std::hash::Hash + Eq> AggregateUDFImpl for Extreme<F> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match FloatOrder::of(args.return_type()) {
            Some(_) => {
                let return_field = as_integer(&args.return_field);
                self.inner.state_fields(StateFieldsArgs { return_field, ..args })
            }
            None => self.inner.state_fields(args),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match FloatOrder::of(args.return_type()) {
            Some(order) => Ok(Box::new(Converted::new(self.inner.accumulator(integer_args(args))?, order))),
            None => self.inner.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match FloatOrder::of(args.return_type()) {
            Some(order) => {
                let inner = self.inner.create_sliding_accumulator(integer_args(args))?;
                Ok(Box::new(Converted::new(inner, order)))
            }
            None => self.inner.create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match FloatOrder::of(args.return_type()) {
            Some(order) => {
                let inner = self.inner.create_groups_accumulator(integer_args(args))?;
                Ok(Box::new(Converted::new(inner, order)))
            }
            None => self.inner.create_groups_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.set_monotonicity(data_type)
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(args)
    }
}

fn integer_args(args: AccumulatorArgs<'_>) -> AccumulatorArgs<'_> {
    let return_field = as_integer(&args.return_field);
    AccumulatorArgs { return_field, ..args }
}

fn as_integer(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), DataType::Int64, field.is_nullable()))
}

/// Floats as integers in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FloatOrder {
    Real,
    Double,
}

impl FloatOrder {
    /// None for types whose order DataFusion knows.
    fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Float32 => Some(Self::Real),
            DataType::Float64 => Some(Self::Double),
            _ => None,
        }
    }
}

impl Conversion for FloatOrder {
    fn argument(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let ordered: Int64Array = match self {
            Self::Real => values.as_primitive::<Float32Type>().unary(|value| rank(f64::from(value))),
            Self::Double => values.as_primitive::<Float64Type>().unary(rank),
        };
        Ok(Arc::new(ordered))
    }

    fn result(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let ranks = values.as_primitive::<Int64Type>();
        Ok(match self {
            #[expect(clippy::cast_possible_truncation, reason = "it was a real before")]
            Self::Real => {
                let values: PrimitiveArray<Float32Type> = ranks.unary(|rank| float(rank) as f32);
                Arc::new(values)
            }
            Self::Double => {
                let values: PrimitiveArray<Float64Type> = ranks.unary(float);
                Arc::new(values)
            }
        })
    }
}

/// The place of a float among all of them: its bits, those of negative numbers turned around.
fn rank(value: f64) -> i64 {
    let canonical = if value.is_nan() { f64::NAN } else { value + 0.0 };
    turned(canonical.to_bits().cast_signed())
}

fn float(rank: i64) -> f64 {
    f64::from_bits(turned(rank).cast_unsigned())
}

fn turned(bits: i64) -> i64 {
    bits ^ (((bits >> 63).cast_unsigned()) >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::{float, rank};

    #[test]
    fn ranks_are_in_postgresqls_order() {
        let ordered = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            5e-324,
            1.5,
            f64::MAX,
            f64::INFINITY,
        ];
        for pair in ordered.windows(2) {
            assert!(rank(pair[0]) < rank(pair[1]), "{pair:?}");
        }
        for value in ordered {
            assert_eq!(float(rank(value)).to_bits(), value.to_bits());
        }
        assert_eq!(rank(-0.0), rank(0.0));
        assert!(rank(f64::INFINITY) < rank(f64::NAN));
        assert_eq!(rank(-f64::NAN), rank(f64::NAN));
        assert!(float(rank(f64::NAN)).is_nan());
    }
}
