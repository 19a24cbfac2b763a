//! `repeat`, `lpad` and `rpad` with a bound on what they make: a few characters of SQL must not take
//! all memory. PostgreSQL has the same bound at 1 GB.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::{string, unicode};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};

use super::refuse;
use crate::error::SqlErrorKind;

/// One text.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// All texts of one batch, which are in memory together.
const BATCH_BYTES_MAX: u64 = 1 << 30;

/// A function of DataFusion's whose second argument decides how long its result is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    /// Whether the second argument counts texts; otherwise it counts characters.
    multiplies: bool,
}

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [(string::repeat(), true), (unicode::lpad(), false), (unicode::rpad(), false)]
        .into_iter()
        .map(|(inner, multiplies)| Arc::new(ScalarUDF::new_from_impl(Bounded { inner, multiplies })))
        .collect()
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check(&args)?;
        self.inner.invoke_with_args(not_negative(args)?)
    }
}

/// A negative length is one of 0, which DataFusion's functions reserve memory for.
fn not_negative(mut args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    let Some(length) = args.args.get_mut(1) else { return Ok(args) };
    let zero = |lengths: &dyn Array| -> Result<ArrayRef> {
        let lengths = cast(lengths, &DataType::Int64)?;
        let lengths: Int64Array = lengths.as_primitive::<Int64Type>().unary(|length| length.max(0));
        Ok(Arc::new(lengths))
    };
    let data_type = length.data_type();
    *length = match &*length {
        ColumnarValue::Array(lengths) => ColumnarValue::Array(cast(&zero(lengths)?, &data_type)?),
        ColumnarValue::Scalar(length) => ColumnarValue::Scalar(ScalarValue::try_from_array(
            &cast(&zero(&length.to_array()?)?, &data_type)?,
            0,
        )?),
    };
    Ok(args)
}

impl Bounded {
    fn check(&self, args: &ScalarFunctionArgs) -> Result<()> {
        let Some(first_two) = args.args.get(..2) else { return Ok(()) };
        let arrays = ColumnarValue::values_to_arrays(first_two)?;
        let texts = cast(&arrays[0], &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        let counts = cast(&arrays[1], &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        let mut total = 0u64;
        for row in 0..texts.len() {
            if texts.is_null(row) || counts.is_null(row) {
                continue;
            }
            let count = u64::try_from(counts.value(row)).unwrap_or(0);
            let length = if self.multiplies { texts.value(row).len() as u64 } else { 1 };
            let bytes = length.saturating_mul(count);
            total = total.saturating_add(bytes);
            if bytes > TEXT_BYTES_MAX || total > BATCH_BYTES_MAX {
                let message = "requested length too large".to_owned();
                return Err(refuse(SqlErrorKind::ProgramLimitExceeded { message }));
            }
        }
        Ok(())
    }
}
