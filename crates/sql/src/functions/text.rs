//! Casts to TEXT as PostgreSQL prints values, where Arrow prints them differently.
//!
//! | type | Arrow | PostgreSQL, and here |
//! |---|---|---|
//! | TIMESTAMP | `2024-03-05T07:08:09.500` | `2024-03-05 07:08:09.5` |
//! | TIMESTAMPTZ | `2024-03-05T07:08:09Z` | `2024-03-05 07:08:09+00` |
//! | TIME | `07:08:09.500` | `07:08:09.5` |
//! | INTERVAL | `1 mons 2 days 3 hours` | `1 mon 2 days 03:00:00` |
//! | DOUBLE PRECISION | `2.0`, `1e20` | `2`, `1e+20` |
//! | BYTEA | `0102` | `\x0102` |

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StringViewArray, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use chrono::{DateTime, Datelike};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::arithmetic::scalar;
use crate::evaluation::EvaluationError;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToText {
    signature: Signature,
}

/// The function that stands for a cast between these types.
pub(super) fn text_cast(from: &DataType, to: &DataType) -> Option<Arc<ScalarUDF>> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(ToText { signature }))
    });
    let is_text = matches!(to, DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8);
    (is_text && printed_as(from).is_some()).then(|| Arc::clone(&FUNCTION))
}

/// The type a value is brought to before it is printed; `None`: Arrow prints it well.
fn printed_as(from: &DataType) -> Option<DataType> {
    Some(match from {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Interval(_) | DataType::Duration(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Float32 => DataType::Float32,
        DataType::Float64 => DataType::Float64,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        _ => return None,
    })
}

impl ScalarUDFImpl for ToText {
    fn name(&self) -> &'static str {
        "to_text"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|argument| format!("CAST({argument} AS Utf8View)")).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [argument] => match printed_as(argument) {
                Some(printed) => Ok(vec![printed]),
                None => plan_err!("to_text of {argument}"),
            },
            _ => plan_err!("to_text takes one argument"),
        }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return internal_err!("to_text takes one argument");
        };
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(1)?;
        let texts: ArrayRef = Arc::new(texts(&values)?);
        if is_scalar { scalar(&texts) } else { Ok(ColumnarValue::Array(texts)) }
    }
}

fn texts(values: &ArrayRef) -> Result<StringViewArray> {
    match values.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            // A zone other than UTC is printed in UTC, too: the same moment.
            let suffix = if zone.is_some() { "+00" } else { "" };
            each::<TimestampMicrosecondType>(values, |out, micros| timestamp(out, micros, suffix))
        }
        DataType::Time64(TimeUnit::Microsecond) => each::<Time64MicrosecondType>(values, |out, micros| {
            clock(out, micros);
            Ok(())
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            each::<IntervalMonthDayNanoType>(values, |out, value| {
                interval(out, value);
                Ok(())
            })
        }
        DataType::Float32 => each::<Float32Type>(values, |out, value| {
            float(out, &format!("{value:e}"), 6);
            Ok(())
        }),
        DataType::Float64 => each::<Float64Type>(values, |out, value| {
            float(out, &format!("{value:e}"), 15);
            Ok(())
        }),
        DataType::Binary => Ok(bytes(values.as_binary())),
        other => match printed_as(other) {
            Some(printed) if printed != *other => texts(&cast(values, &printed)?),
            _ => internal_err!("to_text of {other}"),
        },
    }
}

/// Prints every value with one buffer.
fn each<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    print: impl Fn(&mut String, T::Native) -> Result<()>,
) -> Result<StringViewArray> {
    let values = values.as_primitive::<T>();
    let mut texts = StringViewBuilder::with_capacity(values.len());
    let mut text = String::new();
    for value in values {
        match value {
            Some(value) => {
                text.clear();
                print(&mut text, value)?;
                texts.append_value(&text);
            }
            None => texts.append_null(),
        }
    }
    Ok(texts.finish())
}

fn timestamp(out: &mut String, micros: i64, suffix: &str) -> Result<()> {
    let moment = DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| EvaluationError::new("22008", "timestamp out of range"))?
        .naive_utc();
    let year = moment.year();
    // 1 BC is the calendar's year 0. Writing to a string does not fail.
    let shown = if year > 0 { year } else { 1 - year };
    let _ = write!(out, "{shown:04}-{:02}-{:02} ", moment.month(), moment.day());
    clock(out, micros.rem_euclid(DAY));
    out.push_str(suffix);
    if year <= 0 {
        out.push_str(" BC");
    }
    Ok(())
}

/// `07:08:09.5`; hours may have more digits.
fn clock(out: &mut String, micros: i64) {
    let seconds = micros / SECOND;
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = micros % SECOND;
    if fraction != 0 {
        let start = out.len();
        let _ = write!(out, ".{fraction:06}");
        let kept = out[start..].trim_end_matches('0').len();
        out.truncate(start + kept);
    }
}

/// PostgreSQL gives a positive part behind a negative one its sign: `-1 days +02:00:00`.
fn interval(out: &mut String, value: IntervalMonthDayNano) {
    let start = out.len();
    let mut behind_negative = false;
    let mut part = |count: i32, unit: &str| {
        if count != 0 {
            let space = if out.len() > start { " " } else { "" };
            let sign = if behind_negative && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            let _ = write!(out, "{space}{sign}{count} {unit}{plural}");
            behind_negative = count < 0;
        }
    };
    part(value.months / 12, "year");
    part(value.months % 12, "mon");
    part(value.days, "day");
    let micros = value.nanoseconds / 1_000;
    if micros != 0 || out.len() == start {
        if out.len() > start {
            out.push(' ');
        }
        if micros < 0 {
            out.push('-');
        } else if behind_negative {
            out.push('+');
        }
        clock(out, micros.saturating_abs());
    }
}

/// From Rust's shortest digits (`1.25e-7`) to PostgreSQL's `%g`: an exponent below −4, or from the
/// number of digits a type always keeps.
fn float(out: &mut String, scientific: &str, digits_kept: i32) {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        out.push_str(match scientific {
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            other => other,
        });
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= digits_kept {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
        return;
    }
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest.replace('.', "")),
        None => ("", mantissa.replace('.', "")),
    };
    out.push_str(sign);
    let point = exponent + 1;
    if point <= 0 {
        let zeros = "0".repeat(point.unsigned_abs() as usize);
        let _ = write!(out, "0.{zeros}{digits}");
    } else if digits.len() <= point as usize {
        let zeros = "0".repeat(point as usize - digits.len());
        let _ = write!(out, "{digits}{zeros}");
    } else {
        let (whole, fraction) = digits.split_at(point as usize);
        let _ = write!(out, "{whole}.{fraction}");
    }
}

fn bytes(values: &BinaryArray) -> StringViewArray {
    let mut texts = StringViewBuilder::with_capacity(values.len());
    let mut text = String::new();
    for value in values {
        match value {
            Some(value) => {
                text.clear();
                text.push_str("\\x");
                for byte in value {
                    let _ = write!(text, "{byte:02x}");
                }
                texts.append_value(&text);
            }
            None => texts.append_null(),
        }
    }
    texts.finish()
}
