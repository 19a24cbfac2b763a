//! Numbers, booleans and bytes from text, shared by all text formats.
//!
//! The syntax is PostgreSQL's, with two additions that data files need: a whole number may be
//! written `12.0` or `1e3`, and bytes without `\x` in front are base64.

/// Why a text is not a value of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueError {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
}

impl ValueError {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into() }
    }

    /// The text does not look like the type at all.
    pub(crate) fn syntax(type_name: &str, text: &str) -> Self {
        Self::new("22P02", format!("invalid input syntax for type {type_name}: \"{}\"", shorten(text)))
    }

    /// The text is a number that the type cannot hold.
    pub(crate) fn out_of_range(type_name: &str, text: &str) -> Self {
        Self::new("22003", format!("value \"{}\" is out of range for type {type_name}", shorten(text)))
    }
}

/// The beginning of a text, short enough for a message.
pub(crate) fn shorten(text: &str) -> &str {
    const MAX: usize = 200;
    let mut end = text.len().min(MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A whole number of a type that may be narrower than 64 bits.
pub(crate) fn parse_integer<T: TryFrom<i64>>(text: &str, type_name: &str) -> Result<T, ValueError> {
    let wide = match parse_short_integer(text.as_bytes()) {
        Some(number) => number,
        None => parse_any_integer(text, type_name)?,
    };
    T::try_from(wide).map_err(|_| ValueError::out_of_range(type_name, text))
}

/// The common case: up to 18 digits, which cannot overflow, and perhaps a minus.
#[inline]
pub(crate) fn parse_short_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number: i64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
    }
    Some(if negative { -number } else { number })
}

#[cold]
fn parse_any_integer(text: &str, type_name: &str) -> Result<i64, ValueError> {
    let digits = Digits::read(text.trim()).ok_or_else(|| ValueError::syntax(type_name, text))?;
    if !digits.is_whole() {
        return Err(ValueError::syntax(type_name, text));
    }
    digits
        .scaled(0, Rounding::HalfAway)
        .and_then(|number| i64::try_from(number).ok())
        .ok_or_else(|| ValueError::out_of_range(type_name, text))
}

/// A decimal with `scale` digits behind the point, rounded as PostgreSQL rounds (half away from
/// zero), and at most `precision` digits in all.
pub(crate) fn parse_decimal(text: &str, precision: u8, scale: i8) -> Result<i128, ValueError> {
    let digits = Digits::read(text.trim()).ok_or_else(|| ValueError::syntax("numeric", text))?;
    digits
        .scaled(i32::from(scale), Rounding::HalfAway)
        .filter(|number| number.unsigned_abs() < 10u128.pow(u32::from(precision.min(38))))
        .ok_or_else(|| {
            ValueError::new(
                "22003",
                format!(
                    "numeric field overflow: \"{}\" does not fit numeric({precision},{scale})",
                    shorten(text)
                ),
            )
        })
}

/// What becomes of digits that do not fit the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    HalfAway,
    Floor,
}

/// A number in decimal notation, `mantissa * 10^exponent`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digits {
    negative: bool,
    mantissa: u128,
    exponent: i32,
    /// First digit that the mantissa had no room for.
    dropped: u8,
    /// Whether any digit that it had no room for is not zero.
    inexact: bool,
}

