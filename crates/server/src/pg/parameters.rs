//! Bound parameters, text or binary, to scalar values of the planned type.

use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use bytes::{Buf, Bytes};
use datafusion::scalar::ScalarValue;
use pgwire::api::Type;

use super::binary::{self, EPOCH_DAYS, EPOCH_MICROS};

/// Why a parameter could not be read: SQLSTATE and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParameterError {
    pub sqlstate: &'static str,
    pub message: String,
}

/// The value of one parameter. `None` is NULL.
pub(crate) fn decode(
    bytes: Option<&Bytes>,
    is_binary: bool,
    data_type: &DataType,
) -> Result<ScalarValue, ParameterError> {
    let Some(bytes) = bytes else {
        return ScalarValue::try_from(data_type).map_err(|error| invalid(&error.to_string()));
    };
    if is_binary { decode_binary(bytes, data_type) } else { decode_text(bytes, data_type) }
}

/// The binary form of types that are text in here, as that text: `jsonb` behind its version byte and
/// `uuid` in its sixteen bytes.
pub(crate) fn text_of_binary(bytes: &Bytes, pg: &Type) -> Result<Bytes, ParameterError> {
    match *pg {
        Type::JSONB if bytes.first() == Some(&1) => Ok(bytes.slice(1..)),
        Type::JSONB => Err(invalid("unsupported jsonb version number")),
        Type::UUID => match <[u8; 16]>::try_from(bytes.as_ref()) {
            Ok(bytes) => Ok(binary::uuid_text(bytes).into()),
            Err(_) => Err(invalid("incorrect binary data format for a parameter of type uuid")),
        },
        _ => Ok(bytes.clone()),
    }
}

fn invalid(message: &str) -> ParameterError {
    ParameterError { sqlstate: "22P03", message: message.to_owned() }
}

fn decode_text(bytes: &Bytes, data_type: &DataType) -> Result<ScalarValue, ParameterError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ParameterError {
        sqlstate: "22021",
        message: "invalid byte sequence for encoding \"UTF8\"".to_owned(),
    })?;
    if text.contains('\0') {
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00".to_owned();
        return Err(ParameterError { sqlstate: "22021", message });
    }
    let syntax = || ParameterError {
        sqlstate: "22P02",
        message: format!(
            "invalid input syntax for type {}: \"{text}\"",
            super::types::of_data_type(data_type).name()
        ),
    };
    match data_type {
        DataType::Boolean => match text.trim().to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Ok(ScalarValue::Boolean(Some(true))),
            "f" | "false" | "n" | "no" | "off" | "0" => Ok(ScalarValue::Boolean(Some(false))),
            _ => Err(syntax()),
        },
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            Ok(ScalarValue::Utf8View(Some(text.to_owned())))
        }
        DataType::Binary => match text.strip_prefix("\\x") {
            Some(hex) => decode_hex(hex).map(|bytes| ScalarValue::Binary(Some(bytes))).ok_or_else(syntax),
            None => Ok(ScalarValue::Binary(Some(text.as_bytes().to_vec()))),
        },
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let interval = sql::parse_interval(text).ok_or_else(syntax)?;
            Ok(ScalarValue::IntervalMonthDayNano(Some(interval)))
        }
        DataType::List(element) => {
            let elements = array_elements(text).ok_or_else(syntax)?;
            let value =
                |text: Option<String>| decode(text.map(Bytes::from).as_ref(), false, element.data_type());
            let values = elements.into_iter().map(value).collect::<Result<Vec<_>, _>>()?;
            Ok(ScalarValue::List(ScalarValue::new_list(&values, element.data_type(), true)))
        }
        _ => ScalarValue::try_from_string(text.trim().to_owned(), data_type).map_err(|_| syntax()),
    }
}

