//! What a failed expression tells the user: SQLSTATE and message in PostgreSQL's wording.
//!
//! | error | SQLSTATE |
//! |---|---|
//! | a [`RowError`] inside `External` | its own |
//! | an error whose text begins with its code, `[22003] bigint out of range` (functions of `sql`) | its own |
//! | division by zero | 22012 |
//! | overflow, value out of range of a type | 22003 |
//! | text that is no date, time or timestamp | 22007 |
//! | date or time out of range | 22008 |
//! | text that is no value of another type | 22P02 |
//! | anything else | XX000 |

use std::error::Error;

use arrow::error::ArrowError;
use dataflow::RowError;
use datafusion::error::DataFusionError;

/// The row error that an expression's error amounts to.
#[must_use]
pub fn row_error_of(error: &DataFusionError) -> RowError {
    // The innermost errors say most; wrappers only add context.
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut found = None;
    while let Some(error) = cause {
        if let Some(own) = error.downcast_ref::<RowError>() {
            return own.clone();
        }
        if let Some(own) = of_coded_text(&error.to_string()) {
            return own;
        }
        if let Some(arrow) = error.downcast_ref::<ArrowError>() {
            found = of_arrow(arrow).or(found);
        } else if let Some(DataFusionError::Execution(message)) = error.downcast_ref() {
            found = of_message(message).or(found);
        }
        cause = error.source();
    }
    found.unwrap_or_else(|| row_error("XX000", error.strip_backtrace()))
}

fn row_error(sqlstate: &'static str, message: impl Into<String>) -> RowError {
    RowError { sqlstate, message: message.into() }
}

/// Codes that functions give to their errors.
const SQLSTATES: &[&str] = &[
    "0A000", "22000", "22001", "22003", "22007", "22008", "22011", "22012", "22018", "2201B", "2201E",
    "2201F", "2201G", "22021", "22023", "22025", "22P02", "22P03",
];

/// `sql` may not be named here, so the text of its `EvaluationError` carries the code.
fn of_coded_text(text: &str) -> Option<RowError> {
    let (code, message) = text.strip_prefix('[')?.split_once("] ")?;
    let sqlstate = SQLSTATES.iter().copied().find(|known| *known == code)?;
    Some(row_error(sqlstate, message))
}

fn of_arrow(error: &ArrowError) -> Option<RowError> {
    if let ArrowError::DivideByZero = error {
        return Some(row_error("22012", "division by zero"));
    }
    if let ArrowError::ArithmeticOverflow(message) = error {
        return Some(row_error("22003", format!("value out of range: {}", lower_first(message))));
    }
    let (ArrowError::CastError(message)
    | ArrowError::ParseError(message)
    | ArrowError::ComputeError(message)
    | ArrowError::InvalidArgumentError(message)) = error
    else {
        return None;
    };
    of_message(message)
}

/// What the text of a kernel's error says, for errors that have no variant of their own.
fn of_message(message: &str) -> Option<RowError> {
    let lower = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["divide by zero", "division by zero"]) {
        return Some(row_error("22012", "division by zero"));
    }
    let is_time = has(&["timestamp", "date", "time", "nanosecond", "microsecond"]);
    if has(&["overflow", "out of range", "can't cast value", "too large", "too small"]) {
        let (sqlstate, what) = if is_time { ("22008", "date/time field") } else { ("22003", "numeric") };
        return Some(row_error(sqlstate, format!("{what} value out of range: {}", lower_first(message))));
    }
    if let Some(error) = bad_cast_of_text(message) {
        return Some(error);
    }
    if has(&[
        "error parsing",
        "failed to parse",
        "cannot parse",
        "can't parse",
        "cannot cast",
        "invalid input syntax",
    ]) {
        return Some(row_error(if is_time { "22007" } else { "22P02" }, lower_first(message)));
    }
    None
}

/// `Cannot cast string 'x' to value of Int64 type`, as PostgreSQL says it.
fn bad_cast_of_text(message: &str) -> Option<RowError> {
    let (text, target) = message.strip_prefix("Cannot cast string '")?.rsplit_once("' to value of ")?;
    let target = target.strip_suffix(" type")?;
    let (sqlstate, name) = match target.split(['(', ' ']).next().unwrap_or_default() {
        "Int16" => ("22P02", "smallint"),
        "Int32" => ("22P02", "integer"),
        "Int64" => ("22P02", "bigint"),
        "Float32" => ("22P02", "real"),
        "Float64" => ("22P02", "double precision"),
        "Boolean" => ("22P02", "boolean"),
        "Decimal128" | "Decimal256" => ("22P02", "numeric"),
        "Date32" => ("22007", "date"),
        "Time64" => ("22007", "time"),
        "Timestamp" => ("22007", "timestamp"),
        "Interval" => ("22007", "interval"),
        other => ("22P02", other),
    };
    Some(row_error(sqlstate, format!("invalid input syntax for type {name}: \"{text}\"")))
}

fn lower_first(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlstate_of(error: DataFusionError) -> (&'static str, String) {
        let RowError { sqlstate, message } = row_error_of(&error);
        (sqlstate, message)
    }

    fn arrow(error: ArrowError) -> DataFusionError {
        DataFusionError::ArrowError(Box::new(error), None)
    }

    #[test]
    fn an_error_of_our_own_is_used_as_it_is_however_deep_it_lies() {
        let own = RowError { sqlstate: "2201E", message: "cannot take logarithm of zero".to_owned() };
        let wrapped = DataFusionError::External(Box::new(own.clone())).context("in a function");
        assert_eq!(row_error_of(&wrapped), own);
        let through_arrow = arrow(ArrowError::ExternalError(Box::new(own.clone())));
        assert_eq!(row_error_of(&through_arrow), own);
    }

    #[derive(Debug)]
    struct Coded;

    impl std::fmt::Display for Coded {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "[22003] bigint out of range")
        }
    }

    impl Error for Coded {}

    #[test]
    fn a_text_that_begins_with_a_code_is_split() {
        let expected = ("22003", "bigint out of range".to_owned());
        assert_eq!(sqlstate_of(DataFusionError::External(Box::new(Coded))), expected);
        assert_eq!(sqlstate_of(arrow(ArrowError::ExternalError(Box::new(Coded)))), expected);
    }

    #[test]
    fn errors_of_kernels_get_the_code_of_postgresql() {
        assert_eq!(sqlstate_of(arrow(ArrowError::DivideByZero)), ("22012", "division by zero".to_owned()));
        assert_eq!(sqlstate_of(arrow(ArrowError::ArithmeticOverflow("x".to_owned()))).0, "22003");
        let cast = |text: &str| sqlstate_of(arrow(ArrowError::CastError(text.to_owned())));
        assert_eq!(
            cast("Cannot cast string 'a b' to value of Int64 type"),
            ("22P02", "invalid input syntax for type bigint: \"a b\"".to_owned())
        );
        assert_eq!(cast("Can't cast value 3000000000 to type Int32").0, "22003");
        assert_eq!(
            sqlstate_of(arrow(ArrowError::ParseError("Error parsing timestamp from 'x': bad".to_owned()))).0,
            "22007"
        );
        assert_eq!(sqlstate_of(DataFusionError::Internal("x".to_owned())).0, "XX000");
    }
}
