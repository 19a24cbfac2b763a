//! SQL types and the Arrow types behind them.
//!
//! | SQL | Arrow | `pg_type` |
//! |---|---|---|
//! | SMALLINT, INTEGER, BIGINT | Int16, Int32, Int64 | |
//! | REAL, DOUBLE PRECISION | Float32, Float64 | |
//! | NUMERIC(p, s), NUMERIC | Decimal128(p, s), Decimal128(38, 10) | |
//! | TEXT, VARCHAR(n), CHAR(n) | `Utf8View` | |
//! | BYTEA | Binary | |
//! | DATE, TIME, TIMESTAMP, TIMESTAMPTZ | Date32, Time64(µs), Timestamp(µs), Timestamp(µs, UTC) | |
//! | INTERVAL | Interval(MonthDayNano) | |
//! | JSON, JSONB, UUID, NAME | `Utf8View` | json, jsonb, uuid, name |
//! | OID | Int64 | oid |
//! | T[] | List(T) | |
//!
//! Flink's and RisingWave's names (`STRING`, `BYTES`, `TIMESTAMP_LTZ`, `TIMESTAMP(3)` …) mean the
//! nearest of these. A length in VARCHAR(n) is kept in the type's name: assignments check
//! it, casts are cut by the planner.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "Arrow's and sqlparser's types list what every database knows"
)]

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::planner::TypePlanner;
use sqlparser::ast::{self, ArrayElemTypeDef, CharacterLength, ExactNumberInfo, TimezoneInfo};

use crate::error::{SqlError, SqlErrorKind};
use crate::names::folded;

/// Field metadata key that names the PostgreSQL type where the Arrow type does not say it.
pub const PG_TYPE: &str = "pg_type";

/// Digits, and digits behind the point, of a NUMERIC without any.
const NUMERIC_DEFAULT: DataType = DataType::Decimal128(38, 10);
const NUMERIC_PRECISION_MAX: u64 = 38;

/// What a SQL type is in Arrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnType {
    pub data_type: DataType,
    /// Value of the field metadata [`PG_TYPE`].
    pub pg_type: Option<&'static str>,
    /// PostgreSQL's name of the type where the Arrow type does not say it, e.g.
    /// `character varying(10)`.
    pub type_name: Option<String>,
}

impl ColumnType {
    fn plain(data_type: DataType) -> Self {
        Self { data_type, pg_type: None, type_name: None }
    }

    fn named(data_type: DataType, pg_type: &'static str) -> Self {
        Self { data_type, pg_type: Some(pg_type), type_name: Some(pg_type.to_owned()) }
    }

    /// A nullable field of this type.
    #[must_use]
    pub fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.data_type.clone(), true);
        match self.pg_type {
            Some(pg_type) => field.with_metadata(HashMap::from([(PG_TYPE.to_owned(), pg_type.to_owned())])),
            None => field,
        }
    }
}

