//! Casts of text to BYTEA: `\x` and hexadecimal digits, or the characters as they are. Arrow takes the characters only.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, BinaryBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::arithmetic::scalar;
use crate::evaluation::EvaluationError;

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToBytea {
    signature: Signature,
}

/// The function that stands for a cast between these types.
pub(super) fn bytea_cast(from: &DataType, to: &DataType) -> Option<Arc<ScalarUDF>> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(ToBytea { signature }))
    });
    let is_text = matches!(from, DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8);
    (is_text && *to == DataType::Binary).then(|| Arc::clone(&FUNCTION))
}

impl ScalarUDFImpl for ToBytea {
    fn name(&self) -> &'static str {
        "to_bytea"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|argument| format!("CAST({argument} AS Binary)")).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8] => Ok(vec![DataType::Utf8View]),
            _ => plan_err!("to_bytea takes one text"),
        }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return internal_err!("to_bytea takes one argument");
        };
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let texts = arrow::compute::cast(&value.to_array(1)?, &DataType::Utf8View)?;
        let mut bytes = BinaryBuilder::new();
        for text in texts.as_string_view() {
            match text {
                Some(text) => bytes.append_value(read(text)?),
                None => bytes.append_null(),
            }
        }
        let bytes: ArrayRef = Arc::new(bytes.finish());
        if is_scalar { scalar(&bytes) } else { Ok(ColumnarValue::Array(bytes)) }
    }
}

fn read(text: &str) -> std::result::Result<Vec<u8>, EvaluationError> {
    let Some(digits) = text.strip_prefix("\\x") else { return Ok(text.as_bytes().to_vec()) };
    let mut nibbles = Vec::with_capacity(digits.len());
    for digit in digits.chars() {
        let nibble = digit.to_digit(16).and_then(|nibble| u8::try_from(nibble).ok());
        nibbles.push(nibble.ok_or_else(|| {
            EvaluationError::new("22023", format!("invalid hexadecimal digit: \"{digit}\""))
        })?);
    }
    if !nibbles.len().is_multiple_of(2) {
        return Err(EvaluationError::new("22023", "invalid hexadecimal data: odd number of digits"));
    }
    Ok(nibbles.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
