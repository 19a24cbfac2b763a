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
    expect![[r#"
        SELECT pric FROM bid
            42703 8 column "pric" does not exist (Perhaps you meant to reference the column "price".)
        SELECT 'é', b.pric FROM bid b
            42703 13 column b.pric does not exist (Perhaps you meant to reference the column "price".)
        SELECT x.price FROM bid
            42P01 8 missing FROM-clause entry for table "x"
        SELECT auction FROM bid, other
            42702 8 column reference "auction" is ambiguous
        SELECT * FROM nope
            42P01 15 relation "nope" does not exist
        SELECT * FROM s.nope
            42P01 15 relation "s.nope" does not exist
        SELECT nope(1)
            42883 8 function nope does not exist
        SELECT abs(url) FROM bid
            42883 - function abs(text) does not exist (No function matches the given name and argument types. You might need to add explicit type casts.)
        SELECT sum(url) FROM bid
            42883 - function sum(text) does not exist (No function matches the given name and argument types. You might need to add explicit type casts.)
        SELECT url + price FROM bid
            42883 8 operator does not exist: text + bigint (No operator matches the given name and argument types. You might need to add explicit type casts.)
        SELECT 1 FROM bid WHERE url = ts
            no row
        SELECT 1 FROM bid WHERE ok > price
            42883 - operator does not exist: boolean > bigint (No operator matches the given name and argument types. You might need to add explicit type casts.)
        SELECT auction, count(*) FROM bid
            42803 8 column "bid.auction" must appear in the GROUP BY clause or be used in an aggregate function
        SELECT count(*) FROM bid WHERE count(*) > 1
            42803 - aggregate functions are not allowed in WHERE
        SELECT 1 UNION SELECT 1, 2
            42601 1 each UNION query must have the same number of columns
        SELECT CAST(ts AS BOOLEAN) FROM bid
            42846 - cannot cast type timestamp without time zone to boolean
        SELECT CAST('x' AS TIMESTAMP)
            22007 - invalid input syntax for type timestamp: "x"
        SELECT CAST('x' AS DATE)
            22007 - invalid input syntax for type date: "x"
        SELECT CAST('x' AS BOOLEAN)
            22P02 - invalid input syntax for type boolean: "x"
        SELECT CAST('x' AS NUMERIC(5,2))
            22P02 - invalid input syntax for type numeric: "x"
        SELECT CAST(12345 AS NUMERIC(4,0))
            22003 - numeric field overflow
        SELECT INTERVAL 'x'
            22007 17 invalid input syntax for type interval: "x"
        SELECT 'x'::nope
            42704 - type "nope" does not exist
        SELECT 1 FROM bid GROUP BY 7
            42P10 - GROUP BY position 7 is not in select list
        SELECT 1 FROM bid ORDER BY 7
            42P10 - ORDER BY position 7 is not in select list
        SELECT price FROM bid LIMIT -1
            2201W - LIMIT must not be negative
        SELECT (SELECT auction, price FROM bid)
            42601 - too many columns! The subquery should only return one column: bid.auction, bid.price
        SELECT substr('abc', 1, -1)
            22000 - negative count not allowed: -1
        SELECT 10000000000000000000000000000 * 10000000000000000000000000000
            22003 - value out of range: overflow
    "#]].assert_eq(&found);
}
