//! `extract(field FROM source)` and `date_part(field, source)`.
//!
//! Since PostgreSQL 14 `extract` is a NUMERIC with the digits of its field, and `date_part` a
//! double. DataFusion has one function, which gives an integer and cuts the fraction of a second.
//!
//! | field | type of `extract` |
//! |---|---|
//! | `second` | NUMERIC(8, 6) |
//! | `milliseconds` | NUMERIC(8, 3) |
//! | `epoch` | NUMERIC(20, 6) |
//! | every other | NUMERIC(10, 0) |

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array};
use arrow::compute::{DatePart, cast, date_part};
use arrow::datatypes::{
    DataType, Field as ArrowField, FieldRef, Int32Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::arithmetic::scalar;
use super::refuse;
use crate::error::SqlErrorKind;
use crate::types::type_name;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extract {
    /// `date_part`: the result is a double.
    as_double: bool,
    signature: Signature,
}

/// What `EXTRACT (… FROM …)` is planned as.
pub(super) fn extract() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(new(false)));
    Arc::clone(&FUNCTION)
}

pub(super) fn date_part_function() -> ScalarUDF {
    new(true)
}

fn new(as_double: bool) -> ScalarUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    ScalarUDF::new_from_impl(Extract { as_double, signature })
}

impl ScalarUDFImpl for Extract {
    fn name(&self) -> &'static str {
        if self.as_double { "date_part" } else { "extract" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let undefined = || {
            let types: Vec<String> = arg_types.iter().map(type_name).collect();
            let signature = format!("{}({})", self.name(), types.join(", "));
            Err(refuse(SqlErrorKind::UndefinedFunction { signature }))
        };
        let [name, source] = arg_types else { return undefined() };
        // A cast around the name would hide from the planner that it is a constant.
        let name = if name.is_string() { name.clone() } else { DataType::Utf8View };
        let source = match source {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            DataType::Date32 | DataType::Date64 => DataType::Date32,
            DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
            DataType::Interval(_) | DataType::Duration(_) => DataType::Interval(IntervalUnit::MonthDayNano),
            _ => return undefined(),
        };
        Ok(vec![name, source])
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        internal_err!("the type of extract depends on its field")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let name =
            args.scalar_arguments.first().copied().flatten().and_then(|field| field.try_as_str()).flatten();
        let data_type = match name {
            Some(name) => self.data_type(Field::parse(name, args.arg_fields[1].data_type())?),
            None if self.as_double => DataType::Float64,
            None => return Err(refuse(SqlErrorKind::unsupported("a field that is no constant"))),
        };
        Ok(Arc::new(ArrowField::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(name), source] = args.args.as_slice() else {
            return Err(refuse(SqlErrorKind::unsupported("a field that is no constant")));
        };
        let is_scalar = matches!(source, ColumnarValue::Scalar(_));
        let source = source.to_array(args.number_rows)?;
        let result = match name.try_as_str().flatten() {
            None => arrow::array::new_null_array(args.return_field.data_type(), source.len()),
            Some(name) => {
                let field = Field::parse(name, source.data_type())?;
                self.typed(field, field.values(&source)?)?
            }
        };
        if is_scalar { scalar(&result) } else { Ok(ColumnarValue::Array(result)) }
    }
}

impl Extract {
    fn data_type(&self, field: Field) -> DataType {
        let (precision, scale) = field.digits();
        if self.as_double { DataType::Float64 } else { DataType::Decimal128(precision, scale) }
    }

    fn typed(&self, field: Field, values: Decimal128Array) -> Result<ArrayRef> {
        let (precision, scale) = field.digits();
        if self.as_double {
            let unit = 10f64.powi(i32::from(scale));
            #[expect(clippy::cast_precision_loss, reason = "a double is what date_part gives")]
            let doubles: Float64Array = values.unary(|value| value as f64 / unit);
            return Ok(Arc::new(doubles));
        }
        Ok(Arc::new(values.with_precision_and_scale(precision, scale)?))
    }
}

/// A part of a date, a time or an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Week,
    Month,
    Quarter,
    Year,
    IsoYear,
    Decade,
    Century,
    Millennium,
    Epoch,
}

const NAMES: &[(&str, Field)] = &[
    ("century", Field::Century),
    ("day", Field::Day),
    ("days", Field::Day),
    ("decade", Field::Decade),
    ("dow", Field::DayOfWeek),
    ("doy", Field::DayOfYear),
    ("epoch", Field::Epoch),
    ("hour", Field::Hour),
    ("hours", Field::Hour),
    ("isodow", Field::IsoDayOfWeek),
    ("isoyear", Field::IsoYear),
    ("microsecond", Field::Microseconds),
    ("microseconds", Field::Microseconds),
    ("millennium", Field::Millennium),
    ("millisecond", Field::Milliseconds),
    ("milliseconds", Field::Milliseconds),
    ("minute", Field::Minute),
    ("minutes", Field::Minute),
    ("month", Field::Month),
    ("months", Field::Month),
    ("quarter", Field::Quarter),
    ("second", Field::Second),
    ("seconds", Field::Second),
    ("week", Field::Week),
    ("weeks", Field::Week),
    ("year", Field::Year),
    ("years", Field::Year),
];

