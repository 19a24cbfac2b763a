//! Casts to `VARCHAR(n)` and `CHAR(n)`: the type behind them has no length, so the text is cut here.

use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{
    CharacterLength, DataType, Expr, Ident, Query, Select, SelectItem, Value, VisitMut, VisitorMut,
};

/// Puts `substring(… from 1 for n)` around every cast to a text of limited length.
pub(crate) fn cut(query: &mut Query) {
    let ControlFlow::Continue(()) = query.visit(&mut Cut);
}

struct Cut;

impl VisitorMut for Cut {
    type Break = Infallible;

    /// A select item keeps the name of the cast, unless another item has it.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let names: Vec<String> = select.projection.iter().map(sql::item_name).collect();
        for (item, name) in select.projection.iter_mut().zip(&names) {
            if let SelectItem::UnnamedExpr(expr) = item
                && limit(expr).is_some()
                && names.iter().filter(|other| *other == name).count() == 1
            {
                let alias = Ident::with_quote('"', name);
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(length) = limit(expr) {
            let number = |number: u64| Box::new(Expr::value(Value::Number(number.to_string(), false)));
            *expr = Expr::Substring {
                expr: Box::new(expr.clone()),
                substring_from: Some(number(1)),
                substring_for: Some(number(length)),
                special: true,
                shorthand: false,
            };
        }
        ControlFlow::Continue(())
    }
}

/// The length of the text a cast gives.
fn limit(expr: &Expr) -> Option<u64> {
    let Expr::Cast { data_type, .. } = expr else { return None };
    match data_type {
        DataType::Varchar(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length)
        | DataType::Char(length)
        | DataType::Character(length) => match length {
            Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
            _ => None,
        },
        _ => None,
    }
}
