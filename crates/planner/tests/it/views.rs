//! Materialized views: plans and job graphs.

use expect_test::expect;

use crate::database::{BID, Database};

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, amount NUMERIC(10, 2), at TIMESTAMPTZ)";
const BAG: &str = "CREATE TABLE bag (a INT, b TEXT)";

#[test]
fn a_windowed_aggregate_over_a_source_frees_its_windows() {
    expect![[r#"
        plan
          Projection: bid.bidder AS bidder, bid.window_start AS window_start, bid.window_end AS window_end, count(Int64(1)) AS bids, avg(bid.price) AS avg_price, max(bid.price) AS max_price
            Aggregate: groupBy=[[bid.bidder, bid.window_start, bid.window_end]], aggr=[[count(Int32(1)) AS count(Int64(1)), avg(bid.price), max(bid.price)]]
              Projection: bid.bidder, bid.price, bid.window_start, bid.window_end
                WindowAssign: tumble bid.date_time size 10000000us
                  TableScan: bid projection=[bidder, price, date_time]
        vertex 0
          input 0: relation bid (bidder, price, date_time)
          window_assign [tumble date_time size 10000000us] (Append)
          project [window_end@7, bidder@1, window_start@6, price@2] (Append)
        vertex 1
          input 0: vertex 0 by hash[0, 1, 2]
          aggregate [group by (window_end, bidder, window_start) compute (count(*), avg(price), max(price))] (Retract)
            state groups key (window_end, bidder, window_start) value ($rows, sum_0, count_0, extreme_1)
            freed when window_end passes the watermark
          project [bidder@1, window_start@2, window_end@0, count(Int64(1))@3 as bids, avg(bid.price)@4 as avg_price, max(bid.price)@5 as max_price] (Retract)
          materialize [key (bidder, window_start, window_end)] (Retract)
        columns bidder bigint, window_start timestamp without time zone, window_end timestamp without time zone, bids bigint, avg_price numeric, max_price bigint
        notice windows are shown and updated while they are open; EMIT ON WINDOW CLOSE shows them once, when final
    "#]].assert_eq(&Database::with(&[BID]).explain(
        "CREATE MATERIALIZED VIEW bidder_10s AS
         SELECT bidder, window_start, window_end, count(*) AS bids, avg(price) AS avg_price, max(price) AS max_price
         FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') GROUP BY bidder, window_start, window_end",
    ));
}

#[test]
fn emit_on_window_close_makes_a_windowed_view_append_only() {
    expect![[r#"
        plan
          Projection: b.channel AS channel, b.window_start AS ws, sum(b.price) AS sum
            Aggregate: groupBy=[[b.channel, b.window_start]], aggr=[[sum(b.price)]]
              SubqueryAlias: b
                Projection: bid.price, bid.channel, bid.window_start
                  WindowAssign: tumble bid.date_time size 3600000000us offset 300000000us
                    TableScan: bid projection=[price, channel, date_time]
        vertex 0
          input 0: relation bid (price, channel, date_time)
          window_assign [tumble date_time size 3600000000us offset 300000000us allowed lateness 60000000us] (Append)
          project [window_start@6 + IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 3600000000000 } as window_end, channel@3, window_start@6, price@2] (Append)
        vertex 1
          input 0: vertex 0 by hash[0, 1, 2]
          aggregate [group by (window_end, channel, window_start) compute (sum(price)) allowed lateness 60000000us emit on window close] (Append)
            state groups key (window_end, channel, window_start) value ($rows, sum_0, count_0)
            freed when window_end + 60000000us passes the watermark
          project [channel@1, window_start@2 as ws, sum(b.price)@3 as sum] (Append)
          materialize [key (channel, ws)] (Append)
        columns channel text, ws timestamp without time zone, sum numeric
    "#]].assert_eq(&Database::with(&[BID]).explain(
        "CREATE MATERIALIZED VIEW v AS SELECT channel, window_start AS ws, sum(price)
         FROM TUMBLE(bid, date_time, INTERVAL '1 hour', INTERVAL '5 minutes') AS b GROUP BY channel, window_start
         EMIT ON WINDOW CLOSE ALLOWED LATENESS INTERVAL '1 minute'",
    ));
}

