//! Prepared statements.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use engine::{Session, StatementKind};

use crate::database::{ok, session, show};

async fn call(db: &mut Session, text: &str, values: Vec<ScalarValue>) -> String {
    let prepared = db.prepare(text, &[]).await.unwrap();
    let output = db.execute_prepared(&prepared, values).await.unwrap();
    show(output).await.unwrap()
}

#[tokio::test]
async fn parameters_are_inferred() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, at TIMESTAMP)").await;
    let prepared = db.prepare("SELECT name FROM t WHERE id = $1", &[]).await.unwrap();
    assert_eq!(prepared.kind, StatementKind::Query);
    assert_eq!(prepared.parameters, [DataType::Int64]);
    assert_eq!(prepared.schema.unwrap().field(0).name(), "name");
    let prepared = db.prepare("INSERT INTO t VALUES ($1, $2, $3) RETURNING id", &[]).await.unwrap();
    assert_eq!(prepared.kind, StatementKind::Dml);
    assert_eq!(prepared.parameters[..2], [DataType::Int64, DataType::Utf8View]);
    assert_eq!(prepared.schema.unwrap().field(0).name(), "id");
    let prepared = db.prepare("UPDATE t SET name = $2 WHERE id = $1", &[]).await.unwrap();
    assert_eq!(prepared.parameters, [DataType::Int64, DataType::Utf8View]);
    let prepared = db.prepare("SELECT $1::int + $2", &[None, Some(DataType::Int32)]).await.unwrap();
    assert_eq!(prepared.parameters, [DataType::Int32, DataType::Int32]);
}

#[tokio::test]
async fn values_take_the_place_of_parameters() {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT)").await;
    let text = |value: &str| ScalarValue::Utf8View(Some(value.to_owned()));
    let insert = "INSERT INTO t VALUES ($1, $2)";
    assert_eq!(call(&mut db, insert, vec![ScalarValue::Int64(Some(1)), text("it's")]).await, "INSERT 1");
    assert_eq!(
        call(&mut db, insert, vec![ScalarValue::Int64(Some(2)), ScalarValue::Utf8View(None)]).await,
        "INSERT 1"
    );
    let select = "SELECT name FROM t WHERE id = $1";
    assert_eq!(call(&mut db, select, vec![ScalarValue::Int64(Some(1))]).await, "it's");
    assert_eq!(call(&mut db, select, vec![ScalarValue::Int64(Some(2))]).await, "NULL");
    let update = "UPDATE t SET name = $2 WHERE id = $1";
    assert_eq!(call(&mut db, update, vec![ScalarValue::Int64(Some(2)), text("b")]).await, "UPDATE 1");
    assert_eq!(call(&mut db, "SELECT id FROM t WHERE name = $1", vec![text("b")]).await, "2");
    assert_eq!(
        call(&mut db, "SELECT id FROM t ORDER BY id LIMIT $1", vec![ScalarValue::Int64(Some(1))]).await,
        "1"
    );
}
