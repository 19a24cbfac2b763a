//! The oracle of every materialized view: its own SELECT, run in batch over the same inputs at the
//! same instant, gives the same bag of rows.
//!
//! | a view may differ | if and only if |
//! |---|---|
//! | its SELECT cannot be run | it reads a source that does not end |
//! | it leaves rows out | they are in `"<view>$late"`, which a batch query does not know |
//! | its SELECT fails | the row that fails is in `"<view>$errors"` |
//! | it shows a part | it is EMIT ON WINDOW CLOSE and its input has not ended |

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;
use engine::Session;

use crate::database::{Row, query, run};

/// Relative and absolute difference of floats that are computed in another order.
const TOLERANCE: f64 = 1e-9;

/// What a check came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Checked {
    /// Views that equal their SELECT.
    pub equal: usize,
    /// Views that have a reason to differ.
    pub excused: usize,
}

/// A view and what it is made of.
struct View {
    /// Quoted, with its schema.
    name: String,
    /// Of its side relations, without the kind and the closing quote.
    stem: String,
    select: String,
}

impl View {
    async fn is_empty(&self, session: &mut Session, side: &str) -> Result<bool, String> {
        let text = format!("SELECT count(*) FROM {}${side}\"", self.stem);
        match run(session, &text).await {
            Ok(rows) => Ok(rows[0][0].as_deref() == Some("0")),
            // A view without windows has no late rows.
            Err(error) if error.sqlstate() == "42P01" => Ok(true),
            Err(error) => Err(format!("{text}: {error}")),
        }
    }

    async fn is_on_close(&self, session: &mut Session) -> Result<bool, String> {
        let text = format!("SHOW CREATE MATERIALIZED VIEW {}", self.name);
        let rows = run(session, &text).await.map_err(|error| format!("{text}: {error}"))?;
        Ok(rows[0][1].as_ref().is_some_and(|statement| statement.contains("EMIT ON WINDOW CLOSE")))
    }
}

/// Compares all views with their SELECTs; the error says which differ, and how.
pub async fn check_views(session: &mut Session) -> Result<Checked, String> {
    let listed = run(session, "SELECT schemaname, matviewname, definition FROM pg_matviews").await;
    let mut checked = Checked::default();
    let mut wrong = Vec::new();
    for row in listed.map_err(|error| error.to_string())? {
        let [Some(schema), Some(name), Some(definition)] = row.as_slice() else {
            return Err(format!("a view without definition: {row:?}"));
        };
        let quoted = |name: &str| name.replace('"', "\"\"");
        let stem = format!("\"{}\".\"{}", quoted(schema), quoted(name));
        let view = View { name: format!("{stem}\""), stem, select: definition.clone() };
        match check_view(session, &view).await {
            Ok(true) => checked.equal += 1,
            Ok(false) => checked.excused += 1,
            Err(difference) => wrong.push(format!("{name}: {difference}\n  {}", view.select.trim())),
        }
    }
    if wrong.is_empty() { Ok(checked) } else { Err(wrong.join("\n")) }
}

/// Whether a view equals its SELECT; `false`: it has a reason not to.
async fn check_view(session: &mut Session, view: &View) -> Result<bool, String> {
    let begin = run(session, "BEGIN").await.map_err(|error| error.to_string());
    begin?;
    let found = query(session, &format!("SELECT * FROM {}", view.name)).await;
    let expected = query(session, &view.select).await;
    let end = run(session, "ROLLBACK").await.map_err(|error| error.to_string());
    end?;
    let (schema, found) = found.map_err(|error| format!("cannot be read: {error}"))?;
    let difference = match expected {
        Ok((_, expected)) => {
            let is_float: Vec<bool> =
                schema.fields().iter().map(|field| is_float(field.data_type())).collect();
            let difference = Difference::of(found, expected, &is_float);
            if difference.is_nothing() {
                return Ok(true);
            }
            if difference.too_many.is_empty() && view.is_on_close(session).await? {
                return Ok(false);
            }
            difference.to_string()
        }
        Err(error) if error.sqlstate() == "0A000" && error.to_string().contains("unbounded source") => {
            return Ok(false);
        }
        Err(error) => {
            if !view.is_empty(session, "errors").await? {
                return Ok(false);
            }
            return Err(format!("the SELECT fails and no row is in $errors: {} {error}", error.sqlstate()));
        }
    };
    if view.is_empty(session, "late").await? { Err(difference) } else { Ok(false) }
}

