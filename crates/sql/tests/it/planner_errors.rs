//! Errors of DataFusion's planner in PostgreSQL's words.

use std::fmt::Write;

use expect_test::expect;

use crate::engine::{create, outcome, session};

#[test]
fn errors_of_the_planner() {
    let session = session();
    create(&session, "CREATE TABLE bid (auction BIGINT, price BIGINT, url TEXT, ts TIMESTAMP, ok BOOLEAN)");
    create(&session, "CREATE TABLE other (auction BIGINT)");
    let mut found = String::new();
    for text in [
        "SELECT pric FROM bid",
        "SELECT 'é', b.pric FROM bid b",
        "SELECT x.price FROM bid",
        "SELECT auction FROM bid, other",
        "SELECT * FROM nope",
        "SELECT * FROM s.nope",
        "SELECT nope(1)",
        "SELECT abs(url) FROM bid",
        "SELECT sum(url) FROM bid",
        "SELECT url + price FROM bid",
        "SELECT 1 FROM bid WHERE url = ts",
        "SELECT 1 FROM bid WHERE ok > price",
        "SELECT auction, count(*) FROM bid",
        "SELECT count(*) FROM bid WHERE count(*) > 1",
        "SELECT 1 UNION SELECT 1, 2",
        "SELECT CAST(ts AS BOOLEAN) FROM bid",
        "SELECT CAST('x' AS TIMESTAMP)",
        "SELECT CAST('x' AS DATE)",
        "SELECT CAST('x' AS BOOLEAN)",
        "SELECT CAST('x' AS NUMERIC(5,2))",
        "SELECT CAST(12345 AS NUMERIC(4,0))",
        "SELECT INTERVAL 'x'",
        "SELECT 'x'::nope",
        "SELECT 1 FROM bid GROUP BY 7",
        "SELECT 1 FROM bid ORDER BY 7",
        "SELECT price FROM bid LIMIT -1",
        "SELECT (SELECT auction, price FROM bid)",
        "SELECT substr('abc', 1, -1)",
        "SELECT 10000000000000000000000000000 * 10000000000000000000000000000",
    ] {
        writeln!(found, "{text}\n    {}", outcome(&session, text)).unwrap();
    }
    expect![[r#""#]].assert_eq(&found);
}
