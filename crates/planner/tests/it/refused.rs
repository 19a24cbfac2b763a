//! What is refused: with which code, where, and what to do instead.

use expect_test::{Expect, expect};

use crate::database::{BID, Database};

fn check(query: &str, expected: Expect) {
    let database = Database::with(&[BID, "CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, at TIMESTAMP)"]);
    expected.assert_eq(&database.error(&format!("CREATE MATERIALIZED VIEW v AS {query}")));
}

#[test]
fn constructs_without_an_operator() {
    check("SELECT t.id FROM t JOIN bid ON t.id = bid.bidder", expect![]);
    check("SELECT t.id FROM t, bid", expect![]);
    check("SELECT id FROM t ORDER BY id", expect![]);
    check("SELECT id FROM t LIMIT 5", expect![]);
    check("SELECT id, row_number() OVER (ORDER BY id) FROM t", expect![]);
    check("SELECT id FROM t WHERE id IN (SELECT bidder FROM bid)", expect![]);
    check("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM bid WHERE bidder = id)", expect![]);
    check("SELECT DISTINCT ON (kind) id FROM t", expect![]);
    check("SELECT kind, count(*) FROM t GROUP BY ROLLUP (kind)", expect![]);
    check("VALUES (1)", expect![]);
    check("SELECT 1", expect![]);
    check("SELECT id FROM t EXCEPT SELECT auction FROM bid", expect![]);
    check("SELECT kind, array_agg(id) FROM t GROUP BY kind", expect![]);
}

#[test]
fn functions_that_are_not_immutable() {
    check("SELECT id FROM t WHERE at > now()", expect![]);
    check("SELECT random() FROM t", expect![]);
}

#[test]
fn names_and_types() {
    check("SELECT nope FROM t", expect![]);
    check("SELECT id FROM nope", expect![]);
    check("SELECT id FROM t GROUP BY kind", expect![]);
    check("SELECT id, kind AS id FROM t", expect![]);
    check("SELECT sum(kind) FROM t", expect![]);
    check("SELECT nope(id) FROM t", expect![]);
}

#[test]
fn windows() {
    check("SELECT * FROM TUMBLE(t, id, INTERVAL '1 minute')", expect![]);
    check("SELECT * FROM TUMBLE(t, nope, INTERVAL '1 minute')", expect![]);
    check("SELECT * FROM TUMBLE(t, at, INTERVAL '1 month')", expect![]);
    check("SELECT * FROM TUMBLE(t, at, INTERVAL '0 seconds')", expect![]);
    check("SELECT * FROM TUMBLE(t, at)", expect![]);
    check("SELECT * FROM TUMBLE(t, at + INTERVAL '1 day', INTERVAL '1 minute')", expect![]);
    check("SELECT * FROM HOP(bid, date_time, INTERVAL '1 minute', INTERVAL '2 minutes')", expect![]);
    check(
        "SELECT * FROM TUMBLE((SELECT * FROM TUMBLE(t, at, INTERVAL '1 minute')), at, INTERVAL '1 hour')",
        expect![],
    );
}

#[test]
fn emit_on_window_close_without_a_window_that_closes() {
    check("SELECT bidder, count(*) FROM bid GROUP BY bidder EMIT ON WINDOW CLOSE", expect![]);
    check("SELECT bidder FROM bid EMIT ON WINDOW CLOSE", expect![]);
    check(
        "SELECT window_end, count(*) FROM TUMBLE(t, at, INTERVAL '1 minute') GROUP BY window_end
         EMIT ON WINDOW CLOSE",
        expect![],
    );
    check(
        "SELECT n, count(*) FROM (SELECT bidder, window_end, count(*) AS n
           FROM TUMBLE(bid, date_time, INTERVAL '1 minute') GROUP BY bidder, window_end) AS x GROUP BY n
         EMIT ON WINDOW CLOSE",
        expect![],
    );
}
