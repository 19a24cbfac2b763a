//! Intervals as PostgreSQL reads them: `1 day 02:03:04`, `1-2`, `-3.5 hours`, `2 weeks ago`, `P1DT2H`.
//!
//! <https://www.postgresql.org/docs/15/datatype-datetime.html#DATATYPE-INTERVAL-INPUT>. What does
//! not fit a larger unit goes down to smaller ones, as there: `1.5 months` is 1 month 15 days,
//! `1.5 days` 1 day 12 hours. The smallest unit is a microsecond.

use arrow::datatypes::IntervalMonthDayNano;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: f64 = 86_400_000_000.0;

/// Reads an interval; `None`: it is none, or out of range.
#[must_use]
pub fn parse_interval(text: &str) -> Option<IntervalMonthDayNano> {
    let text = text.trim();
    let mut sum = Sum::default();
    match text.strip_prefix('P') {
        Some(iso) => sum.add_iso(iso)?,
        None => sum.add_words(&text.to_ascii_lowercase())?,
    }
    let nanoseconds = sum.micros.checked_mul(1_000)?;
    Some(IntervalMonthDayNano {
        months: i32::try_from(sum.months).ok()?,
        days: i32::try_from(sum.days).ok()?,
        nanoseconds,
    })
}

#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i64,
}

/// A number with its fraction apart; both have its sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

#[derive(Clone, Copy)]
enum Unit {
    /// Of so many microseconds.
    Time(i64),
    Days(i64),
    Months(i64),
}

impl Sum {
    fn add_words(&mut self, text: &str) -> Option<()> {
        let text = text.strip_prefix('@').unwrap_or(text);
        let (text, is_ago) = match text.trim_end().strip_suffix("ago") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let end = rest
                .find(|byte: char| !(byte.is_ascii_digit() || "+-.:".contains(byte)))
                .unwrap_or(rest.len());
            let (value, behind) = rest.split_at(end);
            let behind = behind.trim_start();
            let end = behind.find(|byte: char| !byte.is_ascii_alphabetic()).unwrap_or(behind.len());
            let (unit, behind) = behind.split_at(end);
            if value.contains(':') {
                self.add_clock(value)?;
                // No unit belongs to a time of day: what follows is the next part.
                if !unit.is_empty() {
                    return None;
                }
            } else if let Some((years, months)) = year_and_month(value) {
                if !unit.is_empty() {
                    return None;
                }
                self.add(years, Unit::Months(12))?;
                self.add(months, Unit::Months(1))?;
            } else {
                let unit =
                    if unit.is_empty() && behind.is_empty() { Unit::Time(SECOND) } else { named(unit)? };
                self.add(number(value)?, unit)?;
            }
            rest = behind.trim_start();
        }
        if is_ago {
            (self.months, self.days, self.micros) =
                (self.months.checked_neg()?, self.days.checked_neg()?, self.micros.checked_neg()?);
        }
        Some(())
    }

    /// What follows `P`: `1Y2M3DT4H5M6S`.
    fn add_iso(&mut self, text: &str) -> Option<()> {
        let (date, time) = text.split_once('T').unwrap_or((text, ""));
        if date.is_empty() && time.is_empty() {
            return None;
        }
        for (mut part, is_time) in [(date, false), (time, true)] {
            while !part.is_empty() {
                let end = part.find(|byte: char| byte.is_ascii_alphabetic())?;
                let (value, behind) = part.split_at(end);
                let unit = match (behind.as_bytes().first()?, is_time) {
                    (b'Y', false) => Unit::Months(12),
                    (b'M', false) => Unit::Months(1),
                    (b'W', false) => Unit::Days(7),
                    (b'D', false) => Unit::Days(1),
                    (b'H', true) => Unit::Time(HOUR),
                    (b'M', true) => Unit::Time(MINUTE),
                    (b'S', true) => Unit::Time(SECOND),
                    _ => return None,
                };
                self.add(number(value)?, unit)?;
                part = &behind[1..];
            }
        }
        Some(())
    }

    /// `02:03`, `-02:03:04.5`.
    fn add_clock(&mut self, text: &str) -> Option<()> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let mut parts = digits.split(':');
        let (hours, minutes) = (parts.next()?, parts.next()?);
        let seconds = number(parts.next().unwrap_or("0"))?;
        let minutes: i64 = minutes.parse().ok()?;
        if parts.next().is_some() || minutes >= 60 || !(0..60).contains(&seconds.whole) || minutes < 0 {
            return None;
        }
        let micros = hours
            .parse::<i64>()
            .ok()
            .filter(|hours| *hours >= 0)?
            .checked_mul(HOUR)?
            .checked_add(minutes * MINUTE + seconds.whole * SECOND + micros(seconds.fraction, SECOND))?;
        self.micros = self.micros.checked_add(sign * micros)?;
        Some(())
    }

    fn add(&mut self, number: Number, unit: Unit) -> Option<()> {
        let Number { whole, fraction } = number;
        match unit {
            Unit::Time(size) => {
                let whole = whole.checked_mul(size)?;
                self.micros = self.micros.checked_add(whole)?.checked_add(micros(fraction, size))?;
            }
            Unit::Days(size) => {
                self.days = self.days.checked_add(whole.checked_mul(size)?)?;
                self.add_days(fraction * size as f64)?;
            }
            Unit::Months(size) => {
                let part = fraction * size as f64;
                let months = whole.checked_mul(size)?.checked_add(part.trunc() as i64)?;
                self.months = self.months.checked_add(months)?;
                self.add_days(part.fract() * 30.0)?;
            }
        }
        Some(())
    }

    fn add_days(&mut self, days: f64) -> Option<()> {
        self.days = self.days.checked_add(days.trunc() as i64)?;
        self.micros = self.micros.checked_add((days.fract() * DAY).round() as i64)?;
        Some(())
    }
}

