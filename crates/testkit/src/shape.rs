//! The order in which the statements of a file are run.
//!
//! | shape | first | then | then |
//! |---|---|---|---|
//! | as written | everything in the order of the file | | |
//! | together   | tables, sources and views | all changes in one transaction, hence in one epoch | checks |
//! | views last | tables and sources | the changes one by one, then the views, which read what is there | checks |
//!
//! **Invariant.** The checks behind the last change of a file hold in every shape, because a view shows its query over
//! the input so far, however that came. Checks between changes only mean something as written; the other shapes
//! leave them out.

#![expect(clippy::wildcard_enum_match_arm, reason = "most records of sqllogictest say nothing of data")]

use sqllogictest::{DefaultColumnType, Record, StatementExpect};

type Records = Vec<Record<DefaultColumnType>>;

/// How the statements of a file are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    AsWritten,
    Together,
    ViewsLast,
}

/// What a record does to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Definition,
    View,
    Change,
    /// A query, a FLUSH, or a statement that is refused.
    Check,
    /// A comment or a blank line.
    Nothing,
}

/// The records of a file in the order of a shape.
#[must_use]
pub fn shaped(records: Records, shape: Shape) -> Records {
    if shape == Shape::AsWritten {
        return records;
    }
    let last_change = records.iter().rposition(|record| role(record) == Role::Change);
    let (mut definitions, mut views, mut changes, mut checks) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (place, record) in records.into_iter().enumerate() {
        match role(&record) {
            Role::Definition => definitions.push(record),
            Role::View if shape == Shape::Together => definitions.push(record),
            Role::View => views.push(record),
            Role::Change => changes.push(record),
            Role::Check if last_change.is_none_or(|last| place > last) => checks.push(record),
            Role::Check | Role::Nothing => {}
        }
    }
    if shape == Shape::Together {
        changes = Vec::from_iter(in_one_transaction(changes));
    }
    [definitions, changes, views, checks].concat()
}

fn role(record: &Record<DefaultColumnType>) -> Role {
    match record {
        Record::Query { .. } | Record::Statement { expected: StatementExpect::Error(_), .. } => Role::Check,
        Record::Statement { sql, .. } => {
            let words: Vec<String> = sql.split_whitespace().take(3).map(str::to_uppercase).collect();
            match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["INSERT" | "UPDATE" | "DELETE", ..] => Role::Change,
                ["CREATE", "VIEW", ..] | ["CREATE", "MATERIALIZED", "VIEW"] => Role::View,
                ["FLUSH", ..] => Role::Check,
                _ => Role::Definition,
            }
        }
        _ => Role::Nothing,
    }
}

/// One statement string that makes all the changes, at the place of the first.
fn in_one_transaction(changes: Records) -> Option<Record<DefaultColumnType>> {
    let mut text = "BEGIN".to_owned();
    for change in &changes {
        if let Record::Statement { sql, .. } = change {
            text.push_str(";\n");
            text.push_str(sql);
        }
    }
    text.push_str(";\nCOMMIT");
    let mut first = changes.into_iter().next()?;
    if let Record::Statement { sql, expected, .. } = &mut first {
        *sql = text;
        *expected = StatementExpect::Ok;
    }
    Some(first)
}

#[cfg(test)]
mod tests {
    use sqllogictest::{DefaultColumnType, Record};

    use super::{Shape, shaped};

    const FILE: &str = "
statement ok
CREATE TABLE t (a INT)

statement ok
CREATE MATERIALIZED VIEW v AS SELECT a FROM t

statement count 1
INSERT INTO t VALUES (1)

query I
SELECT 'between'
----
1

statement ok
DELETE FROM t

statement ok
FLUSH

statement error
SELECT nope
";

    fn in_shape(shape: Shape) -> Vec<String> {
        let records = sqllogictest::parse::<DefaultColumnType>(FILE).unwrap();
        let sql = |record| match record {
            Record::Statement { sql, .. } | Record::Query { sql, .. } => Some(sql),
            _ => None,
        };
        shaped(records, shape).into_iter().filter_map(sql).collect()
    }

    #[test]
    fn as_written_keeps_everything() {
        assert_eq!(in_shape(Shape::AsWritten).len(), 7);
    }

    #[test]
    fn together_is_one_transaction() {
        assert_eq!(
            in_shape(Shape::Together),
            [
                "CREATE TABLE t (a INT)",
                "CREATE MATERIALIZED VIEW v AS SELECT a FROM t",
                "BEGIN;\nINSERT INTO t VALUES (1);\nDELETE FROM t;\nCOMMIT",
                "FLUSH",
                "SELECT nope",
            ]
        );
    }

    #[test]
    fn views_last_reads_what_is_there() {
        assert_eq!(
            in_shape(Shape::ViewsLast),
            [
                "CREATE TABLE t (a INT)",
                "INSERT INTO t VALUES (1)",
                "DELETE FROM t",
                "CREATE MATERIALIZED VIEW v AS SELECT a FROM t",
                "FLUSH",
                "SELECT nope",
            ]
        );
    }
}
