//! NUMERIC where DataFusion's differs from PostgreSQL's: division, and casts to integers.
//!
//! | | DataFusion | PostgreSQL, and here |
//! |---|---|---|
//! | `1.0 / 3`          | `0.33333` (four more digits) | `0.3333333333333333` |
//! | `CAST(2.5 AS INT)` | `2` | `3` (halves away from zero) |
//! | `CAST(2.5::float8 AS INT)` | `2` | `2` (halves to even) |
//!
//! PostgreSQL chooses the scale of a quotient by its value; a column here has one scale: 16 digits
//! behind the point, or more if an operand has more.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int16Type, Int32Type, Int64Type, i256};
use arrow::error::ArrowError;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::arithmetic::scalar;
use crate::evaluation::EvaluationError;
use crate::types::type_name;

const PRECISION_MAX: u8 = 38;
/// Digits behind the point of a quotient.
const QUOTIENT_SCALE: i8 = 16;

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumericDivide {
    signature: Signature,
}

/// The function that stands for `/` where one operand is a NUMERIC and none a float.
pub(super) fn divide() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(NumericDivide { signature }))
    });
    Arc::clone(&FUNCTION)
}

/// An exact number as NUMERIC.
fn as_numeric(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => DataType::Decimal128(5, 0),
        DataType::Int32 | DataType::UInt32 => DataType::Decimal128(10, 0),
        DataType::Int64 => DataType::Decimal128(19, 0),
        DataType::UInt64 | DataType::Null => DataType::Decimal128(20, 0),
        DataType::Decimal128(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal32(precision, scale) => DataType::Decimal128(*precision, *scale),
        _ => return None,
    })
}

/// Whether `/` on these types is [`divide`].
pub(super) fn divides(left: &DataType, right: &DataType) -> bool {
    let is_decimal = |data_type: &DataType| {
        matches!(data_type, DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..))
    };
    (is_decimal(left) || is_decimal(right)) && as_numeric(left).is_some() && as_numeric(right).is_some()
}

impl ScalarUDFImpl for NumericDivide {
    fn name(&self) -> &'static str {
        "numeric_divide"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(ToString::to_string).collect::<Vec<_>>().join(" / "))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|argument| argument.schema_name().to_string()).collect::<Vec<_>>().join(" / "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let types: Option<Vec<DataType>> = arg_types.iter().map(as_numeric).collect();
        match types {
            Some(types) if types.len() == 2 => Ok(types),
            _ => plan_err!("numeric_divide takes two exact numbers"),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let [DataType::Decimal128(_, left), DataType::Decimal128(_, right)] = arg_types else {
            return internal_err!("numeric_divide of {arg_types:?}");
        };
        Ok(DataType::Decimal128(PRECISION_MAX, (*left).max(*right).max(QUOTIENT_SCALE)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("numeric_divide takes two arguments");
        };
        let DataType::Decimal128(precision, scale) = *args.return_field.data_type() else {
            return internal_err!("numeric_divide gives a decimal");
        };
        let is_scalar = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let (left, right) = (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
        // (a / 10^l) / (b / 10^r) in units of 10^-scale is a · 10^(scale − l + r) / b.
        let shift = scale - left.scale() + right.scale();
        let factor = power_of_ten(shift)?;
        let quotients: Decimal128Array =
            arrow::compute::try_binary(left, right, |a, b| quotient(a, b, factor).map_err(ArrowError::from))?;
        let quotients: ArrayRef = Arc::new(quotients.with_precision_and_scale(precision, scale)?);
        if is_scalar { scalar(&quotients) } else { Ok(ColumnarValue::Array(quotients)) }
    }
}

fn power_of_ten(exponent: i8) -> Result<i256> {
    let mut power = i256::ONE;
    for _ in 0..exponent {
        power = power
            .checked_mul(i256::from_i128(10))
            .ok_or_else(|| EvaluationError::new("22003", "numeric field overflow"))?;
    }
    Ok(power)
}

/// `a · factor / b`, halves rounded away from zero.
fn quotient(a: i128, b: i128, factor: i256) -> std::result::Result<i128, EvaluationError> {
    let overflow = || EvaluationError::new("22003", "numeric field overflow");
    if b == 0 {
        return Err(EvaluationError::division_by_zero());
    }
    let dividend = i256::from_i128(a).checked_mul(factor).ok_or_else(overflow)?;
    let divisor = i256::from_i128(b);
    let whole = dividend.checked_div(divisor).ok_or_else(overflow)?;
    let rest = dividend.checked_rem(divisor).ok_or_else(overflow)?;
    let twice =
        rest.checked_abs().and_then(|rest| rest.checked_mul(i256::from_i128(2))).ok_or_else(overflow)?;
    let away = if (a < 0) == (b < 0) { i256::ONE } else { i256::MINUS_ONE };
    let rounded = if twice >= i256::from_i128(b.unsigned_abs().try_into().map_err(|_| overflow())?) {
        whole.checked_add(away).ok_or_else(overflow)?
    } else {
        whole
    };
    let value = rounded.to_i128().ok_or_else(overflow)?;
    if value.unsigned_abs() >= 10u128.pow(u32::from(PRECISION_MAX)) {
        return Err(overflow());
    }
    Ok(value)
}

/// A cast of a NUMERIC or float to an integer type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RoundToInteger {
    name: &'static str,
    to: DataType,
    signature: Signature,
}

/// The function that stands for a cast between these types.
pub(super) fn rounding_cast(from: &DataType, to: &DataType) -> Option<Arc<ScalarUDF>> {
    static SMALLINT: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| rounding("round_to_smallint", DataType::Int16));
    static INTEGER: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| rounding("round_to_integer", DataType::Int32));
    static BIGINT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| rounding("round_to_bigint", DataType::Int64));
    let rounds = matches!(from, DataType::Decimal128(_, scale) if *scale > 0)
        || matches!(from, DataType::Float32 | DataType::Float64);
    let function = match to {
        DataType::Int16 => &SMALLINT,
        DataType::Int32 => &INTEGER,
        DataType::Int64 => &BIGINT,
        _ => return None,
    };
    rounds.then(|| Arc::clone(function))
}

