//! Assignment casts: values to the type of the column they are stored in, a column at a time.
//!
//! They differ from Arrow's casts where PostgreSQL does: numbers are rounded, never cut; what does
//! not fit or does not parse is an error that names the value; text is trimmed; `bytea` is hex.

#![expect(clippy::wildcard_enum_match_arm, reason = "Arrow's types list more than a table can hold")]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, IntervalMonthDayNanoArray, StringViewArray,
    StringViewBuilder, new_null_array,
};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use catalog::Column;
use serde_json::value::RawValue;
use sql::{SqlError, SqlErrorKind, parse_interval, type_name};

use crate::error::from_arrow;

/// Casts `values` to the type of `column`.
pub(crate) fn assign(values: &ArrayRef, column: &Column) -> Result<ArrayRef, SqlError> {
    let target = &column.data_type;
    let cast_values = match values.data_type() {
        DataType::Null => return Ok(new_null_array(target, values.len())),
        source if source == target && !is_checked(column) => Arc::clone(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => from_text(values, column)?,
        source if !is_assignable(source, target) => {
            return Err(SqlErrorKind::DatatypeMismatch {
                message: format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    column_type(column),
                    type_name(source),
                ),
            }
            .hint("You will need to rewrite or cast the expression."));
        }
        _ => checked_cast(&rounded(values, target)?, column)?,
    };
    match type_modifier(column) {
        Some(length) => limited(&cast_values, length, column),
        None => Ok(cast_values),
    }
}

/// Texts that not every text is.
fn is_checked(column: &Column) -> bool {
    matches!(column.type_name.as_deref(), Some("json" | "jsonb" | "uuid"))
}

fn column_type(column: &Column) -> String {
    column.type_name.clone().unwrap_or_else(|| type_name(&column.data_type))
}

/// Whether PostgreSQL has an assignment cast between two types that are not text.
fn is_assignable(source: &DataType, target: &DataType) -> bool {
    let is_time = |data_type: &DataType| matches!(data_type, DataType::Timestamp(..) | DataType::Date32);
    let into_text = matches!(target, DataType::Utf8View | DataType::Utf8);
    into_text
        || (source.is_numeric() && target.is_numeric())
        || (is_time(source) && is_time(target))
        || (matches!(source, DataType::Timestamp(..)) && matches!(target, DataType::Time64(_)))
        || (matches!(source, DataType::Time64(_)) && matches!(target, DataType::Time64(_)))
        || (matches!(source, DataType::Interval(_)) && matches!(target, DataType::Interval(_)))
        || (is_binary(source) && is_binary(target))
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Fractions rounded to whole numbers where the target has none.
fn rounded(values: &ArrayRef, target: &DataType) -> Result<ArrayRef, SqlError> {
    if !target.is_integer() {
        return Ok(Arc::clone(values));
    }
    match values.data_type() {
        // Ties to even, like `rint`.
        DataType::Float32 | DataType::Float64 => {
            let floats = cast(values, &DataType::Float64).map_err(from_arrow)?;
            let whole: Float64Array = floats.as_primitive::<Float64Type>().unary(f64::round_ties_even);
            Ok(Arc::new(whole))
        }
        // Arrow rounds half away from zero between scales, and cuts from a scale to an integer.
        DataType::Decimal128(precision, scale) if *scale > 0 => {
            cast(values, &DataType::Decimal128(*precision, 0)).map_err(from_arrow)
        }
        _ => Ok(Arc::clone(values)),
    }
}

fn checked_cast(values: &ArrayRef, column: &Column) -> Result<ArrayRef, SqlError> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let cast_values = cast_with_options(values, &column.data_type, &options).map_err(from_arrow)?;
    let is_lost = cast_values.logical_null_count() != values.logical_null_count();
    if !is_lost && !became_infinite(values, &cast_values)? {
        return Ok(cast_values);
    }
    let message = match &column.data_type {
        DataType::Decimal128(..) => "numeric field overflow".to_owned(),
        target => format!("{} out of range", type_name(target)),
    };
    Err(SqlErrorKind::Evaluation { sqlstate: "22003", message }.into())
}

