//! Batch queries over what is stored.

use crate::database::{columns, err, ok, session};

#[tokio::test]
async fn key_filters_give_what_full_scans_give() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (a INT, b TEXT, v INT, PRIMARY KEY (b, a))").await;
    ok(&mut db, "INSERT INTO t VALUES (1, 'x', 1), (2, 'x', 2), (1, 'y', 3), (3, 'y', 4)").await;
    for (filter, expected) in [
        ("b = 'x'", "1\n2"),
        ("b = 'x' AND a = 2", "2"),
        ("b = 'y' AND a > 1", "4"),
        ("b > 'x'", "3\n4"),
        ("b >= 'x' AND b <= 'x'", "1\n2"),
        ("a = 1", "1\n3"),
        ("b = 'z'", ""),
        ("b BETWEEN 'x' AND 'xx'", "1\n2"),
        ("a + 0 = 1 AND b = 'y'", "3"),
    ] {
        assert_eq!(
            ok(&mut db, &format!("SELECT v FROM t WHERE {filter} ORDER BY v")).await,
            expected,
            "{filter}"
        );
    }
    let plan = ok(&mut db, "EXPLAIN SELECT v FROM t WHERE b = 'y' AND a > 1").await;
    assert!(plan.contains("key=[= y > 1]"), "{plan}");
}

#[tokio::test]
async fn a_point_read_gives_what_the_planner_gives() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        .await;
    assert_eq!(ok(&mut db, "SELECT name, id FROM t WHERE id = 2").await, "b|2");
    assert_eq!(ok(&mut db, "SELECT * FROM t WHERE id = '1'").await, "1|a");
    assert_eq!(ok(&mut db, "SELECT name FROM t WHERE id = 3").await, "");
    assert_eq!(ok(&mut db, "SELECT name FROM t WHERE id = 1.5").await, "");
    assert_eq!(columns(&mut db, "SELECT name AS n, id FROM t WHERE id = 2").await, ["n", "id"]);
    assert!(err(&mut db, "SELECT name FROM t WHERE id = 'x'").await.starts_with("22P02"));
}

#[tokio::test]
async fn counting_needs_no_columns() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)").await;
    assert_eq!(ok(&mut db, "SELECT count(*) FROM t").await, "3");
    assert_eq!(ok(&mut db, "SELECT 1 FROM t LIMIT 2").await, "1\n1");
}

#[tokio::test]
async fn errors_have_codes_and_positions() {
    let mut db = session().await;
    let error = crate::database::run(&mut db, "SELECT * FROM nope").await.unwrap_err();
    assert_eq!(error.sqlstate(), "42P01");
    assert_eq!(error.to_string(), "relation \"nope\" does not exist");
    assert_eq!(err(&mut db, "SELECT 1/0").await, "22012 division by zero");
    assert!(err(&mut db, "SELEC 1").await.starts_with("42601"));
}

#[tokio::test]
async fn dropping_a_stream_ends_the_query() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)").await;
    let statement = db.parse("SELECT a.id FROM t a, t b, t c").unwrap().remove(0);
    drop(db.execute(&statement).await.unwrap());
    assert_eq!(ok(&mut db, "SELECT count(*) FROM t").await, "2");
}

#[tokio::test]
async fn rows_come_in_the_order_of_the_key() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (a TEXT, b INT, v INT, PRIMARY KEY (a, b))").await;
    ok(
        &mut db,
        "INSERT INTO t VALUES ('b', 1, 1), ('', -5, 2), ('ab', 0, 3), ('a', 2, 4), ('a', -1, 5), ('ä', 0, 6)",
    )
    .await;
    let ordered = "SELECT a, b FROM t ORDER BY a, b";
    let plan = ok(&mut db, &format!("EXPLAIN {ordered}")).await;
    assert!(!plan.contains("SortExec"), "{plan}");
    assert_eq!(ok(&mut db, ordered).await, "|-5\na|-1\na|2\nab|0\nb|1\nä|0");
    assert_eq!(ok(&mut db, "SELECT b FROM t ORDER BY a DESC LIMIT 2").await, "0\n1");
    assert_eq!(ok(&mut db, "SELECT a FROM t ORDER BY a LIMIT 1").await, "");
    ok(&mut db, "BEGIN; INSERT INTO t VALUES ('aa', 0, 7)").await;
    assert_eq!(
        ok(&mut db, "SELECT v FROM t ORDER BY a, b").await,
        "2\n5\n4\n7\n3\n1\n6",
        "own rows are sorted in"
    );
}

#[tokio::test]
async fn nulls_of_a_view_come_last() {
    let mut db = session().await;
    ok(
        &mut db,
        "CREATE TABLE t (id INT PRIMARY KEY, g INT); INSERT INTO t VALUES (1, NULL), (2, 5), (3, -5)",
    )
    .await;
    ok(&mut db, "CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g").await;
    assert_eq!(ok(&mut db, "SELECT g FROM v ORDER BY g").await, "-5\n5\nNULL");
    assert_eq!(ok(&mut db, "SELECT g FROM v ORDER BY g NULLS FIRST").await, "NULL\n-5\n5");
    assert_eq!(ok(&mut db, "SELECT n FROM v WHERE g > 0").await, "1");
    assert_eq!(ok(&mut db, "SELECT n FROM v WHERE g IS NULL").await, "1");
}
