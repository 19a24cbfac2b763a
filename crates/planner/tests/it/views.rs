//! Materialized views: plans and job graphs.

use expect_test::expect;

use crate::database::{BID, Database};

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, amount NUMERIC(10, 2), at TIMESTAMPTZ)";
const BAG: &str = "CREATE TABLE bag (a INT, b TEXT)";

#[test]
fn a_windowed_aggregate_over_a_source_frees_its_windows() {
    expect![].assert_eq(&Database::with(&[BID]).explain(
        "CREATE MATERIALIZED VIEW bidder_10s AS
         SELECT bidder, window_start, window_end, count(*) AS bids, avg(price) AS avg_price, max(price) AS max_price
         FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') GROUP BY bidder, window_start, window_end",
    ));
}

#[test]
fn emit_on_window_close_makes_a_windowed_view_append_only() {
    expect![].assert_eq(&Database::with(&[BID]).explain(
        "CREATE MATERIALIZED VIEW v AS SELECT channel, window_start AS ws, sum(price)
         FROM TUMBLE(bid, date_time, INTERVAL '1 hour', INTERVAL '5 minutes') AS b GROUP BY channel, window_start
         EMIT ON WINDOW CLOSE ALLOWED LATENESS INTERVAL '1 minute'",
    ));
}

#[test]
fn a_projection_of_a_source_is_stored_by_origin() {
    expect![].assert_eq(
        &Database::with(&[BID])
            .explain("CREATE MATERIALIZED VIEW q2 AS SELECT auction, price * 2 AS p FROM bid WHERE auction % 123 = 0"),
    );
}

#[test]
fn a_pass_through_needs_no_projection() {
    expect![].assert_eq(&Database::with(&[BID]).explain("CREATE MATERIALIZED VIEW q0 AS SELECT * FROM bid"));
}

#[test]
fn a_view_over_a_keyed_table_is_stored_by_its_key() {
    expect![].assert_eq(
        &Database::with(&[TABLE])
            .explain("CREATE MATERIALIZED VIEW v AS SELECT kind, id AS key FROM t WHERE amount > 1.5"),
    );
}

#[test]
fn a_view_that_loses_the_key_is_a_multiset() {
    expect![].assert_eq(&Database::with(&[TABLE]).explain("CREATE MATERIALIZED VIEW v AS SELECT kind FROM t"));
    expect![].assert_eq(&Database::with(&[BAG]).explain("CREATE MATERIALIZED VIEW v AS SELECT b, a FROM bag"));
}

#[test]
fn groups_without_a_window_are_kept() {
    expect![].assert_eq(&Database::with(&[BID]).explain(
        "CREATE MATERIALIZED VIEW v AS SELECT upper(channel) AS c, count(*) FILTER (WHERE price < 10000),
         count(DISTINCT bidder) FILTER (WHERE price < 10000) AS bidders FROM bid GROUP BY upper(channel)
         HAVING count(*) > 1",
    ));
}

#[test]
fn a_global_aggregate_has_one_row() {
    expect![].assert_eq(
        &Database::with(&[TABLE]).explain("CREATE MATERIALIZED VIEW v AS SELECT count(*), sum(amount) FROM t"),
    );
}

#[test]
fn distinct_is_an_aggregate_without_calls() {
    expect![].assert_eq(&Database::with(&[TABLE]).explain("CREATE MATERIALIZED VIEW v AS SELECT DISTINCT kind FROM t"));
}

#[test]
fn union_all_keeps_origins_and_watermarks() {
    expect![].assert_eq(&Database::with(&[BID]).explain(
        "CREATE MATERIALIZED VIEW v AS SELECT window_end, count(*) FROM TUMBLE((
           SELECT bidder, date_time FROM bid UNION ALL SELECT auction, date_time FROM bid WHERE price > 5
         ), date_time, INTERVAL '1 minute') GROUP BY window_end",
    ));
}

#[test]
fn a_view_over_a_windowed_view_closes_with_it() {
    let database = Database::with(&[
        BID,
        "CREATE MATERIALIZED VIEW w AS SELECT bidder, window_end AS e, count(*) AS n
         FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') GROUP BY bidder, window_end EMIT ON WINDOW CLOSE",
    ]);
    expect![].assert_eq(&database.explain(
        "CREATE MATERIALIZED VIEW top AS SELECT e, max(n) AS most FROM w GROUP BY e EMIT ON WINDOW CLOSE",
    ));
    expect![].assert_eq(&database.explain(
        "CREATE MATERIALIZED VIEW hourly AS SELECT window_start, sum(n) FROM TUMBLE(w, e, INTERVAL '1 hour')
         GROUP BY window_start",
    ));
}

#[test]
fn a_view_over_a_pass_through_reads_the_source_itself() {
    let database = Database::with(&[
        BID,
        "CREATE MATERIALIZED VIEW cheap AS SELECT bidder AS who, date_time FROM bid WHERE price < 100",
    ]);
    expect![].assert_eq(&database.explain(
        "CREATE MATERIALIZED VIEW v AS SELECT window_end, count(*) AS n
         FROM TUMBLE(cheap, date_time, INTERVAL '10 seconds') GROUP BY window_end",
    ));
}

#[test]
fn plain_views_are_expanded() {
    let database = Database::with(&[
        BID,
        "CREATE VIEW dear (who, what) AS SELECT bidder, price FROM bid WHERE price > 1000",
        "CREATE VIEW twice AS SELECT who, what * 2 AS what FROM dear",
    ]);
    expect![].assert_eq(
        &database.explain("CREATE MATERIALIZED VIEW v AS SELECT x.who, max(x.what) FROM twice AS x GROUP BY who"),
    );
}

#[test]
fn windows_over_a_table_never_close() {
    expect![].assert_eq(&Database::with(&[TABLE]).explain(
        "CREATE MATERIALIZED VIEW v AS SELECT window_start, count(*) AS n
         FROM TUMBLE(t, at, INTERVAL '1 day') GROUP BY window_start",
    ));
}

#[test]
fn the_same_text_gives_the_same_graph() {
    let database = Database::with(&[BID]);
    let text = "CREATE MATERIALIZED VIEW v AS SELECT a.k, sum(a.x + 1), avg(a.x + 1), max((a.x + 1) * 2)
                FROM (SELECT bidder % 10 AS k, price + auction AS x, price + auction AS y FROM bid) AS a
                WHERE a.y > 3 AND a.k IN (1, 2, 3) GROUP BY a.k";
    let first = database.plan(text).unwrap();
    for _ in 0..5 {
        let again = database.plan(text).unwrap();
        assert_eq!(again.graph_hash, first.graph_hash);
        assert_eq!(again.plan, first.plan);
    }
}
