//! INSERT, UPDATE, DELETE.

use crate::database::{err, ok, session};

#[tokio::test]
async fn a_query_sees_every_row_acknowledged_before_it() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT)").await;
    assert_eq!(ok(&mut db, "INSERT INTO t VALUES (1, 'a'), (2, 'b')").await, "INSERT 2");
    assert_eq!(ok(&mut db, "SELECT * FROM t ORDER BY id").await, "1|a\n2|b");
    assert_eq!(ok(&mut db, "UPDATE t SET name = name || '!' WHERE id = 2").await, "UPDATE 1");
    assert_eq!(ok(&mut db, "SELECT name FROM t WHERE id = 2").await, "b!");
    assert_eq!(ok(&mut db, "DELETE FROM t WHERE id = 1").await, "DELETE 1");
    assert_eq!(ok(&mut db, "SELECT * FROM t").await, "2|b!");
}

#[tokio::test]
async fn a_table_without_a_key_keeps_equal_rows_apart() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (v INT)").await;
    ok(&mut db, "INSERT INTO t VALUES (1), (1), (2)").await;
    assert_eq!(ok(&mut db, "SELECT * FROM t ORDER BY v").await, "1\n1\n2");
    assert_eq!(ok(&mut db, "UPDATE t SET v = v + 1").await, "UPDATE 3");
    assert_eq!(ok(&mut db, "DELETE FROM t WHERE v = 2").await, "DELETE 2");
    assert_eq!(ok(&mut db, "SELECT count(*), min(v) FROM t").await, "1|3");
}

#[tokio::test]
async fn keys_are_unique_and_not_null() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)").await;
    ok(&mut db, "INSERT INTO t VALUES (1, 1)").await;
    let duplicate = "23505 duplicate key value violates unique constraint \"t_pkey\"";
    assert_eq!(err(&mut db, "INSERT INTO t VALUES (1, 2)").await, duplicate);
    assert_eq!(err(&mut db, "INSERT INTO t VALUES (2, 2), (2, 3)").await, duplicate);
    assert_eq!(
        err(&mut db, "INSERT INTO t VALUES (3, NULL)").await,
        "23502 null value in column \"v\" of relation \"t\" violates not-null constraint",
    );
    assert_eq!(
        err(&mut db, "INSERT INTO t (v) VALUES (1)").await,
        "23502 null value in column \"id\" of relation \"t\" violates not-null constraint",
    );
    assert_eq!(ok(&mut db, "SELECT * FROM t").await, "1|1", "a failed statement leaves nothing behind");
}

#[tokio::test]
async fn a_deleted_key_can_be_used_again_at_once() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    for round in 0..20 {
        ok(&mut db, &format!("INSERT INTO t VALUES (1, {round})")).await;
        assert_eq!(ok(&mut db, "DELETE FROM t WHERE id = 1").await, "DELETE 1");
    }
    assert_eq!(ok(&mut db, "SELECT count(*) FROM t").await, "0");
}

#[tokio::test]
async fn keys_may_be_passed_on_in_one_update() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b')").await;
    assert_eq!(ok(&mut db, "UPDATE t SET id = id + 1").await, "UPDATE 2");
    assert_eq!(ok(&mut db, "SELECT * FROM t ORDER BY id").await, "2|a\n3|b");
}

#[tokio::test]
async fn defaults_column_lists_and_casts() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, a TEXT DEFAULT 'x', b NUMERIC(10,2), c DOUBLE PRECISION DEFAULT 1 + 1)").await;
    ok(&mut db, "INSERT INTO t (b, id) VALUES (1.005, 1), (2, '2')").await;
    ok(&mut db, "INSERT INTO t VALUES (3, DEFAULT, DEFAULT, DEFAULT), (4, NULL, 7, 0.5)").await;
    assert_eq!(
        ok(&mut db, "SELECT id, a, c FROM t ORDER BY id").await,
        "1|x|2.0\n2|x|2.0\n3|x|2.0\n4|NULL|0.5",
    );
    assert_eq!(
        err(&mut db, "INSERT INTO t (id) VALUES ('y')").await,
        "22P02 invalid input syntax for type integer: \"y\""
    );
    assert_eq!(
        err(&mut db, "INSERT INTO t (id, a) VALUES (1)").await,
        "42601 INSERT has more target columns than expressions"
    );
    assert_eq!(
        err(&mut db, "INSERT INTO t (id) VALUES (1, 2)").await,
        "42601 INSERT has more expressions than target columns"
    );
    assert_eq!(
        err(&mut db, "INSERT INTO t (nope) VALUES (1)").await,
        "42703 column \"nope\" of relation \"t\" does not exist"
    );
}

#[tokio::test]
async fn insert_select_and_returning() {
    let mut db = session().await;
    ok(
        &mut db,
        "CREATE TABLE a (id BIGINT PRIMARY KEY, v INT); CREATE TABLE b (id BIGINT PRIMARY KEY, v INT)",
    )
    .await;
    ok(&mut db, "INSERT INTO a VALUES (1, 10), (2, 20)").await;
    assert_eq!(
        ok(&mut db, "INSERT INTO b SELECT id + 100, v * 2 FROM a RETURNING id, v + 1 AS w").await,
        "101|21\n102|41"
    );
    assert_eq!(
        ok(&mut db, "UPDATE b SET v = a.v FROM a WHERE b.id = a.id + 100 RETURNING b.id, b.v").await,
        "101|10\n102|20"
    );
    assert_eq!(ok(&mut db, "DELETE FROM b WHERE v > 10 RETURNING *").await, "102|20");
}

#[tokio::test]
async fn many_rows_at_once() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)").await;
    let rows: Vec<String> = (0..20_000).map(|id| format!("({id}, 'v{id}')")).collect();
    assert_eq!(ok(&mut db, &format!("INSERT INTO t VALUES {}", rows.join(","))).await, "INSERT 20000");
    assert_eq!(ok(&mut db, "SELECT count(*), max(id) FROM t").await, "20000|19999");
    assert_eq!(ok(&mut db, "SELECT v FROM t WHERE id = 777").await, "v777");
    assert_eq!(ok(&mut db, "SELECT count(*) FROM t WHERE id >= 100 AND id < 200").await, "100");
}

#[tokio::test]
async fn concurrent_updates_of_one_row_all_count() {
    let engine = crate::database::open().await;
    let mut db = engine.session("me");
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 0)").await;
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let mut session = engine.session("me");
            tokio::task::spawn(async move {
                for _ in 0..10 {
                    ok(&mut session, "UPDATE t SET n = n + 1 WHERE id = 1").await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(ok(&mut db, "SELECT n FROM t").await, "40");
}
