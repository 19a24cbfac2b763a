//! Parameters of prepared statements: `$1` in a tree becomes its value, with a type.
//!
//! Values are put into the tree before planning, so that a prepared statement is planned with what
//! it is about: constants fold, keys are looked up.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

use std::ops::ControlFlow;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use sql::{SqlError, SqlErrorKind, Statement, type_name};
use sqlparser::ast::{self, CastKind, Expr, Value, VisitMut, VisitorMut};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Span;

use crate::error::{from_arrow, from_datafusion};

/// What to put in the place of `$n`.
#[derive(Debug, Clone)]
pub(crate) enum Parameter {
    /// Its type only: the statement is prepared.
    Type(DataType),
    /// Nothing known yet.
    Unknown,
    Value(ScalarValue),
}

/// Puts parameters into a statement; returns how many there are.
pub(crate) fn bind(statement: &mut Statement, parameters: &[Parameter]) -> Result<usize, SqlError> {
    let mut binder = Binder { parameters, highest: 0, error: None };
    visit(statement, &mut binder);
    match binder.error {
        Some(error) => Err(error),
        None => Ok(binder.highest),
    }
}

fn visit<V: VisitorMut>(statement: &mut Statement, visitor: &mut V) {
    let _ = match statement {
        Statement::Query(query) => VisitMut::visit(query, visitor),
        Statement::Insert(insert) => VisitMut::visit(insert, visitor),
        Statement::Update(update) => VisitMut::visit(update, visitor),
        Statement::Delete(delete) => VisitMut::visit(delete, visitor),
        Statement::Explain { statement, .. } => {
            visit(statement, visitor);
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Continue(()),
    };
}

struct Binder<'a> {
    parameters: &'a [Parameter],
    highest: usize,
    error: Option<SqlError>,
}

impl VisitorMut for Binder<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some(number) = placeholder(expr) else { return ControlFlow::Continue(()) };
        self.highest = self.highest.max(number);
        let bound = match self.parameters.get(number.wrapping_sub(1)) {
            _ if number == 0 => Err(SqlErrorKind::UndefinedParameter { number }.into()),
            None | Some(Parameter::Unknown) => return ControlFlow::Continue(()),
            Some(Parameter::Type(data_type)) => typed(expr.clone(), data_type),
            Some(Parameter::Value(value)) => literal(value),
        };
        match bound {
            Ok(bound) => {
                *expr = bound;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Types that the statement itself says: `$1::bigint`, `CAST($2 AS text)`.
pub(crate) fn declared(statement: &Statement) -> Vec<(usize, DataType)> {
    struct Finder(Vec<(usize, DataType)>);
    impl VisitorMut for Finder {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Cast { expr, data_type, .. } = expr
                && let Some(number) = placeholder(expr)
                && let Ok(column) = sql::types::column_type(data_type)
            {
                self.0.push((number, column.data_type));
            }
            ControlFlow::Continue(())
        }
    }
    let mut finder = Finder(Vec::new());
    visit(&mut statement.clone(), &mut finder);
    finder.0
}

/// The number of `$n`.
pub(crate) fn placeholder(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Placeholder(text) = &value.value else { return None };
    text.strip_prefix('$')?.parse().ok()
}

/// `CAST(expr AS type)`.
pub(crate) fn typed(expr: Expr, data_type: &DataType) -> Result<Expr, SqlError> {
    let name = match data_type {
        DataType::Decimal128(precision, scale) => format!("numeric({precision},{scale})"),
        DataType::List(element) => format!("{}[]", type_name(element.data_type())),
        other => type_name(other),
    };
    let parsed = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(&name)
        .and_then(|mut parser| parser.parse_data_type())
        .map_err(|error| SqlErrorKind::internal(format!("type {name}: {error}")))?;
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type: parsed,
        array: false,
        format: None,
    })
}

/// A value as an expression. Numbers and text are plain literals, so that they behave as if they
/// had been written.
pub(crate) fn literal(value: &ScalarValue) -> Result<Expr, SqlError> {
    let data_type = value.data_type();
    if value.is_null() {
        return if data_type == DataType::Null {
            Ok(plain(Value::Null))
        } else {
            typed(plain(Value::Null), &data_type)
        };
    }
    match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => {
            typed(plain(Value::SingleQuotedString(text.clone())), &DataType::Utf8View)
        }
        ScalarValue::Boolean(Some(value)) => Ok(plain(Value::Boolean(*value))),
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes)) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            typed(plain(Value::SingleQuotedString(format!("\\x{digits}"))), &data_type)
        }
        _ => {
            let array = value.to_array_of_size(1).map_err(from_datafusion)?;
            typed(plain(Value::SingleQuotedString(text_of(&array)?)), &data_type)
        }
    }
}

fn plain(value: Value) -> Expr {
    Expr::Value(value.with_span(Span::empty()))
}

/// Text that the type's own input reads.
fn text_of(array: &ArrayRef) -> Result<String, SqlError> {
    let text = cast(array, &DataType::Utf8View).map_err(from_arrow)?;
    let text = text.as_string_view();
    Ok(if text.is_valid(0) { text.value(0).to_owned() } else { String::new() })
}

/// The expressions of a VALUES list, if the query is nothing else.
pub(crate) fn values_rows(query: &ast::Query) -> Option<Vec<&Vec<Expr>>> {
    let plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    match query.body.as_ref() {
        ast::SetExpr::Values(values) if plain => Some(values.rows.iter().map(|row| &row.content).collect()),
        _ => None,
    }
}
