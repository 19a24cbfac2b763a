//! Constant intervals that have one length: no months, no fractions of a microsecond.

use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use sql::SqlErrorKind;

const MICROS_PER_DAY: i128 = 86_400_000_000;

/// The length of a constant interval in microseconds. `what` names it in errors.
pub(crate) fn fixed_interval(expression: &Expr, what: &str) -> Result<i64, SqlErrorKind> {
    match expression {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => {
            let invalid = |message| Err(SqlErrorKind::InvalidArgument { message });
            if interval.months != 0 {
                return invalid(format!("{what} must not contain months or years, which vary in length"));
            }
            if interval.nanoseconds % 1000 != 0 {
                return invalid(format!("{what} must be a whole number of microseconds"));
            }
            let micros = i128::from(interval.days) * MICROS_PER_DAY + i128::from(interval.nanoseconds / 1000);
            match i64::try_from(micros) {
                Ok(micros) => Ok(micros),
                Err(_) => invalid(format!("{what} is too large")),
            }
        }
        Expr::Negative(inner) => match fixed_interval(inner, what)?.checked_neg() {
            Some(micros) => Ok(micros),
            None => Err(SqlErrorKind::InvalidArgument { message: format!("{what} is too large") }),
        },
        _ => Err(SqlErrorKind::InvalidArgument { message: format!("{what} must be a constant interval") }),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    fn interval(months: i32, days: i32, nanoseconds: i64) -> Expr {
        let value = IntervalMonthDayNano { months, days, nanoseconds };
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), None)
    }

    #[test]
    fn only_intervals_of_one_length_have_microseconds() {
        assert_eq!(fixed_interval(&interval(0, 1, 1_000), "size").unwrap(), 86_400_000_001);
        assert_eq!(fixed_interval(&-interval(0, 0, 2_000), "size").unwrap(), -2);
        let message = |expression: Expr| fixed_interval(&expression, "size").unwrap_err().to_string();
        assert_eq!(message(interval(1, 0, 0)), "size must not contain months or years, which vary in length");
        assert_eq!(message(interval(0, 0, 1)), "size must be a whole number of microseconds");
        assert_eq!(message(interval(0, i32::MAX, i64::MAX)), "size is too large");
        let number = Expr::Literal(ScalarValue::Int64(Some(1)), None);
        assert_eq!(message(number), "size must be a constant interval");
    }
}
