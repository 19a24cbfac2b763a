//! Names: those of result columns, and how a name is written.
//!
//! A select item without an alias is named as PostgreSQL does it (`FigureColname`): a column by its
//! name, a function by its name, a cast by what is cast or else by the type, `CASE` by its ELSE or
//! else `case`, anything without a name `?column?`.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

use datafusion::common::DFSchema;
use sqlparser::ast::{
    self, AccessExpr, Expr, Ident, ObjectName, Query, SelectItem, SetExpr, Subscript, Value,
};

use crate::parser::keywords::is_reserved;
use crate::types::{PG_TYPES, column_type, pg_type};

const NAMELESS: &str = "?column?";

/// The names of a query's columns, as many as its plan has. Columns a `*` stands for have the names
/// of the plan.
#[must_use]
pub fn output_names(query: &Query, schema: &DFSchema) -> Vec<String> {
    let planned: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let Some(items) = select_items(&query.body) else { return planned };
    let is_wildcard =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let Some(first) = items.iter().position(is_wildcard) else {
        let names: Vec<String> = items.iter().map(item_name).collect();
        return if names.len() == planned.len() { names } else { planned };
    };
    let last = items.iter().rposition(is_wildcard).unwrap_or(first);
    let behind = items.len() - last - 1;
    let Some(middle) = planned.len().checked_sub(first + behind) else { return planned };
    let mut names: Vec<String> = items[..first].iter().map(item_name).collect();
    // Between two stars only computed columns have no relation of their own.
    let mut computed = items[first..=last].iter().filter(|item| !is_wildcard(item) && !is_column(item));
    for (index, plan_name) in planned.iter().enumerate().skip(first).take(middle) {
        let has_relation = schema.qualified_field(index).0.is_some();
        let name = if has_relation || first == last { None } else { computed.next().map(item_name) };
        names.push(name.unwrap_or_else(|| plan_name.clone()));
    }
    names.extend(items[last + 1..].iter().map(item_name));
    names
}

fn is_column(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
}

/// The select list that names a query's columns: the first one of a UNION.
fn select_items(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => select_items(&query.body),
        SetExpr::SetOperation { left, .. } => select_items(left),
        _ => None,
    }
}

/// The name of a select item or an item of RETURNING.
#[must_use]
pub fn item_name(item: &SelectItem) -> String {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => folded(alias),
        SelectItem::UnnamedExpr(expr) => name_of(expr).map_or_else(|| NAMELESS.to_owned(), |name| name.text),
        _ => NAMELESS.to_owned(),
    }
}

/// A name, and whether it is a real one: of a column or function, not of a type or `CASE`.
struct Name {
    text: String,
    is_strong: bool,
}

fn strong(text: impl Into<String>) -> Option<Name> {
    Some(Name { text: text.into(), is_strong: true })
}

fn weak(text: impl Into<String>) -> Option<Name> {
    Some(Name { text: text.into(), is_strong: false })
}

/// What an expression is named by, if anything.
fn name_of(expr: &Expr) -> Option<Name> {
    match expr {
        Expr::Identifier(ident) => strong(folded(ident)),
        Expr::CompoundIdentifier(parts) => strong(folded(parts.last()?)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => name_of(inner),
        Expr::Function(function) => strong(last_part(&function.name)),
        Expr::Cast { expr, data_type, .. } => named_or_type(name_of(expr), data_type),
        Expr::TypedString(typed) => weak(type_word(&typed.data_type)),
        Expr::Interval(_) => weak("interval"),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(name_of) {
            Some(name) if name.is_strong => Some(name),
            _ => weak("case"),
        },
        Expr::CompoundFieldAccess { root, access_chain } => access_name(root, access_chain),
        Expr::Extract { .. } => strong("extract"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { .. } => strong("substring"),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
            Some(ast::TrimWhereField::Both) | None => "btrim",
        }),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Exists { .. } => strong("exists"),
        Expr::Array(_) => strong("array"),
        Expr::Tuple(_) => strong("row"),
        Expr::Subquery(query) => subquery_name(query),
        Expr::Value(value) => match &value.value {
            Value::Boolean(_) => weak("bool"),
            _ => None,
        },
        _ => None,
    }
}

fn named_or_type(name: Option<Name>, data_type: &ast::DataType) -> Option<Name> {
    match name {
        Some(name) if name.is_strong => Some(name),
        _ => weak(type_word(data_type)),
    }
}

