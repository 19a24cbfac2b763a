//! Sources, tables, views and sinks: graphs, columns and canonical definitions.

use expect_test::expect;

use crate::database::{BID, Database};

fn definition(database: &Database, text: &str) -> String {
    let planned = database.plan(text).unwrap();
    let again = database.plan(&planned.definition).unwrap();
    assert_eq!(again.definition, planned.definition, "a definition defines itself");
    assert_eq!(again.graph_hash, planned.graph_hash);
    format!("{}\n", planned.definition)
}

#[test]
fn a_source_is_one_vertex() {
    expect![[r#"
        vertex 0
          input 0: source bid
        columns auction bigint, bidder bigint, price bigint, channel text, date_time timestamp without time zone, extra text
    "#]].assert_eq(&Database::new().explain(BID));
    expect![[r#"
        CREATE SOURCE bid (
          auction BIGINT,
          bidder BIGINT,
          price BIGINT,
          channel TEXT,
          date_time TIMESTAMP,
          extra TEXT,
          WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds'
        )
        WITH (bounded = 'true', connector = 'fake')
    "#]]
    .assert_eq(&definition(&Database::new(), BID));
}

#[test]
fn watermarks_need_a_time() {
    let source = |watermark: &str| {
        let text = format!(
            "CREATE SOURCE s (a BIGINT, ts TIMESTAMPTZ, WATERMARK FOR {watermark}) WITH (connector = 'fake')"
        );
        Database::new().error(&text)
    };
    expect![[r#"
        42804 column "a" of type bigint cannot carry a watermark
        at WATERMARK FO
    "#]]
    .assert_eq(&source("a AS a - 1"));
    expect![[r#"
        42P17 a watermark must depend on the columns of its row alone
        at WATERMARK FO
    "#]]
    .assert_eq(&source("ts AS now()"));
    expect![[r#"
        42703 column "nope" does not exist
        at nope) WITH (
    "#]]
    .assert_eq(&source("ts AS nope"));
    expect![[r#"
        42804 watermark of column "ts" must be a timestamp, not bigint
        at WATERMARK FO
    "#]]
    .assert_eq(&source("ts AS a"));
}

#[test]
fn options_are_checked_by_their_owner() {
    let source = |options: &str| Database::new().error(&format!("CREATE SOURCE s (a INT) WITH ({options})"));
    expect![[r#"
        22023 unknown connector "nope"
        at s (a INT) WI
        hint Known connectors: fake.
    "#]]
    .assert_eq(&source("connector = 'nope'"));
    expect![[r#"
        22023 unknown option "bound" of connector "fake"
        hint Perhaps you mean "bounded".
    "#]]
    .assert_eq(&source("connector = 'fake', bound = 'true'"));
    expect![[r#"
        22023 invalid value "soon" of option "idle_timeout": expected a duration, for example '30 seconds'
    "#]]
    .assert_eq(&source("connector = 'fake', idle_timeout = 'soon'"));
    expect![[r#"
        22023 invalid value "drop" of option "late": late rows are always kept: 'keep'
    "#]]
    .assert_eq(&source("connector = 'fake', late = 'drop'"));
    expect![[r#"
        0A000 option "idle_close" is not supported
    "#]]
    .assert_eq(&source("connector = 'fake', idle_close = '1s'"));
}

#[test]
fn a_table_is_stored_by_its_key() {
    let text = "CREATE TABLE t (a TEXT, b VARCHAR(10) NOT NULL, c NUMERIC DEFAULT 1, PRIMARY KEY (c, a))";
    expect![[r#"
        vertex 0
          input 0: inbox
        vertex 1
          input 0: vertex 0 by hash[0, 1]
          materialize [key (c, a)] (Retract)
        columns a text, b text, c numeric
    "#]]
    .assert_eq(&Database::new().explain(text));
    expect![[r#"
        CREATE TABLE t (
          a TEXT,
          b VARCHAR(10) NOT NULL,
          c NUMERIC DEFAULT 1,
          PRIMARY KEY (c, a)
        )
    "#]]
    .assert_eq(&definition(&Database::new(), text));
}

#[test]
fn a_table_without_a_key_has_row_ids() {
    expect![[r#"
        vertex 0
          input 0: inbox
        vertex 1
          input 0: vertex 0 by hash[0]
          materialize [key ($rowid)] (Retract)
        columns a integer, b text
    "#]]
    .assert_eq(&Database::new().explain("CREATE TABLE t (a INT, b JSONB)"));
}

#[test]
fn a_table_has_no_watermark() {
    expect![[r#"
        0A000 WATERMARK of a table is not supported
        at WATERMARK FO
        detail Rows of a table can change, and a watermark promises that they do not.
        hint Declare the watermark on a source.
    "#]]
    .assert_eq(&Database::new().error("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts)"));
}

#[test]
fn a_view_has_columns_and_no_job() {
    let database = Database::with(&[BID]);
    let text = "CREATE VIEW v (who) AS SELECT bidder, price FROM bid ORDER BY price";
    expect![[r#"
        plan
          Projection: bid.bidder AS who, bid.price AS price
            Sort: bid.price ASC NULLS LAST
              Projection: bid.bidder, bid.price
                TableScan: bid
        columns who bigint, price bigint
    "#]]
    .assert_eq(&database.explain(text));
    expect![[r#"
        CREATE VIEW v (who) AS
        SELECT bidder, price FROM bid ORDER BY price
    "#]]
    .assert_eq(&definition(&database, text));
    expect![[r#"
        42601 CREATE VIEW specifies more column names than columns
    "#]]
    .assert_eq(&database.error("CREATE VIEW v (a, b) AS SELECT bidder FROM bid"));
}

#[test]
fn a_sink_gets_windows_when_they_close() {
    let database = Database::with(&[BID]);
    let text =
        "CREATE SINK s AS SELECT window_end, count(*) AS n FROM TUMBLE(bid, date_time, INTERVAL '1 minute')
                GROUP BY window_end WITH (connector = 'fake', 'a.b' = 'it''s')";
    expect![[r#"
        plan
          Projection: bid.window_end AS window_end, count(Int64(1)) AS n
            Aggregate: groupBy=[[bid.window_end]], aggr=[[count(Int32(1)) AS count(Int64(1))]]
              Projection: bid.window_end
                WindowAssign: tumble bid.date_time size 60000000us
                  TableScan: bid projection=[date_time]
        vertex 0
          input 0: relation bid (date_time)
          window_assign [tumble date_time size 60000000us] (Append)
          project [window_end@7] (Append)
        vertex 1
          input 0: vertex 0 by hash[0]
          aggregate [group by (window_end) compute (count(*)) emit on window close] (Append)
            state groups key (window_end) value ($rows)
            freed when window_end passes the watermark
          project [window_end@0, count(Int64(1))@1 as n] (Append)
          sink [fake] (Append)
        columns window_end timestamp without time zone, n bigint
        notice windows are written once, when they close
    "#]]
    .assert_eq(&database.explain(text));
    expect![[r#"
        CREATE SINK s AS
        SELECT window_end, count(*) AS n FROM TUMBLE(bid, date_time, INTERVAL '1 minute')
                        GROUP BY window_end
        WITH ('a.b' = 'it''s', connector = 'fake')
    "#]]
    .assert_eq(&definition(&database, text));
    expect![[r#"
        plan
          Projection: bid.auction AS auction, bid.bidder AS bidder, bid.price AS price, bid.channel AS channel, bid.date_time AS date_time, bid.extra AS extra
            TableScan: bid projection=[auction, bidder, price, channel, date_time, extra]
        vertex 0
          input 0: relation bid (auction, bidder, price, channel, date_time, extra)
          sink [fake] (Append)
        columns auction bigint, bidder bigint, price bigint, channel text, date_time timestamp without time zone, extra text
    "#]].assert_eq(&database.explain("CREATE SINK s FROM bid WITH (connector = 'fake')"));
}

#[test]
fn a_definition_of_a_materialized_view_keeps_its_emission() {
    expect![[r#"
        CREATE MATERIALIZED VIEW "V" (a, "B c") AS
        select window_end, count(*)
                 from tumble(bid, date_time, interval '1 minute') group by window_end
        EMIT ON WINDOW CLOSE ALLOWED LATENESS INTERVAL '5000000 microseconds'
    "#]]
    .assert_eq(&definition(
        &Database::with(&[BID]),
        "create materialized view \"V\" (a, \"B c\") as select window_end, count(*)
         from tumble(bid, date_time, interval '1 minute') group by window_end
         emit on window close allowed lateness interval '5 seconds'",
    ));
}
