//! Flink's spellings and what they are mapped to.

use expect_test::expect;
use sql::Statement;

fn canonical(text: &str) -> String {
    let parsed = sql::parse(text).unwrap().remove(0);
    let Statement::Query(query) = &parsed.statement else { panic!("{text}") };
    let again = sql::parse(&query.to_string()).unwrap().remove(0);
    assert!(again.notices.is_empty(), "the canonical form has no aliases: {query}");
    let notices: String = parsed.notices.iter().map(|notice| format!("\n-- {notice}")).collect();
    format!("{query}{notices}\n")
}

#[test]
fn window_table_functions() {
    let texts = [
        "SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))",
        "SELECT * FROM TABLE(TUMBLE(TABLE s.bid, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '1' SECOND)) AS w (a)",
        "SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(`Ts`), INTERVAL '10' SECOND)",
        "SELECT * FROM TABLE(TUMBLE(SIZE => INTERVAL '10' SECOND, DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts)))",
        "SELECT * FROM (SELECT * FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))) x",
        "SELECT * FROM TUMBLE(bid, ts, INTERVAL '10' SECOND)",
    ];
    let all: String = texts.iter().map(|text| canonical(text)).collect();
    expect![[r#"
        SELECT * FROM TUMBLE(bid, ts, INTERVAL '10' SECOND)
        -- TABLE(TUMBLE(TABLE …, DESCRIPTOR(…), …)) was mapped to TUMBLE(relation, column, …)
        SELECT * FROM TUMBLE(s.bid, ts, INTERVAL '10' SECOND, INTERVAL '1' SECOND) AS w (a)
        -- TABLE(TUMBLE(TABLE …, DESCRIPTOR(…), …)) was mapped to TUMBLE(relation, column, …)
        SELECT * FROM TUMBLE(bid, `Ts`, INTERVAL '10' SECOND)
        -- TABLE(TUMBLE(TABLE …, DESCRIPTOR(…), …)) was mapped to TUMBLE(relation, column, …)
        SELECT * FROM TUMBLE(bid, ts, INTERVAL '10' SECOND)
        -- TABLE(TUMBLE(TABLE …, DESCRIPTOR(…), …)) was mapped to TUMBLE(relation, column, …)
        SELECT * FROM (SELECT * FROM HOP(bid, ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND)) x
        -- TABLE(HOP(TABLE …, DESCRIPTOR(…), …)) was mapped to HOP(relation, column, …)
        SELECT * FROM TUMBLE(bid, ts, INTERVAL '10' SECOND)
    "#]]
    .assert_eq(&all);
}

#[test]
fn group_windows() {
    let texts = [
        "SELECT k, TUMBLE_START(ts, INTERVAL '1' HOUR) AS s, TUMBLE_END(ts, INTERVAL '1' HOUR), count(*) FROM bid GROUP BY k, TUMBLE(ts, INTERVAL '1' HOUR)",
        "SELECT b.k, tumble_rowtime(b.ts, INTERVAL '1' HOUR) FROM s.bid b WHERE b.x > 1 GROUP BY TUMBLE(b.ts, INTERVAL '1' HOUR), b.k HAVING TUMBLE_END(b.ts, INTERVAL '1' HOUR) > '2020-01-01' ORDER BY TUMBLE_START(b.ts, INTERVAL '1' HOUR)",
    ];
    let all: String = texts.iter().map(|text| canonical(text)).collect();
    expect![[r#"
        SELECT k, window_start AS s, window_end, count(*) FROM TUMBLE(bid, ts, INTERVAL '1' HOUR) AS bid GROUP BY k, window_start, window_end
        -- GROUP BY TUMBLE(column, size) was mapped to FROM TUMBLE(relation, column, size) GROUP BY window_start, window_end
        SELECT b.k, window_time FROM TUMBLE(s.bid, ts, INTERVAL '1' HOUR) b WHERE b.x > 1 GROUP BY window_start, window_end, window_time, b.k HAVING window_end > '2020-01-01' ORDER BY window_start
        -- GROUP BY TUMBLE(column, size) was mapped to FROM TUMBLE(relation, column, size) GROUP BY window_start, window_end
    "#]].assert_eq(&all);
}

#[test]
fn group_windows_over_a_join_are_refused() {
    let error = sql::parse("SELECT 1 FROM a, b GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)").unwrap_err();
    assert_eq!((error.sqlstate(), error.position), ("0A000", Some(29)));
}

#[test]
fn a_view_over_an_alias_stores_the_canonical_text() {
    let parsed = sql::parse(
        "CREATE MATERIALIZED VIEW v AS SELECT count(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR))
         GROUP BY window_start, window_end EMIT ON UPDATE",
    )
    .unwrap()
    .remove(0);
    let Statement::CreateMaterializedView(view) = parsed.statement else { panic!() };
    expect!["SELECT count(*) FROM TUMBLE(bid, ts, INTERVAL '1' HOUR) GROUP BY window_start, window_end"]
        .assert_eq(&view.query_text);
}