/// The elements of an array literal of one dimension, `{a,"b c",NULL}`; `None`: it is not one.
fn array_elements(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut elements = Vec::new();
    if inner.trim().is_empty() {
        return Some(elements);
    }
    let mut chars = inner.chars().peekable();
    loop {
        while chars.next_if(|char| char.is_whitespace()).is_some() {}
        let mut element = String::new();
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => element.push(chars.next()?),
                    char => element.push(char),
                }
            }
            while chars.next_if(|char| char.is_whitespace()).is_some() {}
            elements.push(Some(element));
        } else {
            while let Some(char) = chars.next_if(|char| *char != ',') {
                match char {
                    '{' | '}' | '"' => return None,
                    '\\' => element.push(chars.next()?),
                    char => element.push(char),
                }
            }
            let element = element.trim_end();
            if element.is_empty() {
                return None;
            }
            let is_null = element.eq_ignore_ascii_case("null");
            elements.push((!is_null).then(|| element.to_owned()));
        }
        match chars.next() {
            None => return Some(elements),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

/// The elements of an array of one dimension as `array_send` writes it; `None`: broken data.
fn binary_elements(mut data: Bytes) -> Option<Vec<Option<Bytes>>> {
    let dimensions = data.try_get_i32().ok()?;
    // Whether there are NULLs, and the type of the elements.
    data.try_get_i64().ok()?;
    if dimensions == 0 {
        return data.is_empty().then(Vec::new);
    }
    let count = data.try_get_i32().ok()?;
    // The lower bound, which lists here do not have.
    data.try_get_i32().ok()?;
    let mut elements = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(data.try_get_i32().ok()?).ok();
        if length.is_some_and(|length| length > data.len()) {
            return None;
        }
        elements.push(length.map(|length| data.split_to(length)));
    }
    (dimensions == 1 && data.is_empty()).then_some(elements)
}

fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    if !hex.len().is_multiple_of(2) {
        return None;
    }
    hex.as_bytes()
        .chunks(2)
        .map(|pair| {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            Some((high * 16 + low) as u8)
        })
        .collect()
}

/// The integer in 1, 2, 4 or 8 big-endian bytes.
fn integer(bytes: &[u8]) -> Option<i64> {
    let mut bytes = bytes;
    match bytes.len() {
        1 => Some(i64::from(bytes.get_i8())),
        2 => Some(i64::from(bytes.get_i16())),
        4 => Some(i64::from(bytes.get_i32())),
        8 => Some(bytes.get_i64()),
        _ => None,
    }
}

fn decode_binary(bytes: &Bytes, data_type: &DataType) -> Result<ScalarValue, ParameterError> {
    let wrong = || invalid(&format!("incorrect binary data format for a parameter of type {data_type}"));
    let mut data = bytes.clone();
    let value = match data_type {
        DataType::Boolean if data.len() == 1 => ScalarValue::Boolean(Some(data.get_u8() != 0)),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt32
        | DataType::UInt64 => {
            let value = ScalarValue::Int64(Some(integer(&data).ok_or_else(wrong)?));
            value.cast_to(data_type).map_err(|_| wrong())?
        }
        DataType::Float32 if data.len() == 4 => ScalarValue::Float32(Some(data.get_f32())),
        DataType::Float64 if data.len() == 8 => ScalarValue::Float64(Some(data.get_f64())),
        DataType::Float64 if data.len() == 4 => ScalarValue::Float64(Some(f64::from(data.get_f32()))),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => return decode_text(bytes, data_type),
        DataType::Binary => ScalarValue::Binary(Some(data.to_vec())),
        DataType::Date32 if data.len() == 4 => {
            ScalarValue::Date32(Some(data.get_i32().checked_add(EPOCH_DAYS).ok_or_else(wrong)?))
        }
        DataType::Time64(TimeUnit::Microsecond) if data.len() == 8 => {
            ScalarValue::Time64Microsecond(Some(data.get_i64()))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) if data.len() == 8 => {
            let micros = data.get_i64().checked_add(EPOCH_MICROS).ok_or_else(wrong)?;
            ScalarValue::TimestampMicrosecond(Some(micros), zone.clone())
        }
        DataType::Interval(_) if data.len() == 16 => {
            let micros = data.get_i64();
            let days = data.get_i32();
            let months = data.get_i32();
            let nanos = micros.checked_mul(1_000).ok_or_else(wrong)?;
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos)))
        }
        DataType::List(element) => {
            let elements = binary_elements(data).ok_or_else(wrong)?;
            let value = |bytes: Option<Bytes>| decode(bytes.as_ref(), true, element.data_type());
            let values = elements.into_iter().map(value).collect::<Result<Vec<_>, _>>()?;
            return Ok(ScalarValue::List(ScalarValue::new_list(&values, element.data_type(), true)));
        }
        DataType::Decimal128(..) => {
            let text = numeric_text(&mut data).ok_or_else(wrong)?;
            ScalarValue::try_from_string(text, data_type).map_err(|_| wrong())?
        }
        _ => return Err(wrong()),
    };
    Ok(value)
}