/// The Arrow type of a SQL type; 42704 for a name that is no type, 0A000 for one we do not have.
pub fn column_type(sql: &ast::DataType) -> Result<ColumnType, SqlError> {
    use ast::DataType as Sql;
    let data_type = match sql {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::TinyInt(_) | Sql::SmallInt(_) | Sql::Int2(_) => DataType::Int16,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) => DataType::Int32,
        Sql::BigInt(_) | Sql::Int8(_) => DataType::Int64,
        Sql::Real | Sql::Float4 => DataType::Float32,
        Sql::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => DataType::Float32,
        Sql::Float(_) | Sql::Float8 | Sql::Double(_) | Sql::DoublePrecision => DataType::Float64,
        Sql::Numeric(info) | Sql::Decimal(info) | Sql::Dec(info) => numeric(info)?,
        Sql::Text | Sql::String(_) => DataType::Utf8View,
        Sql::Varchar(length) | Sql::CharacterVarying(length) | Sql::CharVarying(length) => {
            return Ok(text("character varying", "varchar", length.as_ref()));
        }
        Sql::Char(length) | Sql::Character(length) => {
            return Ok(text("character", "bpchar", length.as_ref()));
        }
        Sql::Bytea | Sql::Bytes(_) | Sql::Binary(_) | Sql::Varbinary(_) => DataType::Binary,
        Sql::Date => DataType::Date32,
        Sql::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            DataType::Time64(TimeUnit::Microsecond)
        }
        Sql::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
        | Sql::TimestampNtz(_)
        | Sql::Datetime(_) => timestamp(),
        Sql::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => timestamptz(),
        Sql::Interval { .. } => DataType::Interval(IntervalUnit::MonthDayNano),
        Sql::JSON => return Ok(ColumnType::named(DataType::Utf8View, "json")),
        Sql::JSONB => return Ok(ColumnType::named(DataType::Utf8View, "jsonb")),
        Sql::Uuid => return Ok(ColumnType::named(DataType::Utf8View, "uuid")),
        Sql::Regclass => return Ok(ColumnType::named(DataType::Int64, "regclass")),
        Sql::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => list(&column_type(element)?),
        Sql::Custom(name, modifiers) => return custom(name, modifiers),
        other => return Err(SqlErrorKind::unsupported(format!("type {other}")).into()),
    };
    Ok(ColumnType::plain(data_type))
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

fn timestamptz() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn list(element: &ColumnType) -> DataType {
    DataType::List(Arc::new(element.field("item")))
}

fn numeric(info: &ExactNumberInfo) -> Result<DataType, SqlError> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(NUMERIC_DEFAULT),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let digits = u8::try_from(precision).ok().filter(|_| (1..=NUMERIC_PRECISION_MAX).contains(&precision));
    let Some(digits) = digits else {
        let message = format!("NUMERIC precision {precision} must be between 1 and {NUMERIC_PRECISION_MAX}");
        return Err(SqlErrorKind::InvalidArgument { message }.into());
    };
    match i8::try_from(scale) {
        Ok(scale) if scale >= 0 && u64::try_from(scale).is_ok_and(|scale| scale <= precision) => {
            Ok(DataType::Decimal128(digits, scale))
        }
        _ => {
            let message = format!("NUMERIC scale {scale} must be between 0 and precision {precision}");
            Err(SqlErrorKind::InvalidArgument { message }.into())
        }
    }
}

fn text(name: &str, pg_type: &'static str, length: Option<&CharacterLength>) -> ColumnType {
    let type_name = match length {
        Some(CharacterLength::IntegerLength { length, .. }) => format!("{name}({length})"),
        Some(CharacterLength::Max) | None => name.to_owned(),
    };
    ColumnType { data_type: DataType::Utf8View, pg_type: Some(pg_type), type_name: Some(type_name) }
}

/// Types sqlparser knows only as names.
fn custom(name: &ast::ObjectName, modifiers: &[String]) -> Result<ColumnType, SqlError> {
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let last = match parts.as_slice() {
        [last] | ["pg_catalog", last] => *last,
        _ => return Err(SqlErrorKind::UndefinedType { name: parts.join(".") }.into()),
    };
    Ok(match last {
        "timestamp_ltz" => ColumnType::plain(timestamptz()),
        "oid" => ColumnType::named(DataType::Int64, "oid"),
        "name" => ColumnType::named(DataType::Utf8View, "name"),
        "regtype" => ColumnType::named(DataType::Int64, "regtype"),
        "regproc" => ColumnType::named(DataType::Int64, "regproc"),
        "int2" => ColumnType::plain(DataType::Int16),
        "int4" => ColumnType::plain(DataType::Int32),
        "int8" => ColumnType::plain(DataType::Int64),
        "float4" => ColumnType::plain(DataType::Float32),
        "float8" => ColumnType::plain(DataType::Float64),
        "bool" => ColumnType::plain(DataType::Boolean),
        "text" => ColumnType::plain(DataType::Utf8View),
        "bpchar" => text("character", "bpchar", None),
        "serial" | "bigserial" | "smallserial" | "money" | "xml" | "inet" | "cidr" | "macaddr"
        | "tsvector" | "tsquery" | "row" | "map" | "struct" | "multiset" | "raw" | "citext" | "hstore" => {
            return Err(SqlErrorKind::unsupported(format!("type {last}")).into());
        }
        _ => {
            let name = match modifiers {
                [] => last.to_owned(),
                _ => format!("{last}({})", modifiers.join(",")),
            };
            return Err(SqlErrorKind::UndefinedType { name }.into());
        }
    })
}

