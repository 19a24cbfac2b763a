//! Aggregates of batch queries, with the types and values PostgreSQL gives them.
//!
//! DataFusion's own give `sum(bigint)` as a bigint that wraps and `avg(integer)` as a double. A
//! view and the same SELECT in batch must have the same types and values, so both take the type
//! from [`AggregateFunction::result_type`]: streaming in its operator, batch here.
//!
//! Float sums are exact in a view and rounded after every addition in batch: they can differ in
//! the last digits.

mod average;
mod converted;
mod extreme;
mod widened;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::functions_aggregate::variance::var_samp_udaf;
use datafusion::logical_expr::AggregateUDF;
use operators::AggregateFunction;
use sql::SqlErrorKind;

use crate::error::user_error;

/// The functions that replace DataFusion's of the same name, and PostgreSQL's other names.
pub(crate) fn functions() -> Vec<Arc<AggregateUDF>> {
    let [min, max] = extreme::functions();
    vec![
        Arc::new(AggregateUDF::new_from_impl(widened::Sum::default())),
        Arc::new(AggregateUDF::new_from_impl(average::Avg::default())),
        min,
        max,
        Arc::new(var_samp_udaf().as_ref().clone().with_aliases(["variance"])),
    ]
}

/// The type an argument is cast to before the call: the nearest one SQL has.
fn coerce_argument(function: AggregateFunction, arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [argument] = arguments else {
        return plan_err!("function {}() takes one argument", function.name());
    };
    let coerced = match argument {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::Null => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Float16 => DataType::Float32,
        other => other.clone(),
    };
    result_type(function, std::slice::from_ref(&coerced))?;
    Ok(vec![coerced])
}

fn result_type(function: AggregateFunction, arguments: &[DataType]) -> Result<DataType> {
    match arguments.first().and_then(|argument| function.result_type(Some(argument))) {
        Some(result) => Ok(result),
        None => {
            let types: Vec<String> = arguments.iter().map(sql::type_name).collect();
            let signature = format!("{}({})", function.name(), types.join(", "));
            Err(user_error(SqlErrorKind::UndefinedFunction { signature }.into()))
        }
    }
}