impl Digits {
    /// Reads `[+-] digits [. digits] [e [+-] digits]`, at least one digit before the `e`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut bytes = text.as_bytes();
        let mut digits = Self { negative: false, mantissa: 0, exponent: 0, dropped: 0, inexact: false };
        if let [sign @ (b'+' | b'-'), rest @ ..] = bytes {
            digits.negative = *sign == b'-';
            bytes = rest;
        }
        let (mut seen, mut in_fraction, mut is_full) = (false, false, false);
        while let [byte, rest @ ..] = bytes {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    digits.push(byte - b'0', in_fraction, &mut is_full);
                }
                b'.' if !in_fraction => in_fraction = true,
                b'e' | b'E' => {
                    digits.exponent = digits.exponent.saturating_add(read_exponent(rest)?);
                    break;
                }
                _ => return None,
            }
            bytes = rest;
        }
        seen.then_some(digits)
    }

    fn push(&mut self, digit: u8, in_fraction: bool, is_full: &mut bool) {
        const ROOM: u128 = 10u128.pow(37);
        if !*is_full && self.mantissa < ROOM {
            self.mantissa = self.mantissa * 10 + u128::from(digit);
            self.exponent -= i32::from(in_fraction);
            return;
        }
        if !*is_full {
            self.dropped = digit;
            *is_full = true;
        }
        self.inexact |= digit != 0;
        self.exponent += i32::from(!in_fraction);
    }

    fn is_whole(&self) -> bool {
        let fraction = u32::try_from(-i64::from(self.exponent)).unwrap_or(0);
        let is_divisible = fraction == 0
            || self.mantissa == 0
            || (fraction <= 38 && self.mantissa.is_multiple_of(10u128.pow(fraction)));
        is_divisible && !(self.inexact && self.exponent <= 0)
    }

    /// The number in units of `10^-scale`, or `None` if that has more than 38 digits.
    pub(crate) fn scaled(&self, scale: i32, rounding: Rounding) -> Option<i128> {
        const END: u128 = 10u128.pow(38);
        let shift = self.exponent.saturating_add(scale);
        let (whole, round_up) = if self.mantissa == 0 {
            (0, false)
        } else if shift >= 0 {
            let factor = 10u128.checked_pow(u32::try_from(shift).ok()?)?;
            let up = match rounding {
                Rounding::HalfAway => self.dropped >= 5,
                Rounding::Floor => self.negative && self.inexact,
            };
            (self.mantissa.checked_mul(factor)?, shift == 0 && up)
        } else {
            // Beyond 38 digits nothing is left but the direction of the rounding.
            let divisor = 10u128.checked_pow(shift.unsigned_abs()).unwrap_or(u128::MAX);
            let rest = self.mantissa % divisor;
            let up = match rounding {
                Rounding::HalfAway => rest >= divisor.div_ceil(2),
                Rounding::Floor => self.negative && (rest > 0 || self.inexact),
            };
            (self.mantissa / divisor, up)
        };
        let magnitude = whole + u128::from(round_up);
        if magnitude >= END {
            return None;
        }
        let magnitude = i128::try_from(magnitude).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

fn read_exponent(bytes: &[u8]) -> Option<i32> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Far beyond what any decimal holds, and far from where sums of exponents overflow.
    let exponent = digits.iter().fold(0i32, |sum, byte| (sum * 10 + i32::from(byte - b'0')).min(100_000));
    Some(if negative { -exponent } else { exponent })
}

/// A double; infinite only if the text says so.
pub(crate) fn parse_double(text: &str) -> Result<f64, ValueError> {
    let trimmed = text.trim();
    let number: f64 = trimmed.parse().map_err(|_| ValueError::syntax("double precision", text))?;
    if number.is_infinite() && trimmed.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(ValueError::out_of_range("double precision", text));
    }
    Ok(number)
}

/// A single-precision float, rounded once.
pub(crate) fn parse_real(text: &str) -> Result<f32, ValueError> {
    let trimmed = text.trim();
    let number: f32 = trimmed.parse().map_err(|_| ValueError::syntax("real", text))?;
    if number.is_infinite() && trimmed.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(ValueError::out_of_range("real", text));
    }
    Ok(number)
}

/// PostgreSQL's spellings of a boolean, short forms included.
pub(crate) fn parse_boolean(text: &str) -> Result<bool, ValueError> {
    match text {
        "true" => return Ok(true),
        "false" => return Ok(false),
        _ => {}
    }
    let word = text.trim().to_ascii_lowercase();
    let is_prefix_of = |full: &str, shortest: usize| word.len() >= shortest && full.starts_with(&word);
    if is_prefix_of("true", 1) || is_prefix_of("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if is_prefix_of("false", 1) || is_prefix_of("no", 1) || is_prefix_of("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(ValueError::syntax("boolean", text))
    }
}

/// Appends bytes written as `\x` and hexadecimal digits, or as base64.
pub(crate) fn parse_bytes(text: &str, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let start = out.len();
    let parsed = match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex.as_bytes(), out),
        None => parse_base64(text.as_bytes(), out),
    };
    if parsed.is_none() {
        out.truncate(start);
        return Err(ValueError::syntax("bytea", text));
    }
    Ok(())
}

fn parse_hex(digits: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    for pair in digits.chunks_exact(2) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(())
}

/// Standard or URL-safe alphabet, with or without padding.
fn parse_base64(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let digits = &text[..text.len() - padding];
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) || digits.len() % 4 == 1 {
        return None;
    }
    for group in digits.chunks(4) {
        let mut bits: u32 = 0;
        for byte in group {
            bits = bits << 6 | base64_digit(*byte)?;
        }
        bits <<= 6 * (4 - group.len());
        let bytes = bits.to_be_bytes();
        // Bits behind the last whole byte must be zero: otherwise two texts mean the same bytes.
        if bytes[group.len()..].iter().any(|byte| *byte != 0) {
            return None;
        }
        out.extend_from_slice(&bytes[1..group.len()]);
    }
    Some(())
}