/// Whether a finite number has become an infinite REAL.
fn became_infinite(values: &ArrayRef, cast_values: &ArrayRef) -> Result<bool, SqlError> {
    let Some(reals) = cast_values.as_primitive_opt::<Float32Type>() else { return Ok(false) };
    let values = cast(values, &DataType::Float64).map_err(from_arrow)?;
    let values = values.as_primitive::<Float64Type>();
    Ok(reals
        .iter()
        .zip(values)
        .any(|(real, value)| real.is_some_and(f32::is_infinite) && value.is_some_and(f64::is_finite)))
}

/// Text as PostgreSQL's input functions read it.
fn from_text(values: &ArrayRef, column: &Column) -> Result<ArrayRef, SqlError> {
    if matches!(column.data_type, DataType::List(_)) && values.null_count() < values.len() {
        let feature = format!("text as a value of the array column \"{}\"", column.name);
        return Err(SqlErrorKind::unsupported(feature).hint("Write ARRAY[…]."));
    }
    let text = cast(values, &DataType::Utf8View).map_err(from_arrow)?;
    let text = text.as_string_view();
    match (column.type_name.as_deref(), &column.data_type) {
        (Some("jsonb" | "json"), _) => return canonical_json(text),
        (Some("uuid"), _) => return canonical_uuid(text),
        (_, DataType::Utf8View) => return Ok(Arc::new(text.clone())),
        (_, DataType::Binary) => return bytea(text),
        (_, DataType::Interval(_)) => return intervals(text, column),
        _ => {}
    }
    let trimmed: StringViewArray = text.iter().map(|value| value.map(str::trim)).collect();
    let trimmed: ArrayRef = Arc::new(trimmed);
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let parsed = cast_with_options(&trimmed, &column.data_type, &options).map_err(from_arrow)?;
    if parsed.null_count() == text.null_count() {
        return match overflowed(text, &parsed) {
            None => Ok(parsed),
            Some(row) => {
                let value = text.value(row).to_owned();
                Err(SqlErrorKind::ValueOutOfRange { value, type_name: column_type(column) }.into())
            }
        };
    }
    let bad = (0..text.len()).find(|&row| parsed.is_null(row) && text.is_valid(row)).unwrap_or(0);
    Err(invalid_text(text.value(bad), column))
}

fn intervals(text: &StringViewArray, column: &Column) -> Result<ArrayRef, SqlError> {
    let read = |text: &str| parse_interval(text).ok_or_else(|| invalid_text(text, column));
    let values: Result<IntervalMonthDayNanoArray, SqlError> =
        text.iter().map(|text| text.map(read).transpose()).collect();
    Ok(Arc::new(values?))
}

/// The first text that is a number but too large for the float it was parsed to.
fn overflowed(text: &StringViewArray, parsed: &ArrayRef) -> Option<usize> {
    let is_infinite = |row: usize| match parsed.data_type() {
        DataType::Float32 => parsed.as_primitive::<Float32Type>().value(row).is_infinite(),
        DataType::Float64 => parsed.as_primitive::<Float64Type>().value(row).is_infinite(),
        _ => false,
    };
    let has_digit = |row: usize| text.value(row).bytes().any(|byte| byte.is_ascii_digit());
    (0..text.len()).find(|&row| parsed.is_valid(row) && is_infinite(row) && has_digit(row))
}

fn invalid_text(value: &str, column: &Column) -> SqlError {
    let type_name = column_type(column);
    let trimmed = value.trim();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = value.to_owned();
    match &column.data_type {
        target if target.is_integer() && is_number && !digits.contains('.') => {
            SqlErrorKind::ValueOutOfRange { value, type_name }.into()
        }
        DataType::Decimal128(..) if is_number => {
            SqlErrorKind::Evaluation { sqlstate: "22003", message: "numeric field overflow".to_owned() }
                .into()
        }
        DataType::Timestamp(..) | DataType::Date32 | DataType::Time64(_) | DataType::Interval(_) => {
            SqlErrorKind::InvalidDatetime { type_name, value }.into()
        }
        _ => SqlErrorKind::InvalidText { type_name, value }.into(),
    }
}