/// Gives DataFusion's planner our types, for CAST and typed literals.
#[derive(Debug, Default, Clone, Copy)]
pub struct SqlTypes;

impl TypePlanner for SqlTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> DataFusionResult<Option<FieldRef>> {
        let column = column_type(sql_type).map_err(|error| DataFusionError::External(Box::new(error)))?;
        // A length is no type of its own for an expression.
        let column = match column.pg_type {
            Some("varchar" | "bpchar") => ColumnType::plain(column.data_type),
            _ => column,
        };
        Ok(Some(Arc::new(column.field(""))))
    }
}

/// PostgreSQL's name of an Arrow type, as in error messages and `pg_typeof`.
#[must_use]
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            format!("{}[]", field_type_name(field))
        }
        DataType::Dictionary(_, value) => type_name(value),
        other => pg_data_type(other).name.to_owned(),
    }
}

/// PostgreSQL's name of a column's type: the metadata [`PG_TYPE`] first.
#[must_use]
pub fn field_type_name(field: &Field) -> String {
    match field.metadata().get(PG_TYPE).map(String::as_str) {
        Some("varchar") => "character varying".to_owned(),
        Some("bpchar") => "character".to_owned(),
        Some(name) => name.to_owned(),
        None => type_name(field.data_type()),
    }
}

/// A row of `pg_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgType {
    pub oid: u32,
    /// OID of the array type with these elements; 0: none.
    pub array_oid: u32,
    /// `pg_type.typname`.
    pub typname: &'static str,
    /// As `format_type` prints it.
    pub name: &'static str,
    /// Bytes; −1: varying.
    pub length: i16,
}

const fn pg(oid: u32, array_oid: u32, typname: &'static str, name: &'static str, length: i16) -> PgType {
    PgType { oid, array_oid, typname, name, length }
}

/// The types values can have.
pub const PG_TYPES: &[PgType] = &[
    pg(16, 1000, "bool", "boolean", 1),
    pg(17, 1001, "bytea", "bytea", -1),
    pg(18, 1002, "char", "\"char\"", 1),
    pg(19, 1003, "name", "name", 64),
    pg(20, 1016, "int8", "bigint", 8),
    pg(21, 1005, "int2", "smallint", 2),
    pg(22, 1006, "int2vector", "int2vector", -1),
    pg(23, 1007, "int4", "integer", 4),
    pg(24, 1008, "regproc", "regproc", 4),
    pg(25, 1009, "text", "text", -1),
    pg(26, 1028, "oid", "oid", 4),
    pg(30, 1013, "oidvector", "oidvector", -1),
    pg(114, 199, "json", "json", -1),
    pg(700, 1021, "float4", "real", 4),
    pg(701, 1022, "float8", "double precision", 8),
    pg(705, 0, "unknown", "unknown", -2),
    pg(1042, 1014, "bpchar", "character", -1),
    pg(1043, 1015, "varchar", "character varying", -1),
    pg(1082, 1182, "date", "date", 4),
    pg(1083, 1183, "time", "time without time zone", 8),
    pg(1114, 1115, "timestamp", "timestamp without time zone", 8),
    pg(1184, 1185, "timestamptz", "timestamp with time zone", 8),
    pg(1186, 1187, "interval", "interval", 16),
    pg(1700, 1231, "numeric", "numeric", -1),
    pg(2205, 2210, "regclass", "regclass", 4),
    pg(2206, 2211, "regtype", "regtype", 4),
    pg(2249, 2287, "record", "record", -1),
    pg(2950, 2951, "uuid", "uuid", 16),
    pg(3802, 3807, "jsonb", "jsonb", -1),
];

