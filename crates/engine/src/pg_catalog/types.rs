//! Data types: PostgreSQL's numbers and names of them, and which one an Arrow type is.

use arrow::datatypes::{DataType, Field};
use catalog::Column;

/// One row of `pg_type`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeEntry {
    pub(crate) oid: u32,
    /// In the catalog, e.g. `int8`.
    pub(crate) name: &'static str,
    /// In SQL, e.g. `bigint`.
    pub(crate) sql_name: &'static str,
    /// Bytes; −1: varies.
    pub(crate) length: i64,
    pub(crate) kind: &'static str,
    pub(crate) category: &'static str,
    pub(crate) element: u32,
    pub(crate) array: u32,
}

pub(crate) const TYPES: &[TypeEntry] = &[
    entry(16, "bool", "boolean", 1, "b", "B", 0, 1000),
    entry(17, "bytea", "bytea", -1, "b", "U", 0, 1001),
    entry(18, "char", "\"char\"", 1, "b", "Z", 0, 1002),
    entry(19, "name", "name", 64, "b", "S", 18, 1003),
    entry(20, "int8", "bigint", 8, "b", "N", 0, 1016),
    entry(21, "int2", "smallint", 2, "b", "N", 0, 1005),
    entry(22, "int2vector", "int2vector", -1, "b", "A", 21, 1006),
    entry(23, "int4", "integer", 4, "b", "N", 0, 1007),
    entry(24, "regproc", "regproc", 4, "b", "N", 0, 1008),
    entry(25, "text", "text", -1, "b", "S", 0, 1009),
    entry(26, "oid", "oid", 4, "b", "N", 0, 1028),
    entry(27, "tid", "tid", 6, "b", "U", 0, 1010),
    entry(28, "xid", "xid", 4, "b", "U", 0, 1011),
    entry(29, "cid", "cid", 4, "b", "U", 0, 1012),
    entry(30, "oidvector", "oidvector", -1, "b", "A", 26, 1013),
    entry(114, "json", "json", -1, "b", "U", 0, 199),
    entry(142, "xml", "xml", -1, "b", "U", 0, 143),
    entry(199, "_json", "json[]", -1, "b", "A", 114, 0),
    entry(650, "cidr", "cidr", -1, "b", "I", 0, 651),
    entry(700, "float4", "real", 4, "b", "N", 0, 1021),
    entry(701, "float8", "double precision", 8, "b", "N", 0, 1022),
    entry(705, "unknown", "unknown", -2, "p", "X", 0, 0),
    entry(790, "money", "money", 8, "b", "N", 0, 791),
    entry(869, "inet", "inet", -1, "b", "I", 0, 1041),
    entry(1000, "_bool", "boolean[]", -1, "b", "A", 16, 0),
    entry(1001, "_bytea", "bytea[]", -1, "b", "A", 17, 0),
    entry(1002, "_char", "\"char\"[]", -1, "b", "A", 18, 0),
    entry(1003, "_name", "name[]", -1, "b", "A", 19, 0),
    entry(1005, "_int2", "smallint[]", -1, "b", "A", 21, 0),
    entry(1007, "_int4", "integer[]", -1, "b", "A", 23, 0),
    entry(1009, "_text", "text[]", -1, "b", "A", 25, 0),
    entry(1014, "_bpchar", "character[]", -1, "b", "A", 1042, 0),
    entry(1015, "_varchar", "character varying[]", -1, "b", "A", 1043, 0),
    entry(1016, "_int8", "bigint[]", -1, "b", "A", 20, 0),
    entry(1021, "_float4", "real[]", -1, "b", "A", 700, 0),
    entry(1022, "_float8", "double precision[]", -1, "b", "A", 701, 0),
    entry(1028, "_oid", "oid[]", -1, "b", "A", 26, 0),
    entry(1033, "aclitem", "aclitem", 12, "b", "U", 0, 1034),
    entry(1042, "bpchar", "character", -1, "b", "S", 0, 1014),
    entry(1043, "varchar", "character varying", -1, "b", "S", 0, 1015),
    entry(1082, "date", "date", 4, "b", "D", 0, 1182),
    entry(1083, "time", "time without time zone", 8, "b", "D", 0, 1183),
    entry(1114, "timestamp", "timestamp without time zone", 8, "b", "D", 0, 1115),
    entry(1115, "_timestamp", "timestamp without time zone[]", -1, "b", "A", 1114, 0),
    entry(1182, "_date", "date[]", -1, "b", "A", 1082, 0),
    entry(1183, "_time", "time without time zone[]", -1, "b", "A", 1083, 0),
    entry(1184, "timestamptz", "timestamp with time zone", 8, "b", "D", 0, 1185),
    entry(1185, "_timestamptz", "timestamp with time zone[]", -1, "b", "A", 1184, 0),
    entry(1186, "interval", "interval", 16, "b", "T", 0, 1187),
    entry(1187, "_interval", "interval[]", -1, "b", "A", 1186, 0),
    entry(1231, "_numeric", "numeric[]", -1, "b", "A", 1700, 0),
    entry(1266, "timetz", "time with time zone", 12, "b", "D", 0, 1270),
    entry(1560, "bit", "bit", -1, "b", "V", 0, 1561),
    entry(1562, "varbit", "bit varying", -1, "b", "V", 0, 1563),
    entry(1700, "numeric", "numeric", -1, "b", "N", 0, 1231),
    entry(2205, "regclass", "regclass", 4, "b", "N", 0, 2210),
    entry(2206, "regtype", "regtype", 4, "b", "N", 0, 2211),
    entry(2249, "record", "record", -1, "p", "P", 0, 2287),
    entry(2277, "anyarray", "anyarray", -1, "p", "P", 0, 0),
    entry(2278, "void", "void", 4, "p", "P", 0, 0),
    entry(2950, "uuid", "uuid", 16, "b", "U", 0, 2951),
    entry(2951, "_uuid", "uuid[]", -1, "b", "A", 2950, 0),
    entry(3802, "jsonb", "jsonb", -1, "b", "U", 0, 3807),
    entry(3807, "_jsonb", "jsonb[]", -1, "b", "A", 3802, 0),
    entry(4089, "regnamespace", "regnamespace", 4, "b", "N", 0, 4090),
    entry(4096, "regrole", "regrole", 4, "b", "N", 0, 4097),
];

