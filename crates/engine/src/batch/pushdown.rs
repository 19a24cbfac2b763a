//! Filters on the key of a view table, as a range of encoded keys.
//!
//! Equalities on the first key columns and then bounds on the next one become
//! `[start, end)`, because encoded keys sort like the values and the encoding of a key begins with
//! the encoding of its first columns.
//!
//! **Invariant.** The range holds every row the filters accept. It may hold others (NULLs sort
//! last, so `>` includes them), which is why filters are reported as inexact and stay in the plan.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "DataFusion's expressions list more than a key can be compared by"
)]

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use sql::SqlError;
use state::{ViewRange, encode_keys};

use crate::error::{from_datafusion, from_state};
use crate::live::Stored;

/// What filters say about a key.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRange {
    /// One value for each of the first key columns.
    pub(crate) equal: Vec<ScalarValue>,
    lower: Option<(ScalarValue, Inclusive)>,
    upper: Option<(ScalarValue, Inclusive)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inclusive {
    Yes,
    No,
}

/// `column <operator> literal` with the column's own type.
struct Comparison<'a> {
    column: &'a str,
    operator: Operator,
    value: &'a ScalarValue,
}

impl KeyRange {
    /// Collects what `filters` say. Filters are over visible columns.
    pub(crate) fn of<'a>(filters: impl IntoIterator<Item = &'a Expr>, stored: &Stored) -> Self {
        let comparisons: Vec<Comparison<'_>> = filters.into_iter().flat_map(comparisons).collect();
        let mut range = Self::default();
        for place in 0..stored.schema.key_len {
            let on_column = |comparison: &&Comparison<'_>| bears_on(comparison, stored, place);
            let equal =
                comparisons.iter().filter(on_column).find(|comparison| comparison.operator == Operator::Eq);
            if let Some(equal) = equal {
                range.equal.push(equal.value.clone());
                continue;
            }
            for comparison in comparisons.iter().filter(on_column) {
                range.bound(comparison);
            }
            break;
        }
        range
    }

    /// The first bound of each kind is enough: the filters stay in the plan.
    fn bound(&mut self, comparison: &Comparison<'_>) {
        let value = comparison.value.clone();
        match comparison.operator {
            Operator::Gt => drop(self.lower.get_or_insert((value, Inclusive::No))),
            Operator::GtEq => drop(self.lower.get_or_insert((value, Inclusive::Yes))),
            Operator::Lt => drop(self.upper.get_or_insert((value, Inclusive::No))),
            Operator::LtEq => drop(self.upper.get_or_insert((value, Inclusive::Yes))),
            _ => {}
        }
    }

    /// Whether the range is everything.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.equal.is_empty() && self.lower.is_none() && self.upper.is_none()
    }

    /// Whether it names one key.
    pub(crate) fn is_point(&self, stored: &Stored) -> bool {
        self.equal.len() == stored.schema.key_len && !self.equal.is_empty()
    }

    /// The key it names, as arrays of one row.
    pub(crate) fn key(&self) -> Result<Vec<ArrayRef>, SqlError> {
        self.equal.iter().map(|value| value.to_array_of_size(1).map_err(from_datafusion)).collect()
    }

    /// As bounds on encoded keys.
    pub(crate) fn encode(&self) -> Result<ViewRange, SqlError> {
        if self.is_unbounded() {
            return Ok(ViewRange::default());
        }
        let prefix = encode(&self.equal, None)?;
        let start = match &self.lower {
            Some((value, Inclusive::Yes)) => Some(encode(&self.equal, Some(value))?),
            Some((value, Inclusive::No)) => successor(encode(&self.equal, Some(value))?),
            None => Some(prefix.clone()),
        };
        let end = match &self.upper {
            Some((value, Inclusive::Yes)) => successor(encode(&self.equal, Some(value))?),
            Some((value, Inclusive::No)) => Some(encode(&self.equal, Some(value))?),
            None if prefix.is_empty() => None,
            None => successor(prefix),
        };
        Ok(ViewRange { start, end })
    }
}

impl std::fmt::Display for KeyRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let equal: Vec<String> = self.equal.iter().map(|value| format!("= {value}")).collect();
        write!(f, "{}", equal.join(", "))?;
        for (bound, (inclusive, exclusive)) in [(&self.lower, (">=", ">")), (&self.upper, ("<=", "<"))] {
            if let Some((value, kind)) = bound {
                write!(f, " {} {value}", if *kind == Inclusive::Yes { inclusive } else { exclusive })?;
            }
        }
        Ok(())
    }
}