impl Field {
    fn parse(name: &str, source: &DataType) -> Result<Self> {
        let lower = name.to_lowercase();
        let Some((_, field)) = NAMES.iter().find(|(known, _)| *known == lower) else {
            let message = format!("unit \"{lower}\" not recognized for type {}", type_name(source));
            return Err(refuse(SqlErrorKind::InvalidArgument { message }));
        };
        let fits = match source {
            DataType::Date32 => !field.is_of_time() || *field == Self::Epoch,
            DataType::Time64(_) => field.is_of_time(),
            DataType::Interval(_) => !matches!(
                field,
                Self::DayOfWeek | Self::IsoDayOfWeek | Self::DayOfYear | Self::Week | Self::IsoYear
            ),
            _ => true,
        };
        if fits {
            return Ok(*field);
        }
        let feature = format!("unit \"{lower}\" for type {}", type_name(source));
        Err(refuse(SqlErrorKind::unsupported(feature)))
    }

    fn is_of_time(self) -> bool {
        matches!(
            self,
            Self::Microseconds | Self::Milliseconds | Self::Second | Self::Minute | Self::Hour | Self::Epoch
        )
    }

    /// Precision and scale of the result.
    fn digits(self) -> (u8, i8) {
        match self {
            Self::Second => (8, 6),
            Self::Milliseconds => (8, 3),
            Self::Epoch => (20, 6),
            Self::Microseconds
            | Self::Minute
            | Self::Hour
            | Self::Day
            | Self::DayOfWeek
            | Self::IsoDayOfWeek
            | Self::DayOfYear
            | Self::Week
            | Self::Month
            | Self::Quarter
            | Self::Year
            | Self::IsoYear
            | Self::Decade
            | Self::Century
            | Self::Millennium => (10, 0),
        }
    }

    /// The part of every value, in units of its last digit.
    fn values(self, source: &dyn Array) -> Result<Decimal128Array> {
        if let DataType::Interval(_) = source.data_type() {
            let intervals = source.as_primitive::<IntervalMonthDayNanoType>();
            return Ok(intervals
                .unary(|value| self.of_interval(value.months, value.days, value.nanoseconds / 1_000)));
        }
        if self == Self::Epoch || self.is_of_time() {
            return self.of_clock(source);
        }
        let part = match self {
            Self::Day => DatePart::Day,
            Self::DayOfWeek => DatePart::DayOfWeekSunday0,
            Self::IsoDayOfWeek => DatePart::DayOfWeekMonday1,
            Self::DayOfYear => DatePart::DayOfYear,
            Self::Week => DatePart::Week,
            Self::Month => DatePart::Month,
            Self::Quarter => DatePart::Quarter,
            Self::IsoYear => DatePart::YearISO,
            _ => DatePart::Year,
        };
        let parts = date_part(source, part)?;
        let parts = parts.as_primitive::<Int32Type>();
        Ok(parts.unary(|part| self.of_calendar(i128::from(part))))
    }

    /// Years of the calendar have a 0; people go from 1 BC to 1 AD.
    fn of_calendar(self, part: i128) -> i128 {
        match self {
            Self::Year | Self::IsoYear if part <= 0 => part - 1,
            Self::Decade => part.div_euclid(10),
            Self::Century if part > 0 => (part + 99) / 100,
            Self::Century => part / 100 - 1,
            Self::Millennium if part > 0 => (part + 999) / 1_000,
            Self::Millennium => part / 1_000 - 1,
            _ => part,
        }
    }

    fn of_clock(self, source: &dyn Array) -> Result<Decimal128Array> {
        Ok(match source.data_type() {
            DataType::Date32 => {
                let timestamps = cast(source, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
                timestamps.as_primitive::<TimestampMicrosecondType>().unary(|micros| self.of_micros(micros))
            }
            DataType::Time64(_) => {
                source.as_primitive::<Time64MicrosecondType>().unary(|micros| self.of_micros(micros))
            }
            DataType::Timestamp(_, Some(zone))
                if !matches!(&**zone, "UTC" | "+00:00" | "Z") && self != Self::Epoch =>
            {
                let local = cast(source, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
                local.as_primitive::<TimestampMicrosecondType>().unary(|micros| self.of_micros(micros))
            }
            _ => source.as_primitive::<TimestampMicrosecondType>().unary(|micros| self.of_micros(micros)),
        })
    }

    fn of_micros(self, micros: i64) -> i128 {
        i128::from(match self {
            Self::Epoch => micros,
            Self::Hour => micros.rem_euclid(DAY) / (3_600 * SECOND),
            Self::Minute => micros.rem_euclid(3_600 * SECOND) / (60 * SECOND),
            // Second, millisecond and microsecond are one number with the point at three places.
            _ => micros.rem_euclid(60 * SECOND),
        })
    }

    fn of_interval(self, months: i32, days: i32, micros: i64) -> i128 {
        let years = months / 12;
        i128::from(match self {
            Self::Epoch => {
                // A year has 365.25 days, a month 30.
                let days = i128::from(years) * 36_525 * i128::from(DAY) / 100
                    + i128::from(months % 12) * 30 * i128::from(DAY)
                    + i128::from(days) * i128::from(DAY);
                return days + i128::from(micros);
            }
            Self::Millennium => i64::from(years / 1_000),
            Self::Century => i64::from(years / 100),
            Self::Decade => i64::from(years / 10),
            Self::Year => i64::from(years),
            Self::Quarter => i64::from(months % 12 / 3 + 1),
            Self::Month => i64::from(months % 12),
            Self::Day => i64::from(days),
            Self::Hour => micros / (3_600 * SECOND),
            Self::Minute => micros % (3_600 * SECOND) / (60 * SECOND),
            _ => micros % (60 * SECOND),
        })
    }
}
