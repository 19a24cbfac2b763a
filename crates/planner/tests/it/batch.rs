//! Batch queries: types, names and values that have to be those of PostgreSQL and of views.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float32Array, Int32Array, Int64Array, RecordBatch, TimestampMicrosecondArray,
};
use expect_test::{Expect, expect};

use crate::database::Database;

fn rows() -> BTreeMap<&'static str, RecordBatch> {
    let decimals = Decimal128Array::from(vec![Some(100), Some(250), None]).with_precision_and_scale(10, 2).unwrap();
    let times = vec![Some(0), Some(-1), None];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int32Array::from(vec![1, 2, 2]))),
        ("b", Arc::new(Int64Array::from(vec![Some(i64::MAX), Some(i64::MAX), None]))),
        ("r", Arc::new(Float32Array::from(vec![0.5, 0.25, 0.25]))),
        ("n", Arc::new(decimals)),
        ("at", Arc::new(TimestampMicrosecondArray::from(times))),
    ];
    BTreeMap::from([("t", RecordBatch::try_from_iter(columns).unwrap())])
}

fn check(query: &str, expected: Expect) {
    let database = Database::with(&[
        "CREATE TABLE t (i INT, b BIGINT, r REAL, n NUMERIC(10, 2), at TIMESTAMP)",
        "CREATE VIEW v (x, y) AS SELECT i, b FROM t WHERE i > 1",
    ]);
    expected.assert_eq(&database.select(query, rows()));
}

#[test]
fn sums_and_averages_have_the_types_of_postgresql() {
    check("SELECT sum(i), sum(b), sum(r), sum(n) FROM t", expect![]);
    check("SELECT avg(i), avg(b), avg(r), avg(n) FROM t", expect![]);
    check("SELECT sum(DISTINCT i), avg(DISTINCT i), sum(DISTINCT b), avg(DISTINCT n) FROM t", expect![]);
    check("SELECT i, sum(b), avg(n), count(*) FROM t GROUP BY i ORDER BY i", expect![]);
    check("SELECT sum(b) FILTER (WHERE i > 5), avg(b) FILTER (WHERE i > 5) FROM t", expect![]);
    check("SELECT i, sum(i) OVER (ORDER BY i ROWS 1 PRECEDING), avg(i) OVER (ORDER BY i ROWS 1 PRECEDING) FROM t", expect![]);
    check("SELECT avg(at) FROM t", expect![]);
}

#[test]
fn windows_are_columns() {
    check(
        "SELECT w.i, at, window_start, w.window_end, window_time FROM TUMBLE(t, at, INTERVAL '10 seconds') AS w ORDER BY at",
        expect![],
    );
    check(
        "SELECT t.window_start, count(*) FROM TUMBLE(t, at, INTERVAL '1 minute', INTERVAL '-1 second')
         WHERE at IS NOT NULL GROUP BY window_start ORDER BY 1",
        expect![],
    );
}

#[test]
fn a_name_can_be_selected_twice() {
    check("SELECT i, i, i AS j, i AS j FROM t ORDER BY b LIMIT 1", expect![]);
    check("SELECT *, i FROM v", expect![]);
    check("SELECT 1, 1", expect![]);
}

#[test]
fn views_are_expanded() {
    check("SELECT y, x FROM v ORDER BY y", expect![]);
}
