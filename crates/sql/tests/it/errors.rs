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
    expect![[r#"
        SELECT 1 1
            42601 10 syntax error at or near "1"
        SELEC 1
            42601 1 syntax error at or near "SELEC"
        SELECT 'é' FROM FROM
            42601 17 syntax error at or near "FROM"
        SELECT 1; SELECT 'ä'; SELECT (1
            42601 32 syntax error at end of input
        SELECT 1;

        SELECT
          a b c
            42601 25 syntax error at or near "c"
        CREATE SOURCE s (a INT, ) WITH (connector = 'file')
            42601 25 syntax error at or near ")"
        CREATE SOURCE s (a INT) WITH (connector 'file')
            42601 41 syntax error at or near "'file'"
        CREATE TABLE select (a INT)
            42601 14 syntax error at or near "select"
        CREATE TABLE t (a INT,
         a TEXT)
            42701 25 column "a" specified more than once
        CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))
            42P16 36 multiple primary keys are not allowed
        CREATE TABLE t (a INT, PRIMARY KEY (b))
            42703 24 column "b" named in key does not exist
        CREATE TABLE t (a INT, WATERMARK FOR b AS b)
            42703 24 column "b" does not exist
        CREATE MATERIALIZED VIEW v SELECT 1
            42601 28 syntax error at or near "SELECT"
        CREATE MATERIALIZED VIEW v AS SELECT 1 FROM t EMIT ON WINDOW
            42601 55 syntax error at or near "WINDOW"
        SELECT "" FROM t
            ok
        SELECT 'abc
            42601 8 unterminated quoted string at or near "'abc"
        SELECT "abc
            42601 8 unterminated quoted identifier at or near ""abc"
        SELECT /* abc
            42601 14 unterminated /* comment
        SELECT $$abc
            42601 13 unterminated dollar-quoted string
        INSERT t VALUES (1)
            42601 8 syntax error at or near "t"
        INSERT INTO t VALUES (1
            42601 24 syntax error at end of input
        DELETE t
            42601 9 syntax error at end of input
        UPDATE t SET a
            42601 15 syntax error at end of input
        SET a
            42601 6 syntax error at end of input
        BEGIN ISOLATION LEVEL FOO
            42601 23 syntax error at or near "FOO"
        EXPLAIN (FOO) SELECT 1
            42601 10 unrecognized EXPLAIN option "foo"

            ok
         ; ;
            ok
    "#]]
    .assert_eq(&outcomes(&[
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
    expect![[r#"
        SELECT 1;  CREATE FUNCTION f() RETURNS int AS 'x'
            0A000 12 CREATE FUNCTION is not supported
        CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1
            0A000 1 CREATE OR REPLACE MATERIALIZED VIEW is not supported
        CREATE OR REPLACE FUNCTION f() RETURNS int AS 'x'
            0A000 1 CREATE OR REPLACE FUNCTION is not supported
        CREATE TEMP TABLE t (a INT)
            0A000 1 CREATE TEMP TABLE is not supported
        CREATE TABLE t AS SELECT 1
            0A000 1 CREATE TABLE AS is not supported
        CREATE UNIQUE INDEX i ON t (a)
            0A000 1 CREATE UNIQUE INDEX is not supported
        CREATE FOO bar
            42601 8 syntax error at or near "FOO"
        ALTER TABLE t ADD COLUMN b INT
            0A000 1 ALTER TABLE is not supported
        ALTER MATERIALIZED VIEW v RENAME TO w
            0A000 1 ALTER MATERIALIZED VIEW is not supported
        DROP FUNCTION f
            0A000 1 DROP FUNCTION is not supported
        DROP TABLESPACE f
            0A000 1 DROP TABLESPACE is not supported
        COPY t FROM STDIN
            0A000 1 COPY is not supported
        DECLARE c CURSOR FOR SELECT 1
            0A000 1 DECLARE is not supported
        SAVEPOINT a
            0A000 1 SAVEPOINT is not supported
        ROLLBACK TO a
            0A000 1 ROLLBACK TO SAVEPOINT is not supported
        COMMENT ON TABLE t IS 'x'
            0A000 1 COMMENT ON is not supported
        REFRESH MATERIALIZED VIEW v
            0A000 1 REFRESH MATERIALIZED VIEW is not supported
        WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a
            0A000 1 WITH … INSERT is not supported
        SELECT 1 INTO t
            0A000 1 SELECT INTO is not supported
        CREATE TABLE t (a INT UNIQUE)
            0A000 23 UNIQUE constraint is not supported
        CREATE TABLE t (a INT CHECK (a > 0))
            0A000 23 CHECK constraint is not supported
        CREATE SOURCE s (a INT, b AS a + 1) WITH (connector = 'file')
            0A000 27 a computed column is not supported
        CREATE SOURCE s (a INT PRIMARY KEY) WITH (connector = 'file')
            0A000 24 PRIMARY KEY of a relation with a connector is not supported
        CREATE SOURCE s (a INT)
            22023 24 option "connector" is missing
        CREATE MATERIALIZED VIEW v AS SELECT 1 FROM t EMIT EVERY INTERVAL '1 second'
            0A000 52 EMIT EVERY is not supported
        CREATE MATERIALIZED VIEW v AS SELECT 1 FROM t WITH NO DATA
            0A000 47 WITH NO DATA is not supported
        EXPLAIN (FORMAT JSON) SELECT 1
            0A000 17 EXPLAIN (FORMAT json) is not supported
        EXPLAIN EXPLAIN SELECT 1
            0A000 9 EXPLAIN of this statement is not supported
        SELECT * FROM a.b.c.d
            ok
        DROP TABLE a.b.c
            0A000 12 a name with a database is not supported
    "#]]
    .assert_eq(&outcomes(&[
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
