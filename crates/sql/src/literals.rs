//! Literals that have to be known before a query is planned.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use sqlparser::ast::{Expr, Interval, UnaryOperator, Value};

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
