//! Casts of text to INTERVAL in PostgreSQL's spellings: Arrow does not know `1 day 02:03:04`.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::arithmetic::scalar;
use crate::evaluation::EvaluationError;
use crate::interval::parse_interval;

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToInterval {
    signature: Signature,
}

/// The function that stands for a cast between these types.
pub(super) fn interval_cast(from: &DataType, to: &DataType) -> Option<Arc<ScalarUDF>> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(ToInterval { signature }))
    });
    let is_text = matches!(from, DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8);
    let is_interval = *to == DataType::Interval(IntervalUnit::MonthDayNano);
    (is_text && is_interval).then(|| Arc::clone(&FUNCTION))
}

impl ScalarUDFImpl for ToInterval {
    fn name(&self) -> &'static str {
        "to_interval"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|argument| format!("CAST({argument} AS Interval)")).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8] => Ok(vec![DataType::Utf8View]),
            _ => plan_err!("to_interval takes one text"),
        }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return internal_err!("to_interval takes one argument");
        };
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let values = arrow::compute::cast(&value.to_array(1)?, &DataType::Utf8View)?;
        let parsed: std::result::Result<IntervalMonthDayNanoArray, EvaluationError> =
            values.as_string_view().iter().map(|text| text.map(read).transpose()).collect();
        let parsed: ArrayRef = Arc::new(parsed?);
        if is_scalar { scalar(&parsed) } else { Ok(ColumnarValue::Array(parsed)) }
    }
}

fn read(text: &str) -> std::result::Result<arrow::datatypes::IntervalMonthDayNano, EvaluationError> {
    parse_interval(text).ok_or_else(|| {
        EvaluationError::new("22007", format!("invalid input syntax for type interval: \"{text}\""))
    })
}
