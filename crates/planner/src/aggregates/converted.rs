//! An accumulator of DataFusion over other values than it is given, with another result.

use arrow::array::{ArrayRef, BooleanArray};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// What happens to values before and after. The state of the accumulator stays inside of it.
pub(super) trait Conversion: std::fmt::Debug + Send + Sync + 'static {
    fn argument(&self, values: &ArrayRef) -> Result<ArrayRef>;
    fn result(&self, values: &ArrayRef) -> Result<ArrayRef>;

    fn arguments(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        columns.iter().map(|values| self.argument(values)).collect()
    }
}

#[derive(Debug)]
pub(super) struct Converted<A: ?Sized, C> {
    conversion: C,
    inner: Box<A>,
}

impl<A: ?Sized, C> Converted<A, C> {
    pub(super) fn new(inner: Box<A>, conversion: C) -> Self {
        Self { conversion, inner }
    }
}

impl<C: Conversion> Accumulator for Converted<dyn Accumulator, C> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&self.conversion.arguments(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.conversion.result(&self.inner.evaluate()?.to_array()?)?;
        ScalarValue::try_from_array(&result, 0)
    }

    fn size(&self) -> usize {
        self.inner.size() + size_of::<C>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&self.conversion.arguments(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl<C: Conversion> GroupsAccumulator for Converted<dyn GroupsAccumulator, C> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let values = self.conversion.arguments(values)?;
        self.inner.update_batch(&values, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.conversion.result(&self.inner.evaluate(emit_to)?)
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
        self.inner.convert_to_state(&self.conversion.arguments(values)?, opt_filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