fn encode(equal: &[ScalarValue], next: Option<&ScalarValue>) -> Result<Vec<u8>, SqlError> {
    let columns: Result<Vec<ArrayRef>, SqlError> =
        equal.iter().chain(next).map(|value| value.to_array_of_size(1).map_err(from_datafusion)).collect();
    let columns = columns?;
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    Ok(encode_keys(&columns, 1).map_err(from_state)?.get(0).to_vec())
}

/// The least byte string greater than all that begin with `prefix`; `None`: there is none.
pub(crate) fn successor(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Some(prefix);
        }
        prefix.pop();
    }
    None
}

/// Whether a filter narrows the range: used to tell DataFusion which filters to pass down.
pub(crate) fn is_useful(filter: &Expr, stored: &Stored) -> bool {
    let comparisons = comparisons(filter);
    (0..stored.schema.key_len)
        .any(|place| comparisons.iter().any(|comparison| bears_on(&comparison, stored, place)))
}

fn bears_on(comparison: &&Comparison<'_>, stored: &Stored, place: usize) -> bool {
    let field = stored.schema.columns.field(place);
    let visible = stored.output.iter().position(|&column| column == place);
    let Some(visible) = visible else { return false };
    // Floats compare by total order in filters and by value in keys (-0, NaN): left to the filter.
    let comparable = !matches!(field.data_type(), DataType::Float32 | DataType::Float64);
    comparable
        && stored.visible.field(visible).name() == comparison.column
        && *field.data_type() == comparison.value.data_type()
        && !comparison.value.is_null()
}

fn comparisons(filter: &Expr) -> Vec<Comparison<'_>> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let mut all = comparisons(left);
            all.extend(comparisons(right));
            all
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _)) => {
                vec![Comparison { column: &column.name, operator: *op, value }]
            }
            (Expr::Literal(value, _), Expr::Column(column)) => match op.swap() {
                Some(operator) => vec![Comparison { column: &column.name, operator, value }],
                None => Vec::new(),
            },
            _ => Vec::new(),
        },
        Expr::Between(between) if !between.negated => {
            match (between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()) {
                (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) => vec![
                    Comparison { column: &column.name, operator: Operator::GtEq, value: low },
                    Comparison { column: &column.name, operator: Operator::LtEq, value: high },
                ],
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::{col, lit};
    use state::{TableId, TableSchema};

    use super::*;

    /// Key (b, a), shown as a, b, c.
    fn stored() -> Stored {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let columns = Arc::new(Schema::new(vec![field("b"), field("a"), field("c")]));
        Stored {
            table: TableId(1),
            schema: Arc::new(TableSchema { columns, key_len: 2 }),
            output: vec![1, 0, 2],
            multiset: false,
            visible: Arc::new(Schema::new(vec![field("a"), field("b"), field("c")])),
        }
    }

    fn range(filters: &[Expr]) -> String {
        KeyRange::of(filters, &stored()).to_string()
    }

    #[test]
    fn equalities_on_a_key_prefix_and_bounds_on_the_next_column_narrow_the_range() {
        assert_eq!(range(&[col("a").gt(lit(1_i64)), col("b").eq(lit(2_i64))]), "= 2 > 1");
        assert_eq!(range(&[col("a").eq(lit(1_i64)).and(col("b").eq(lit(2_i64)))]), "= 2, = 1");
        assert_eq!(range(&[lit(5_i64).gt_eq(col("b")), col("a").eq(lit(1_i64))]), " <= 5");
        assert_eq!(range(&[col("b").between(lit(1_i64), lit(3_i64))]), " >= 1 <= 3");
    }

    #[test]
    fn filters_that_are_not_about_a_key_prefix_are_left_alone() {
        assert_eq!(range(&[col("a").eq(lit(1_i64)), col("c").eq(lit(2_i64))]), "");
        assert_eq!(range(&[col("b").eq(lit(1_i32))]), "", "another type than the key's");
        assert!(!is_useful(&col("c").eq(lit(1_i64)), &stored()));
    }

    #[test]
    fn the_successor_of_a_prefix_is_behind_everything_that_begins_with_it() {
        assert_eq!(successor(vec![1, 2]), Some(vec![1, 3]));
        assert_eq!(successor(vec![1, 255]), Some(vec![2]));
        assert_eq!(successor(vec![255]), None);
    }
}
