//! Casts to `oid`, `name` and the `reg…` types.
//!
//! Numbers of catalog entries are `bigint` here and names are `text`. A literal cast to `regclass`
//! is looked up (`'t'::regclass`), a number is shown as its name (`c.oid::regclass`).

use sqlparser::ast::{DataType, Expr, FunctionArgExpr, Ident, Select, SelectItem, Value};

use super::names::{call, column_name};
use super::{part_name, take};

/// Types that stand for catalog entries.
const REG_TYPES: &[&str] = &["regclass", "regtype", "regnamespace", "regproc", "regprocedure", "regrole"];

pub(super) fn rewrite(expr: &mut Expr) {
    let Expr::Cast { expr: inner, data_type, .. } = expr else { return };
    let Some(name) = type_name(data_type) else { return };
    match name.as_str() {
        "oid" | "xid" | "cid" => *data_type = DataType::BigInt(None),
        "name" | "text" | "char" | "cstring" => *data_type = DataType::Text,
        "bool" => *data_type = DataType::Boolean,
        "int2" => *data_type = DataType::SmallInt(None),
        "int4" => *data_type = DataType::Integer(None),
        "int8" => *data_type = DataType::BigInt(None),
        name if REG_TYPES.contains(&name) => {
            let direction = if is_text_literal(inner) { "in" } else { "out" };
            let function = match name {
                "regprocedure" => format!("regproc_{direction}"),
                _ => format!("{name}_{direction}"),
            };
            let argument = take(inner);
            *expr = call(&function, FunctionArgExpr::Expr(argument));
        }
        _ => {}
    }
}

/// A cast that becomes a function call keeps its column name.
pub(super) fn keep_names(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && has_reg_cast(expr)
        {
            let alias = Ident::with_quote('"', column_name(expr));
            *item = SelectItem::ExprWithAlias { expr: take(expr), alias };
        }
    }
}

fn has_reg_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { expr, data_type, .. } => {
            type_name(data_type).is_some_and(|name| REG_TYPES.contains(&name.as_str())) || has_reg_cast(expr)
        }
        _ => false,
    }
}

/// Name of a type sqlparser has no variant for, without `pg_catalog`.
fn type_name(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Regclass => Some("regclass".to_owned()),
        DataType::Custom(name, arguments) if arguments.is_empty() && name.0.len() <= 2 => {
            let qualified = name.0.len() == 2;
            if qualified && part_name(&name.0[0]).is_none_or(|schema| schema != "pg_catalog") {
                return None;
            }
            part_name(name.0.last()?)
        }
        _ => None,
    }
}

fn is_text_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_) | Value::Placeholder(_)),
        Expr::Nested(inner) => is_text_literal(inner),
        _ => false,
    }
}