fn rounding(name: &'static str, to: DataType) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(RoundToInteger { name, to, signature }))
}

impl ScalarUDFImpl for RoundToInteger {
    fn name(&self) -> &str {
        self.name
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|argument| format!("CAST({argument} AS {})", self.to)).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [DataType::Float32] => Ok(vec![DataType::Float64]),
            [DataType::Float64 | DataType::Decimal128(..)] => Ok(arg_types.to_vec()),
            _ => plan_err!("{} takes a number", self.name),
        }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return internal_err!("{} takes one argument", self.name);
        };
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(1)?;
        let result = match self.to {
            DataType::Int16 => rounded::<Int16Type>(&values, &self.to)?,
            DataType::Int32 => rounded::<Int32Type>(&values, &self.to)?,
            _ => rounded::<Int64Type>(&values, &self.to)?,
        };
        if is_scalar { scalar(&result) } else { Ok(ColumnarValue::Array(result)) }
    }
}

fn rounded<T>(values: &ArrayRef, to: &DataType) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    let out_of_range = || ArrowError::from(EvaluationError::out_of_range(&type_name(to)));
    let result: PrimitiveArray<T> = match values.data_type() {
        DataType::Decimal128(_, scale) => {
            let unit = 10i128.pow(u32::from(scale.unsigned_abs()));
            values.as_primitive::<Decimal128Type>().try_unary(|value| {
                let half = if value < 0 { -unit / 2 } else { unit / 2 };
                T::Native::try_from((value + half) / unit).map_err(|_| out_of_range())
            })?
        }
        DataType::Float32 => return rounded::<T>(&cast(values, &DataType::Float64)?, to),
        _ => values.as_primitive::<Float64Type>().try_unary(|value| {
            let whole = value.round_ties_even();
            // A double beyond ±2^100 is beyond every integer type; NaN is none either.
            if !(whole.abs() < 1e30) {
                return Err(out_of_range());
            }
            #[expect(clippy::cast_possible_truncation, reason = "the value is whole and within ±1e30")]
            T::Native::try_from(whole as i128).map_err(|_| out_of_range())
        })?,
    };
    Ok(Arc::new(result))
}
