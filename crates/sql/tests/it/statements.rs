//! What each statement parses to.

use expect_test::expect;
use sql::Statement;

use crate::outcome;

fn one(text: &str) -> Statement {
    let mut parsed = sql::parse(text).unwrap();
    assert_eq!(parsed.len(), 1, "{text}");
    parsed.remove(0).statement
}

#[test]
fn a_source_has_columns_watermark_options_and_format() {
    let Statement::CreateSource(source) = one("CREATE SOURCE IF NOT EXISTS S.Bid (auction BIGINT, \"dateTime\" TIMESTAMP(3) NOT NULL,
        WATERMARK FOR \"dateTime\" AS \"dateTime\" - INTERVAL '4' SECOND)
        WITH (connector = 'file', 'Path' = '/x/*.json', scan.startup.mode = 'earliest', follow = true, n = -1, csv.delimiter = ';')
        FORMAT PLAIN ENCODE CSV (header = 'false')")
    else {
        panic!()
    };
    assert!(source.if_not_exists);
    assert_eq!(
        (source.name.schema.as_deref(), source.name.name.as_str(), source.name.position),
        (Some("s"), "bid", 29)
    );
    let columns: Vec<_> = source
        .columns
        .iter()
        .map(|column| format!("{} {} {}", column.name, column.data_type, column.not_null))
        .collect();
    assert_eq!(columns, ["auction BIGINT false", "dateTime TIMESTAMP(3) true"]);
    let watermark = source.watermark.unwrap();
    assert_eq!(watermark.column, "dateTime");
    assert_eq!(watermark.expression.to_string(), "\"dateTime\" - INTERVAL '4' SECOND");
    expect![[r#"{"connector": "file", "follow": "true", "n": "-1", "path": "/x/*.json", "scan.startup.mode": "earliest"} FormatDefinition { format: Some("plain"), encode: Some("csv"), options: {"delimiter": ";", "header": "false"} }"#]].assert_eq(&format!("{:?} {:?}", source.options, source.format));
}

#[test]
fn format_in_with_and_format_encode_mean_the_same() {
    let format = |text: &str| match one(text) {
        Statement::CreateSource(source) => (source.format, source.options),
        other => panic!("{other:?}"),
    };
    let clause = format("CREATE SOURCE s (a INT) WITH (connector = 'file') FORMAT PLAIN ENCODE JSON");
    assert_eq!(clause, format("CREATE SOURCE s (a INT) WITH (connector = 'file', format = 'json')"));
    assert_eq!(clause, format("CREATE SOURCE s (a INT) WITH ('connector' = 'file', 'format' = 'JSON')"));
    assert_eq!(clause, format("CREATE TABLE s (a INT) WITH ('connector' = 'file', 'format' = 'json')"));
    assert_eq!(
        outcome(
            "CREATE SOURCE s (a INT) WITH (connector = 'file', format = 'json') FORMAT PLAIN ENCODE JSON"
        ),
        "42601 68 FORMAT and the option \"format\" are both given"
    );
}

#[test]
fn a_table_has_a_key_and_defaults() {
    let Statement::CreateTable(table) = one(
        "CREATE TABLE t (a INT DEFAULT 1 + 2 NOT NULL, b TEXT, c NUMERIC(10,2) NULL, CONSTRAINT k PRIMARY KEY (b, a) NOT ENFORCED)",
    ) else {
        panic!()
    };
    assert_eq!(table.primary_key, ["b", "a"]);
    let columns: Vec<_> = table
        .columns
        .iter()
        .map(|column| (column.not_null, column.default.as_ref().map(ToString::to_string)))
        .collect();
    assert_eq!(columns, [(true, Some("1 + 2".to_owned())), (true, None), (false, None)]);
    let Statement::CreateTable(table) = one("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)") else { panic!() };
    assert_eq!(table.primary_key, ["id"]);
    assert!(table.columns[0].not_null);
}

#[test]
fn views_keep_the_text_of_their_query() {
    let text = "CREATE MATERIALIZED VIEW IF NOT EXISTS v (a, b) AS\n SELECT 'é', /* two */ x\n  FROM t  EMIT ON WINDOW CLOSE ALLOWED LATENESS INTERVAL '1 minute' ;";
    let Statement::CreateMaterializedView(view) = one(text) else { panic!() };
    assert_eq!(view.query_text, "SELECT 'é', /* two */ x\n  FROM t");
    assert_eq!(view.columns, ["a", "b"]);
    assert!(view.if_not_exists && view.emit.on_window_close);
    assert_eq!(view.emit.allowed_lateness, 60_000_000);
    let Statement::CreateView(view) = one("CREATE VIEW v AS SELECT 1") else { panic!() };
    assert_eq!(view.query_text, "SELECT 1");
}

#[test]
fn a_column_or_relation_may_be_called_emit() {
    for text in [
        "SELECT emit FROM t",
        "SELECT a AS emit FROM t",
        "SELECT a FROM t emit",
        "SELECT emit.on FROM t AS emit",
        "SELECT 1 FROM a JOIN emit ON window",
        "SELECT 1 FROM a JOIN b emit ON emit.x = a.x",
    ] {
        let Statement::CreateMaterializedView(view) = one(&format!("CREATE MATERIALIZED VIEW v AS {text}"))
        else {
            panic!()
        };
        assert!(!view.emit.on_window_close, "{text}");
        assert_eq!(view.query_text, text);
        let full = format!("CREATE MATERIALIZED VIEW v AS {text} EMIT ON WINDOW CLOSE");
        if !text.contains("ON window") {
            let Statement::CreateMaterializedView(view) = one(&full) else { panic!() };
            assert!(view.emit.on_window_close, "{full}");
            assert_eq!(view.query_text, text);
        }
    }
}

#[test]
fn sinks_read_a_relation_or_a_query() {
    let sink = |text: &str| match one(text) {
        Statement::CreateSink(sink) => {
            (sink.query.to_string(), sink.query_text, sink.emit.is_some(), sink.options.len())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        sink("CREATE SINK k FROM s.\"V\" WITH (connector = 'blackhole')"),
        ("SELECT * FROM s.\"V\"".to_owned(), "SELECT * FROM s.\"V\"".to_owned(), false, 1)
    );
    assert_eq!(
        sink("CREATE SINK k AS SELECT a FROM t EMIT ON WINDOW CLOSE WITH (connector = 'blackhole', x = 1)"),
        ("SELECT a FROM t".to_owned(), "SELECT a FROM t".to_owned(), true, 2)
    );
    assert_eq!(
        outcome("CREATE SINK k FROM a b WITH (connector = 'blackhole')"),
        "42601 24 syntax error at or near \"WITH\""
    );
}

#[test]
fn small_statements() {
    let texts = [
        "DROP MATERIALIZED VIEW IF EXISTS a, s.b CASCADE",
        "DROP SCHEMA s RESTRICT",
        "SHOW TABLES",
        "SHOW MATERIALIZED VIEWS",
        "SHOW Search_Path",
        "SHOW ALL",
        "SHOW TIME ZONE",
        "SHOW TRANSACTION ISOLATION LEVEL",
        "SHOW COLUMNS FROM t",
        "SHOW CREATE MATERIALIZED VIEW v",
        "DESCRIBE v",
        "DESC v",
        "EXPLAIN MATERIALIZED VIEW v",
        "FLUSH",
        "FLUSH DURABLE",
        "SET DateStyle = ISO, MDY",
        "SET search_path TO a, \"B\"",
        "SET LOCAL statement_timeout = 5000",
        "SET SESSION x.y TO 'z'",
        "SET extra_float_digits = -3",
        "SET TIME ZONE 'Europe/Berlin'",
        "SET TIME ZONE -7",
        "SET TIME ZONE INTERVAL '+01:00' HOUR TO MINUTE",
        "SET TIME ZONE LOCAL",
        "SET NAMES 'utf8'",
        "SET a TO DEFAULT",
        "RESET a",
        "RESET ALL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
        "BEGIN",
        "BEGIN WORK",
        "START TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
        "COMMIT AND NO CHAIN",
        "END TRANSACTION",
        "ROLLBACK WORK",
        "ABORT",
        "DISCARD ALL",
        "DEALLOCATE ALL",
        "DEALLOCATE PREPARE p",
        "CLOSE ALL",
        "UNLISTEN *",
        "CREATE SCHEMA IF NOT EXISTS s",
    ];
    let all: Vec<String> = texts.iter().map(|text| format!("{text}\n    {}", outcome(text))).collect();
    expect![[r#"
        DROP MATERIALIZED VIEW IF EXISTS a, s.b CASCADE
            Drop(Drop { object: MaterializedView, names: [QualifiedName { schema: None, name: "a", position: 34 }, QualifiedName { schema: Some("s"), name: "b", position: 37 }], if_exists: true, cascade: true })
        DROP SCHEMA s RESTRICT
            Drop(Drop { object: Schema, names: [QualifiedName { schema: None, name: "s", position: 13 }], if_exists: false, cascade: false })
        SHOW TABLES
            Show(Tables)
        SHOW MATERIALIZED VIEWS
            Show(MaterializedViews)
        SHOW Search_Path
            Show(Setting("search_path"))
        SHOW ALL
            Show(All)
        SHOW TIME ZONE
            Show(Setting("timezone"))
        SHOW TRANSACTION ISOLATION LEVEL
            Show(Setting("transaction_isolation"))
        SHOW COLUMNS FROM t
            Show(Columns(QualifiedName { schema: None, name: "t", position: 19 }))
        SHOW CREATE MATERIALIZED VIEW v
            Show(Create("materialized view", QualifiedName { schema: None, name: "v", position: 31 }))
        DESCRIBE v
            Describe(QualifiedName { schema: None, name: "v", position: 10 })
        DESC v
            Describe(QualifiedName { schema: None, name: "v", position: 6 })
        EXPLAIN MATERIALIZED VIEW v
            ExplainRelation(QualifiedName { schema: None, name: "v", position: 27 })
        FLUSH
            Flush { durable: false }
        FLUSH DURABLE
            Flush { durable: true }
        SET DateStyle = ISO, MDY
            Set { name: "datestyle", value: ["iso", "mdy"], local: false }
        SET search_path TO a, "B"
            Set { name: "search_path", value: ["a", "B"], local: false }
        SET LOCAL statement_timeout = 5000
            Set { name: "statement_timeout", value: ["5000"], local: true }
        SET SESSION x.y TO 'z'
            Set { name: "x.y", value: ["z"], local: false }
        SET extra_float_digits = -3
            Set { name: "extra_float_digits", value: ["-3"], local: false }
        SET TIME ZONE 'Europe/Berlin'
            Set { name: "timezone", value: ["Europe/Berlin"], local: false }
        SET TIME ZONE -7
            Set { name: "timezone", value: ["-7"], local: false }
        SET TIME ZONE INTERVAL '+01:00' HOUR TO MINUTE
            Set { name: "timezone", value: ["+01:00"], local: false }
        SET TIME ZONE LOCAL
            Reset { name: Some("timezone") }
        SET NAMES 'utf8'
            Set { name: "client_encoding", value: ["utf8"], local: false }
        SET a TO DEFAULT
            Reset { name: Some("a") }
        RESET a
            Reset { name: Some("a") }
        RESET ALL
            Reset { name: None }
        SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
            SetTransaction { modes: TransactionModes { isolation: None, read_only: Some(true), deferrable: None }, session: true }
        SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE
            SetTransaction { modes: TransactionModes { isolation: Some(RepeatableRead), read_only: Some(false), deferrable: None }, session: false }
        BEGIN
            Begin(TransactionModes { isolation: None, read_only: None, deferrable: None })
        BEGIN WORK
            Begin(TransactionModes { isolation: None, read_only: None, deferrable: None })
        START TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE
            StartTransaction(TransactionModes { isolation: Some(Serializable), read_only: Some(true), deferrable: Some(true) })
        COMMIT AND NO CHAIN
            Commit
        END TRANSACTION
            Commit
        ROLLBACK WORK
            Rollback
        ABORT
            Rollback
        DISCARD ALL
            Discard { tag: "DISCARD ALL" }
        DEALLOCATE ALL
            Discard { tag: "DEALLOCATE ALL" }
        DEALLOCATE PREPARE p
            Discard { tag: "DEALLOCATE" }
        CLOSE ALL
            Discard { tag: "CLOSE CURSOR ALL" }
        UNLISTEN *
            Discard { tag: "UNLISTEN" }
        CREATE SCHEMA IF NOT EXISTS s
            CreateSchema { name: "s", if_not_exists: true }"#]].assert_eq(&all.join("\n"));
}

#[test]
fn queries_and_dml() {
    for text in [
        "SELECT 1",
        "VALUES (1), (2)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT 1) UNION ALL SELECT 2",
        "SELECT CAST(a AS TEXT), b::int[], c[1], (r).f FROM t",
        "SELECT count(*) FILTER (WHERE a > 1), count(DISTINCT a) FROM t GROUP BY ROLLUP (b)",
        "SELECT * FROM TUMBLE(bid, ts, INTERVAL '10' SECOND, INTERVAL '1 second')",
        "SELECT EXTRACT(HOUR FROM ts), ts AT TIME ZONE 'UTC' FROM t",
        "SELECT $1::int4, 'a' || 'b', x ~ 'a', E'\\n'",
        "INSERT INTO t SELECT * FROM s",
        "INSERT INTO t TABLE s",
        "INSERT INTO t (a) WITH x AS (SELECT 1) SELECT * FROM x",
        "INSERT INTO t (a, b) VALUES (1, DEFAULT) RETURNING a",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t AS x (a) VALUES (1) ON CONFLICT (a) DO NOTHING",
        "UPDATE t SET a = 1, b = b + 1 WHERE c RETURNING *",
        "UPDATE t AS x SET a = s.a FROM s WHERE x.b = s.b",
        "DELETE FROM t WHERE a RETURNING a",
        "DELETE FROM t USING s WHERE t.a = s.a",
        "EXPLAIN SELECT 1",
        "EXPLAIN (ANALYZE, VERBOSE off, COSTS 0) SELECT 1",
        "EXPLAIN (SELECT 1)",
        "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1",
        "EXPLAIN ANALYZE VERBOSE SELECT 1",
    ] {
        if let Err(error) = sql::parse(text) {
            panic!("{text}: {error} at {:?}", error.position);
        }
    }
}

#[test]
fn table_is_a_query() {
    let Statement::Query(query) = one("TABLE s.\"T\" UNION ALL (TABLE u) ORDER BY 1") else { panic!() };
    assert_eq!(query.to_string(), "SELECT * FROM s.\"T\" UNION ALL (SELECT * FROM u) ORDER BY 1");
}

#[test]
fn positions_in_trees_count_characters_of_the_statement() {
    let parsed = sql::parse("SELECT 1;\n SELECT 'é',\n nope FROM t").unwrap();
    let Statement::Query(query) = &parsed[1].statement else { panic!() };
    let sqlparser::ast::SetExpr::Select(select) = query.body.as_ref() else { panic!() };
    let sqlparser::ast::SelectItem::UnnamedExpr(expr) = &select.projection[1] else { panic!() };
    let start = sqlparser::ast::Spanned::span(expr).start;
    assert_eq!((start.line, start.column, parsed[1].offset), (1, 14, 11));
}
