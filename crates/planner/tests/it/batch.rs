//! Batch queries: types, names and values that have to be those of PostgreSQL and of views.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float32Array, Int32Array, Int64Array, RecordBatch, TimestampMicrosecondArray,
};
use expect_test::{Expect, expect};

use crate::database::Database;

fn rows() -> BTreeMap<&'static str, RecordBatch> {
    let decimals =
        Decimal128Array::from(vec![Some(100), Some(250), None]).with_precision_and_scale(10, 2).unwrap();
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
    check(
        "SELECT sum(i), sum(b), sum(r), sum(n) FROM t",
        expect![[r#"
        sum bigint, sum numeric, sum real, sum numeric
        | 5        | 18446744073709551614 | 1.0      | 3.50     |
    "#]],
    );
    check(
        "SELECT avg(i), avg(b), avg(r), avg(n) FROM t",
        expect![[r#"
        avg numeric, avg numeric, avg double precision, avg numeric
        | 1.6666666666666667 | 9223372036854775807.0000000000000000 | 0.3333333333333333 | 1.7500000000000000 |
    "#]],
    );
    check(
        "SELECT sum(DISTINCT i), avg(DISTINCT i), sum(DISTINCT b), avg(DISTINCT n) FROM t",
        expect![[r#"
        sum bigint, avg numeric, sum numeric, avg numeric
        | 3                 | 1.5000000000000000 | 9223372036854775807 | 1.7500000000000000 |
    "#]],
    );
    check(
        "SELECT i, sum(b), avg(n), count(*) FROM t GROUP BY i ORDER BY i",
        expect![[r#"
        i integer, sum numeric, avg numeric, count bigint
        | 1 | 9223372036854775807 | 1.0000000000000000 | 1        |
        | 2 | 9223372036854775807 | 2.5000000000000000 | 2        |
    "#]],
    );
    check(
        "SELECT sum(b) FILTER (WHERE i > 5), avg(b) FILTER (WHERE i > 5) FROM t",
        expect![[r#"
        sum numeric, avg numeric
        |                                        |                                        |
    "#]],
    );
    check(
        "SELECT i, sum(i) OVER (ORDER BY i ROWS 1 PRECEDING), avg(i) OVER (ORDER BY i ROWS 1 PRECEDING) FROM t",
        expect![[r#"
        i integer, sum bigint, avg numeric
        | 1 | 1                                                                               | 1.0000000000000000                                                              |
        | 2 | 3                                                                               | 1.5000000000000000                                                              |
        | 2 | 4                                                                               | 2.0000000000000000                                                              |
    "#]],
    );
    check(
        "SELECT avg(at) FROM t",
        expect![[r#"
        42883 function avg(timestamp(µs) does not exist
        hint No function matches the given name and argument types. You might need to add explicit type casts.
    "#]],
    );
}

#[test]
fn windows_are_columns() {
    check(
        "SELECT w.i, at, window_start, w.window_end, window_time FROM TUMBLE(t, at, INTERVAL '10 seconds') AS w ORDER BY at",
        expect![[r#"
            i integer, at timestamp without time zone, window_start timestamp without time zone, window_end timestamp without time zone, window_time timestamp without time zone
            | 2 | 1969-12-31T23:59:59.999999 | 1969-12-31T23:59:50 | 1970-01-01T00:00:00 | 1969-12-31T23:59:59.999999 |
            | 1 | 1970-01-01T00:00:00        | 1970-01-01T00:00:00 | 1970-01-01T00:00:10 | 1970-01-01T00:00:09.999999 |
            | 2 |                            |                     |                     |                            |
        "#]],
    );
    check(
        "SELECT t.window_start, count(*) FROM TUMBLE(t, at, INTERVAL '1 minute', INTERVAL '-1 second')
         WHERE at IS NOT NULL GROUP BY window_start ORDER BY 1",
        expect![[r#"
            window_start timestamp without time zone, count bigint
            | 1969-12-31T23:59:59 | 2        |
        "#]],
    );
}

#[test]
fn a_name_can_be_selected_twice() {
    check(
        "SELECT i, i, i AS j, i AS j FROM t ORDER BY b LIMIT 1",
        expect![[r#"
        i integer, i integer, j integer, j integer
        | 1 | 1  | 1 | 1  |
    "#]],
    );
    check(
        "SELECT *, i FROM v",
        expect![[r#"
        42703 column "i" does not exist
        at i FROM v
        hint Perhaps you meant to reference the column "x".
    "#]],
    );
    check(
        "SELECT 1, 1",
        expect![[r#"
        ?column? integer, ?column? integer
        | 1        | 1  |
    "#]],
    );
}

#[test]
fn views_are_expanded() {
    check(
        "SELECT y, x FROM v ORDER BY y",
        expect![[r#"
        y bigint, x integer
        | 9223372036854775807 | 2 |
        |                     | 2 |
    "#]],
    );
}
