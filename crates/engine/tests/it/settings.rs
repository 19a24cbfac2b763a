//! SET, RESET, SHOW and the functions about the session.

use crate::database::{columns, err, ok, session};

#[tokio::test]
async fn set_local_ends_with_the_transaction() {
    let mut db = session().await;
    ok(&mut db, "SET application_name = 'a'; BEGIN; SET LOCAL application_name = 'b'").await;
    assert_eq!(ok(&mut db, "SHOW application_name").await, "b");
    ok(&mut db, "COMMIT").await;
    assert_eq!(ok(&mut db, "SHOW application_name").await, "a");
    ok(&mut db, "BEGIN; SET application_name = 'c'; ROLLBACK").await;
    assert_eq!(ok(&mut db, "SHOW application_name").await, "a");
    ok(&mut db, "BEGIN; SET application_name = 'c'; COMMIT").await;
    assert_eq!(ok(&mut db, "SHOW application_name").await, "c");
}

#[tokio::test]
async fn unknown_settings_are_refused() {
    let mut db = session().await;
    assert_eq!(err(&mut db, "SET nope = 1").await, "42704 unrecognized configuration parameter \"nope\"");
    assert_eq!(err(&mut db, "SHOW nope").await, "42704 unrecognized configuration parameter \"nope\"");
}

#[tokio::test]
async fn functions_know_the_session() {
    let mut db = session().await;
    assert_eq!(
        ok(&mut db, "SELECT current_user, current_database(), current_schema()").await,
        "me|highwater|public"
    );
    ok(&mut db, "SET timezone = 'Europe/Berlin'").await;
    assert_eq!(ok(&mut db, "SELECT current_setting('TimeZone')").await, "Europe/Berlin");
    assert_eq!(ok(&mut db, "SELECT set_config('application_name', 'x', false)").await, "x");
    assert_eq!(ok(&mut db, "SHOW application_name").await, "x");
    assert_eq!(columns(&mut db, "SHOW timezone").await, ["TimeZone"]);
    assert!(ok(&mut db, "SELECT version()").await.starts_with("PostgreSQL 15"));
}

#[tokio::test]
async fn now_stands_still_in_a_transaction() {
    let mut db = session().await;
    ok(&mut db, "BEGIN").await;
    let first = ok(&mut db, "SELECT now()").await;
    ok(&mut db, "SELECT 1").await;
    assert_eq!(ok(&mut db, "SELECT current_timestamp").await, first);
}
