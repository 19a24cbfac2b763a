//! A moment in a template's words.

use std::fmt::Write;

use arrow::array::timezone::Tz;
use chrono::{DateTime, Datelike, NaiveDateTime, Offset, TimeZone, Timelike, Weekday};

use super::template::{Case, Field, Piece, Template};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The zone of a column; `None`: TIMESTAMP without one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Zone {
    None,
    Utc,
    Named(Tz),
}

impl Zone {
    /// Seconds that local time is ahead of UTC.
    pub(super) fn offset(self, micros: i64) -> i64 {
        match (self, DateTime::from_timestamp_micros(micros)) {
            (Self::Named(zone), Some(moment)) => {
                i64::from(zone.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc())
            }
            _ => 0,
        }
    }
}

/// A local time with what a template needs to know of its zone.
pub(super) struct Moment {
    local: NaiveDateTime,
    offset: i64,
    zone: Zone,
}

impl Moment {
    /// `None`: beyond the years that have a calendar.
    pub(super) fn new(local_micros: i64, offset: i64, zone: Zone) -> Option<Self> {
        let local = DateTime::from_timestamp_micros(local_micros)?.naive_utc();
        Some(Self { local, offset, zone })
    }

    pub(super) fn write(&self, template: &Template, out: &mut String) -> std::fmt::Result {
        for piece in &template.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Field { field, fill, ordinal } => {
                    let start = out.len();
                    self.write_field(*field, *fill, out)?;
                    if let Some(case) = ordinal {
                        let ending = ordinal_ending(&out[start..]);
                        push_cased(out, ending, *case, 0);
                    }
                }
            }
        }
        Ok(())
    }

    fn write_field(&self, field: Field, fill: bool, out: &mut String) -> std::fmt::Result {
        let local = &self.local;
        let year = i64::from(local.year());
        let iso = local.iso_week();
        let iso_year = i64::from(iso.year());
        let month = local.month0() as usize;
        let micros = local.nanosecond() / 1_000;
        let width = |digits: usize| if fill { 0 } else { digits };
        match field {
            Field::Hour12 => padded(out, i64::from(local.hour12().1), width(2)),
            Field::Hour24 => padded(out, i64::from(local.hour()), width(2)),
            Field::Minute => padded(out, i64::from(local.minute()), width(2)),
            Field::Second => padded(out, i64::from(local.second()), width(2)),
            Field::Millisecond => padded(out, i64::from(micros / 1_000), 3),
            Field::Microsecond => padded(out, i64::from(micros), 6),
            Field::Fraction(digits) => {
                padded(out, i64::from(micros / 10u32.pow(6 - digits)), digits as usize)
            }
            Field::SecondOfDay => padded(out, i64::from(local.num_seconds_from_midnight()), 0),
            Field::HalfDay { case, dots } => {
                let text = match (local.hour() >= 12, dots) {
                    (false, false) => "AM",
                    (false, true) => "A.M.",
                    (true, false) => "PM",
                    (true, true) => "P.M.",
                };
                push_cased(out, text, case, 0);
                Ok(())
            }
            Field::Era { case, dots } => {
                let text = match (year > 0, dots) {
                    (true, false) => "AD",
                    (true, true) => "A.D.",
                    (false, false) => "BC",
                    (false, true) => "B.C.",
                };
                push_cased(out, text, case, 0);
                Ok(())
            }
            Field::YearWithComma => {
                let year = era_year(year);
                write!(out, "{},{:03}", year / 1_000, year % 1_000)
            }
            Field::Year(digits) => year_digits(out, era_year(year), digits, fill),
            Field::IsoYear(digits) => year_digits(out, era_year(iso_year), digits, fill),
            Field::Month => padded(out, i64::from(local.month()), width(2)),
            Field::MonthName(case) => {
                push_cased(out, MONTHS[month], case, width(9));
                Ok(())
            }
            Field::MonthShort(case) => {
                push_cased(out, &MONTHS[month][..3], case, 0);
                Ok(())
            }
            Field::MonthRoman(case) => {
                push_cased(out, ROMAN[month], case, width(4));
                Ok(())
            }
            Field::Day => padded(out, i64::from(local.day()), width(2)),
            Field::DayName(case) => {
                push_cased(out, day_name(local.weekday()), case, width(9));
                Ok(())
            }
            Field::DayShort(case) => {
                push_cased(out, &day_name(local.weekday())[..3], case, 0);
                Ok(())
            }
            Field::DayOfYear => padded(out, i64::from(local.ordinal()), width(3)),
            Field::IsoDayOfYear => {
                let day = (iso.week0()) * 7 + local.weekday().number_from_monday();
                padded(out, i64::from(day), width(3))
            }
            Field::DayOfWeek => padded(out, i64::from(local.weekday().number_from_sunday()), 0),
            Field::IsoDayOfWeek => padded(out, i64::from(local.weekday().number_from_monday()), 0),
            Field::WeekOfMonth => padded(out, i64::from(local.day0() / 7 + 1), 0),
            Field::WeekOfYear => padded(out, i64::from(local.ordinal0() / 7 + 1), width(2)),
            Field::IsoWeek => padded(out, i64::from(iso.week()), width(2)),
            Field::Century => {
                let century = if year > 0 { (year + 99) / 100 } else { year / 100 - 1 };
                padded(out, century, width(2))
            }
            Field::Julian => padded(out, i64::from(local.date().num_days_from_ce()) + 1_721_425, 0),
            Field::Quarter => padded(out, i64::from(local.month0() / 3 + 1), 0),
            Field::ZoneName(case) => {
                self.write_zone_name(case, out);
                Ok(())
            }
            Field::ZoneHour => write!(out, "{}{:02}", self.zone_sign(), self.offset.abs() / 3_600),
            Field::ZoneMinute => write!(out, "{:02}", self.offset.abs() % 3_600 / 60),
            Field::ZoneOffset => self.write_zone_offset(out),
        }
    }

    fn write_zone_name(&self, case: Case, out: &mut String) {
        match self.zone {
            Zone::None => {}
            Zone::Utc => push_cased(out, "UTC", case, 0),
            Zone::Named(zone) => {
                let utc = self.local - chrono::Duration::seconds(self.offset);
                push_cased(out, &zone.offset_from_utc_datetime(&utc).to_string(), case, 0);
            }
        }
    }

    fn write_zone_offset(&self, out: &mut String) -> std::fmt::Result {
        write!(out, "{}{:02}", self.zone_sign(), self.offset.abs() / 3_600)?;
        match self.offset.abs() % 3_600 / 60 {
            0 => Ok(()),
            minutes => write!(out, ":{minutes:02}"),
        }
    }

    fn zone_sign(&self) -> char {
        if self.offset < 0 { '-' } else { '+' }
    }
}

