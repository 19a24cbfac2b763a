//! Closing, crashing and opening again.

use std::path::Path;
use std::time::Duration;

use dataflow::ConnectorRegistry;
use engine::{Engine, EngineOptions};

use crate::database::{err, ok};

async fn open(path: &Path) -> Engine {
    let options = EngineOptions {
        data: Some(path.to_path_buf()),
        allowed_paths: Vec::new(),
        memory: 256 << 20,
        parallelism: 2,
        epoch_min: Duration::from_millis(2),
        epoch_max: Duration::from_millis(50),
        checkpoint_interval: Duration::from_secs(3600),
    };
    Engine::open(options, ConnectorRegistry::default()).await.unwrap()
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut db = engine.session("me");
    ok(&mut db, "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE u (v INT)").await;
    ok(&mut db, "CREATE MATERIALIZED VIEW s AS SELECT v, count(*) AS n FROM u GROUP BY v").await;
    ok(&mut db, "INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO u VALUES (7), (7)").await;
    ok(&mut db, "UPDATE t SET v = 3 WHERE id = 2; DELETE FROM t WHERE id = 1").await;
    drop(db);
    engine.abort().await;
    drop(engine);

    let engine = open(folder.path()).await;
    let mut db = engine.session("me");
    assert_eq!(ok(&mut db, "SELECT * FROM t").await, "2|3");
    assert_eq!(ok(&mut db, "SELECT * FROM s").await, "7|2");
    assert!(err(&mut db, "INSERT INTO t VALUES (2, 0)").await.starts_with("23505"));
    ok(&mut db, "INSERT INTO u VALUES (7), (8)").await;
    assert_eq!(ok(&mut db, "SELECT count(*) FROM u").await, "4", "row ids go on behind the old ones");
    assert_eq!(ok(&mut db, "SELECT * FROM s ORDER BY v").await, "7|3\n8|1");
    engine.shutdown().await;
}

#[tokio::test]
async fn a_closed_database_opens_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut db = engine.session("me");
    ok(&mut db, "CREATE SCHEMA s; CREATE TABLE s.t (id INT PRIMARY KEY, v TEXT DEFAULT 'x')").await;
    ok(&mut db, "CREATE VIEW w AS SELECT v FROM s.t; INSERT INTO s.t (id) VALUES (1)").await;
    let before = ok(&mut db, "SHOW CREATE TABLE s.t").await;
    drop(db);
    engine.shutdown().await;
    drop(engine);

    let engine = open(folder.path()).await;
    let mut db = engine.session("me");
    assert_eq!(ok(&mut db, "SHOW CREATE TABLE s.t").await, before);
    assert_eq!(ok(&mut db, "SELECT * FROM w").await, "x");
    ok(&mut db, "DROP SCHEMA s CASCADE").await;
    assert!(err(&mut db, "SELECT * FROM w").await.starts_with("42P01"));
    engine.shutdown().await;
}
