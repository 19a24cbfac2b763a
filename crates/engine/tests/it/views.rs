//! Materialized views over tables, and plain views.

use crate::database::{err, ok, session};

#[tokio::test]
async fn a_view_follows_its_table() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, g TEXT, v INT)").await;
    ok(&mut db, "INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)").await;
    ok(&mut db, "CREATE MATERIALIZED VIEW s AS SELECT g, count(*) AS n, sum(v) AS total FROM t GROUP BY g")
        .await;
    assert_eq!(ok(&mut db, "SELECT * FROM s ORDER BY g").await, "a|2|3\nb|1|3");
    ok(&mut db, "UPDATE t SET g = 'b' WHERE id = 1").await;
    assert_eq!(ok(&mut db, "SELECT * FROM s ORDER BY g").await, "a|1|2\nb|2|4");
    assert_eq!(ok(&mut db, "SELECT n FROM s WHERE g = 'b'").await, "2");
    ok(&mut db, "DELETE FROM t").await;
    assert_eq!(ok(&mut db, "SELECT * FROM s").await, "");
    assert!(err(&mut db, "INSERT INTO s VALUES ('c', 1, 1)").await.starts_with("42809"));
}

#[tokio::test]
async fn equal_rows_of_a_view_are_all_there() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    ok(&mut db, "CREATE MATERIALIZED VIEW m AS SELECT v FROM t").await;
    ok(&mut db, "INSERT INTO t VALUES (1, 7), (2, 7), (3, 8)").await;
    assert_eq!(ok(&mut db, "SELECT v FROM m ORDER BY v").await, "7\n7\n8");
    assert_eq!(ok(&mut db, "SELECT v FROM m WHERE v = 7").await, "7\n7");
    ok(&mut db, "DELETE FROM t WHERE id = 1").await;
    assert_eq!(ok(&mut db, "SELECT v FROM m ORDER BY v").await, "7\n8");
}

#[tokio::test]
async fn a_plain_view_is_its_query() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10), (2, 20)").await;
    ok(&mut db, "CREATE VIEW w AS SELECT id, v * 2 AS double FROM t").await;
    assert_eq!(ok(&mut db, "SELECT double FROM w WHERE id = 2").await, "40");
    ok(&mut db, "UPDATE t SET v = 1 WHERE id = 2").await;
    assert_eq!(ok(&mut db, "SELECT double FROM w WHERE id = 2").await, "2");
}

#[tokio::test]
async fn a_failed_create_leaves_nothing() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY)").await;
    assert!(err(&mut db, "CREATE MATERIALIZED VIEW v AS SELECT nope FROM t").await.starts_with("42703"));
    assert!(err(&mut db, "SELECT * FROM v").await.starts_with("42P01"));
    ok(&mut db, "CREATE MATERIALIZED VIEW v AS SELECT id FROM t").await;
}
