//! SQLSTATE, position and wording of what cannot be parsed.

use std::fmt::Write;

use expect_test::expect;

use crate::outcome;

fn outcomes(texts: &[&str]) -> String {
    texts.iter().fold(String::new(), |mut out, text| {
        let result = match sql::parse(text) {
            Ok(_) => "ok".to_owned(),
            Err(_) => outcome(text),
        };
        writeln!(out, "{text}\n    {result}").unwrap();
        out
    })
}

#[test]
fn syntax_errors_point_at_the_token_in_characters() {
    expect![[]].assert_eq(&outcomes(&[
        "SELECT 1 1",
        "SELEC 1",
        "SELECT 'é' FROM FROM",
        "SELECT 1; SELECT 'ä'; SELECT (1",
        "SELECT 1;\n\nSELECT\n  a b c",
        "CREATE SOURCE s (a INT, ) WITH (connector = 'file')",
        "CREATE SOURCE s (a INT) WITH (connector 'file')",
        "CREATE TABLE select (a INT)",
        "CREATE TABLE t (a INT,\n a TEXT)",
        "CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))",
        "CREATE TABLE t (a INT, PRIMARY KEY (b))",
        "CREATE TABLE t (a INT, WATERMARK FOR b AS b)",
        "CREATE MATERIALIZED VIEW v SELECT 1",
        "CREATE MATERIALIZED VIEW v AS SELECT 1 FROM t EMIT ON WINDOW",
        "SELECT \"\" FROM t",
        "SELECT 'abc",
        "SELECT \"abc",
        "SELECT /* abc",
        "SELECT $$abc",
        "INSERT t VALUES (1)",
        "INSERT INTO t VALUES (1",
        "DELETE t",
        "UPDATE t SET a",
        "SET a",
        "BEGIN ISOLATION LEVEL FOO",
        "EXPLAIN (FOO) SELECT 1",
        "",
        " ; ;",
    ]));
}

#[test]
fn statements_we_do_not_have_are_named() {
    expect![[]].assert_eq(&outcomes(&[
        "SELECT 1;  CREATE FUNCTION f() RETURNS int AS 'x'",
        "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1",
        "CREATE OR REPLACE FUNCTION f() RETURNS int AS 'x'",
        "CREATE TEMP TABLE t (a INT)",
        "CREATE TABLE t AS SELECT 1",
        "CREATE UNIQUE INDEX i ON t (a)",
        "CREATE FOO bar",
        "ALTER TABLE t ADD COLUMN b INT",
        "ALTER MATERIALIZED VIEW v RENAME TO w",
        "DROP FUNCTION f",
        "DROP TABLESPACE f",
        "COPY t FROM STDIN",
        "DECLARE c CURSOR FOR SELECT 1",
        "SAVEPOINT a",
        "ROLLBACK TO a",
        "COMMENT ON TABLE t IS 'x'",
        "REFRESH MATERIALIZED VIEW v",
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "SELECT 1 INTO t",
        "CREATE TABLE t (a INT UNIQUE)",
        "CREATE TABLE t (a INT CHECK (a > 0))",
        "CREATE SOURCE s (a INT, b AS a + 1) WITH (connector = 'file')",
        "CREATE SOURCE s (a INT PRIMARY KEY) WITH (connector = 'file')",
        "CREATE SOURCE s (a INT)",
        "CREATE MATERIALIZED VIEW v AS SELECT 1 FROM t EMIT EVERY INTERVAL '1 second'",
        "CREATE MATERIALIZED VIEW v AS SELECT 1 FROM t WITH NO DATA",
        "EXPLAIN (FORMAT JSON) SELECT 1",
        "EXPLAIN EXPLAIN SELECT 1",
        "SELECT * FROM a.b.c.d",
        "DROP TABLE a.b.c",
    ]));
}
