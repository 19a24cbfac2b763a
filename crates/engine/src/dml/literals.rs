//! VALUES lists of literals, read straight into columns: a bulk INSERT need not pass the planner.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use catalog::Column;
use sql::SqlError;
use sqlparser::ast::{DataType, Expr, UnaryOperator, Value};

use super::assign;

/// One value of a VALUES list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    /// As written.
    Expression(&'a Expr),
    /// NULL for a column that has no default.
    Null,
}

/// The columns of `rows`, cast to the types of `targets`; `None` when a value is not a literal.
pub(crate) fn literal_rows(
    rows: &[Vec<Cell<'_>>],
    targets: &[&Column],
) -> Result<Option<Vec<ArrayRef>>, SqlError> {
    let mut columns = Vec::with_capacity(targets.len());
    for (place, target) in targets.iter().enumerate() {
        let mut builder = StringViewBuilder::with_capacity(rows.len());
        for row in rows {
            match literal(row[place], target) {
                Some(Literal::Null) => builder.append_null(),
                Some(Literal::Text(text)) => builder.append_value(text),
                Some(Literal::Number(text)) => builder.append_value(&text),
                None => return Ok(None),
            }
        }
        let text: ArrayRef = Arc::new(builder.finish());
        columns.push(assign(&text, target)?);
    }
    Ok(Some(columns))
}

enum Literal<'a> {
    Null,
    Text(&'a str),
    Number(String),
}

/// A literal whose text form means the same in the target's type.
fn literal<'a>(cell: Cell<'a>, target: &Column) -> Option<Literal<'a>> {
    let Cell::Expression(expression) = cell else { return Some(Literal::Null) };
    match expression {
        Expr::Nested(inner) => literal(Cell::Expression(inner), target),
        // A number with an exponent that no NUMERIC has.
        Expr::Cast { expr, data_type: DataType::DoublePrecision, .. } if target.data_type.is_floating() => {
            match expr.as_ref() {
                Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(text) => Some(Literal::Text(text)),
                    _ => None,
                },
                _ => None,
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(text, _) => number(&format!("-{text}"), target).map(Literal::Number),
                _ => None,
            },
            _ => None,
        },
        Expr::Value(value) => match &value.value {
            Value::Null => Some(Literal::Null),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(Literal::Text(text)),
            Value::DollarQuotedString(text) => Some(Literal::Text(&text.value)),
            Value::Number(text, _) => number(text, target).map(Literal::Number),
            Value::Boolean(value) if target.data_type == arrow::datatypes::DataType::Boolean => {
                Some(Literal::Text(if *value { "true" } else { "false" }))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A number as text for a numeric column; anything with a fraction or exponent that has to be
/// rounded to a whole number goes the long way.
fn number(text: &str, target: &Column) -> Option<String> {
    let is_whole = !text.contains(['.', 'e', 'E', '_']);
    let fits = target.data_type.is_floating()
        || (target.data_type.is_numeric() && is_whole)
        || is_decimal(text, target);
    fits.then(|| text.to_owned())
}

fn is_decimal(text: &str, target: &Column) -> bool {
    matches!(target.data_type, arrow::datatypes::DataType::Decimal128(..)) && !text.contains(['e', 'E', '_'])
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{DataType, Int64Type};
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn rows(text: &str, targets: &[Column]) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap();
        let expressions = parser.parse_comma_separated(Parser::parse_expr).unwrap();
        let cells = expressions.iter().map(Cell::Expression).collect();
        literal_rows(&[cells], &targets.iter().collect::<Vec<_>>())
    }

    fn column(data_type: DataType) -> Column {
        Column { name: "c".to_owned(), data_type, nullable: true, type_name: None, default: None }
    }

    #[test]
    fn literals_become_columns_of_the_target_types() {
        let targets = [
            column(DataType::Int64),
            column(DataType::Utf8View),
            column(DataType::Boolean),
            column(DataType::Int64),
        ];
        let columns = rows("-7, 'it''s', true, NULL", &targets).unwrap().unwrap();
        assert_eq!(columns[0].as_primitive::<Int64Type>().value(0), -7);
        assert_eq!(columns[1].as_string_view().value(0), "it's");
        assert!(columns[2].as_boolean().value(0));
        assert!(columns[3].is_null(0));
    }

    #[test]
    fn what_is_not_a_literal_goes_to_the_planner() {
        assert!(rows("1 + 1", &[column(DataType::Int64)]).unwrap().is_none());
        assert!(rows("1.5", &[column(DataType::Int64)]).unwrap().is_none());
        assert!(rows("true", &[column(DataType::Int64)]).unwrap().is_none());
    }

    #[test]
    fn a_literal_of_the_wrong_form_is_an_error() {
        assert_eq!(rows("'seven'", &[column(DataType::Int64)]).unwrap_err().sqlstate(), "22P02");
    }
}
