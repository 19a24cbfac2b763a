//! Literals that have to be known before a query is planned.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use arrow::datatypes::DECIMAL128_MAX_PRECISION;
use sqlparser::ast::{self, CastKind, Expr, Interval, UnaryOperator, Value, ValueWithSpan};

use crate::error::{SqlError, SqlErrorKind};
use crate::interval::parse_interval;

/// The microseconds of a constant interval of fixed length (`INTERVAL '10 seconds'`,
/// `INTERVAL '10' SECOND`, `'10 seconds'`). Months have no fixed length and are refused.
pub fn interval_micros(expr: &Expr) -> Result<i64, SqlError> {
    match expr {
        Expr::Nested(inner) => interval_micros(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            interval_micros(expr)?.checked_neg().ok_or_else(too_long)
        }
        Expr::Interval(interval) => interval_text(interval).and_then(|text| parse(&text)),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => parse(text),
            _ => Err(not_constant()),
        },
        _ => Err(not_constant()),
    }
}

/// `INTERVAL '10' SECOND` as `10 SECOND`.
fn interval_text(interval: &Interval) -> Result<String, SqlError> {
    let Expr::Value(value) = interval.value.as_ref() else { return Err(not_constant()) };
    let number = match &value.value {
        Value::SingleQuotedString(text) => text.clone(),
        Value::Number(text, _) => text.clone(),
        _ => return Err(not_constant()),
    };
    if interval.last_field.is_some() {
        return Err(SqlErrorKind::unsupported("INTERVAL … TO … as a constant").into());
    }
    Ok(match &interval.leading_field {
        Some(unit) => format!("{number} {unit}"),
        None => number,
    })
}

fn parse(text: &str) -> Result<i64, SqlError> {
    let value = parse_interval(text).ok_or_else(|| invalid(text))?;
    if value.months != 0 {
        let message = "an interval of fixed length must not contain months or years".to_owned();
        return Err(SqlErrorKind::InvalidArgument { message }.into());
    }
    i64::from(value.days)
        .checked_mul(86_400_000_000)
        .and_then(|days| days.checked_add(value.nanoseconds / 1_000))
        .ok_or_else(too_long)
}

/// Spells a literal so that the planner reads what PostgreSQL does. What is none of `INTERVAL 'text'
/// [unit]`, or means the same to Arrow already, stays.
pub(crate) fn plain_interval(interval: &mut Interval) -> Result<(), SqlError> {
    let Expr::Value(value) = interval.value.as_mut() else { return Ok(()) };
    let Value::SingleQuotedString(text) = &mut value.value else { return Ok(()) };
    if interval.last_field.is_some() {
        return Ok(());
    }
    let whole = match &interval.leading_field {
        Some(unit) => format!("{text} {unit}"),
        None => text.clone(),
    };
    let parsed = parse_interval(&whole).ok_or_else(|| {
        let position = u32::try_from(value.span.start.column).unwrap_or(u32::MAX);
        let error = invalid(text);
        if position > 0 { error.at(position) } else { error }
    })?;
    if parse_interval_month_day_nano(&whole).is_ok_and(|value| value == parsed) {
        return Ok(());
    }
    *text =
        format!("{} months {} days {} microseconds", parsed.months, parsed.days, parsed.nanoseconds / 1_000);
    interval.leading_field = None;
    Ok(())
}

/// Spells a number with an exponent without one, as the planner's decimals have none. One that a NUMERIC
/// cannot hold is `double precision`, where PostgreSQL's `numeric` is longer.
pub(crate) fn plain_number(expr: &mut Expr) {
    let Expr::Value(value) = expr else { return };
    let Value::Number(text, _) = &value.value else { return };
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else { return };
    let plain = exponent.parse::<i32>().ok().and_then(|exponent| shifted(mantissa, exponent));
    match plain {
        Some(plain) => value.value = Value::Number(plain, false),
        None => {
            let text = Value::SingleQuotedString(text.replace('_', ""));
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(ValueWithSpan { value: text, span: value.span })),
                data_type: ast::DataType::DoublePrecision,
                array: false,
                format: None,
            };
        }
    }
}

/// Moves the point of a decimal number; None if it gets longer than a NUMERIC.
fn shifted(mantissa: &str, exponent: i32) -> Option<String> {
    let mantissa = mantissa.replace('_', "");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((&mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let limit = i32::from(DECIMAL128_MAX_PRECISION);
    if point > limit || i32::try_from(digits.len()).ok()?.checked_sub(point)? > limit {
        return None;
    }
    Some(match usize::try_from(point) {
        Ok(point) if point < digits.len() => format!("{}.{}", &digits[..point], &digits[point..]),
        // Without the point behind it, it would be an integer.
        Ok(point) => format!("{digits:0<point$}."),
        Err(_) => format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
    })
}

fn invalid(text: &str) -> SqlError {
    SqlErrorKind::InvalidDatetime { type_name: "interval".to_owned(), value: text.to_owned() }.into()
}

fn too_long() -> SqlError {
    SqlErrorKind::NumericOutOfRange { type_name: "interval" }.into()
}

fn not_constant() -> SqlError {
    let message = "expected a constant interval, for example INTERVAL '10 seconds'".to_owned();
    SqlErrorKind::InvalidArgument { message }.into()
}

#[cfg(test)]
mod tests {
    use super::shifted;

    #[test]
    fn the_point_of_a_number_moves() {
        for (mantissa, exponent, plain) in [
            ("1", 3, Some("1000.")),
            ("1.50", 1, Some("15.0")),
            ("1.5", 1, Some("15.")),
            ("12.5", -1, Some("1.25")),
            ("12.5", -2, Some(".125")),
            ("12.5", -4, Some("0.00125")),
            (".5", 0, Some(".5")),
            ("1_0.5", 1, Some("105.")),
            ("1", 37, Some("10000000000000000000000000000000000000.")),
            ("1", 38, None),
            ("1", -38, Some("0.00000000000000000000000000000000000001")),
            ("1", -39, None),
            ("1", 300, None),
            ("1", i32::MAX, None),
            ("1", i32::MIN, None),
        ] {
            assert_eq!(shifted(mantissa, exponent).as_deref(), plain, "{mantissa}e{exponent}");
        }
    }
}
