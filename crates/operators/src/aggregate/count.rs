//! Accumulators that only count: `count`, and `bool_and` and `bool_or`, which count the true and
//! the false values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type};
use dataflow::{DataflowError, Result};

use super::accumulator::{Accumulator, Failures, Input, Moves, wrong_column};
use super::call::AggregateFunction;

/// Number of rows that count.
#[derive(Default)]
pub(crate) struct Count {
    counts: Vec<i64>,
}

impl Accumulator for Count {
    fn resize(&mut self, slots: usize) {
        self.counts.resize(slots, 0);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        input.for_each(|_, slot, diff| self.counts[slot] += diff);
        Ok(())
    }

    fn clear(&mut self, slots: &[u32]) {
        slots.iter().for_each(|&slot| self.counts[slot as usize] = 0);
    }

    fn compact(&mut self, moves: &Moves) {
        moves.apply(&mut self.counts);
    }

    fn evaluate(
        &self,
        _function: AggregateFunction,
        _output: &DataType,
        slots: &[u32],
        _failures: &mut Failures,
    ) -> Result<ArrayRef> {
        Ok(Arc::new(slots.iter().map(|&slot| self.counts[slot as usize]).collect::<Int64Array>()))
    }

    fn state_fields(&self, name: &str) -> Vec<Field> {
        vec![Field::new(format!("count_{name}"), DataType::Int64, false)]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(slots.iter().map(|&slot| self.counts[slot as usize]).collect::<Int64Array>())])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let counts = columns[0].as_primitive::<Int64Type>().values();
        slots.iter().zip(counts).for_each(|(&slot, &count)| self.counts[slot as usize] = count);
        Ok(())
    }

    fn bytes_per_slot(&self) -> usize {
        size_of::<i64>()
    }
}

/// Number of true and of false values.
#[derive(Default)]
pub(crate) struct Booleans {
    counts: Vec<Tally>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    trues: i64,
    falses: i64,
}

impl Accumulator for Booleans {
    fn resize(&mut self, slots: usize) {
        self.counts.resize(slots, Tally::default());
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let values = input.values.and_then(|values| values.as_boolean_opt());
        let values = values.ok_or_else(|| wrong_column("a boolean aggregate", &DataType::Null))?.values();
        input.for_each(|row, slot, diff| {
            let tally = &mut self.counts[slot];
            let count = if values.value(row) { &mut tally.trues } else { &mut tally.falses };
            *count += diff;
        });
        Ok(())
    }

    fn clear(&mut self, slots: &[u32]) {
        slots.iter().for_each(|&slot| self.counts[slot as usize] = Tally::default());
    }

    fn compact(&mut self, moves: &Moves) {
        moves.apply(&mut self.counts);
    }

    fn evaluate(
        &self,
        function: AggregateFunction,
        _output: &DataType,
        slots: &[u32],
        _failures: &mut Failures,
    ) -> Result<ArrayRef> {
        let is_and = match function {
            AggregateFunction::BoolAnd => true,
            AggregateFunction::BoolOr => false,
            other @ (AggregateFunction::CountStar
            | AggregateFunction::Count
            | AggregateFunction::Sum
            | AggregateFunction::Avg
            | AggregateFunction::Min
            | AggregateFunction::Max
            | AggregateFunction::StddevSamp
            | AggregateFunction::StddevPop
            | AggregateFunction::VarSamp
            | AggregateFunction::VarPop) => {
                return Err(DataflowError::Internal(format!("{} over booleans", other.name())));
            }
        };
        let result = |&slot: &u32| {
            let Tally { trues, falses } = self.counts[slot as usize];
            let any = trues > 0 || falses > 0;
            any.then_some(if is_and { falses == 0 } else { trues > 0 })
        };
        Ok(Arc::new(slots.iter().map(result).collect::<BooleanArray>()))
    }

    fn state_fields(&self, name: &str) -> Vec<Field> {
        let field = |what: &str| Field::new(format!("{what}_{name}"), DataType::Int64, false);
        vec![field("trues"), field("falses")]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let column = |part: fn(&Tally) -> i64| -> ArrayRef {
            Arc::new(slots.iter().map(|&slot| part(&self.counts[slot as usize])).collect::<Int64Array>())
        };
        Ok(vec![column(|tally| tally.trues), column(|tally| tally.falses)])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let trues = columns[0].as_primitive::<Int64Type>().values();
        let falses = columns[1].as_primitive::<Int64Type>().values();
        for (&slot, (&trues, &falses)) in slots.iter().zip(trues.iter().zip(falses)) {
            self.counts[slot as usize] = Tally { trues, falses };
        }
        Ok(())
    }

    fn bytes_per_slot(&self) -> usize {
        size_of::<Tally>()
    }
}
