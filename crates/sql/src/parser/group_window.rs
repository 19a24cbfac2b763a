//! Flink's group windows (before 1.13) in the canonical spelling, on the syntax tree.
//!
//! | written | becomes |
//! |---|---|
//! | `… FROM t GROUP BY k, TUMBLE(c, size)` | `… FROM TUMBLE(t, c, size) AS t GROUP BY k, window_start, window_end` |
//! | there `TUMBLE_START(c, size)`, `TUMBLE_END(c, size)`, `TUMBLE_ROWTIME(c, size)` | `window_start`, `window_end`, `window_time` |

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

use std::ops::ControlFlow;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    ObjectName, Query, Select, SetExpr, Spanned, TableAlias, TableFactor, TableFunctionArgs, UnaryOperator,
    VisitMut, VisitorMut,
};
use sqlparser::tokenizer::Span;

use crate::error::{SqlError, SqlErrorKind};
use crate::literals::{plain_interval, plain_number};
use crate::parser::{keywords, rows};

const NOTICE: &str = "GROUP BY TUMBLE(column, size) was mapped to FROM TUMBLE(relation, column, size) \
                      GROUP BY window_start, window_end";

/// Rewrites the group windows in a query or in any other part of a statement, spells interval
/// literals plainly, and refuses names of relations that sqlparser takes and PostgreSQL does not.
pub(crate) fn to_canonical<T: VisitMut>(tree: &mut T, notices: &mut Vec<String>) -> Result<(), SqlError> {
    let mut rewriter = Rewriter::default();
    let result = tree.visit(&mut rewriter);
    if rewriter.has_mapped && !notices.iter().any(|notice| notice == NOTICE) {
        notices.push(NOTICE.to_owned());
    }
    match result {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// One type for both walks, over a statement and over a SELECT whose window was found: every
/// visitor is compiled against all of sqlparser's tree.
#[derive(Default)]
struct Rewriter {
    has_mapped: bool,
    /// The window whose functions are being replaced.
    window: Option<GroupWindow>,
    uses_time: bool,
}

impl VisitorMut for Rewriter {
    type Break = SqlError;

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<SqlError> {
        let refused = relation.0.iter().filter_map(|part| part.as_ident()).find_map(keywords::refuse_name);
        match refused {
            Some(error) => ControlFlow::Break(error),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        let SetExpr::Select(select) = query.body.as_mut() else {
            return ControlFlow::Continue(());
        };
        let Some(window) = GroupWindow::find(select) else {
            return ControlFlow::Continue(());
        };
        if let Err(error) = window.move_to_from(select) {
            return ControlFlow::Break(error);
        }
        let mut inner = Self { window: Some(window.clone()), ..Self::default() };
        select.visit(&mut inner)?;
        if let Some(order_by) = &mut query.order_by {
            order_by.visit(&mut inner)?;
        }
        window.replace_group_key(select, inner.uses_time);
        self.has_mapped = true;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        // Not while a window is looked for, which is compared as it was written.
        if self.window.is_none()
            && let Expr::Interval(interval) = expr
            && let Err(error) = plain_interval(interval)
        {
            return ControlFlow::Break(error);
        }
        plain_number(expr);
        sign_before_power(expr);
        rows::by_column(expr);
        if let Some(column) = self.window.as_ref().and_then(|window| window.column_for(expr)) {
            self.uses_time |= column == "window_time";
            *expr = window_column(column, expr.span());
        }
        ControlFlow::Continue(())
    }
}

/// `-a ^ b` is `(-a) ^ b` in PostgreSQL, and `-(a ^ b)` to sqlparser.
fn sign_before_power(expr: &mut Expr) {
    let Expr::UnaryOp { op: op @ UnaryOperator::Minus, expr: inner } = expr else { return };
    let Expr::BinaryOp { left, op: BinaryOperator::PGExp, .. } = inner.as_mut() else { return };
    let base = std::mem::replace(left.as_mut(), Expr::Wildcard(AttachedToken::empty()));
    **left = Expr::UnaryOp { op: *op, expr: Box::new(base) };
    let power = std::mem::replace(inner.as_mut(), Expr::Wildcard(AttachedToken::empty()));
    *expr = power;
}

/// `TUMBLE(column, size)` in a GROUP BY.
#[derive(Clone)]
struct GroupWindow {
    key: Expr,
    column: Ident,
    size: FunctionArg,
    arguments: Vec<FunctionArg>,
    span: Span,
}

impl GroupWindow {
    fn find(select: &Select) -> Option<Self> {
        let GroupByExpr::Expressions(keys, _) = &select.group_by else { return None };
        keys.iter().find_map(|key| {
            let arguments = call(key, "TUMBLE")?;
            let [FunctionArg::Unnamed(FunctionArgExpr::Expr(column)), size] = arguments else { return None };
            let column = match column {
                Expr::Identifier(column) => column.clone(),
                Expr::CompoundIdentifier(parts) => parts.last()?.clone(),
                _ => return None,
            };
            Some(Self {
                key: key.clone(),
                column,
                size: size.clone(),
                arguments: arguments.to_vec(),
                span: key.span(),
            })
        })
    }

    /// `FROM t` → `FROM TUMBLE(t, column, size) AS t`.
    fn move_to_from(&self, select: &mut Select) -> Result<(), SqlError> {
        let refuse = || {
            let position = u32::try_from(self.span.start.column).unwrap_or(u32::MAX);
            let hint = "Write FROM TUMBLE(relation, column, size) and GROUP BY window_start, window_end.";
            SqlErrorKind::unsupported("GROUP BY TUMBLE over anything but one relation")
                .at(position)
                .hint(hint)
        };
        let [from] = select.from.as_mut_slice() else { return Err(refuse()) };
        let TableFactor::Table { name, alias, args: args @ None, .. } = &mut from.relation else {
            return Err(refuse());
        };
        if !from.joins.is_empty() {
            return Err(refuse());
        }
        let relation: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        let Some(last) = relation.last().cloned() else { return Err(refuse()) };
        if alias.is_none() {
            *alias = Some(TableAlias { explicit: true, name: last, columns: Vec::new(), at: None });
        }
        let relation = match <[Ident; 1]>::try_from(relation) {
            Ok([name]) => Expr::Identifier(name),
            Err(parts) => Expr::CompoundIdentifier(parts),
        };
        let unnamed = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
        let column = Expr::Identifier(self.column.clone());
        *args = Some(TableFunctionArgs {
            args: vec![unnamed(relation), unnamed(column), self.size.clone()],
            settings: None,
        });
        *name = ObjectName::from(vec![Ident::with_span(self.span, "TUMBLE")]);
        Ok(())
    }

    /// The column that `TUMBLE_START(column, size)` and its kin stand for.
    fn column_for(&self, expr: &Expr) -> Option<&'static str> {
        [("TUMBLE_START", "window_start"), ("TUMBLE_END", "window_end"), ("TUMBLE_ROWTIME", "window_time")]
            .into_iter()
            .find(|(function, _)| call(expr, function).is_some_and(|arguments| arguments == self.arguments))
            .map(|(_, column)| column)
    }

    fn replace_group_key(&self, select: &mut Select, uses_time: bool) {
        let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return };
        let columns = ["window_start", "window_end"].into_iter().chain(uses_time.then_some("window_time"));
        let columns: Vec<Expr> = columns.map(|column| window_column(column, self.span)).collect();
        if let Some(place) = keys.iter().position(|key| *key == self.key) {
            keys.splice(place..=place, columns);
        }
    }
}

fn window_column(name: &str, span: Span) -> Expr {
    Expr::Identifier(Ident::with_span(span, name))
}

/// The arguments of a plain call of `function`.
fn call<'a>(expr: &'a Expr, function: &str) -> Option<&'a [FunctionArg]> {
    let Expr::Function(Function {
        name, args: FunctionArguments::List(list), filter: None, over: None, ..
    }) = expr
    else {
        return None;
    };
    let [part] = name.0.as_slice() else { return None };
    let ident = part.as_ident()?;
    let same = ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case(function);
    same.then_some(list.args.as_slice())
}