fn is_float(of: &DataType) -> bool {
    matches!(of, DataType::Float32 | DataType::Float64)
}

/// What is in only one of two bags.
struct Difference {
    too_many: Vec<Row>,
    missing: Vec<Row>,
}

impl Difference {
    fn of(found: Vec<Row>, expected: Vec<Row>, is_float: &[bool]) -> Self {
        let mut counts: HashMap<Row, i64> = HashMap::new();
        for row in found {
            *counts.entry(row).or_default() += 1;
        }
        for row in expected {
            *counts.entry(row).or_default() -= 1;
        }
        let mut difference = Self { too_many: Vec::new(), missing: Vec::new() };
        for (row, count) in counts {
            let side = if count > 0 { &mut difference.too_many } else { &mut difference.missing };
            side.extend((0..count.unsigned_abs()).map(|_| row.clone()));
        }
        difference.pair(is_float);
        difference
    }

    /// Leaves out rows that differ only in the last digits of floats.
    fn pair(&mut self, is_float: &[bool]) {
        if !is_float.contains(&true) {
            return;
        }
        let missing = &mut self.missing;
        self.too_many.retain(|row| {
            let twin = missing.iter().position(|other| are_close(row, other, is_float));
            twin.map(|twin| missing.swap_remove(twin)).is_none()
        });
    }

    fn is_nothing(&self) -> bool {
        self.too_many.is_empty() && self.missing.is_empty()
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 3;
        let shown = |rows: &[Row]| {
            let lines = rows.iter().take(SHOWN).map(|row| {
                let values = row.iter().map(|value| value.as_deref().unwrap_or("NULL"));
                values.collect::<Vec<_>>().join(" | ")
            });
            lines.collect::<Vec<_>>().join("; ")
        };
        write!(
            f,
            "{} rows too many ({}), {} missing ({})",
            self.too_many.len(),
            shown(&self.too_many),
            self.missing.len(),
            shown(&self.missing),
        )
    }
}

fn are_close(row: &Row, other: &Row, is_float: &[bool]) -> bool {
    row.len() == other.len()
        && row.iter().zip(other).zip(is_float).all(|((left, right), is_float)| match (left, right) {
            (Some(left), Some(right)) if *is_float => is_close(left, right),
            _ => left == right,
        })
}

fn is_close(left: &str, right: &str) -> bool {
    let (Ok(left), Ok(right)) = (left.parse::<f64>(), right.parse::<f64>()) else { return false };
    // Infinities are equal or not, and NaN is itself.
    let is_same = left == right || (left.is_nan() && right.is_nan());
    let scale = left.abs().max(right.abs()).max(1.0);
    is_same || (left.is_finite() && right.is_finite() && (left - right).abs() <= TOLERANCE * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bag(rows: &[&[&str]]) -> Vec<Row> {
        rows.iter().map(|row| row.iter().map(|value| Some((*value).to_owned())).collect()).collect()
    }

    #[test]
    fn bags_differ_in_how_often_a_row_is_there() {
        let difference = Difference::of(bag(&[&["1"], &["2"], &["2"]]), bag(&[&["2"], &["3"]]), &[false]);
        assert_eq!(difference.missing, bag(&[&["3"]]));
        assert_eq!(difference.too_many.len(), 2);
    }

    #[test]
    fn only_floats_may_be_close() {
        let (found, expected) =
            (bag(&[&["a", "0.1"], &["b", "NaN"]]), bag(&[&["b", "NaN"], &["a", "0.1000000000001"]]));
        assert!(Difference::of(found.clone(), expected.clone(), &[false, true]).is_nothing());
        assert!(!Difference::of(found, expected, &[false, false]).is_nothing());
        assert!(!is_close("Infinity", "1e308"));
    }
}
