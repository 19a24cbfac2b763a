//! The types a view or table can have, and what the others become.
//!
//! DataFusion computes in more types than SQL has: unsigned integers, strings in three layouts,
//! timestamps in four units. A column is stored in the one that PostgreSQL's type stands for.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

/// The type a column of this type is stored in.
pub(crate) fn storage_type(data_type: &DataType) -> DataType {
    match data_type {
        // A bare NULL is text, as in PostgreSQL.
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Decimal256(_, scale) => DataType::Decimal128(38, (*scale).min(38)),
        DataType::Timestamp(_, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "UTC".into()))
        }
        DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Interval(_) | DataType::Duration(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Dictionary(_, value) => storage_type(value),
        other => other.clone(),
    }
}
