//! One column of made-up values.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryBuilder, BooleanArray, PrimitiveArray, StringViewBuilder,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use dataflow::{OptionError, OptionSpec};

use crate::format::{parse_date, parse_decimal, parse_time, parse_timestamp};
use crate::options::{CheckedOptions, optional, parse_duration};
use crate::random::RandomField;

const KIND: OptionSpec = optional("kind", &[], "'random' or 'sequence'");
const START: OptionSpec = optional("start", &[], "first value of a sequence");
const END: OptionSpec = optional("end", &[], "last value of a sequence");
const STEP: OptionSpec = optional("step", &[], "from one value of a sequence to the next");
const MIN: OptionSpec = optional("min", &[], "least random value");
const MAX: OptionSpec = optional("max", &[], "greatest random value");
const LENGTH: OptionSpec = optional("length", &[], "of random text and bytes, default 16");
const NULL_FRACTION: OptionSpec =
    optional("null_fraction", &["null_rate", "null-rate"], "share of rows that are NULL, default 0");

pub(super) const COLUMN_OPTIONS: &[OptionSpec] = &[KIND, START, END, STEP, MIN, MAX, LENGTH, NULL_FRACTION];

const DAY_MICROS: i64 = 86_400_000_000;
/// 2024-01-01
const START_DAY: i64 = 19_723;

/// Makes the values of one column.
#[derive(Debug)]
pub(super) struct Column {
    values: Values,
    is_null: RandomField,
    null_fraction: f64,
}

#[derive(Debug)]
enum Values {
    Boolean(RandomField),
    /// Integers, and types that are integers underneath.
    Integer(Integers),
    Decimal(Integers),
    Float {
        random: RandomField,
        min: f64,
        max: f64,
    },
    Text {
        random: RandomField,
        length: usize,
    },
    TextSequence(Integers),
    Uuid([RandomField; 3]),
    Bytes {
        random: RandomField,
        length: usize,
    },
}

#[derive(Debug, Clone, Copy)]
enum Integers {
    Random { random: RandomField, min: i64, max: i64 },
    Sequence { start: i64, step: i64, end: Option<i64> },
}

impl Integers {
    /// Value of a row. A sequence without end starts again from the other end of the type.
    #[inline]
    fn value(self, row: i64) -> i64 {
        match self {
            Self::Random { random, min, max } => {
                let span = max.wrapping_sub(min).cast_unsigned();
                // Two draws where 53 bits do not reach.
                let bits = if span >= 1 << 53 {
                    random.bits(row) << 11 | random.bits(!row) & 0x7FF
                } else {
                    random.bits(row)
                };
                let offset = span.checked_add(1).map_or(bits, |count| bits % count);
                min.wrapping_add(offset.cast_signed())
            }
            Self::Sequence { start, step, .. } => start.wrapping_add(step.wrapping_mul(row)),
        }
    }
}

