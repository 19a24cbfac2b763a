//! `sum`: DataFusion's accumulators over values cast to the type of the result.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::sum::Sum as InnerSum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use operators::AggregateFunction;

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
        Ok(Box::new(Widened { inner, casts }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let casts = Casts::of(args.return_type());
        let inner = self.inner.create_sliding_accumulator(casts.inner_args(args))?;
        Ok(Box::new(Widened { inner, casts }))
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
        Ok(Box::new(WidenedGroups { inner, casts }))
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
        // A real is summed as a double precision: fewer digits are lost.
        let sum = if *result == DataType::Float32 { DataType::Float64 } else { result.clone() };
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

    fn values(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(|array| Ok(cast(array, &self.sum)?)).collect()
    }
}

#[derive(Debug)]
struct Widened {
    inner: Box<dyn Accumulator>,
    casts: Casts,
}

impl Accumulator for Widened {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&self.casts.values(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()?.cast_to(&self.casts.result)
    }

    fn size(&self) -> usize {
        self.inner.size() + size_of::<Casts>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&self.casts.values(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

struct WidenedGroups {
    inner: Box<dyn GroupsAccumulator>,
    casts: Casts,
}

impl GroupsAccumulator for WidenedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner.update_batch(&self.casts.values(values)?, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(cast(&self.inner.evaluate(emit_to)?, &self.casts.result)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner.merge_batch(values, group_indices, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(&self.casts.values(values)?, opt_filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