/// `pg_type.typname`, or the word as it was written.
fn type_word(data_type: &ast::DataType) -> String {
    match column_type(data_type) {
        Ok(column) => match column.pg_type {
            Some(name) => name.to_owned(),
            None => element_word(&column.data_type),
        },
        Err(_) => data_type.to_string().to_lowercase(),
    }
}

/// A cast to an array is named by the element type.
fn element_word(data_type: &arrow::datatypes::DataType) -> String {
    match data_type {
        arrow::datatypes::DataType::List(element) => element_word(element.data_type()),
        other => {
            let field = arrow::datatypes::Field::new("", other.clone(), true);
            let typname = pg_type(&field).typname;
            PG_TYPES.iter().find(|pg| pg.typname == typname).map_or(typname, |pg| pg.typname).to_owned()
        }
    }
}

/// `(r).f` is named by the field, `a[1]` by the array.
fn access_name(root: &Expr, chain: &[AccessExpr]) -> Option<Name> {
    for access in chain.iter().rev() {
        match access {
            AccessExpr::Dot(Expr::Identifier(field)) => return strong(folded(field)),
            AccessExpr::Dot(_) => return None,
            AccessExpr::Subscript(Subscript::Index { .. } | Subscript::Slice { .. }) => {}
        }
    }
    name_of(root)
}

fn subquery_name(query: &Query) -> Option<Name> {
    let item = select_items(&query.body)?.first()?;
    let name = item_name(item);
    if name == NAMELESS { None } else { strong(name) }
}

fn last_part(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(folded).unwrap_or_default()
}

/// What an identifier names: in lower case unless it is quoted.
#[must_use]
pub fn folded(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    }
}

/// A name as SQL text: quoted where it has to be.
#[must_use]
pub fn quote_identifier(name: &str) -> String {
    let plain = name
        .chars()
        .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || matches!(char, '_' | '$'))
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && !is_reserved(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::{item_name, quote_identifier, select_items};
    use crate::{Statement, parse};

    fn name(item: &str) -> String {
        let parsed = parse(&format!("SELECT {item} FROM t")).unwrap().remove(0);
        let Statement::Query(query) = parsed.statement else { panic!() };
        item_name(&select_items(&query.body).unwrap()[0])
    }

    #[test]
    fn columns_are_named_as_postgresql_names_them() {
        for (item, expected) in [
            ("1", "?column?"),
            ("'x'", "?column?"),
            ("NULL", "?column?"),
            ("TRUE", "bool"),
            ("a + 1", "?column?"),
            ("-a", "?column?"),
            ("A", "a"),
            ("t.\"B\"", "B"),
            ("a AS \"X y\"", "X y"),
            ("Count(*)", "count"),
            ("pg_catalog.version()", "version"),
            ("a::text", "a"),
            ("'1'::int", "int4"),
            ("CAST(1 + 2 AS bigint)", "int8"),
            ("1::numeric(10,2)", "numeric"),
            ("'{1}'::int[]", "int4"),
            ("DATE '2020-01-01'", "date"),
            ("INTERVAL '1 day'", "interval"),
            ("CASE WHEN a THEN 1 END", "case"),
            ("CASE WHEN a THEN 1 ELSE b END", "b"),
            ("CASE WHEN a THEN 1 ELSE 2::int END", "case"),
            ("COALESCE(a, b)", "coalesce"),
            ("EXTRACT(HOUR FROM a)", "extract"),
            ("(regexp_match(a, 'b'))[2]", "regexp_match"),
            ("(r).f", "f"),
            ("EXISTS (SELECT 1)", "exists"),
            ("(SELECT max(x) FROM u)", "max"),
            ("ARRAY[1,2]", "array"),
            ("TRIM(a)", "btrim"),
            ("SUBSTRING(a FROM 2)", "substring"),
            ("a AT TIME ZONE 'UTC'", "timezone"),
            ("a IS NULL", "?column?"),
            ("current_date", "current_date"),
        ] {
            assert_eq!(name(item), expected, "{item}");
        }
    }

    #[test]
    fn only_names_that_need_quotes_get_them() {
        for (name, expected) in [
            ("a_1", "a_1"),
            ("A", "\"A\""),
            ("1a", "\"1a\""),
            ("select", "\"select\""),
            ("a\"b", "\"a\"\"b\""),
            ("", "\"\""),
        ] {
            assert_eq!(quote_identifier(name), expected);
        }
    }
}