/// A binary `numeric` as decimal text; `None` for NaN, infinities and broken data.
fn numeric_text(data: &mut Bytes) -> Option<String> {
    if data.len() < 8 {
        return None;
    }
    let count = usize::try_from(data.get_i16()).ok()?;
    let weight = data.get_i16();
    let sign = data.get_u16();
    let scale = usize::from(data.get_u16());
    if !matches!(sign, 0 | 0x4000) || data.len() != count * 2 || scale > 16_383 {
        return None;
    }
    let groups: Vec<i16> = (0..count).map(|_| data.get_i16()).collect();
    let group = |at: i32| usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
    let mut text = String::from(if sign == 0 { "" } else { "-" });
    if weight < 0 {
        text.push('0');
    }
    for at in 0..=i32::from(weight) {
        text.push_str(&format!("{:04}", group(at)));
    }
    if scale > 0 {
        let mut fraction = String::new();
        let mut at = i32::from(weight) + 1;
        while fraction.len() < scale {
            fraction.push_str(&format!("{:04}", group(at)));
            at += 1;
        }
        fraction.truncate(scale);
        text.push('.');
        text.push_str(&fraction);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numeric_reads_back_from_its_binary_form() {
        for (value, scale) in [(12_345_678i128, 3i8), (-5, 4), (0, 0), (10_000, 0), (123, 10)] {
            let mut out = bytes::BytesMut::new();
            binary::put_decimal(&mut out, &value, scale);
            let decoded = decode(Some(&out.freeze()), true, &DataType::Decimal128(38, scale)).unwrap();
            assert_eq!(decoded, ScalarValue::Decimal128(Some(value), 38, scale));
        }
    }

    #[test]
    fn an_array_is_read_in_text_and_in_binary() {
        let list =
            DataType::List(std::sync::Arc::new(arrow::datatypes::Field::new("item", DataType::Int32, true)));
        let values = [ScalarValue::Int32(Some(1)), ScalarValue::Int32(None)];
        let expected = ScalarValue::List(ScalarValue::new_list(&values, &DataType::Int32, true));
        assert_eq!(decode(Some(&Bytes::from_static(b"{1, NULL}")), false, &list).unwrap(), expected);
        let binary =
            b"\0\0\0\x01\0\0\0\x01\0\0\0\x17\0\0\0\x02\0\0\0\x01\0\0\0\x04\0\0\0\x01\xff\xff\xff\xff";
        assert_eq!(decode(Some(&Bytes::from_static(binary)), true, &list).unwrap(), expected);
        for length in 0..binary.len() {
            assert!(decode(Some(&Bytes::from_static(&binary[..length])), true, &list).is_err(), "{length}");
        }
        assert_eq!(
            array_elements(r#"{"a,\"b" , c d,""}"#).unwrap(),
            [r#"a,"b"#, "c d", ""].map(|text| Some(text.to_owned()))
        );
        assert!(array_elements("{}").unwrap().is_empty());
        for wrong in ["", "{", "1,2", "{1,}", "{1 2", "{{1},{2}}", r#"{"a}"#] {
            assert_eq!(array_elements(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_text_is_22p02() {
        let error = decode(Some(&Bytes::from_static(b"x")), false, &DataType::Int32).unwrap_err();
        assert_eq!(error.sqlstate, "22P02");
        assert_eq!(error.message, "invalid input syntax for type int4: \"x\"");
    }

    #[test]
    fn an_int4_on_the_wire_fits_a_bigint_parameter() {
        let four = Bytes::from_static(&[0, 0, 0, 4]);
        assert_eq!(decode(Some(&four), true, &DataType::Int64).unwrap(), ScalarValue::Int64(Some(4)));
    }
}