/// The type of a value that is no list; for a list see [`pg_type_oid`].
#[must_use]
pub fn pg_type(field: &Field) -> PgType {
    let named = field.metadata().get(PG_TYPE).and_then(|name| PG_TYPES.iter().find(|pg| pg.typname == name));
    named.copied().unwrap_or_else(|| pg_data_type(field.data_type()))
}

/// The OID of a column's type, lists included.
#[must_use]
pub fn pg_type_oid(field: &Field) -> u32 {
    match field.data_type() {
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            pg_type(element).array_oid
        }
        _ => pg_type(field).oid,
    }
}

/// Precision and scale of a NUMERIC as `pg_attribute.atttypmod`; −1: none.
#[must_use]
pub fn type_modifier(data_type: &DataType) -> i32 {
    match data_type {
        DataType::Decimal128(precision, scale) => ((i32::from(*precision) << 16) | i32::from(*scale)) + 4,
        _ => -1,
    }
}

fn pg_data_type(data_type: &DataType) -> PgType {
    let typname = match data_type {
        DataType::Boolean => "bool",
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => "int2",
        DataType::Int32 | DataType::UInt16 => "int4",
        DataType::Int64 | DataType::UInt32 => "int8",
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "numeric",
        DataType::Float16 | DataType::Float32 => "float4",
        DataType::Float64 => "float8",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "bytea"
        }
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(_, None) => "timestamp",
        DataType::Timestamp(_, Some(_)) => "timestamptz",
        DataType::Interval(_) | DataType::Duration(_) => "interval",
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => "record",
        DataType::Null
        | DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..)
        | DataType::Dictionary(..)
        | DataType::RunEndEncoded(..) => "unknown",
    };
    PG_TYPES.iter().find(|pg| pg.typname == typname).copied().unwrap_or(pg(705, 0, "unknown", "unknown", -2))
}

#[cfg(test)]
mod tests {
    use sqlparser::parser::Parser;

    use super::{column_type, type_name};
    use crate::HighwaterDialect;

    fn parse(text: &str) -> String {
        let sql = Parser::new(&HighwaterDialect).try_with_sql(text).unwrap().parse_data_type().unwrap();
        match column_type(&sql) {
            Ok(column) => format!("{} | {}", column.data_type, column.type_name.unwrap_or_default()),
            Err(error) => format!("{} {error}", error.sqlstate()),
        }
    }

    #[test]
    fn names_of_all_dialects_mean_the_nearest_type() {
        for (text, expected) in [
            ("INT", "Int32 | "),
            ("int8", "Int64 | "),
            ("varchar(10)", "Utf8View | character varying(10)"),
            ("STRING", "Utf8View | "),
            ("BYTES", "Binary | "),
            ("NUMERIC", "Decimal128(38, 10) | "),
            ("DECIMAL(10,2)", "Decimal128(10, 2) | "),
            ("NUMERIC(5)", "Decimal128(5, 0) | "),
            ("NUMERIC(39)", "22023 NUMERIC precision 39 must be between 1 and 38"),
            ("NUMERIC(3, 4)", "22023 NUMERIC scale 4 must be between 0 and precision 3"),
            ("TIMESTAMP(3)", "Timestamp(µs) | "),
            ("timestamp with time zone", "Timestamp(µs, \"UTC\") | "),
            ("TIMESTAMP_LTZ(3)", "Timestamp(µs, \"UTC\") | "),
            ("double precision", "Float64 | "),
            ("float(24)", "Float32 | "),
            ("jsonb", "Utf8View | jsonb"),
            ("serial", "0A000 type serial is not supported"),
            ("nope", "42704 type \"nope\" does not exist"),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_list_is_named_by_its_elements() {
        let sql = Parser::new(&HighwaterDialect).try_with_sql("int8[]").unwrap().parse_data_type().unwrap();
        assert_eq!(type_name(&column_type(&sql).unwrap().data_type), "bigint[]");
    }
}
