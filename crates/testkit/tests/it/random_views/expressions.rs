//! Random expressions over columns with types.

#![expect(clippy::wildcard_enum_match_arm, reason = "what holds for most types of a generator")]

use testkit::crash::Random;

/// The type of a column, as far as the choice of expressions depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// Small integers.
    Int,
    /// Any bigint, up to its ends.
    Big,
    Numeric,
    /// Quarters, NaN and infinities: their sums are exact in any order. No −0, which batch groups apart
    /// from 0.
    Float,
    /// Any number, up to the ends of a double: not summed, because batch rounds in the order of the
    /// rows.
    Extreme,
    /// A double that batch may round in another way: only shown.
    Rounded,
    Text,
    Bool,
    Timestamp,
}

pub(super) const KEY_TYPES: &[Type] = &[
    Type::Int,
    Type::Big,
    Type::Numeric,
    Type::Float,
    Type::Extreme,
    Type::Text,
    Type::Bool,
    Type::Timestamp,
];

/// A column of a relation.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) of: Type,
}

/// Columns that expressions may use.
pub(super) struct Scope<'a> {
    pub(super) columns: &'a [Column],
    pub(super) random: &'a mut Random,
}

impl Scope<'_> {
    fn column(&mut self, of: Type) -> Option<String> {
        let fitting: Vec<&Column> = self.columns.iter().filter(|column| column.of == of).collect();
        if fitting.is_empty() { None } else { Some(self.random.pick(&fitting).name.clone()) }
    }

    /// An expression of a type, from a column of that type where there is one.
    pub(super) fn expression(&mut self, of: Type) -> String {
        let Some(column) = self.column(of) else { return self.without_column(of) };
        if self.random.one_in(2) {
            return column;
        }
        let forms: &[&str] = match of {
            Type::Int => &[
                "{c} % 3",
                "{c} + 1",
                "-{c}",
                "coalesce({c}, 0)",
                "nullif({c}, 2)",
                "abs({c})",
                "CASE WHEN {c} > 1 THEN {c} ELSE 7 END",
                "{c} * {c}",
            ],
            Type::Big => &["{c} / 2", "{c} % 5", "coalesce({c}, 3)", "nullif({c}, 0)", "greatest({c}, 10)"],
            Type::Numeric => &["{c} * 2", "{c} + 1.5", "round({c}, 1)", "coalesce({c}, 0.25)", "-{c}"],
            Type::Float => &[
                "{c} * 2",
                "{c} + CAST(0.5 AS DOUBLE PRECISION)",
                "coalesce({c}, CAST(1.25 AS DOUBLE PRECISION))",
                "abs({c})",
            ],
            Type::Extreme => &["coalesce({c}, CAST(0.5 AS DOUBLE PRECISION))", "abs({c})", "nullif({c}, 1)"],
            Type::Rounded => &["{c}"],
            Type::Text => &[
                "upper({c})",
                "{c} || 'x'",
                "coalesce({c}, '?')",
                "nullif({c}, '')",
                "substr({c}, 1, 1)",
                "trim({c})",
            ],
            Type::Bool => &["NOT {c}", "coalesce({c}, false)", "{c} IS TRUE"],
            Type::Timestamp => &[
                "{c} + INTERVAL '90 seconds'",
                "date_trunc('minute', {c})",
                "coalesce({c}, TIMESTAMP '1970-01-01')",
            ],
        };
        (*self.random.pick(forms)).replace("{c}", &column)
    }

    fn without_column(&mut self, of: Type) -> String {
        let other = match of {
            Type::Int => self.column(Type::Text).map(|column| format!("length({column})")),
            Type::Text => self.column(Type::Int).map(|column| format!("CAST({column} AS TEXT)")),
            Type::Float => {
                self.column(Type::Int).map(|column| format!("{column} * CAST(1 AS DOUBLE PRECISION)"))
            }
            Type::Numeric => {
                self.column(Type::Big).map(|column| format!("{column} * CAST(2 AS NUMERIC(12, 2))"))
            }
            Type::Bool => self.column(Type::Int).map(|column| format!("({column} > 1)")),
            Type::Big | Type::Extreme | Type::Rounded | Type::Timestamp => None,
        };
        other.unwrap_or_else(|| {
            match of {
                Type::Int => "CAST(5 AS INT)",
                Type::Big => "CAST(6 AS BIGINT)",
                Type::Numeric => "CAST(1.5 AS NUMERIC(12, 2))",
                Type::Float | Type::Extreme | Type::Rounded => "CAST(0.5 AS DOUBLE PRECISION)",
                Type::Text => "'text'",
                Type::Bool => "true",
                Type::Timestamp => "TIMESTAMP '1999-12-31 23:59:59'",
            }
            .to_owned()
        })
    }

    /// Any type that something is of, to be a key or an argument.
    pub(super) fn some_type(&mut self, among: &[Type]) -> Type {
        *self.random.pick(among)
    }

    /// A condition that fails on no row.
    pub(super) fn condition(&mut self) -> String {
        match self.random.below(9) {
            0 => {
                let (left, right) = (self.condition(), self.condition());
                let operator = self.random.pick(&["AND", "OR"]);
                format!("({left} {operator} {right})")
            }
            1 => format!("NOT ({})", self.condition()),
            2 => {
                let of = self.some_type(KEY_TYPES);
                let not = self.random.pick(&["", " NOT"]);
                format!("{} IS{not} NULL", self.expression(of))
            }
            3 => format!("{} IN (1, 2, NULL)", self.expression(Type::Int)),
            4 => format!("{} LIKE '%a%'", self.expression(Type::Text)),
            5 => self.expression(Type::Bool),
            _ => {
                let of = self.some_type(KEY_TYPES);
                let operator = *self.random.pick(&["=", "<>", "<", ">", "<=", ">=", "IS DISTINCT FROM"]);
                let left = self.expression(of);
                let right =
                    if self.random.one_in(3) { self.expression(of) } else { literal(self.random, of) };
                format!("{left} {operator} {right}")
            }
        }
    }
}

