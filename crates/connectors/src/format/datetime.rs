//! Dates, times and timestamps from ISO 8601 text, and timestamps from epoch numbers.
//!
//! ```text
//! 2024-06-01                                  a date; as a timestamp its midnight
//! 2024-06-01T07:59:00.123456789+02:00         a timestamp
//! 07:59[:00[.123456]]                         a time of day
//! ```
//!
//! `T`, `t` or one space separates date and time; digits behind the sixth of a fraction are cut
//! off; a zone is `Z`, `UTC`, `±HH`, `±HHMM` or `±HH:MM`, and the result is the instant in UTC, for
//! columns without time zone too. Years run from 0001 to 9999.

use crate::format::value::{Digits, Rounding, ValueError, shorten};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// What the numbers of an epoch timestamp count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EpochUnit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl EpochUnit {
    /// Option values and their meaning.
    pub(crate) const WORDS: &[(&str, Self)] =
        &[("s", Self::Seconds), ("ms", Self::Millis), ("us", Self::Micros), ("ns", Self::Nanos)];

    /// Decimal digits between the unit and a microsecond.
    fn scale(self) -> i32 {
        match self {
            Self::Seconds => 6,
            Self::Millis => 3,
            Self::Micros => 0,
            Self::Nanos => -3,
        }
    }
}

/// The timestamps PostgreSQL has, in microseconds since 1970: from 4713-11-24 BC to 294276 AD.
const TIMESTAMPS: std::ops::Range<i64> = -210_866_803_200_000_000..9_223_371_331_200_000_000;

/// Why a text could not be read: it has another form, or a field has no such value.
enum Fault {
    Syntax,
    Range,
}

/// Microseconds since 1970-01-01 00:00 UTC.
pub(crate) fn parse_timestamp(text: &str) -> Result<i64, ValueError> {
    read_timestamp(text.as_bytes().trim_ascii()).map_err(|fault| error(fault, "timestamp", text))
}

/// Microseconds from a number of `unit`s, which may have a fraction; finer digits are cut off.
pub(crate) fn parse_epoch(text: &str, unit: EpochUnit) -> Result<i64, ValueError> {
    let digits = Digits::read(text.trim()).ok_or_else(|| error(Fault::Syntax, "timestamp", text))?;
    let micros = digits.scaled(unit.scale(), Rounding::Floor).and_then(|micros| i64::try_from(micros).ok());
    let micros = micros.filter(|micros| TIMESTAMPS.contains(micros));
    micros.ok_or_else(|| error(Fault::Range, "timestamp", text))
}

/// Days since 1970-01-01.
pub(crate) fn parse_date(text: &str) -> Result<i32, ValueError> {
    let mut cursor = Cursor { rest: text.as_bytes().trim_ascii() };
    let date = cursor.date().and_then(|days| cursor.end().map(|()| days));
    date.map_err(|fault| error(fault, "date", text))
}

/// Microseconds since midnight.
pub(crate) fn parse_time(text: &str) -> Result<i64, ValueError> {
    let mut cursor = Cursor { rest: text.as_bytes().trim_ascii() };
    let time = cursor.time().and_then(|micros| cursor.end().map(|()| micros));
    time.map_err(|fault| error(fault, "time", text))
}

#[cold]
fn error(fault: Fault, type_name: &str, text: &str) -> ValueError {
    match fault {
        Fault::Syntax => ValueError::new(
            "22007",
            format!("invalid input syntax for type {type_name}: \"{}\"", shorten(text)),
        ),
        Fault::Range => {
            ValueError::new("22008", format!("date/time field value out of range: \"{}\"", shorten(text)))
        }
    }
}

fn read_timestamp(text: &[u8]) -> Result<i64, Fault> {
    let mut cursor = Cursor { rest: text };
    if let Some((micros, rest)) = read_usual_form(text) {
        cursor.rest = rest;
        return cursor.fraction_and_zone(micros);
    }
    let days = i64::from(cursor.date()?);
    if cursor.rest.is_empty() {
        return Ok(days * MICROS_PER_DAY);
    }
    if !(cursor.eat(b'T') || cursor.eat(b' ') || cursor.eat(b't')) {
        return Err(Fault::Syntax);
    }
    let time = cursor.time()?;
    let offset = cursor.zone()?;
    cursor.end()?;
    Ok(days * MICROS_PER_DAY + time - offset)
}

