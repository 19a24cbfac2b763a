//! `count(DISTINCT …)` of floats: DataFusion counts bits, which differ between 0 and -0 and between one NaN and
//! another.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::arithmetic::scalar;

/// Counts distinct floats by the one of all equal ones.
pub(super) fn distinct_count(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::AggregateFunction(mut aggregate) = expr else { return Transformed::no(expr) };
    let arguments = &mut aggregate.params.args;
    let is_of_floats = aggregate.params.distinct
        && aggregate.func.name() == "count"
        && arguments.len() == 1
        && arguments[0].get_type(schema).is_ok_and(|data_type| data_type.is_floating());
    if is_of_floats {
        let argument = std::mem::take(&mut arguments[0]);
        arguments[0] = Expr::ScalarFunction(ScalarFunction::new_udf(canonical(), vec![argument]));
    }
    Transformed::new_transformed(Expr::AggregateFunction(aggregate), is_of_floats)
}

/// The one of all equal floats that stands for them.
fn canonical() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let types = vec![DataType::Float64, DataType::Float32];
        let signature = Signature::uniform(1, types, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Canonical { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    signature: Signature,
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &'static str {
        "canonical_float"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(Expr::to_string).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [data_type] => Ok(data_type.clone()),
            _ => internal_err!("canonical_float takes one argument"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return internal_err!("canonical_float takes one argument");
        };
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(1)?;
        // Adding 0 turns -0 into 0 and changes nothing else.
        let values: ArrayRef = match values.data_type() {
            DataType::Float32 => {
                let canonical = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
                Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(canonical))
            }
            _ => {
                let canonical = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
                Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(canonical))
            }
        };
        if is_scalar { scalar(&values) } else { Ok(ColumnarValue::Array(values)) }
    }
}