impl Column {
    /// Reads the options of a column. Timestamps follow `rate` unless they have options.
    #[expect(clippy::wildcard_enum_match_arm, reason = "few of the Arrow types have a SQL type")]
    pub(super) fn new(
        field: &Field,
        idx: usize,
        seed: u64,
        rate: Option<f64>,
        options: &CheckedOptions,
    ) -> Result<Self, OptionError> {
        let random = |number: u64| RandomField::new(seed, idx as u64 * 8 + number);
        let null_fraction = options.parse(NULL_FRACTION.name, "expected a number from 0 to 1", |text| {
            text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction))
        })?;
        let null_fraction = null_fraction.unwrap_or(0.0);
        if null_fraction > 0.0 && !field.is_nullable() {
            return Err(options.refuse(NULL_FRACTION.name, "the column is NOT NULL"));
        }
        let plan = Plan { field, options, random: random(0) };
        let values = match field.data_type() {
            DataType::Boolean => plan.takes(&[], Values::Boolean(random(0)))?,
            DataType::Int16 => Values::Integer(plan.numbers(i64::from(i16::MIN), i64::from(i16::MAX))?),
            DataType::Int32 => Values::Integer(plan.numbers(i64::from(i32::MIN), i64::from(i32::MAX))?),
            DataType::Int64 => Values::Integer(plan.numbers(i64::MIN, i64::MAX)?),
            DataType::Float32 | DataType::Float64 => plan.floats()?,
            DataType::Decimal128(precision, scale) => Values::Decimal(plan.decimals(*precision, *scale)?),
            DataType::Utf8View => match field.metadata().get("pg_type").map(String::as_str) {
                Some("uuid") => plan.takes(&[], Values::Uuid([random(0), random(1), random(2)]))?,
                None => plan.texts()?,
                Some(other) => return Err(plan.no_values(other)),
            },
            DataType::Binary => Values::Bytes { random: random(0), length: plan.length()? },
            DataType::Date32 => Values::Integer(plan.dates()?),
            DataType::Time64(TimeUnit::Microsecond) => Values::Integer(plan.times()?),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Values::Integer(plan.timestamps(rate)?),
            other => return Err(plan.no_values(&other.to_string())),
        };
        Ok(Self { values, is_null: random(7), null_fraction })
    }

    /// How many rows there are before a sequence ends.
    pub(super) fn rows(&self) -> Option<i64> {
        let (Values::Integer(Integers::Sequence { start, step, end })
        | Values::Decimal(Integers::Sequence { start, step, end })
        | Values::TextSequence(Integers::Sequence { start, step, end })) = self.values
        else {
            return None;
        };
        let distance = i128::from(end?) - i128::from(start);
        let rows = distance / i128::from(step) + 1;
        Some(if distance.signum() * i128::from(step).signum() < 0 {
            0
        } else {
            i64::try_from(rows).unwrap_or(i64::MAX)
        })
    }

    /// The values of rows `start..end`.
    pub(super) fn array(&self, data_type: &DataType, start: i64, end: i64) -> ArrayRef {
        match &self.values {
            Values::Boolean(random) => Arc::new(
                (start..end)
                    .map(|row| self.unless_null(row, || random.bits(row) & 1 == 1))
                    .collect::<BooleanArray>(),
            ),
            Values::Integer(integers) => self.integers(*integers, data_type, start, end),
            Values::Decimal(integers) => {
                self.primitive::<Decimal128Type>(data_type, start, end, |row| i128::from(integers.value(row)))
            }
            Values::Float { random, min, max } => {
                let value = |row| min + random.fraction(row) * (max - min);
                if *data_type == DataType::Float32 {
                    self.primitive::<Float32Type>(data_type, start, end, |row| value(row) as f32)
                } else {
                    self.primitive::<Float64Type>(data_type, start, end, value)
                }
            }
            Values::Text { random, length } => {
                self.texts(start, end, |row, text| put_letters(*random, row, *length, text))
            }
            Values::TextSequence(integers) => {
                self.texts(start, end, |row, text| text.push_str(&integers.value(row).to_string()))
            }
            Values::Uuid(parts) => self.texts(start, end, |row, text| put_uuid(parts, row, text)),
            Values::Bytes { random, length } => {
                let mut builder = BinaryBuilder::new();
                for row in start..end {
                    let bytes = |idx: usize| random.bits(mix_row(row, idx)).to_le_bytes()[0];
                    builder.append_option(
                        self.unless_null(row, || (0..*length).map(bytes).collect::<Vec<u8>>()),
                    );
                }
                Arc::new(builder.finish())
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the types that `new` makes integers of")]
    fn integers(&self, integers: Integers, data_type: &DataType, start: i64, end: i64) -> ArrayRef {
        match data_type {
            DataType::Int16 => {
                self.primitive::<Int16Type>(data_type, start, end, |row| integers.value(row) as i16)
            }
            DataType::Int32 => {
                self.primitive::<Int32Type>(data_type, start, end, |row| integers.value(row) as i32)
            }
            DataType::Date32 => {
                self.primitive::<Date32Type>(data_type, start, end, |row| integers.value(row) as i32)
            }
            DataType::Time64(_) => {
                self.primitive::<Time64MicrosecondType>(data_type, start, end, |row| integers.value(row))
            }
            DataType::Timestamp(..) => {
                self.primitive::<TimestampMicrosecondType>(data_type, start, end, |row| integers.value(row))
            }
            _ => self.primitive::<Int64Type>(data_type, start, end, |row| integers.value(row)),
        }
    }

    #[inline]
    fn unless_null<T>(&self, row: i64, value: impl FnOnce() -> T) -> Option<T> {
        let is_null = self.null_fraction > 0.0 && self.is_null.fraction(row) < self.null_fraction;
        (!is_null).then(value)
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        data_type: &DataType,
        start: i64,
        end: i64,
        value: impl Fn(i64) -> T::Native,
    ) -> ArrayRef {
        let array: PrimitiveArray<T> = if self.null_fraction > 0.0 {
            (start..end).map(|row| self.unless_null(row, || value(row))).collect()
        } else {
            PrimitiveArray::from_iter_values((start..end).map(value))
        };
        Arc::new(array.with_data_type(data_type.clone()))
    }

    fn texts(&self, start: i64, end: i64, put: impl Fn(i64, &mut String)) -> ArrayRef {
        let mut builder = StringViewBuilder::new();
        let mut text = String::new();
        for row in start..end {
            text.clear();
            put(row, &mut text);
            builder.append_option(self.unless_null(row, || text.as_str()));
        }
        Arc::new(builder.finish())
    }
}

/// An index for part `idx` of a row.
fn mix_row(row: i64, idx: usize) -> i64 {
    row.wrapping_mul(0x1_0000_0001).wrapping_add((idx as i64) << 20)
}

fn put_letters(random: RandomField, row: i64, length: usize, text: &mut String) {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    const LETTERS_PER_DRAW: usize = 10;
    for first in (0..length).step_by(LETTERS_PER_DRAW) {
        let mut bits = random.bits(mix_row(row, first));
        for _ in first..length.min(first + LETTERS_PER_DRAW) {
            text.push(char::from(LETTERS[(bits & 31) as usize]));
            bits >>= 5;
        }
    }
}

/// A version 4 UUID.
fn put_uuid(parts: &[RandomField; 3], row: i64, text: &mut String) {
    let bits = parts.iter().fold(0u128, |bits, part| bits << 43 | u128::from(part.bits(row)));
    let bits = bits & !(0xF << 76 | 0xC << 60) | 4 << 76 | 8 << 60;
    let hex = format!("{bits:032x}");
    text.push_str(&[&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"));
}

/// Reads the options of one column.
struct Plan<'a> {
    field: &'a Field,
    options: &'a CheckedOptions,
    random: RandomField,
}

impl Plan<'_> {
    fn no_values(&self, type_name: &str) -> OptionError {
        OptionError::Other(format!(
            "connector \"datagen\" has no values for column \"{}\" of type {type_name}",
            self.field.name()
        ))
    }

    /// Refuses all options except for these and `null_fraction`.
    fn takes<T>(&self, names: &[OptionSpec], value: T) -> Result<T, OptionError> {
        let is_known = |spec: &OptionSpec| {
            spec.name == NULL_FRACTION.name || names.iter().any(|known| known.name == spec.name)
        };
        match COLUMN_OPTIONS.iter().find(|spec| self.options.text(spec.name).is_some() && !is_known(spec)) {
            Some(spec) => Err(OptionError::Other(format!(
                "column \"{}\" has no option \"{}\"",
                self.field.name(),
                spec.name
            ))),
            None => Ok(value),
        }
    }

    fn is_sequence(&self) -> Result<Option<bool>, OptionError> {
        self.options.one_of(KIND.name, &[("random", false), ("sequence", true)])
    }

    fn length(&self) -> Result<usize, OptionError> {
        const LENGTH_MAX: i64 = 1 << 20;
        self.takes(&[KIND, LENGTH], ())?;
        let length = self.options.integer(LENGTH.name, 0)?.unwrap_or(16);
        if length > LENGTH_MAX {
            return Err(self.options.refuse(LENGTH.name, format!("expected at most {LENGTH_MAX}")));
        }
        Ok(usize::try_from(length).unwrap_or(0))
    }

    fn numbers(&self, least: i64, greatest: i64) -> Result<Integers, OptionError> {
        let read = |text: &str| {
            text.replace('_', "").parse().ok().filter(|number| (least..=greatest).contains(number))
        };
        let default =
            Defaults { min: 0, max: greatest.min(1_000_000), start: 0, step: 1, is_sequence: false };
        self.integers("a whole number of the column's type", read, read, default)
    }

    fn decimals(&self, precision: u8, scale: i8) -> Result<Integers, OptionError> {
        let read = |text: &str| {
            parse_decimal(text, precision.min(18), scale).ok().and_then(|number| i64::try_from(number).ok())
        };
        let unit = 10i64.pow(u32::from(scale.clamp(0, 12).unsigned_abs()));
        let greatest = 10i64.pow(u32::from(precision.min(18))) - 1;
        let default = Defaults {
            min: 0,
            max: greatest.min(1_000_000 * unit),
            start: 0,
            step: unit,
            is_sequence: false,
        };
        self.integers("a number of the column's type with at most 18 digits", read, read, default)
    }

    fn dates(&self) -> Result<Integers, OptionError> {
        let read = |text: &str| parse_date(text).ok().map(i64::from);
        let default =
            Defaults { min: START_DAY, max: START_DAY + 365, start: START_DAY, step: 1, is_sequence: false };
        self.integers("a date, or a number of days", read, |text| text.parse().ok(), default)
    }

    fn times(&self) -> Result<Integers, OptionError> {
        let read = |text: &str| parse_time(text).ok();
        let default = Defaults { min: 0, max: DAY_MICROS - 1, start: 0, step: 1_000_000, is_sequence: false };
        let times = self.integers("a time of day", read, duration_micros, default)?;
        // A time of day cannot go on for ever.
        if matches!(times, Integers::Sequence { .. }) {
            return Err(self.options.refuse(KIND.name, "a time of day is always 'random'"));
        }
        Ok(times)
    }

    fn timestamps(&self, rate: Option<f64>) -> Result<Integers, OptionError> {
        let read = |text: &str| parse_timestamp(text).ok();
        let default = Defaults {
            min: START_DAY * DAY_MICROS,
            max: (START_DAY + 1) * DAY_MICROS,
            start: START_DAY * DAY_MICROS,
            step: rate.map_or(1_000_000, |rate| ((1e6 / rate) as i64).max(1)),
            is_sequence: self.options.text(MIN.name).is_none() && self.options.text(MAX.name).is_none(),
        };
        self.integers("a timestamp, or a duration such as '10 ms'", read, duration_micros, default)
    }

    fn integers(
        &self,
        expected: &str,
        read: impl Fn(&str) -> Option<i64>,
        read_step: impl Fn(&str) -> Option<i64>,
        default: Defaults,
    ) -> Result<Integers, OptionError> {
        let expected = format!("expected {expected}");
        let value = |name: &str| self.options.parse(name, &expected, &read);
        if self.is_sequence()?.unwrap_or(default.is_sequence) {
            self.takes(&[KIND, START, END, STEP], ())?;
            let step = self.options.parse(STEP.name, &expected, read_step)?.unwrap_or(default.step);
            if step == 0 {
                return Err(self.options.refuse(STEP.name, "expected a step that is not zero"));
            }
            return Ok(Integers::Sequence {
                start: value(START.name)?.unwrap_or(default.start),
                step,
                end: value(END.name)?,
            });
        }
        self.takes(&[KIND, MIN, MAX], ())?;
        let (given_min, given_max) = (value(MIN.name)?, value(MAX.name)?);
        let min = given_min.unwrap_or_else(|| default.min.min(given_max.unwrap_or(default.min)));
        let max = given_max.unwrap_or_else(|| default.max.max(min));
        if min > max {
            return Err(self.options.refuse(MAX.name, "expected at least min"));
        }
        Ok(Integers::Random { random: self.random, min, max })
    }

    fn floats(&self) -> Result<Values, OptionError> {
        self.takes(&[KIND, MIN, MAX], ())?;
        let value = |name: &str| {
            self.options.parse(name, "expected a number", |text| {
                text.parse::<f64>().ok().filter(|number| number.is_finite())
            })
        };
        let min = value(MIN.name)?.unwrap_or(0.0);
        let max = value(MAX.name)?.unwrap_or(min.max(1.0));
        if self.is_sequence()? == Some(true) {
            return Err(self.options.refuse(KIND.name, "a floating-point number is always 'random'"));
        }
        if min > max {
            return Err(self.options.refuse(MAX.name, "expected at least min"));
        }
        Ok(Values::Float { random: self.random, min, max })
    }

    fn texts(&self) -> Result<Values, OptionError> {
        if self.is_sequence()? == Some(true) {
            return self.numbers(i64::MIN, i64::MAX).map(Values::TextSequence);
        }
        Ok(Values::Text { random: self.random, length: self.length()? })
    }
}

/// What holds where no option is given.
struct Defaults {
    min: i64,
    max: i64,
    start: i64,
    step: i64,
    is_sequence: bool,
}

fn duration_micros(text: &str) -> Option<i64> {
    parse_duration(text).and_then(|duration| i64::try_from(duration.as_micros()).ok())
}