/// The form nearly all timestamps have, `2024-06-01T07:59:00` and what follows it, all fields at
/// once. Anything unusual is left to the other way, also to say what is wrong with it.
#[inline]
fn read_usual_form(text: &[u8]) -> Option<(i64, &[u8])> {
    let (
        &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T' | b' ', h1, h2, b':', n1, n2, b':', s1, s2],
        rest,
    ) = text.split_first_chunk()?
    else {
        return None;
    };
    let mut is_digits = true;
    let mut pair = |tens: u8, ones: u8| {
        let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
        is_digits &= tens <= 9 && ones <= 9;
        u32::from(tens) * 10 + u32::from(ones)
    };
    let (year, month, day) = (pair(y1, y2) * 100 + pair(y3, y4), pair(m1, m2), pair(d1, d2));
    let (hour, minute, second) = (pair(h1, h2), pair(n1, n2), pair(s1, s2));
    let is_usual = year > 0
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !(is_digits && is_usual) {
        return None;
    }
    let seconds =
        i64::from(days_from_civil(year, month, day)) * 86_400 + i64::from(hour * 3600 + minute * 60 + second);
    Some((seconds * MICROS_PER_SECOND, rest))
}

/// Reads fields from the front of a text.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn eat(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn end(&self) -> Result<(), Fault> {
        if self.rest.is_empty() { Ok(()) } else { Err(Fault::Syntax) }
    }

    #[inline]
    fn two_digits(&mut self) -> Result<u32, Fault> {
        let [tens, ones, rest @ ..] = self.rest else {
            return Err(Fault::Syntax);
        };
        let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
        if tens > 9 || ones > 9 {
            return Err(Fault::Syntax);
        }
        self.rest = rest;
        Ok(u32::from(tens * 10 + ones))
    }

    fn separator(&mut self, byte: u8) -> Result<(), Fault> {
        if self.eat(byte) { Ok(()) } else { Err(Fault::Syntax) }
    }

    fn date(&mut self) -> Result<i32, Fault> {
        let year = self.two_digits()? * 100 + self.two_digits()?;
        self.separator(b'-')?;
        let month = self.two_digits()?;
        self.separator(b'-')?;
        let day = self.two_digits()?;
        if year == 0 || !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
            return Err(Fault::Range);
        }
        Ok(days_from_civil(year, month, day))
    }

    /// `24:00:00` and a leap second's 60 are valid and mean the next day and the next minute.
    fn time(&mut self) -> Result<i64, Fault> {
        let hour = self.two_digits()?;
        self.separator(b':')?;
        let minute = self.two_digits()?;
        let second = if self.eat(b':') { self.two_digits()? } else { 0 };
        let fraction = if self.eat(b'.') { self.fraction()? } else { 0 };
        let micros = i64::from(hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + fraction;
        if minute > 59 || second > 60 || micros > MICROS_PER_DAY {
            return Err(Fault::Range);
        }
        Ok(micros)
    }

    /// What may follow a whole second.
    fn fraction_and_zone(&mut self, micros: i64) -> Result<i64, Fault> {
        let fraction = if self.eat(b'.') { self.fraction()? } else { 0 };
        let offset = self.zone()?;
        self.end()?;
        Ok(micros + fraction - offset)
    }

    /// At least one digit; the seventh and later ones are cut off.
    fn fraction(&mut self) -> Result<i64, Fault> {
        let (mut micros, mut weight) = (0, 100_000);
        let mut count = 0;
        for byte in self.rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            micros += i64::from(digit) * weight;
            weight /= 10;
            count += 1;
        }
        self.rest = &self.rest[count..];
        if count > 0 { Ok(micros) } else { Err(Fault::Syntax) }
    }

    /// Microseconds to subtract; none means UTC.
    fn zone(&mut self) -> Result<i64, Fault> {
        if self.rest.is_empty() {
            return Ok(0);
        }
        let is_spaced = self.eat(b' ');
        if matches!(self.rest, b"Z" | b"z" | b"UTC") {
            self.rest = &[];
            return Ok(0);
        }
        let sign = match self.rest {
            [b'+', ..] => 1,
            [b'-', ..] if !is_spaced => -1,
            _ => return Err(Fault::Syntax),
        };
        self.rest = &self.rest[1..];
        let hours = self.two_digits()?;
        let minutes = if self.eat(b':') || !self.rest.is_empty() { self.two_digits()? } else { 0 };
        if hours > 15 || minutes > 59 {
            return Err(Fault::Range);
        }
        Ok(sign * i64::from(hours * 3600 + minutes * 60) * MICROS_PER_SECOND)
    }
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar: years begin in March here, so that the leap
/// day is the last day of a year and months have a closed form.
fn days_from_civil(year: u32, month: u32, day: u32) -> i32 {
    const DAYS_TO_1970: i32 = 719_468;
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    i32::try_from(days).map_or(i32::MAX, |days| days - DAYS_TO_1970)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat};
    use proptest::prelude::*;

    use super::*;

    fn micros(text: &str) -> Result<i64, &'static str> {
        parse_timestamp(text).map_err(|error| error.sqlstate)
    }

    #[test]
    fn timestamps_have_several_spellings() {
        let expected = Ok(1_717_228_740_123_456);
        for text in [
            "2024-06-01 07:59:00.123456",
            "2024-06-01T07:59:00.123456Z",
            "2024-06-01t07:59:00.123456789",
            "2024-06-01 07:59:00.123456 UTC",
            "2024-06-01T09:59:00.123456+02:00",
            "2024-06-01T09:59:00.123456+0200",
            "2024-06-01 02:59:00.123456-05",
            " 2024-06-01 07:59:00.123456 ",
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
        assert_eq!(micros("2024-06-01"), Ok(1_717_200_000_000_000));
        assert_eq!(micros("2024-06-01 07:59"), Ok(1_717_228_740_000_000));
        assert_eq!(micros("1969-12-31 23:59:59.9999999"), Ok(-1));
        assert_eq!(micros("2023-12-31 24:00:00"), micros("2024-01-01"));
        assert_eq!(micros("2016-12-31T23:59:60Z"), micros("2017-01-01"));
    }

    #[test]
    fn wrong_timestamps_are_told_apart_from_other_text() {
        for text in [
            "2024-13-01",
            "2023-02-29",
            "1900-02-29",
            "0000-01-01",
            "2024-06-00",
            "2024-06-01 24:00:01",
            "2024-06-01 10:60",
            "2024-06-01 10:00+16",
        ] {
            assert_eq!(micros(text), Err("22008"), "{text}");
        }
        for text in [
            "",
            "now",
            "2024-6-1",
            "2024-06-01X10:00",
            "2024-06-01 10",
            "2024-06-01 10:00:00.",
            "2024-06-01 10:00 Europe/Berlin",
            "20240601",
            "2024-06-01 10:00:00+2",
            "2024-06-01 10:00:00+02:00:00",
        ] {
            assert_eq!(micros(text), Err("22007"), "{text}");
        }
    }

    #[test]
    fn epoch_numbers_are_cut_to_microseconds() {
        assert_eq!(parse_epoch("1717228740", EpochUnit::Seconds), Ok(1_717_228_740_000_000));
        assert_eq!(parse_epoch("1717228740.0990009", EpochUnit::Seconds), Ok(1_717_228_740_099_000));
        assert_eq!(parse_epoch("1.717228740099e9", EpochUnit::Seconds), Ok(1_717_228_740_099_000));
        assert_eq!(parse_epoch("1717228740099", EpochUnit::Millis), Ok(1_717_228_740_099_000));
        assert_eq!(parse_epoch("-1", EpochUnit::Nanos), Ok(-1));
        assert_eq!(parse_epoch("1999", EpochUnit::Nanos), Ok(1));
        assert_eq!(parse_epoch("1e30", EpochUnit::Micros).unwrap_err().sqlstate, "22008");
        assert_eq!(parse_epoch("x", EpochUnit::Micros).unwrap_err().sqlstate, "22007");
    }

    #[test]
    fn times_of_day_are_counted_from_midnight() {
        assert_eq!(parse_time("00:00"), Ok(0));
        assert_eq!(parse_time("23:59:59.999999"), Ok(MICROS_PER_DAY - 1));
        assert_eq!(parse_time("25:00").unwrap_err().sqlstate, "22008");
        assert_eq!(parse_time("12").unwrap_err().sqlstate, "22007");
    }

    proptest! {
        #[test]
        fn timestamps_agree_with_chrono(micros in -62_135_596_800_000_000i64..253_402_300_800_000_000) {
            let text = DateTime::from_timestamp_micros(micros).unwrap().to_rfc3339_opts(SecondsFormat::Micros, true);
            prop_assert_eq!(parse_timestamp(&text), Ok(micros));
        }

        #[test]
        fn dates_agree_with_chrono(year in 0u32..10_000, month in 0u32..14, day in 0u32..33) {
            let expected = NaiveDate::from_ymd_opt(year as i32, month, day).filter(|_| year > 0);
            let expected = expected.map(|date| (date - NaiveDate::from_ymd_opt(1970, 1, 1).unwrap()).num_days() as i32);
            prop_assert_eq!(parse_date(&format!("{year:04}-{month:02}-{day:02}")).ok(), expected);
        }

        #[test]
        fn times_agree_with_chrono(hour in 0u32..24, minute in 0u32..60, second in 0u32..60, micro in 0u32..1_000_000) {
            let expected = NaiveTime::from_hms_micro_opt(hour, minute, second, micro).unwrap() - NaiveTime::MIN;
            let text = format!("{hour:02}:{minute:02}:{second:02}.{micro:06}");
            prop_assert_eq!(parse_time(&text).ok(), expected.num_microseconds());
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in "[-0-9:. TZ+]{0,40}") {
            let _ = (parse_timestamp(&text), parse_date(&text), parse_time(&text));
        }
    }
}