fn base64_digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use arrow::compute::kernels::cast_utils::{Parser, parse_decimal as arrow_parse_decimal};
    use arrow::datatypes::{Decimal128Type, Int64Type};
    use proptest::prelude::*;

    use super::*;

    fn integer(text: &str) -> Result<i32, &'static str> {
        parse_integer(text, "integer").map_err(|error| error.sqlstate)
    }

    #[test]
    fn integers_are_range_checked() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("-2147483648", Ok(i32::MIN)),
            ("2147483648", Err("22003")),
            ("99999999999999999999999999999999999999999999", Err("22003")),
            (" +7 ", Ok(7)),
            ("12.0", Ok(12)),
            ("12.5", Err("22P02")),
            ("1.25e2", Ok(125)),
            ("1e-1", Err("22P02")),
            ("0e999999999999", Ok(0)),
            ("1e999999999999", Err("22003")),
            ("", Err("22P02")),
            ("-", Err("22P02")),
            ("1x", Err("22P02")),
            ("0x10", Err("22P02")),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
        assert_eq!(parse_integer::<i64>("9223372036854775807", "bigint"), Ok(i64::MAX));
        assert_eq!(parse_integer::<i64>("-9223372036854775808", "bigint"), Ok(i64::MIN));
        assert!(parse_integer::<i64>("9223372036854775808", "bigint").is_err());
    }

    #[test]
    fn decimals_round_half_away_from_zero_and_keep_their_precision() {
        for (text, scale, expected) in [
            ("1.005", 2, Some(101)),
            ("-1.005", 2, Some(-101)),
            ("1.0049999999999999999999999999999999999999999999", 2, Some(100)),
            ("0.5", 0, Some(1)),
            ("1e-50", 2, Some(0)),
            ("123456", -2, Some(1235)),
            ("99999.995", 2, None),
            ("0.00000000000000000000000000000000000000000000001", 2, Some(0)),
            (".5", 1, Some(5)),
            ("5.", 1, Some(50)),
        ] {
            assert_eq!(parse_decimal(text, 7, scale).ok(), expected, "{text}");
        }
        assert_eq!(parse_decimal("9999999999999999999999999999.9999999999", 38, 10), Ok(10i128.pow(38) - 1));
        assert_eq!(
            parse_decimal("12345678901234567890123456789012345678.5", 38, 0),
            Ok(12_345_678_901_234_567_890_123_456_789_012_345_679)
        );
        assert_eq!(parse_decimal("NaN", 38, 10).unwrap_err().sqlstate, "22P02");
    }

    #[test]
    fn a_float_is_infinite_only_if_the_text_says_so() {
        assert_eq!(parse_double("-Infinity"), Ok(f64::NEG_INFINITY));
        assert_eq!(parse_double("1e400").unwrap_err().sqlstate, "22003");
        assert_eq!(parse_real("1e39").unwrap_err().sqlstate, "22003");
        assert_eq!(parse_double(" 1.5 "), Ok(1.5));
        assert!(parse_double("NaN").unwrap().is_nan());
    }

    #[test]
    fn booleans_have_the_spellings_of_postgres() {
        for text in ["t", "TRUE", "tr", "y", "on", "1"] {
            assert_eq!(parse_boolean(text), Ok(true), "{text}");
        }
        for text in ["f", "False", "n", "of", "off", "0"] {
            assert_eq!(parse_boolean(text), Ok(false), "{text}");
        }
        for text in ["", "o", "2", "truex"] {
            assert!(parse_boolean(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_hexadecimal_or_base64() {
        let parse = |text: &str| {
            let mut out = Vec::new();
            parse_bytes(text, &mut out).ok().map(|()| out)
        };
        assert_eq!(parse("\\xDEADbeef"), Some(vec![0xde, 0xad, 0xbe, 0xef]));
        assert_eq!(parse("\\x1"), None);
        assert_eq!(parse("\\xzz"), None);
        assert_eq!(parse("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(parse("aGVsbG8"), Some(b"hello".to_vec()));
        assert_eq!(parse(""), Some(vec![]));
        for text in ["a", "aGVsbG9=", "a===", "aGVs bG8=", "====", "aGVsbG8=="] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn integers_agree_with_arrow(number: i64) {
            let text = number.to_string();
            prop_assert_eq!(parse_integer::<i64>(&text, "bigint").ok(), Int64Type::parse(&text));
        }

        #[test]
        fn decimals_that_need_no_rounding_agree_with_arrow(text in "-?[0-9]{1,20}(\\.[0-9]{1,4})?") {
            prop_assert_eq!(parse_decimal(&text, 38, 4).ok(), arrow_parse_decimal::<Decimal128Type>(&text, 38, 4).ok());
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in "[-+0-9.eE ]{0,60}") {
            let _ = parse_integer::<i16>(&text, "smallint");
            let _ = parse_decimal(&text, 38, 10);
            let _ = Digits::read(&text).map(|digits| digits.scaled(-3, Rounding::Floor));
        }
    }
}
