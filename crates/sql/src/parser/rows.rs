//! Comparisons of rows, column by column.
//!
//! | written | meant |
//! |---|---|
//! | `(a, b) = (c, d)`           | `(a = c AND b = d)` |
//! | `(a, b) <> (c, d)`          | `(a <> c OR b <> d)` |
//! | `(a, b) IN ((c, d), (e, f))` | `((a = c AND b = d) OR (a = e AND b = f))` |
//!
//! Source: PostgreSQL, "Row and Array Comparisons",
//! <https://www.postgresql.org/docs/15/functions-comparisons.html>.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

/// How deep a tree may get here: a longer comparison stays as it is, and is refused.
const PARTS_MAX: usize = 200;

/// Writes a comparison of two rows of equal length as one of their columns.
pub(super) fn by_column(expr: &mut Expr) {
    let replaced = match expr {
        Expr::BinaryOp { left, op, right } => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) => match op {
                BinaryOperator::Eq => equal(left, right),
                BinaryOperator::NotEq => pairs(left, right, &BinaryOperator::NotEq)
                    .and_then(|pairs| chain(pairs, &BinaryOperator::Or)),
                _ => None,
            },
            _ => None,
        },
        Expr::InList { expr, list, negated } => match expr.as_ref() {
            Expr::Tuple(left) => {
                let found = list.iter().map(|item| match item {
                    Expr::Tuple(right) => equal(left, right),
                    _ => None,
                });
                let any = found.collect::<Option<Vec<_>>>().and_then(|rows| chain(rows, &BinaryOperator::Or));
                match (any, *negated) {
                    (Some(any), true) => Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) }),
                    (any, _) => any,
                }
            }
            _ => None,
        },
        _ => None,
    };
    if let Some(replaced) = replaced {
        *expr = Expr::Nested(Box::new(replaced));
    }
}

fn equal(left: &[Expr], right: &[Expr]) -> Option<Expr> {
    chain(pairs(left, right, &BinaryOperator::Eq)?, &BinaryOperator::And)
}

fn pairs(left: &[Expr], right: &[Expr], op: &BinaryOperator) -> Option<Vec<Expr>> {
    let pair = |(left, right): (&Expr, &Expr)| Expr::BinaryOp {
        left: Box::new(left.clone()),
        op: op.clone(),
        right: Box::new(right.clone()),
    };
    (left.len() == right.len()).then(|| left.iter().zip(right).map(pair).collect())
}

/// In brackets.
fn chain(parts: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    if parts.len() > PARTS_MAX {
        return None;
    }
    let both = |left, right| Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) };
    parts.into_iter().reduce(both).map(|chain| Expr::Nested(Box::new(chain)))
}
