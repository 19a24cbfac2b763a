//! Values in PostgreSQL's text format, as `psql` shows them.
//!
//! Source: PostgreSQL 15 documentation, chapter 8 (data types), with DateStyle `ISO`, IntervalStyle
//! `postgres` and `bytea_output` `hex`.

use bytes::{BufMut, BytesMut};

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A decimal integer.
pub(crate) fn put_integer(out: &mut BytesMut, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.put_u8(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

fn put_padded(out: &mut BytesMut, value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    let mut rest = value;
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let from = at.min(digits.len() - width);
    out.extend_from_slice(&digits[from..]);
}

/// The shortest text that reads back as the same number. `exponent_from` is the decimal exponent
/// from which PostgreSQL writes `1e+15` (15 for float8, 6 for float4).
fn put_shortest(out: &mut BytesMut, scientific: &str, exponent_from: i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: Vec<u8> = mantissa.bytes().filter(|byte| *byte != b'.').collect();
    out.extend_from_slice(sign.as_bytes());
    if exponent < -4 || exponent >= exponent_from {
        out.put_u8(digits[0]);
        if digits.len() > 1 {
            out.put_u8(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.put_u8(b'e');
        out.put_u8(if exponent < 0 { b'-' } else { b'+' });
        put_padded(out, u64::from(exponent.unsigned_abs()), 2);
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.put_bytes(b'0', (-exponent - 1) as usize);
        out.extend_from_slice(&digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.extend_from_slice(&digits);
            out.put_bytes(b'0', whole - digits.len());
        } else {
            out.extend_from_slice(&digits[..whole]);
            out.put_u8(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

fn put_not_finite(out: &mut BytesMut, value: f64) -> bool {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value == f64::INFINITY {
        out.extend_from_slice(b"Infinity");
    } else if value == f64::NEG_INFINITY {
        out.extend_from_slice(b"-Infinity");
    }
    !value.is_finite()
}

/// A `double precision`.
pub(crate) fn put_float8(out: &mut BytesMut, value: f64) {
    if !put_not_finite(out, value) {
        put_shortest(out, &format!("{value:e}"), 15);
    }
}

/// A `real`.
pub(crate) fn put_float4(out: &mut BytesMut, value: f32) {
    if !put_not_finite(out, f64::from(value)) {
        put_shortest(out, &format!("{value:e}"), 6);
    }
}

/// A `numeric` with `scale` digits behind the point, from the integer in units of its last digit.
pub(crate) fn put_decimal(out: &mut BytesMut, value: &impl ToString, scale: i8) {
    let value = value.to_string();
    let digits = value.trim_start_matches('-').as_bytes();
    if value.len() > digits.len() {
        out.put_u8(b'-');
    }
    if scale <= 0 {
        out.extend_from_slice(digits);
        if digits != b"0" {
            out.put_bytes(b'0', usize::from(scale.unsigned_abs()));
        }
        return;
    }
    let scale = scale as usize;
    if digits.len() > scale {
        out.extend_from_slice(&digits[..digits.len() - scale]);
        out.put_u8(b'.');
        out.extend_from_slice(&digits[digits.len() - scale..]);
    } else {
        out.extend_from_slice(b"0.");
        out.put_bytes(b'0', scale - digits.len());
        out.extend_from_slice(digits);
    }
}

/// Year, month and day of a day number since 1970-01-01 in the proleptic Gregorian calendar.
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
#[must_use]
pub(crate) fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_index + 2) / 5 + 1) as u32;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn put_day(out: &mut BytesMut, days: i64) -> bool {
    let (year, month, day) = civil_from_days(days);
    let before_christ = year <= 0;
    put_padded(out, if before_christ { 1 - year } else { year } as u64, 4);
    out.put_u8(b'-');
    put_padded(out, u64::from(month), 2);
    out.put_u8(b'-');
    put_padded(out, u64::from(day), 2);
    before_christ
}

/// A `date`, in days since 1970-01-01.
pub(crate) fn put_date(out: &mut BytesMut, days: i64) {
    if put_day(out, days) {
        out.extend_from_slice(b" BC");
    }
}

/// A `time`, in microseconds since midnight.
pub(crate) fn put_time(out: &mut BytesMut, micros: i64) {
    let seconds = micros / 1_000_000;
    put_padded(out, (seconds / 3_600) as u64, 2);
    out.put_u8(b':');
    put_padded(out, (seconds / 60 % 60) as u64, 2);
    out.put_u8(b':');
    put_padded(out, (seconds % 60) as u64, 2);
    put_fraction(out, (micros % 1_000_000) as u64);
}

/// Microseconds behind a point, without trailing zeros; nothing for zero.
fn put_fraction(out: &mut BytesMut, micros: u64) {
    if micros == 0 {
        return;
    }
    out.put_u8(b'.');
    let mut width = 6;
    let mut rest = micros;
    while rest.is_multiple_of(10) {
        rest /= 10;
        width -= 1;
    }
    put_padded(out, rest, width);
}

/// A `timestamp` or `timestamptz`, in microseconds since 1970 (UTC).
pub(crate) fn put_timestamp(out: &mut BytesMut, micros: i64, with_zone: bool) {
    let before_christ = put_day(out, micros.div_euclid(MICROS_PER_DAY));
    out.put_u8(b' ');
    put_time(out, micros.rem_euclid(MICROS_PER_DAY));
    if with_zone {
        out.extend_from_slice(b"+00");
    }
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// An `interval` in the style `postgres`: `1 year 2 mons 3 days 04:05:06.7`.
pub(crate) fn put_interval(out: &mut BytesMut, months: i32, days: i32, nanos: i64) {
    let micros = nanos / 1_000;
    let mut parts = 0;
    let mut negative_before = false;
    let mut unit = |out: &mut BytesMut, value: i64, name: &str| {
        if value == 0 {
            return;
        }
        if parts > 0 {
            out.put_u8(b' ');
        }
        if negative_before && value > 0 {
            out.put_u8(b'+');
        }
        put_integer(out, value);
        out.put_u8(b' ');
        out.extend_from_slice(name.as_bytes());
        if value != 1 {
            out.put_u8(b's');
        }
        negative_before = value < 0;
        parts += 1;
    };
    unit(out, i64::from(months / 12), "year");
    unit(out, i64::from(months % 12), "mon");
    unit(out, i64::from(days), "day");
    if micros != 0 || parts == 0 {
        if parts > 0 {
            out.put_u8(b' ');
        }
        if micros < 0 {
            out.put_u8(b'-');
        } else if negative_before {
            out.put_u8(b'+');
        }
        put_time(out, micros.saturating_abs());
    }
}

/// A `bytea` in hex format.
pub(crate) fn put_bytea(out: &mut BytesMut, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\x");
    for byte in bytes {
        out.put_u8(HEX[usize::from(byte >> 4)]);
        out.put_u8(HEX[usize::from(byte & 15)]);
    }
}

/// One element of an array or record literal, quoted where PostgreSQL quotes it. `special` are
/// the characters that force quotes beyond quotes, backslashes and white space.
pub(crate) fn put_quoted(out: &mut BytesMut, text: &[u8], special: &[u8], null_word: bool) {
    let must = text.is_empty()
        || (null_word && text.eq_ignore_ascii_case(b"null"))
        || text
            .iter()
            .any(|byte| matches!(byte, b'"' | b'\\') || byte.is_ascii_whitespace() || special.contains(byte));
    if !must {
        out.extend_from_slice(text);
        return;
    }
    out.put_u8(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: impl Fn(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        put(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn floats_look_as_in_postgresql() {
        let cases = [
            (2.0, "2"),
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e20, "1e+20"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, expected) in cases {
            assert_eq!(text(|out| put_float8(out, value)), expected);
        }
        assert_eq!(text(|out| put_float4(out, 1e6)), "1e+06");
        assert_eq!(text(|out| put_float4(out, 0.1)), "0.1");
    }

    #[test]
    fn decimals_keep_their_scale() {
        assert_eq!(text(|out| put_decimal(out, &1_500, 3)), "1.500");
        assert_eq!(text(|out| put_decimal(out, &-5, 3)), "-0.005");
        assert_eq!(text(|out| put_decimal(out, &i128::MIN, 0)), i128::MIN.to_string());
        assert_eq!(text(|out| put_decimal(out, &12, -2)), "1200");
    }

    #[test]
    fn timestamps_drop_trailing_zeros_and_know_the_time_before_1970() {
        assert_eq!(text(|out| put_timestamp(out, -1, false)), "1969-12-31 23:59:59.999999");
        assert_eq!(text(|out| put_timestamp(out, 1_500_000, true)), "1970-01-01 00:00:01.5+00");
        assert_eq!(text(|out| put_date(out, -719_163)), "0001-12-31 BC");
    }

    #[test]
    fn intervals_look_as_in_postgresql() {
        let micros = 1_000;
        assert_eq!(
            text(|out| put_interval(out, 14, 3, 14_706_700_000 * micros)),
            "1 year 2 mons 3 days 04:05:06.7"
        );
        assert_eq!(text(|out| put_interval(out, -1, 2, 0)), "-1 mons +2 days");
        assert_eq!(text(|out| put_interval(out, 0, 0, 0)), "00:00:00");
        assert_eq!(text(|out| put_interval(out, 0, 0, -1_000_000 * micros)), "-00:00:01");
    }

    #[test]
    fn integers_at_the_edges() {
        assert_eq!(text(|out| put_integer(out, i64::MIN)), i64::MIN.to_string());
        assert_eq!(text(|out| put_integer(out, 0)), "0");
    }

    #[test]
    fn elements_are_quoted_where_they_must_be() {
        assert_eq!(text(|out| put_quoted(out, b"a b", b",{}", true)), "\"a b\"");
        assert_eq!(text(|out| put_quoted(out, b"NULL", b",{}", true)), "\"NULL\"");
        assert_eq!(text(|out| put_quoted(out, b"a\"b", b",{}", true)), "\"a\\\"b\"");
        assert_eq!(text(|out| put_quoted(out, b"plain", b",{}", true)), "plain");
    }
}