#[test]
fn a_projection_of_a_source_is_stored_by_origin() {
    expect![[r#"
        plan
          Projection: bid.auction AS auction, checked_multiply(bid.price, Int64(2)) AS p
            Filter: checked_remainder(bid.auction, Int64(123)) = Int64(0)
              TableScan: bid projection=[auction, price]
        vertex 0
          input 0: relation bid (auction, price)
          filter_project [auction@0, checked_multiply(price@2, 2) as p where checked_remainder(auction@0, 123) = 0] (Append)
          materialize [key (origin)] (Append)
        columns auction bigint, p bigint
    "#]].assert_eq(
        &Database::with(&[BID])
            .explain("CREATE MATERIALIZED VIEW q2 AS SELECT auction, price * 2 AS p FROM bid WHERE auction % 123 = 0"),
    );
}

#[test]
fn a_pass_through_needs_no_projection() {
    expect![[r#"
        plan
          Projection: bid.auction AS auction, bid.bidder AS bidder, bid.price AS price, bid.channel AS channel, bid.date_time AS date_time, bid.extra AS extra
            TableScan: bid projection=[auction, bidder, price, channel, date_time, extra]
        vertex 0
          input 0: relation bid (auction, bidder, price, channel, date_time, extra)
          materialize [key (origin)] (Append)
        columns auction bigint, bidder bigint, price bigint, channel text, date_time timestamp without time zone, extra text
    "#]].assert_eq(&Database::with(&[BID]).explain("CREATE MATERIALIZED VIEW q0 AS SELECT * FROM bid"));
}

#[test]
fn a_view_over_a_keyed_table_is_stored_by_its_key() {
    expect![[r#"
        plan
          Projection: t.kind AS kind, t.id AS key
            Filter: t.amount > Decimal128(1.50,10,2)
              TableScan: t projection=[id, kind, amount]
        vertex 0
          input 0: relation t (id, kind, amount)
          filter_project [kind@1, id@0 as key where amount@2 > 1.50] (Retract)
        vertex 1
          input 0: vertex 0 by hash[1]
          materialize [key (key)] (Retract)
        columns kind text, key integer
    "#]]
    .assert_eq(
        &Database::with(&[TABLE])
            .explain("CREATE MATERIALIZED VIEW v AS SELECT kind, id AS key FROM t WHERE amount > 1.5"),
    );
}

#[test]
fn a_view_that_loses_the_key_is_a_multiset() {
    expect![[r#"
        plan
          Projection: t.kind AS kind
            TableScan: t projection=[kind]
        vertex 0
          input 0: relation t (kind)
          project [kind@1] (Retract)
        vertex 1
          input 0: vertex 0 by hash[0]
          materialize [multiset] (Retract)
        columns kind text
    "#]]
    .assert_eq(&Database::with(&[TABLE]).explain("CREATE MATERIALIZED VIEW v AS SELECT kind FROM t"));
    expect![[r#"
        plan
          Projection: bag.b AS b, bag.a AS a
            TableScan: bag projection=[a, b]
        vertex 0
          input 0: relation bag (a, b)
          project [b@1, a@0] (Retract)
        vertex 1
          input 0: vertex 0 by hash[0, 1]
          materialize [multiset] (Retract)
        columns b text, a integer
    "#]]
    .assert_eq(&Database::with(&[BAG]).explain("CREATE MATERIALIZED VIEW v AS SELECT b, a FROM bag"));
}

#[test]
fn groups_without_a_window_are_kept() {
    expect![[r#"
        plan
          Projection: upper(bid.channel) AS c, count(Int64(1)) FILTER (WHERE bid.price < Int64(10000)) AS count, count(DISTINCT bid.bidder) FILTER (WHERE bid.price < Int64(10000)) AS bidders
            Filter: count(Int64(1)) > Int64(1)
              Aggregate: groupBy=[[upper(bid.channel)]], aggr=[[count(Int32(1)) FILTER (WHERE __common_expr_1) AS count(Int64(1)) FILTER (WHERE bid.price < Int64(10000)), count(DISTINCT bid.bidder) FILTER (WHERE __common_expr_1) AS count(DISTINCT bid.bidder) FILTER (WHERE bid.price < Int64(10000)), count(Int32(1)) AS count(Int64(1))]]
                Projection: bid.price < Int64(10000) AS __common_expr_1, bid.bidder, bid.channel
                  TableScan: bid projection=[bidder, price, channel]
        vertex 0
          input 0: relation bid (bidder, price, channel)
          project [price@2 < 10000 as __common_expr_1, bidder@1, channel@3] (Append)
          project [upper(channel@2) as upper(bid.channel), __common_expr_1@0, bidder@1] (Append)
        vertex 1
          input 0: vertex 0 by hash[0]
          aggregate [group by (upper(bid.channel)) compute (count(*) filter __common_expr_1, count(distinct bidder) filter __common_expr_1, count(*))] (Retract)
            state groups key (upper(bid.channel)) value ($rows, count_0, count_1)
            state values key (upper(bid.channel), $value) value ($count)
          filter_project [upper(bid.channel)@0 as c, count(Int64(1)) FILTER (WHERE bid.price < Int64(10000))@1 as count, count(DISTINCT bid.bidder) FILTER (WHERE bid.price < Int64(10000))@2 as bidders where count(Int64(1))@3 > 1] (Retract)
          materialize [key (c)] (Retract)
        columns c text, count bigint, bidders bigint
        notice GROUP BY (upper(bid.channel)) keeps every group for ever: it has no window among its keys
    "#]].assert_eq(&Database::with(&[BID]).explain(
        "CREATE MATERIALIZED VIEW v AS SELECT upper(channel) AS c, count(*) FILTER (WHERE price < 10000),
         count(DISTINCT bidder) FILTER (WHERE price < 10000) AS bidders FROM bid GROUP BY upper(channel)
         HAVING count(*) > 1",
    ));
}

#[test]
fn a_global_aggregate_has_one_row() {
    expect![[r#"
        plan
          Projection: count(Int64(1)) AS count, sum(t.amount) AS sum
            Aggregate: groupBy=[[]], aggr=[[count(Int32(1)) AS count(Int64(1)), sum(t.amount)]]
              TableScan: t projection=[amount]
        vertex 0
          input 0: relation t (amount)
          project [amount@2] (Retract)
        vertex 1
          input 0: vertex 0 by hash[]
          aggregate [group by () compute (count(*), sum(amount))] (Retract)
            state groups key () value ($rows, sum_0, count_0)
          project [count(Int64(1))@0 as count, sum(t.amount)@1 as sum] (Retract)
          materialize [key ()] (Retract)
        columns count bigint, sum numeric
    "#]]
    .assert_eq(
        &Database::with(&[TABLE])
            .explain("CREATE MATERIALIZED VIEW v AS SELECT count(*), sum(amount) FROM t"),
    );
}

#[test]
fn distinct_is_an_aggregate_without_calls() {
    expect![[r#"
        plan
          Projection: t.kind AS kind
            Aggregate: groupBy=[[t.kind]], aggr=[[]]
              TableScan: t projection=[kind]
        vertex 0
          input 0: relation t (kind)
          project [kind@1] (Retract)
        vertex 1
          input 0: vertex 0 by hash[0]
          aggregate [group by (kind) compute ()] (Retract)
            state groups key (kind) value ($rows)
          materialize [key (kind)] (Retract)
        columns kind text
        notice DISTINCT (kind) keeps every group for ever: table "t" can change, so it has no watermark
    "#]]
    .assert_eq(
        &Database::with(&[TABLE]).explain("CREATE MATERIALIZED VIEW v AS SELECT DISTINCT kind FROM t"),
    );
}

#[test]
fn union_all_keeps_origins_and_watermarks() {
    expect![[r#"
        plan
          Projection: window_end, count(Int64(1)) AS count
            Aggregate: groupBy=[[window_end]], aggr=[[count(Int32(1)) AS count(Int64(1))]]
              Projection: window_end
                WindowAssign: tumble date_time size 60000000us
                  Union
                    TableScan: bid projection=[date_time]
                    Projection: bid.date_time
                      Filter: bid.price > Int64(5)
                        TableScan: bid projection=[price, date_time]
        vertex 0
          input 0: relation bid (date_time)
          project [date_time@4] (Append)
        vertex 1
          input 0: relation bid (price, date_time)
          filter_project [date_time@4 where price@2 > 5] (Append)
        vertex 2
          input 0: vertex 0 by forward
          input 1: vertex 1 by forward
          union [2 inputs] (Append)
          window_assign [tumble date_time size 60000000us] (Append)
          project [window_end@2] (Append)
        vertex 3
          input 0: vertex 2 by hash[0]
          aggregate [group by (window_end) compute (count(*))] (Retract)
            state groups key (window_end) value ($rows)
            freed when window_end passes the watermark
          project [window_end@0, count(Int64(1))@1 as count] (Retract)
          materialize [key (window_end)] (Retract)
        columns window_end timestamp without time zone, count bigint
        notice windows are shown and updated while they are open; EMIT ON WINDOW CLOSE shows them once, when final
    "#]].assert_eq(&Database::with(&[BID]).explain(
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
    expect![[r#"
        plan
          Projection: w.e AS e, max(w.n) AS most
            Aggregate: groupBy=[[w.e]], aggr=[[max(w.n)]]
              TableScan: w projection=[e, n]
        vertex 0
          input 0: relation w (e, n)
          project [e@1, n@2] (Append)
        vertex 1
          input 0: vertex 0 by hash[0]
          aggregate [group by (e) compute (max(n)) emit on window close] (Append)
            state groups key (e) value ($rows, extreme_0)
            freed when e passes the watermark
          project [e@0, max(w.n)@1 as most] (Append)
          materialize [key (e)] (Append)
        columns e timestamp without time zone, most bigint
    "#]]
    .assert_eq(&database.explain(
        "CREATE MATERIALIZED VIEW top AS SELECT e, max(n) AS most FROM w GROUP BY e EMIT ON WINDOW CLOSE",
    ));
    expect![[r#"
        plan
          Projection: w.window_start AS window_start, sum(w.n) AS sum
            Aggregate: groupBy=[[w.window_start]], aggr=[[sum(w.n)]]
              Projection: w.n, w.window_start
                WindowAssign: tumble w.e size 3600000000us
                  TableScan: w projection=[e, n]
        vertex 0
          input 0: relation w (e, n)
          window_assign [tumble e size 3600000000us] (Append)
          project [window_start@3 + IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 3600000000000 } as window_end, window_start@3, n@2] (Append)
        vertex 1
          input 0: vertex 0 by hash[0, 1]
          aggregate [group by (window_end, window_start) compute (sum(n))] (Retract)
            state groups key (window_end, window_start) value ($rows, sum_0, count_0)
            freed when window_end passes the watermark
          project [window_start@1, sum(w.n)@2 as sum] (Retract)
          materialize [key (window_start)] (Retract)
        columns window_start timestamp without time zone, sum numeric
        notice windows are shown and updated while they are open; EMIT ON WINDOW CLOSE shows them once, when final
    "#]].assert_eq(&database.explain(
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
    expect![[r#"
        plan
          Projection: cheap.window_end AS window_end, count(Int64(1)) AS n
            Aggregate: groupBy=[[cheap.window_end]], aggr=[[count(Int32(1)) AS count(Int64(1))]]
              Projection: cheap.window_end
                WindowAssign: tumble cheap.date_time size 10000000us
                  SubqueryAlias: cheap
                    Projection: bid.date_time AS date_time
                      Filter: bid.price < Int64(100)
                        TableScan: bid projection=[price, date_time]
        vertex 0
          input 0: relation bid (price, date_time)
          filter [price@2 < 100] (Append)
          window_assign [tumble date_time size 10000000us] (Append)
          project [window_end@7] (Append)
        vertex 1
          input 0: vertex 0 by hash[0]
          aggregate [group by (window_end) compute (count(*))] (Retract)
            state groups key (window_end) value ($rows)
            freed when window_end passes the watermark
          project [window_end@0, count(Int64(1))@1 as n] (Retract)
          materialize [key (window_end)] (Retract)
        columns window_end timestamp without time zone, n bigint
        notice windows are shown and updated while they are open; EMIT ON WINDOW CLOSE shows them once, when final
    "#]].assert_eq(&database.explain(
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
    expect![[r#"
        plan
          Projection: x.who AS who, max(x.what) AS max
            Aggregate: groupBy=[[x.who]], aggr=[[max(x.what)]]
              SubqueryAlias: x
                SubqueryAlias: twice
                  Projection: dear.who AS who, checked_multiply(dear.what, Int64(2)) AS what
                    SubqueryAlias: dear
                      Projection: bid.bidder AS who, bid.price AS what
                        Filter: bid.price > Int64(1000)
                          TableScan: bid projection=[bidder, price]
        vertex 0
          input 0: relation bid (bidder, price)
          filter_project [bidder@1 as who, checked_multiply(price@2, 2) as what where price@2 > 1000] (Append)
        vertex 1
          input 0: vertex 0 by hash[0]
          aggregate [group by (who) compute (max(what))] (Retract)
            state groups key (who) value ($rows, extreme_0)
          project [who@0, max(x.what)@1 as max] (Retract)
          materialize [key (who)] (Retract)
        columns who bigint, max bigint
        notice GROUP BY (who) keeps every group for ever: it has no window among its keys
    "#]]
    .assert_eq(
        &database
            .explain("CREATE MATERIALIZED VIEW v AS SELECT x.who, max(x.what) FROM twice AS x GROUP BY who"),
    );
}

#[test]
fn windows_over_a_table_never_close() {
    expect![[r#"
        plan
          Projection: t.window_start AS window_start, count(Int64(1)) AS n
            Aggregate: groupBy=[[t.window_start]], aggr=[[count(Int32(1)) AS count(Int64(1))]]
              Projection: t.window_start
                WindowAssign: tumble t.at size 86400000000us
                  TableScan: t projection=[at]
        vertex 0
          input 0: relation t (at)
          window_assign [tumble at size 86400000000us] (Retract)
          project [window_start@4] (Retract)
        vertex 1
          input 0: vertex 0 by hash[0]
          aggregate [group by (window_start) compute (count(*))] (Retract)
            state groups key (window_start) value ($rows)
          project [window_start@0, count(Int64(1))@1 as n] (Retract)
          materialize [key (window_start)] (Retract)
        columns window_start timestamp with time zone, n bigint
        notice GROUP BY (window_start) keeps every group for ever: table "t" can change, so it has no watermark
    "#]].assert_eq(&Database::with(&[TABLE]).explain(
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