/// A literal of a type, with the ends of its range among them; never NULL.
pub(super) fn literal(random: &mut Random, of: Type) -> String {
    let choices: &[&str] = match of {
        Type::Int => &["0", "1", "2", "3", "-1"],
        Type::Big => &["0", "1", "-1", "7", "7", "1000000007", "9223372036854775807", "-9223372036854775808"],
        Type::Numeric => &["0", "0.01", "-0.01", "1.50", "2.5", "9999999999.99", "-9999999999.99"],
        Type::Float => &["0.25", "-0.25", "1.5", "3", "-7.75", "0", "'NaN'", "'Infinity'", "'-Infinity'"],
        Type::Extreme | Type::Rounded => {
            &["0", "0.1", "'1.7976931348623157e308'", "'-1.7976931348623157e308'", "'5e-324'"]
        }
        Type::Text => {
            &["''", "'a'", "'b'", "'aa'", "' a'", "'ä'", "'a''b'", "'a longer text than twelve bytes'"]
        }
        Type::Bool => &["true", "false"],
        Type::Timestamp => &[
            "TIMESTAMP '1970-01-01 00:00:00'",
            "TIMESTAMP '1969-12-31 23:59:59.999999'",
            "TIMESTAMP '1970-01-01 00:00:30'",
            "TIMESTAMP '2024-02-29 12:00:00.5'",
            "TIMESTAMP '2024-02-29 12:00:01'",
            "TIMESTAMP '0001-01-01 00:00:00'",
        ],
    };
    let literal = *random.pick(choices);
    match of {
        Type::Float | Type::Extreme | Type::Rounded => format!("CAST({literal} AS DOUBLE PRECISION)"),
        _ => literal.to_owned(),
    }
}
