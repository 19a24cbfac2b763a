//! Arrow types as PostgreSQL types: what RowDescription and ParameterDescription say.

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use pgwire::api::Type;

/// Field metadata key that names the PostgreSQL type where the Arrow type does not say it.
pub const PG_TYPE: &str = "pg_type";

/// The PostgreSQL type of a result column.
#[must_use]
pub(crate) fn pg_type(field: &Field) -> Type {
    match field.metadata().get(PG_TYPE).map(String::as_str) {
        Some("oid") => Type::OID,
        Some("name") => Type::NAME,
        Some("char") => Type::CHAR,
        Some("regclass") => Type::REGCLASS,
        Some("regproc") => Type::REGPROC,
        Some("regtype") => Type::REGTYPE,
        Some("json") => Type::JSON,
        Some("jsonb") => Type::JSONB,
        Some("uuid") => Type::UUID,
        Some("varchar") => Type::VARCHAR,
        Some("bpchar") => Type::BPCHAR,
        Some("int2vector") => Type::INT2_VECTOR,
        Some("oidvector") => Type::OID_VECTOR,
        _ => of_data_type(field.data_type()),
    }
}

/// The PostgreSQL type of an Arrow type without further metadata.
#[must_use]
pub(crate) fn of_data_type(data_type: &DataType) -> Type {
    if let Some(element) = element_type(data_type) {
        return array_of(&pg_type(element));
    }
    match data_type {
        DataType::Boolean => Type::BOOL,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => Type::INT2,
        DataType::Int32 | DataType::UInt16 => Type::INT4,
        DataType::Int64 | DataType::UInt32 => Type::INT8,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Type::NUMERIC,
        DataType::Float16 | DataType::Float32 => Type::FLOAT4,
        DataType::Float64 => Type::FLOAT8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Type::BYTEA
        }
        DataType::Date32 | DataType::Date64 => Type::DATE,
        DataType::Time32(_) | DataType::Time64(_) => Type::TIME,
        DataType::Timestamp(_, None) => Type::TIMESTAMP,
        DataType::Timestamp(_, Some(_)) => Type::TIMESTAMPTZ,
        DataType::Interval(_) | DataType::Duration(_) => Type::INTERVAL,
        DataType::Struct(_) => Type::RECORD,
        // An untyped NULL is text for clients, as in PostgreSQL; so is everything printed as text.
        _ => Type::TEXT,
    }
}

/// The element field of a list type.
#[must_use]
pub(crate) fn element_type(data_type: &DataType) -> Option<&FieldRef> {
    if let DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) = data_type
    {
        Some(field)
    } else {
        None
    }
}

fn array_of(element: &Type) -> Type {
    match *element {
        Type::BOOL => Type::BOOL_ARRAY,
        Type::INT2 => Type::INT2_ARRAY,
        Type::INT4 => Type::INT4_ARRAY,
        Type::INT8 => Type::INT8_ARRAY,
        Type::NUMERIC => Type::NUMERIC_ARRAY,
        Type::FLOAT4 => Type::FLOAT4_ARRAY,
        Type::FLOAT8 => Type::FLOAT8_ARRAY,
        Type::BYTEA => Type::BYTEA_ARRAY,
        Type::DATE => Type::DATE_ARRAY,
        Type::TIME => Type::TIME_ARRAY,
        Type::TIMESTAMP => Type::TIMESTAMP_ARRAY,
        Type::TIMESTAMPTZ => Type::TIMESTAMPTZ_ARRAY,
        Type::INTERVAL => Type::INTERVAL_ARRAY,
        Type::OID => Type::OID_ARRAY,
        Type::NAME => Type::NAME_ARRAY,
        Type::CHAR => Type::CHAR_ARRAY,
        Type::UUID => Type::UUID_ARRAY,
        Type::JSONB => Type::JSONB_ARRAY,
        Type::JSON => Type::JSON_ARRAY,
        Type::VARCHAR => Type::VARCHAR_ARRAY,
        _ => Type::TEXT_ARRAY,
    }
}

/// The Arrow type to plan a parameter of a PostgreSQL type with; `None`: infer it.
#[must_use]
pub(crate) fn arrow_type(pg: &Type) -> Option<DataType> {
    let list = |element: DataType| DataType::List(Field::new("item", element, true).into());
    Some(match *pg {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 | Type::OID => DataType::Int64,
        Type::NUMERIC => DataType::Decimal128(38, 10),
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        Type::TEXT
        | Type::VARCHAR
        | Type::BPCHAR
        | Type::NAME
        | Type::CHAR
        | Type::UUID
        | Type::JSON
        | Type::JSONB => DataType::Utf8View,
        Type::BYTEA => DataType::Binary,
        Type::DATE => DataType::Date32,
        Type::TIME => DataType::Time64(TimeUnit::Microsecond),
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        Type::INT2_ARRAY => list(DataType::Int16),
        Type::INT4_ARRAY => list(DataType::Int32),
        Type::INT8_ARRAY | Type::OID_ARRAY => list(DataType::Int64),
        Type::FLOAT8_ARRAY => list(DataType::Float64),
        Type::TEXT_ARRAY | Type::VARCHAR_ARRAY => list(DataType::Utf8View),
        Type::BOOL_ARRAY => list(DataType::Boolean),
        _ => return None,
    })
}

/// `pg_type.typlen` of a type: bytes of a fixed-width type, −1 for variable width.
#[must_use]
pub(crate) fn type_size(pg: &Type) -> i16 {
    match *pg {
        Type::BOOL | Type::CHAR => 1,
        Type::INT2 => 2,
        Type::INT4
        | Type::FLOAT4
        | Type::DATE
        | Type::OID
        | Type::REGCLASS
        | Type::REGTYPE
        | Type::REGPROC => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => 8,
        Type::INTERVAL | Type::UUID => 16,
        Type::NAME => 64,
        _ => -1,
    }
}

/// `pg_attribute.atttypmod`: precision and scale of a NUMERIC.
#[must_use]
pub(crate) fn type_modifier(data_type: &DataType) -> i32 {
    if let DataType::Decimal128(precision, scale) = data_type {
        ((i32::from(*precision) << 16) | i32::from(*scale)) + 4
    } else {
        -1
    }
}