fn bytea(text: &StringViewArray) -> Result<ArrayRef, SqlError> {
    let bytes: Result<Vec<Option<Vec<u8>>>, SqlError> =
        text.iter().map(|value| value.map(bytea_value).transpose()).collect();
    let bytes: BinaryArray = bytes?.iter().map(Option::as_deref).collect();
    Ok(Arc::new(bytes))
}

/// `\x` and hexadecimal digits, or plain characters.
fn bytea_value(text: &str) -> Result<Vec<u8>, SqlError> {
    let Some(digits) = text.strip_prefix("\\x") else { return Ok(text.as_bytes().to_vec()) };
    let invalid = || SqlErrorKind::InvalidText { type_name: "bytea".to_owned(), value: text.to_owned() };
    let nibbles: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let nibbles = nibbles.filter(|nibbles| nibbles.len().is_multiple_of(2)).ok_or_else(invalid)?;
    Ok(nibbles.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Sorted keys, the last of equal keys, no white space, numbers as they are spelled (semantics 14).
fn canonical_json(text: &StringViewArray) -> Result<ArrayRef, SqlError> {
    let mut builder = StringViewBuilder::with_capacity(text.len());
    for value in text {
        match value {
            Some(value) => {
                let mut canonical = String::with_capacity(value.len());
                write_json(value, 0, &mut canonical).map_err(|_| SqlErrorKind::Evaluation {
                    sqlstate: "22P02",
                    message: "invalid input syntax for type json".to_owned(),
                })?;
                builder.append_value(canonical);
            }
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Nesting beyond this is refused, as by `serde_json` itself.
const JSON_DEPTH_MAX: usize = 128;

fn write_json(text: &str, depth: usize, out: &mut String) -> Result<(), serde_json::Error> {
    let text = text.trim_ascii();
    if depth > JSON_DEPTH_MAX {
        return Err(serde::de::Error::custom("nested too deep"));
    }
    match text.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            out.push('{');
            for (place, (key, value)) in members.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(&key)?);
                out.push(':');
                write_json(value.get(), depth + 1, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            out.push('[');
            for (place, value) in items.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_json(value.get(), depth + 1, out)?;
            }
            out.push(']');
        }
        Some(b'"') => {
            let string: String = serde_json::from_str(text)?;
            out.push_str(&serde_json::to_string(&string)?);
        }
        _ => {
            let plain: &RawValue = serde_json::from_str(text)?;
            out.push_str(plain.get());
        }
    }
    Ok(())
}

/// Lower case, with hyphens in the usual places.
fn canonical_uuid(text: &StringViewArray) -> Result<ArrayRef, SqlError> {
    let mut builder = StringViewBuilder::with_capacity(text.len());
    for value in text {
        let Some(value) = value else {
            builder.append_null();
            continue;
        };
        let inner = value.trim().trim_start_matches('{').trim_end_matches('}');
        let digits: String = inner.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
        if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(
                SqlErrorKind::InvalidText { type_name: "uuid".to_owned(), value: value.to_owned() }.into()
            );
        }
        let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        builder.append_value(parts.join("-"));
    }
    Ok(Arc::new(builder.finish()))
}

/// The length of `varchar(n)` and `char(n)`.
fn type_modifier(column: &Column) -> Option<usize> {
    let name = column.type_name.as_deref()?;
    let (base, rest) = name.split_once('(')?;
    let base = base.trim();
    let is_text = ["character varying", "varchar", "character", "char", "bpchar"].contains(&base);
    is_text.then(|| rest.trim_end_matches(')').trim().parse().ok()).flatten()
}

/// Refuses text that is too long; blanks beyond the limit are cut, as SQL asks.
fn limited(values: &ArrayRef, length: usize, column: &Column) -> Result<ArrayRef, SqlError> {
    let Some(text) = values.as_string_view_opt() else { return Ok(Arc::clone(values)) };
    // Most values have fewer bytes than the limit has characters: nothing to count.
    if text.iter().flatten().all(|value| value.len() <= length) {
        return Ok(Arc::clone(values));
    }
    let mut builder = StringViewBuilder::with_capacity(text.len());
    for value in text {
        let Some(value) = value else {
            builder.append_null();
            continue;
        };
        match value.char_indices().nth(length) {
            None => builder.append_value(value),
            Some((at, _)) if value[at..].bytes().all(|byte| byte == b' ') => {
                builder.append_value(&value[..at])
            }
            Some(_) => {
                let type_name = column_type(column).replace("varchar(", "character varying(");
                return Err(SqlErrorKind::StringTooLong { type_name }.into());
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Decimal128Array, Int32Array, Int64Array, StringArray};

    use super::*;

    fn column(data_type: DataType, type_name: Option<&str>) -> Column {
        let type_name = type_name.map(str::to_owned);
        Column { name: "c".to_owned(), data_type, nullable: true, type_name, default: None }
    }

    fn text(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn numbers_are_rounded_as_postgres_rounds_them() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5, -2.5]));
        let whole = assign(&floats, &column(DataType::Int32, None)).unwrap();
        assert_eq!(whole.as_ref(), &Int32Array::from(vec![0, 2, -2]));
        let decimals = Decimal128Array::from(vec![15, -25, 14]).with_precision_and_scale(10, 1).unwrap();
        let decimals: ArrayRef = Arc::new(decimals);
        let whole = assign(&decimals, &column(DataType::Int32, None)).unwrap();
        assert_eq!(whole.as_ref(), &Int32Array::from(vec![2, -3, 1]));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let big: ArrayRef = Arc::new(Int64Array::from(vec![1, 1 << 40]));
        let error = assign(&big, &column(DataType::Int32, None)).unwrap_err();
        assert_eq!((error.sqlstate(), error.to_string().as_str()), ("22003", "integer out of range"));
        let huge: ArrayRef = Arc::new(Float64Array::from(vec![f64::INFINITY, 1e300]));
        let error = assign(&huge, &column(DataType::Float32, None)).unwrap_err();
        assert_eq!((error.sqlstate(), error.to_string().as_str()), ("22003", "real out of range"));
        let error = assign(&text(&["Infinity", "1e300"]), &column(DataType::Float32, None)).unwrap_err();
        assert_eq!(error.to_string(), "value \"1e300\" is out of range for type real");
        let error = assign(&text(&["99999999999"]), &column(DataType::Int32, None)).unwrap_err();
        assert_eq!(error.to_string(), "value \"99999999999\" is out of range for type integer");
        let error = assign(&text(&["1", "x"]), &column(DataType::Int64, None)).unwrap_err();
        assert_eq!(
            (error.sqlstate(), error.to_string().as_str()),
            ("22P02", "invalid input syntax for type bigint: \"x\"")
        );
    }

    #[test]
    fn booleans_are_not_numbers() {
        let values: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![true]));
        let error = assign(&values, &column(DataType::Int32, None)).unwrap_err();
        assert_eq!(error.sqlstate(), "42804");
        assert_eq!(error.to_string(), "column \"c\" is of type integer but expression is of type boolean");
    }

    #[test]
    fn varchar_limits_characters_not_bytes() {
        let limited = column(DataType::Utf8View, Some("character varying(3)"));
        assert!(assign(&text(&["äöü", "ab    "]), &limited).is_ok());
        let error = assign(&text(&["abcd"]), &limited).unwrap_err();
        assert_eq!(
            (error.sqlstate(), error.to_string().as_str()),
            ("22001", "value too long for type character varying(3)")
        );
    }

    #[test]
    fn json_uuid_and_bytea_have_one_stored_form() {
        let json = assign(
            &text(&["{\"b\": 1, \"a\" : [1, 2], \"b\": 2}"]),
            &column(DataType::Utf8View, Some("jsonb")),
        );
        assert_eq!(json.unwrap().as_string_view().value(0), "{\"a\":[1,2],\"b\":2}");
        let uuid = assign(
            &text(&["{A0EEBC99-9C0B4EF8BB6D6BB9BD380A11}"]),
            &column(DataType::Utf8View, Some("uuid")),
        );
        assert_eq!(uuid.unwrap().as_string_view().value(0), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        let bytes = assign(&text(&["\\x00fF"]), &column(DataType::Binary, None)).unwrap();
        assert_eq!(bytes.as_binary::<i32>().value(0), [0, 255]);
    }
}
