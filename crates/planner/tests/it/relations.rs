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
    expect![].assert_eq(&Database::new().explain(BID));
    expect![].assert_eq(&definition(&Database::new(), BID));
}

#[test]
fn watermarks_need_a_time() {
    let source = |watermark: &str| {
        let text = format!(
            "CREATE SOURCE s (a BIGINT, ts TIMESTAMPTZ, WATERMARK FOR {watermark}) WITH (connector = 'fake')"
        );
        Database::new().error(&text)
    };
    expect![].assert_eq(&source("a AS a - 1"));
    expect![].assert_eq(&source("ts AS now()"));
    expect![].assert_eq(&source("ts AS nope"));
    expect![].assert_eq(&source("ts AS a"));
}

#[test]
fn options_are_checked_by_their_owner() {
    let source = |options: &str| Database::new().error(&format!("CREATE SOURCE s (a INT) WITH ({options})"));
    expect![].assert_eq(&source("connector = 'nope'"));
    expect![].assert_eq(&source("connector = 'fake', bound = 'true'"));
    expect![].assert_eq(&source("connector = 'fake', idle_timeout = 'soon'"));
    expect![].assert_eq(&source("connector = 'fake', late = 'drop'"));
    expect![].assert_eq(&source("connector = 'fake', idle_close = '1s'"));
}

#[test]
fn a_table_is_stored_by_its_key() {
    let text = "CREATE TABLE t (a TEXT, b VARCHAR(10) NOT NULL, c NUMERIC DEFAULT 1, PRIMARY KEY (c, a))";
    expect![].assert_eq(&Database::new().explain(text));
    expect![].assert_eq(&definition(&Database::new(), text));
}

#[test]
fn a_table_without_a_key_has_row_ids() {
    expect![].assert_eq(&Database::new().explain("CREATE TABLE t (a INT, b JSONB)"));
}

#[test]
fn a_table_has_no_watermark() {
    expect![].assert_eq(&Database::new().error("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts)"));
}

#[test]
fn a_view_has_columns_and_no_job() {
    let database = Database::with(&[BID]);
    let text = "CREATE VIEW v (who) AS SELECT bidder, price FROM bid ORDER BY price";
    expect![].assert_eq(&database.explain(text));
    expect![].assert_eq(&definition(&database, text));
    expect![].assert_eq(&database.error("CREATE VIEW v (a, b) AS SELECT bidder FROM bid"));
}

#[test]
fn a_sink_gets_windows_when_they_close() {
    let database = Database::with(&[BID]);
    let text = "CREATE SINK s AS SELECT window_end, count(*) AS n FROM TUMBLE(bid, date_time, INTERVAL '1 minute')
                GROUP BY window_end WITH (connector = 'fake', 'a.b' = 'it''s')";
    expect![].assert_eq(&database.explain(text));
    expect![].assert_eq(&definition(&database, text));
    expect![].assert_eq(&database.explain("CREATE SINK s FROM bid WITH (connector = 'fake')"));
}

#[test]
fn a_definition_of_a_materialized_view_keeps_its_emission() {
    expect![].assert_eq(&definition(
        &Database::with(&[BID]),
        "create materialized view \"V\" (a, \"B c\") as select window_end, count(*)
         from tumble(bid, date_time, interval '1 minute') group by window_end
         emit on window close allowed lateness interval '5 seconds'",
    ));
}
