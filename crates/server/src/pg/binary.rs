//! Values in PostgreSQL's binary format.
//!
//! Source: the `*_send` functions of PostgreSQL 15; all integers are big-endian, dates and times
//! count from 2000-01-01.

use bytes::{BufMut, BytesMut};

/// Days from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// A `numeric`, from the integer in units of its last digit: groups of four decimal digits, aligned
/// to the decimal point.
pub(crate) fn put_decimal(out: &mut BytesMut, value: &impl ToString, scale: i8) {
    let value = value.to_string();
    let digits = value.trim_start_matches('-');
    let is_negative = value.len() > digits.len();
    let scale_digits = usize::from(scale.max(0).unsigned_abs());
    let mut digits = digits.to_owned();
    if scale < 0 && digits != "0" {
        digits.extend(std::iter::repeat_n('0', usize::from(scale.unsigned_abs())));
    }
    let padding = (scale_digits + 1).saturating_sub(digits.len());
    let digits = "0".repeat(padding) + &digits;
    let (whole, fraction) = digits.split_at(digits.len() - scale_digits);
    let whole = "0".repeat((4 - whole.len() % 4) % 4) + whole;
    let fraction = fraction.to_owned() + &"0".repeat((4 - fraction.len() % 4) % 4);

    let group = |chunk: &[u8]| chunk.iter().fold(0i16, |sum, digit| sum * 10 + i16::from(digit - b'0'));
    let mut groups: Vec<i16> = whole.as_bytes().chunks(4).map(group).collect();
    let mut weight = groups.len() as i16 - 1;
    groups.extend(fraction.as_bytes().chunks(4).map(group));
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    weight -= leading as i16;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    out.put_i16(groups.len() as i16);
    out.put_i16(weight);
    out.put_u16(if is_negative { 0x4000 } else { 0 });
    out.put_i16(scale_digits as i16);
    for group in groups {
        out.put_i16(group);
    }
}

/// An `interval`: microseconds, days, months.
pub(crate) fn put_interval(out: &mut BytesMut, months: i32, days: i32, nanos: i64) {
    out.put_i64(nanos / 1_000);
    out.put_i32(days);
    out.put_i32(months);
}

/// A `uuid` from its text; `None` if the text is not one.
#[must_use]
pub(crate) fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0u8; 16];
    let mut nibbles = 0;
    for character in text.bytes().filter(|byte| *byte != b'-') {
        let digit = char::from(character).to_digit(16)? as u8;
        let byte = bytes.get_mut(nibbles / 2)?;
        *byte = (*byte << 4) | digit;
        nibbles += 1;
    }
    (nibbles == 32).then_some(bytes)
}

/// The text of a `uuid`.
#[must_use]
pub(crate) fn uuid_text(bytes: [u8; 16]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: i128, scale: i8) -> Vec<u8> {
        let mut out = BytesMut::new();
        put_decimal(&mut out, &value, scale);
        out.to_vec()
    }

    #[test]
    fn numerics_are_grouped_by_four_digits_around_the_point() {
        // 12345.678: groups 1, 2345, 6780; weight 1; scale 3 (as PostgreSQL 15 sends it)
        assert_eq!(decimal(12_345_678, 3), [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 9, 41, 26, 124]);
        // 0.0001: one group, weight -1
        assert_eq!(decimal(1, 4), [0, 1, 255, 255, 0, 0, 0, 4, 0, 1]);
        assert_eq!(decimal(0, 2), [0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(decimal(-10_000, 0), [0, 1, 0, 1, 64, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_uuid_has_thirty_two_digits() {
        assert!(uuid_bytes("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11").is_some());
        assert!(uuid_bytes("a0eebc99").is_none());
        assert!(uuid_bytes("zz").is_none());
    }
}
