//! `sum`: DataFusion's accumulators over values cast to the type of the result.

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::sum::Sum as InnerSum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use operators::AggregateFunction;

use super::converted::{Conversion, Converted};
use super::{coerce_argument, result_type};

/// `sum` with PostgreSQL's result types.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    inner: InnerSum,
    signature: Signature,
}

impl Default for Sum {
    fn default() -> Self {
        Self { inner: InnerSum::new(), signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        coerce_argument(AggregateFunction::Sum, arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        result_type(AggregateFunction::Sum, arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let casts = Casts::of(args.return_type());
        let inner = self.inner.accumulator(casts.inner_args(args))?;
        Ok(Box::new(Converted::new(inner, casts)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let casts = Casts::of(args.return_type());
        let inner = self.inner.create_sliding_accumulator(casts.inner_args(args))?;
        Ok(Box::new(Converted::new(inner, casts)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let casts = Casts::of(args.return_type());
        let return_field = casts.inner_field(&args.return_field);
        self.inner.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let casts = Casts::of(args.return_type());
        let inner = self.inner.create_groups_accumulator(casts.inner_args(args))?;
        Ok(Box::new(Converted::new(inner, casts)))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The type values are summed in, and the type of the result.
#[derive(Debug, Clone)]
struct Casts {
    sum: DataType,
    result: DataType,
}

impl Casts {
    fn of(result: &DataType) -> Self {
        let sum = match *result {
            // Fewer digits are lost.
            DataType::Float32 => DataType::Float64,
            // DataFusion's sums of decimals wrap: no sum of these does.
            DataType::Decimal128(_, scale) => DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale),
            _ => result.clone(),
        };
        Self { sum, result: result.clone() }
    }

    fn inner_field(&self, field: &FieldRef) -> FieldRef {
        if self.sum == self.result {
            FieldRef::clone(field)
        } else {
            FieldRef::new(field.as_ref().clone().with_data_type(self.sum.clone()))
        }
    }

    fn inner_args<'a>(&self, args: AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
        let return_field = self.inner_field(&args.return_field);
        AccumulatorArgs { return_field, ..args }
    }
}

impl Conversion for Casts {
    fn argument(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(cast(values, &self.sum)?)
    }

    fn result(&self, values: &ArrayRef) -> Result<ArrayRef> {
        // Too much for the result is an error, not NULL.
        let options = CastOptions { safe: false, ..CastOptions::default() };
        Ok(cast_with_options(values, &self.result, &options)?)
    }
}
