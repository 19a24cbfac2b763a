//! CREATE, DROP, SHOW, DESCRIBE, EXPLAIN and the system tables.

use crate::database::{err, ok, session};

#[tokio::test]
async fn names_are_taken_once() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY)").await;
    assert_eq!(err(&mut db, "CREATE TABLE t (id INT)").await, "42P07 relation \"t\" already exists");
    assert_eq!(ok(&mut db, "CREATE TABLE IF NOT EXISTS t (id INT)").await, "CREATE TABLE");
    assert_eq!(err(&mut db, "CREATE TABLE nope.t (id INT)").await, "3F000 schema \"nope\" does not exist");
    ok(&mut db, "CREATE SCHEMA s; CREATE TABLE s.t (v INT); INSERT INTO s.t VALUES (7)").await;
    assert_eq!(ok(&mut db, "SELECT * FROM s.t").await, "7");
}

#[tokio::test]
async fn what_others_depend_on_is_not_dropped() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT id FROM t").await;
    assert_eq!(
        err(&mut db, "DROP TABLE t").await,
        "2BP01 cannot drop table t because other objects depend on it"
    );
    assert_eq!(err(&mut db, "DROP VIEW v").await, "42809 \"v\" is not a view");
    assert_eq!(err(&mut db, "DROP TABLE nope").await, "42P01 table \"nope\" does not exist");
    assert_eq!(ok(&mut db, "DROP TABLE IF EXISTS nope").await, "DROP TABLE");
    assert_eq!(ok(&mut db, "DROP TABLE t CASCADE").await, "DROP TABLE");
    assert!(err(&mut db, "SELECT * FROM v").await.starts_with("42P01"));
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)").await;
    assert_eq!(ok(&mut db, "SELECT * FROM t").await, "1");
}

#[tokio::test]
async fn show_and_describe() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, v NUMERIC(10,2) DEFAULT 1)").await;
    assert_eq!(ok(&mut db, "SHOW TABLES").await, "public|t|me");
    assert_eq!(
        ok(&mut db, "DESCRIBE t").await,
        "id|integer|false|NULL|primary key\nv|numeric(10,2)|true|1|NULL"
    );
    assert!(ok(&mut db, "SHOW CREATE TABLE t").await.starts_with("t|CREATE TABLE"));
    assert!(ok(&mut db, "SHOW JOBS").await.contains("|t|table|RUNNING|"));
    assert!(ok(&mut db, "SELECT name, state FROM highwater.jobs").await.contains("t|RUNNING"));
}

#[tokio::test]
async fn system_tables_know_what_exists() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL)").await;
    assert_eq!(
        ok(&mut db, "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position").await,
        "id|bigint|NO\nname|text|NO",
    );
    assert_eq!(ok(&mut db, "SELECT relkind FROM pg_class WHERE relname = 't'").await, "r");
    assert_eq!(ok(&mut db, "SELECT relname FROM pg_class WHERE oid = 't'::regclass").await, "t");
    assert_eq!(ok(&mut db, "SELECT tablename FROM pg_tables").await, "t");
}
