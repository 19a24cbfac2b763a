//! BEGIN, COMMIT, ROLLBACK.

use crate::database::{err, ok, open};

#[tokio::test]
async fn a_transaction_reads_one_instant_and_its_own_rows() {
    let engine = open().await;
    let (mut one, mut two) = (engine.session("one"), engine.session("two"));
    ok(&mut one, "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)").await;
    ok(&mut one, "BEGIN").await;
    assert_eq!(ok(&mut one, "SELECT v FROM t").await, "1");
    ok(&mut two, "UPDATE t SET v = 2; INSERT INTO t VALUES (2, 2)").await;
    assert_eq!(ok(&mut one, "SELECT * FROM t").await, "1|1", "the snapshot stays");
    ok(&mut one, "INSERT INTO t VALUES (3, 3)").await;
    assert_eq!(ok(&mut one, "SELECT * FROM t ORDER BY id").await, "1|1\n3|3");
    ok(&mut one, "UPDATE t SET v = 4 WHERE id = 3").await;
    assert_eq!(ok(&mut one, "SELECT v FROM t WHERE id = 3").await, "4");
    assert_eq!(ok(&mut two, "SELECT count(*) FROM t").await, "2", "not committed");
    assert_eq!(ok(&mut one, "COMMIT").await, "COMMIT");
    assert_eq!(ok(&mut two, "SELECT * FROM t ORDER BY id").await, "1|2\n2|2\n3|4");
}

#[tokio::test]
async fn the_first_committer_wins() {
    let engine = open().await;
    let (mut one, mut two) = (engine.session("one"), engine.session("two"));
    ok(&mut one, "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)").await;
    ok(&mut one, "BEGIN; UPDATE t SET v = 10 WHERE id = 1").await;
    ok(&mut two, "UPDATE t SET v = 20 WHERE id = 1").await;
    assert_eq!(err(&mut one, "COMMIT").await, "40001 could not serialize access due to concurrent update");
    assert_eq!(ok(&mut one, "SELECT v FROM t").await, "20");
    ok(&mut one, "BEGIN; INSERT INTO t VALUES (2, 2)").await;
    ok(&mut two, "INSERT INTO t VALUES (2, 3)").await;
    assert!(err(&mut one, "COMMIT").await.starts_with("23505"));
    assert_eq!(one.transaction_status(), b'I');
}

#[tokio::test]
async fn rollback_leaves_nothing() {
    let mut db = open().await.session("me");
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY)").await;
    ok(&mut db, "BEGIN; INSERT INTO t VALUES (1); DELETE FROM t; INSERT INTO t VALUES (1)").await;
    assert_eq!(db.transaction_status(), b'T');
    assert_eq!(ok(&mut db, "ROLLBACK").await, "ROLLBACK");
    assert_eq!(ok(&mut db, "SELECT count(*) FROM t").await, "0");
}

#[tokio::test]
async fn an_error_fails_the_transaction() {
    let mut db = open().await.session("me");
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY)").await;
    ok(&mut db, "BEGIN; INSERT INTO t VALUES (1)").await;
    assert!(err(&mut db, "SELECT nope FROM t").await.starts_with("42703"));
    assert_eq!(db.transaction_status(), b'E');
    assert_eq!(
        err(&mut db, "SELECT 1").await,
        "25P02 current transaction is aborted, commands ignored until end of transaction block",
    );
    assert_eq!(ok(&mut db, "COMMIT").await, "ROLLBACK");
    assert_eq!(ok(&mut db, "SELECT count(*) FROM t").await, "0");
}

#[tokio::test]
async fn an_error_in_a_stream_fails_the_transaction() {
    let mut db = open().await.session("me");
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (0); BEGIN").await;
    assert_eq!(err(&mut db, "SELECT 1 / id FROM t").await, "22012 division by zero");
    assert_eq!(db.transaction_status(), b'E');
}

#[tokio::test]
async fn ddl_is_refused_in_a_transaction_block() {
    let mut db = open().await.session("me");
    ok(&mut db, "BEGIN").await;
    assert_eq!(
        err(&mut db, "CREATE TABLE t (id INT)").await,
        "25001 CREATE TABLE cannot run inside a transaction block"
    );
}

#[tokio::test]
async fn a_read_only_transaction_changes_nothing() {
    let mut db = open().await.session("me");
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY); BEGIN READ ONLY").await;
    assert_eq!(
        err(&mut db, "INSERT INTO t VALUES (1)").await,
        "25006 cannot execute INSERT in a read-only transaction"
    );
    ok(&mut db, "ROLLBACK").await;
    ok(&mut db, "INSERT INTO t VALUES (1)").await;
}
