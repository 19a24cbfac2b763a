//! What is refused: with which code, where, and what to do instead.

use expect_test::{Expect, expect};

use crate::database::{BID, Database};

fn check(query: &str, expected: Expect) {
    let database = Database::with(&[BID, "CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, at TIMESTAMP)"]);
    expected.assert_eq(&database.error(&format!("CREATE MATERIALIZED VIEW v AS {query}")));
}

#[test]
fn constructs_without_an_operator() {
    check(
        "SELECT t.id FROM t JOIN bid ON t.id = bid.bidder",
        expect![[r#"
            0A000 JOIN is not supported in a materialized view
            at bid ON t.id 
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT t.id FROM t, bid",
        expect![[r#"
            0A000 JOIN is not supported in a materialized view
            at bid
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT id FROM t ORDER BY id",
        expect![[r#"
            0A000 ORDER BY is not supported in a materialized view
            at id
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT id FROM t LIMIT 5",
        expect![[r#"
            0A000 LIMIT is not supported in a materialized view
            at 5
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT id, row_number() OVER (ORDER BY id) FROM t",
        expect![[r#"
            0A000 OVER is not supported in a materialized view
            at row_number()
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT id FROM t WHERE id IN (SELECT bidder FROM bid)",
        expect![[r#"
            0A000 a subquery in an expression is not supported in a materialized view
            at id IN (SELEC
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM bid WHERE bidder = id)",
        expect![[r#"
            0A000 a subquery in an expression is not supported in a materialized view
            at SELECT 1 FRO
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT DISTINCT ON (kind) id FROM t",
        expect![[r#"
            0A000 DISTINCT ON is not supported in a materialized view
            at kind) id FRO
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT kind, count(*) FROM t GROUP BY ROLLUP (kind)",
        expect![[r#"
            0A000 GROUPING SETS is not supported in a materialized view
            at kind)
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "VALUES (1)",
        expect![[r#"
        0A000 VALUES is not supported in a materialized view
        at (1)
    "#]],
    );
    check(
        "SELECT 1",
        expect![[r#"
        0A000 SELECT without FROM is not supported in a materialized view
        at SELECT 1
    "#]],
    );
    check(
        "SELECT id FROM t EXCEPT SELECT auction FROM bid",
        expect![[r#"
            0A000 JOIN is not supported in a materialized view
            at SELECT aucti
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
    check(
        "SELECT kind, array_agg(id) FROM t GROUP BY kind",
        expect![[r#"
            0A000 aggregate function array_agg() is not supported in a materialized view
            at array_agg(id
            hint Queries can have it: use it in a SELECT over the view.
        "#]],
    );
}

#[test]
fn functions_that_are_not_immutable() {
    check(
        "SELECT id FROM t WHERE at > now()",
        expect![[r#"
        0A000 function now() is not supported in a materialized view
        at now()
        detail Its result depends on more than its arguments, so a view could not take a row back.
    "#]],
    );
    check(
        "SELECT random() FROM t",
        expect![[r#"
        0A000 function random() is not supported in a materialized view
        at random() FRO
        detail Its result depends on more than its arguments, so a view could not take a row back.
    "#]],
    );
}

#[test]
fn names_and_types() {
    check(
        "SELECT nope FROM t",
        expect![[r#"
        42703 column "nope" does not exist
        at nope FROM t
    "#]],
    );
    check(
        "SELECT id FROM nope",
        expect![[r#"
        42P01 relation "nope" does not exist
        at nope
    "#]],
    );
    check(
        "SELECT id FROM t GROUP BY kind",
        expect![[r#"
        42803 column "t.id" must appear in the GROUP BY clause or be used in an aggregate function
        at id FROM t GR
    "#]],
    );
    check(
        "SELECT id, kind AS id FROM t",
        expect![[r#"
        42701 column "id" specified more than once
    "#]],
    );
    check(
        "SELECT sum(kind) FROM t",
        expect![[r#"
        42883 function sum(text) does not exist
        hint No function matches the given name and argument types. You might need to add explicit type casts.
    "#]],
    );
    check(
        "SELECT nope(id) FROM t",
        expect![[r#"
        42883 function nope does not exist
        at nope(id) FRO
    "#]],
    );
}

#[test]
fn windows() {
    check(
        "SELECT * FROM TUMBLE(t, id, INTERVAL '1 minute')",
        expect![[r#"
        42804 TUMBLE needs a column of type timestamp or timestamp with time zone, but "id" is of type integer
        at id, INTERVAL
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(t, nope, INTERVAL '1 minute')",
        expect![[r#"
        42703 column "nope" does not exist
        at nope, INTERV
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(t, at, INTERVAL '1 month')",
        expect![[r#"
        22023 an interval of fixed length must not contain months or years
        at '1 month')
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(t, at, INTERVAL '0 seconds')",
        expect![[r#"
        22023 the size of a window must be positive
        at '0 seconds')
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(t, at)",
        expect![[r#"
        42601 TUMBLE takes a relation, a column, a size and optionally an offset
        at TUMBLE(t, at
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(t, at + INTERVAL '1 day', INTERVAL '1 minute')",
        expect![[r#"
        42601 the second argument of TUMBLE must be a column
        at at + INTERVA
    "#]],
    );
    check(
        "SELECT * FROM HOP(bid, date_time, INTERVAL '1 minute', INTERVAL '2 minutes')",
        expect![[r#"
        0A000 HOP is not supported
        at HOP(bid, dat
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE((SELECT * FROM TUMBLE(t, at, INTERVAL '1 minute')), at, INTERVAL '1 hour')",
        expect![[r#"
            42701 column "window_start" specified more than once
            at TUMBLE((SELE
            hint Rename the column in a subquery, or select without it.
        "#]],
    );
}

#[test]
fn emit_on_window_close_without_a_window_that_closes() {
    check(
        "SELECT bidder, count(*) FROM bid GROUP BY bidder EMIT ON WINDOW CLOSE",
        expect![[r#"
        0A000 EMIT ON WINDOW CLOSE over GROUP BY (bidder) is not supported
        detail Its groups never close: it has no window among its keys.
        hint Group by the window of TUMBLE over a relation with a WATERMARK, or leave EMIT out.
    "#]],
    );
    check(
        "SELECT bidder FROM bid EMIT ON WINDOW CLOSE",
        expect![[r#"
        0A000 EMIT ON WINDOW CLOSE of a query without GROUP BY is not supported
        at v AS SELECT 
        hint Group by the window of TUMBLE over a relation with a WATERMARK, or leave EMIT out.
    "#]],
    );
    check(
        "SELECT window_end, count(*) FROM TUMBLE(t, at, INTERVAL '1 minute') GROUP BY window_end
         EMIT ON WINDOW CLOSE",
        expect![[r#"
            0A000 EMIT ON WINDOW CLOSE over GROUP BY (window_end) is not supported
            detail Its groups never close: table "t" can change, so it has no watermark.
            hint Group by the window of TUMBLE over a relation with a WATERMARK, or leave EMIT out.
        "#]],
    );
    check(
        "SELECT n, count(*) FROM (SELECT bidder, window_end, count(*) AS n
           FROM TUMBLE(bid, date_time, INTERVAL '1 minute') GROUP BY bidder, window_end) AS x GROUP BY n
         EMIT ON WINDOW CLOSE",
        expect![[r#"
            0A000 EMIT ON WINDOW CLOSE over GROUP BY (n) is not supported
            detail Its groups never close: it has no window among its keys.
            hint Group by the window of TUMBLE over a relation with a WATERMARK, or leave EMIT out.
        "#]],
    );
}
