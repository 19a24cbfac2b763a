//! Values and types of expressions, as PostgreSQL 15 gives them.

use crate::engine::{create, outcome, plan, rows, session};

fn check(cases: &[(&str, &str)]) {
    let session = session();
    let mut wrong = String::new();
    for (expression, expected) in cases {
        let found = outcome(&session, &format!("SELECT {expression}"));
        if found != *expected {
            wrong.push_str(&format!("{expression}\n  found    {found}\n  expected {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn integers_fail_instead_of_wrapping() {
    check(&[
        ("1 + 2", "3 integer"),
        ("2147483647 + 1", "22003 - integer out of range"),
        ("2147483648 + 1", "2147483649 bigint"),
        ("9223372036854775807 + 1", "22003 - bigint out of range"),
        ("(-9223372036854775808) - 1", "22003 - bigint out of range"),
        ("-9223372036854775808 - -1", "-9223372036854775807 bigint"),
        ("9223372036854775807 * 2", "22003 - bigint out of range"),
        ("32767::smallint + 1::smallint", "22003 - smallint out of range"),
        ("-(-32768)::smallint", "22003 - smallint out of range"),
        ("7 / 2", "3 integer"),
        ("-7 / 2", "-3 integer"),
        ("1 / 0", "22012 - division by zero"),
        ("1 % 0", "22012 - division by zero"),
        ("mod(7, -4)", "3 integer"),
        ("mod(-7, 4::bigint)", "-3 bigint"),
        ("NULL + 1", "NULL integer"),
    ]);
}

#[test]
fn columns_overflow_row_by_row() {
    let session = session();
    let one = |text: &str| rows(&session, text);
    assert_eq!(
        one("SELECT a + b FROM (VALUES (1, 2), (NULL, 2147483647)) AS t (a, b)").unwrap(),
        ["3 integer", "NULL integer"]
    );
    assert_eq!(
        one("SELECT a - b FROM (VALUES (1, 2), (-2147483648, 1)) AS t (a, b)").unwrap_err().sqlstate(),
        "22003"
    );
    assert_eq!(
        one("SELECT a - 1 FROM (VALUES (1), (-2147483648)) AS t (a)").unwrap_err().sqlstate(),
        "22003"
    );
    assert_eq!(
        one("SELECT 1 - a FROM (VALUES (1), (-2147483647)) AS t (a)").unwrap_err().sqlstate(),
        "22003"
    );
    assert_eq!(
        one("SELECT -a FROM (VALUES (1), (NULL), (-2147483648)) AS t (a)").unwrap_err().sqlstate(),
        "22003"
    );
    assert_eq!(one("SELECT a % b FROM (VALUES (-2147483648, -1)) AS t (a, b)").unwrap(), ["0 integer"]);
    assert_eq!(
        one("SELECT a / b FROM (VALUES (-2147483648, -1)) AS t (a, b)").unwrap_err().sqlstate(),
        "22003"
    );
}

#[test]
fn numbers() {
    check(&[
        ("0.908 * 100", "90.800 numeric"),
        ("1.0 / 3", "0.3333333333333333 numeric"),
        ("2 / 3.0", "0.6666666666666667 numeric"),
        ("-2 / 3.0", "-0.6666666666666667 numeric"),
        ("1.5 / 0", "22012 - division by zero"),
        ("CAST(2.5 AS int)", "3 integer"),
        ("CAST(-2.5 AS bigint)", "-3 bigint"),
        ("CAST(2.4999 AS int)", "2 integer"),
        ("CAST(2.5::float8 AS int)", "2 integer"),
        ("CAST(3.5::real AS int)", "4 integer"),
        ("CAST(3e9 AS int)", "22003 - integer out of range"),
        ("CAST('NaN'::float8 AS int)", "22003 - integer out of range"),
        ("CAST(40000 AS smallint)", "22003 - smallint out of range"),
        ("CAST('12' AS int)", "12 integer"),
        ("CAST('1x' AS int)", "22P02 - invalid input syntax for type integer: \"1x\""),
        ("CAST('3000000000' AS int)", "22003 - value \"3000000000\" is out of range for type integer"),
        ("CAST(floor(7.9) AS bigint)", "7 bigint"),
        ("abs(-5)", "5 integer"),
        ("round(1.255, 2)", "1.26 numeric"),
        ("2 = 2.0", "true boolean"),
    ]);
}

#[test]
fn to_char_of_timestamps() {
    let to_char = |template: &str| format!("to_char(TIMESTAMP '2024-03-05 07:08:09.123456', '{template}')");
    let cases = [
        ("YYYY-MM-DD", "2024-03-05"),
        ("HH24:MI", "07:08"),
        ("YYYY-MM-DD HH24:MI:SS.MS", "2024-03-05 07:08:09.123"),
        ("US FF1 FF3 FF6", "123456 1 123 123456"),
        ("HH12:MI AM, p.m.", "07:08 AM, a.m."),
        ("FMMonth FMDD, YYYY", "March 5, 2024"),
        ("Month|MON|mon|Day|DY|day", "March    |MAR|mar|Tuesday  |TUE|tuesday  "),
        ("DDD D ID W WW IW IYYY IDDD", "065 3 2 1 10 10 2024 065"),
        ("Q CC J Y,YYY YYY YY Y", "1 21 2460375 2,024 024 24 4"),
        ("DDth FMDDTH", "05th 5TH"),
        ("\"year\" YYYY \\\"x\\\"", "year 2024 \"x\""),
        ("RM rm FMRM|", "III  iii  III|"),
        ("SSSS AD b.c.", "25689 AD a.d."),
        ("TZ OF TZH:TZM", " +00 +00:00"),
        ("", ""),
        ("yyyy-mm-dd hh24:mi:ss", "2024-03-05 07:08:09"),
    ];
    let session = session();
    for (template, expected) in cases {
        assert_eq!(
            outcome(&session, &format!("SELECT {}", to_char(template))),
            format!("{expected} text"),
            "{template}"
        );
    }
    check(&[
        (
            "to_char(TIMESTAMPTZ '2024-03-05 00:30:00+01', 'YYYY-MM-DD HH24:MI TZ OF')",
            "2024-03-04 23:30 UTC +00 text",
        ),
        ("to_char(DATE '2024-12-30', 'IYYY-IW-ID')", "2025-01-1 text"),
        ("to_char(TIMESTAMP '2024-01-01 00:00:00', 'HH12')", "12 text"),
        ("to_char(TIMESTAMP '2024-01-11 00:00:00', 'FMDDth')", "11th text"),
        ("to_char(NULL::timestamp, 'YYYY')", "NULL text"),
        (
            "to_char(1.5, '9D9')",
            "42883 - function to_char(numeric, text) does not exist (No function matches the given name and argument types. You might need to add explicit type casts.)",
        ),
    ]);
    let texts = rows(
        &session,
        "SELECT to_char(t, p) FROM (VALUES
            (TIMESTAMP '1969-12-31 23:59:59.999999', 'YYYY-MM-DD HH24:MI'), (TIMESTAMP '1970-01-01', 'YYYY-MM-DD HH24:MI'),
            (TIMESTAMP '1970-01-01', NULL), (TIMESTAMP '1970-01-01 00:00:30', 'SS')) AS v (t, p)",
    );
    assert_eq!(texts.unwrap(), ["1969-12-31 23:59 text", "1970-01-01 00:00 text", "NULL text", "30 text"]);
}

#[test]
fn parts_of_times() {
    check(&[
        ("EXTRACT(HOUR FROM TIMESTAMP '2024-03-05 07:08:09.5')", "7 numeric"),
        ("EXTRACT(second FROM TIMESTAMP '2024-03-05 07:08:09.5')", "9.500000 numeric"),
        ("EXTRACT(milliseconds FROM TIMESTAMP '2024-03-05 07:08:09.5')", "9500.000 numeric"),
        ("EXTRACT(epoch FROM TIMESTAMP '1970-01-02 00:00:00.25')", "86400.250000 numeric"),
        ("EXTRACT(dow FROM DATE '2024-03-05')", "2 numeric"),
        ("EXTRACT(century FROM DATE '2000-03-05')", "20 numeric"),
        ("EXTRACT(day FROM INTERVAL '3 days 4 hours')", "3 numeric"),
        ("EXTRACT(epoch FROM INTERVAL '1 hour')", "3600.000000 numeric"),
        ("EXTRACT(hour FROM TIMESTAMP '1969-12-31 23:00:00')", "23 numeric"),
        ("date_part('hour', TIMESTAMP '2024-03-05 07:08:09.5')", "7.0 double precision"),
        ("date_part('second', TIMESTAMP '2024-03-05 07:08:09.5')", "9.5 double precision"),
        (
            "EXTRACT(fortnight FROM DATE '2024-03-05')",
            "22023 - unit \"fortnight\" not recognized for type date",
        ),
        ("EXTRACT(hour FROM DATE '2024-03-05')", "0A000 - unit \"hour\" for type date is not supported"),
    ]);
}

#[test]
fn regular_expressions() {
    check(&[
        ("regexp_match('foobarbequebaz', '(bar)(beque)')", "[bar, beque] text[]"),
        ("regexp_match('abc', 'b')", "[b] text[]"),
        ("regexp_match('b', '(a)|(b)')", "[NULL, b] text[]"),
        ("(regexp_match('b', '(a)|(b)'))[1]", "NULL text"),
        ("(regexp_match('b', '(a)|(b)'))[2]", "b text"),
        ("(regexp_match('b', '(a)|(b)'))[3]", "NULL text"),
        ("(regexp_match('x', '(a)|(b)'))[2]", "NULL text"),
        ("(regexp_match('?a=1&channel_id=42&b', '(&|^)channel_id=([^&]*)'))[2]", "42 text"),
        ("(regexp_match('ABC', 'b', 'i'))[1]", "B text"),
        ("regexp_match('abc', '(')", "2201B - invalid regular expression: unclosed group"),
        ("regexp_match('abc', 'b', 'g')", "22023 - regexp_match() does not support the \"global\" option"),
        ("regexp_match(NULL, 'b')", "NULL text[]"),
    ]);
}

#[test]
fn strings() {
    check(&[
        ("split_part('a/b/c', '/', 2)", "b text"),
        ("split_part('a/b/c', '/', 4)", " text"),
        ("split_part('a/b/c', '/', -1)", "c text"),
        ("split_part('a/b/c', '/', 0)", "22023 - field position must not be zero"),
        ("length('héllo')", "5 integer"),
        ("length('aXbX') - length(replace('aXbX', 'X', ''))", "2 integer"),
        ("lower('ÄB')", "äb text"),
        ("'a' || 1", "a1 text"),
        ("'a' || NULL", "NULL text"),
        ("substring('abcdef' FROM 2 FOR 3)", "bcd text"),
    ]);
}

#[test]
fn literals_are_integers_also_where_rows_are_made() {
    let session = session();
    assert_eq!(rows(&session, "VALUES (1), (2)").unwrap(), ["1 integer", "2 integer"]);
    assert_eq!(rows(&session, "VALUES (1), (2.5)").unwrap(), ["1.0 numeric", "2.5 numeric"]);
    assert_eq!(
        rows(&session, "SELECT x + 1 FROM (SELECT 1 AS x UNION ALL SELECT 5000000000) t ORDER BY 1")
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        rows(&session, "SELECT count(*), max(1) FROM (VALUES (1)) t LIMIT 1 OFFSET 0").unwrap(),
        ["1 bigint | 1 integer"]
    );
    assert_eq!(
        rows(&session, "SELECT * FROM (SELECT 1, 1 + 1, 1.5 / 2) t").unwrap(),
        ["1 integer | 2 integer | 0.7500000000000000 numeric"]
    );
    assert_eq!(
        rows(&session, "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT count(*) FROM r").unwrap(),
        ["3 bigint"]
    );
    assert_eq!(rows(&session, "SELECT (SELECT 7)").unwrap(), ["7 integer"]);
    assert_eq!(
        rows(&session, "SELECT a + 1, sum(b + 1) FROM (VALUES (1, 2), (1, 3)) t (a, b) GROUP BY a + 1")
            .unwrap(),
        ["2 integer | 7 bigint"]
    );
}

#[test]
fn comparisons_stay_comparisons() {
    let session = session();
    create(&session, "CREATE TABLE t (k BIGINT, v INT)");
    let plan = plan(&session, "SELECT v FROM t WHERE k = 7 AND v + 1 > 2").unwrap();
    let plan = session.state().optimize(&plan).unwrap();
    let text = plan.display_indent().to_string();
    assert!(text.contains("t.k = Int64(7)"), "{text}");
    assert!(text.contains("checked_add(t.v, Int32(1)) > Int32(2)"), "{text}");
}