fn micros(fraction: f64, unit: i64) -> i64 {
    (fraction * unit as f64).round() as i64
}

fn number(text: &str) -> Option<Number> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
    Some(Number { whole: sign * whole, fraction: sign as f64 * fraction })
}

/// `1-2`: years and months.
fn year_and_month(text: &str) -> Option<(Number, Number)> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (years, months) = digits.split_once('-')?;
    let part = |text: &str| Some(Number { whole: sign * text.parse::<u32>().ok()? as i64, fraction: 0.0 });
    Some((part(years)?, part(months)?))
}

fn named(unit: &str) -> Option<Unit> {
    Some(match unit {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => Unit::Time(1),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => {
            Unit::Time(1_000)
        }
        "second" | "seconds" | "s" | "sec" | "secs" => Unit::Time(SECOND),
        "minute" | "minutes" | "m" | "min" | "mins" => Unit::Time(MINUTE),
        "hour" | "hours" | "h" | "hr" | "hrs" => Unit::Time(HOUR),
        "day" | "days" | "d" => Unit::Days(1),
        "week" | "weeks" | "w" => Unit::Days(7),
        "month" | "months" | "mon" | "mons" => Unit::Months(1),
        "year" | "years" | "y" | "yr" | "yrs" => Unit::Months(12),
        "decade" | "decades" | "dec" | "decs" => Unit::Months(120),
        "century" | "centuries" | "c" | "cent" => Unit::Months(1_200),
        "millennium" | "millennia" | "mil" | "mils" => Unit::Months(12_000),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::parse_interval;

    #[test]
    fn intervals_are_read_as_postgresql_reads_them() {
        let second = 1_000_000_000_i64;
        for (text, expected) in [
            ("1 day 02:03:04", (0, 1, 7_384 * second)),
            ("-1 day +02:00", (0, -1, 7_200 * second)),
            ("1 day -02:00:00.5", (0, 1, -7_200 * second - second / 2)),
            ("10", (0, 0, 10 * second)),
            ("1.5", (0, 0, 3 * second / 2)),
            ("1-2", (14, 0, 0)),
            ("-1-2 3 days", (-14, 3, 0)),
            ("1.5 months", (1, 15, 0)),
            ("1.5 years", (18, 0, 0)),
            ("1.5 days", (0, 1, 43_200 * second)),
            ("1.5 weeks", (0, 10, 43_200 * second)),
            ("2 weeks ago", (0, -14, 0)),
            ("@ 1 minute 1 sec", (0, 0, 61 * second)),
            ("10seconds", (0, 0, 10 * second)),
            ("1h30m", (0, 0, 5_400 * second)),
            ("0.1 s", (0, 0, second / 10)),
            ("100 ms", (0, 0, second / 10)),
            ("3 us", (0, 0, 3_000)),
            ("P1Y2M3DT4H5M6S", (14, 3, 14_706 * second)),
            ("PT0.5S", (0, 0, second / 2)),
            ("1 SECOND", (0, 0, second)),
        ] {
            let value = parse_interval(text).map(|value| (value.months, value.days, value.nanoseconds));
            assert_eq!(value, Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for text in [
            "",
            "day",
            "1 fortnight",
            "1:60",
            "1:00:60",
            "1 2",
            "P",
            "P1H",
            "1 day ago 2",
            "--1 day",
            "1..5 days",
            "99999999999 years",
            "1:2:3:4",
            "1 day x",
            "é",
        ] {
            assert_eq!(parse_interval(text), None, "{text}");
        }
    }
}