/// The year as people say it: 1 BC is the calendar's year 0.
fn era_year(year: i64) -> i64 {
    if year > 0 { year } else { 1 - year }
}

fn year_digits(out: &mut String, year: i64, digits: u32, fill: bool) -> std::fmt::Result {
    let shown = if digits == 4 { year } else { year % 10i64.pow(digits) };
    padded(out, shown, if fill { 0 } else { digits as usize })
}

fn padded(out: &mut String, value: i64, width: usize) -> std::fmt::Result {
    write!(out, "{value:0width$}")
}

fn day_name(day: Weekday) -> &'static str {
    match day {
        Weekday::Mon => "Monday",
        Weekday::Tue => "Tuesday",
        Weekday::Wed => "Wednesday",
        Weekday::Thu => "Thursday",
        Weekday::Fri => "Friday",
        Weekday::Sat => "Saturday",
        Weekday::Sun => "Sunday",
    }
}

/// Appends an ASCII name in its case, with blanks up to a width.
fn push_cased(out: &mut String, text: &str, case: Case, width: usize) {
    let start = out.len();
    out.push_str(text);
    match case {
        Case::Upper => out[start..].make_ascii_uppercase(),
        Case::Lower => out[start..].make_ascii_lowercase(),
        Case::Capital => {}
    }
    for _ in text.len()..width {
        out.push(' ');
    }
}

/// `ST`, `ND`, `RD` or `TH`, by the last two digits.
fn ordinal_ending(number: &str) -> &'static str {
    let digits = number.trim_end().as_bytes();
    let last = digits.last().copied().unwrap_or(b'0');
    let is_teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    match last {
        b'1' if !is_teen => "ST",
        b'2' if !is_teen => "ND",
        b'3' if !is_teen => "RD",
        _ => "TH",
    }
}
