//! Union: UNION ALL of several inputs.
//!
//! | | |
//! |---|---|
//! | input     | any number, append or retract |
//! | output    | append if all inputs are, else retract |
//! | state     | none |
//! | watermark | the minimum of the inputs |
//!
//! **Invariant.** A row that has reached the union over two inputs keeps two different origins:
//! the ordinal says which input it came by.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use dataflow::{BuildContext, ChangeBatch, ChangelogKind, Operator, OperatorContext, OperatorSpec, Result};

/// What the planner decided.
#[derive(Debug, Clone)]
pub struct Union {
    /// How many inputs there are.
    pub inputs: usize,
    /// Columns of the output; the inputs have the same types, perhaps under other names.
    pub schema: SchemaRef,
    /// Kind of the output.
    pub kind: ChangelogKind,
}

impl OperatorSpec for Union {
    fn name(&self) -> &'static str {
        "union"
    }

    fn detail(&self) -> String {
        format!("{} inputs", self.inputs)
    }

    fn output_schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn output_kind(&self) -> ChangelogKind {
        self.kind
    }

    fn build(&self, _ctx: &BuildContext) -> Result<Box<dyn Operator>> {
        Ok(Box::new(UnionOperator { inputs: self.inputs as i64, schema: Arc::clone(&self.schema) }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct UnionOperator {
    inputs: i64,
    schema: SchemaRef,
}

impl Operator for UnionOperator {
    fn on_batch(&mut self, input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let ChangeBatch { rows, diffs, mut origin } = batch;
        if let Some(origin) = &mut origin {
            let ordinal = |&ordinal: &i64| ordinal * self.inputs + input as i64;
            origin.ordinals = Int64Array::from_iter_values(origin.ordinals.values().iter().map(ordinal));
        }
        let rows = if rows.num_columns() == 0 {
            rows
        } else {
            RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec())?
        };
        ctx.emit(ChangeBatch { rows, diffs, origin });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use dataflow::{RowOrigin, Watermark};
    use state::KeyGroupRange;

    use super::*;
    use crate::testing::TestTask;

    #[test]
    fn a_row_that_comes_by_two_inputs_gets_two_origins_and_the_names_of_the_output() {
        let schema = |name: &str| -> SchemaRef {
            Arc::new(Schema::new(vec![Field::new(name, DataType::Int64, true)]))
        };
        let spec = Union { inputs: 3, schema: schema("out"), kind: ChangelogKind::Append };
        let mut task = TestTask::new(Arc::new(spec), KeyGroupRange::ALL);
        let batch = |name: &str, ordinal: i64| {
            let column = || Int64Array::from(vec![5]);
            let rows = RecordBatch::try_new(schema(name), vec![Arc::new(column())]).unwrap();
            let origin = RowOrigin {
                splits: column(),
                positions: column(),
                ordinals: Int64Array::from(vec![ordinal]),
                watermarks: Int64Array::from(vec![Watermark::MIN.0]),
            };
            ChangeBatch { rows, diffs: None, origin: Some(origin) }
        };
        for (input, ordinal) in [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1)] {
            task.push(input, batch(["a", "b", "c"][input], ordinal));
        }
        let ordinals: Vec<i64> =
            task.output.iter().map(|batch| batch.origin.as_ref().unwrap().ordinals.value(0)).collect();
        assert_eq!(ordinals, [0, 1, 2, 3, 5]);
        assert!(task.output.iter().all(|batch| batch.schema() == schema("out")));
    }
}