#[expect(clippy::too_many_arguments, reason = "one line a type reads as the table it is")]
const fn entry(
    oid: u32,
    name: &'static str,
    sql_name: &'static str,
    length: i64,
    kind: &'static str,
    category: &'static str,
    element: u32,
    array: u32,
) -> TypeEntry {
    TypeEntry { oid, name, sql_name, length, kind, category, element, array }
}

/// What is shown for a type PostgreSQL does not have.
const TEXT: TypeEntry = entry(25, "text", "text", -1, "b", "S", 0, 1009);

pub(crate) fn by_oid(oid: i64) -> Option<&'static TypeEntry> {
    TYPES.iter().find(|entry| i64::from(entry.oid) == oid)
}

/// By catalog name or SQL name, without modifiers.
pub(crate) fn by_name(name: &str) -> Option<&'static TypeEntry> {
    let name = match name {
        "decimal" => "numeric",
        "float" => "float8",
        "int" => "int4",
        "character varying" => "varchar",
        other => other,
    };
    TYPES.iter().find(|entry| entry.name == name || entry.sql_name == name)
}

/// The type of a column, by its declared name where the Arrow type does not say it.
pub(crate) fn column_type(column: &Column) -> TypeEntry {
    let declared =
        column.type_name.as_deref().and_then(|name| by_name(name.split('(').next().unwrap_or(name).trim()));
    declared.copied().unwrap_or_else(|| of_arrow(&column.data_type))
}

/// The type of an Arrow type.
fn of_arrow(data_type: &DataType) -> TypeEntry {
    let oid = sql::types::pg_type_oid(&Field::new("", data_type.clone(), true));
    by_oid(i64::from(oid)).copied().unwrap_or(TEXT)
}

/// PostgreSQL's `atttypmod`; −1: none.
pub(crate) fn type_modifier(column: &Column) -> i64 {
    let declared = column.type_name.as_deref().and_then(|name| {
        let (base, rest) = name.split_once('(')?;
        let numbers: Vec<i64> =
            rest.trim_end_matches(')').split(',').filter_map(|part| part.trim().parse().ok()).collect();
        Some((base.trim().to_owned(), numbers))
    });
    match (declared, &column.data_type) {
        (Some((base, numbers)), _) if base.contains("char") => {
            numbers.first().map_or(-1, |length| length + 4)
        }
        (Some((base, numbers)), _) if base == "numeric" || base == "decimal" => {
            numeric_modifier(numbers.first().copied().unwrap_or(38), numbers.get(1).copied().unwrap_or(0))
        }
        // Undeclared NUMERIC is shown without digits.
        (None, DataType::Decimal128(38, 10)) => -1,
        (None, DataType::Decimal128(precision, scale)) => {
            numeric_modifier(i64::from(*precision), i64::from(*scale))
        }
        _ => -1,
    }
}

fn numeric_modifier(precision: i64, scale: i64) -> i64 {
    (precision << 16 | (scale & 0x7ff)) + 4
}

/// `format_type(oid, typmod)`.
pub(crate) fn format_type(oid: i64, modifier: Option<i64>) -> String {
    let Some(entry) = by_oid(oid) else { return "???".to_owned() };
    match modifier {
        Some(modifier) if modifier >= 4 => match entry.name {
            "varchar" | "bpchar" => format!("{}({})", entry.sql_name, modifier - 4),
            "numeric" => {
                let digits = modifier - 4;
                format!("numeric({},{})", digits >> 16, digits & 0x7ff)
            }
            _ => entry.sql_name.to_owned(),
        },
        _ => entry.sql_name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_read_as_they_were_declared() {
        let column = |data_type: DataType, name: Option<&str>| Column {
            name: "c".to_owned(),
            data_type,
            nullable: true,
            type_name: name.map(str::to_owned),
            default: None,
        };
        let text =
            |column: &Column| format_type(i64::from(column_type(column).oid), Some(type_modifier(column)));
        assert_eq!(text(&column(DataType::Decimal128(10, 2), None)), "numeric(10,2)");
        assert_eq!(text(&column(DataType::Decimal128(38, 10), None)), "numeric");
        assert_eq!(text(&column(DataType::Utf8View, Some("character varying(7)"))), "character varying(7)");
        assert_eq!(text(&column(DataType::Utf8View, None)), "text");
        assert_eq!(text(&column(DataType::Utf8View, Some("jsonb"))), "jsonb");
    }
}
