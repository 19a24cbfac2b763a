use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::rewrite;

fn rewritten(text: &str) -> String {
    let mut query = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_query().unwrap();
    rewrite(&mut query);
    query.to_string()
}

#[test]
fn qualified_operators_functions_and_collations_become_plain() {
    assert_eq!(
        rewritten(
            "SELECT pg_catalog.lower(a) FROM t WHERE a OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default"
        ),
        "SELECT lower(a) FROM t WHERE a ~ '^(t)$'",
    );
}

#[test]
fn casts_to_catalog_types_become_lookups() {
    assert_eq!(
        rewritten("SELECT 't'::regclass::pg_catalog.oid"),
        "SELECT regclass_in('t')::BIGINT AS \"regclass\""
    );
    assert_eq!(
        rewritten("SELECT c.oid::pg_catalog.regclass FROM pg_class c"),
        "SELECT regclass_out(c.oid) AS \"oid\" FROM pg_class c",
    );
    assert_eq!(rewritten("SELECT a::text, b::int4 FROM t"), "SELECT a::TEXT, b::INT4 FROM t");
}

#[test]
fn a_join_to_a_table_that_never_has_rows_is_not_planned() {
    assert_eq!(
        rewritten(
            "SELECT c.relname, 1 FROM pg_class c, pg_inherits i WHERE c.oid = i.inhparent ORDER BY inhseqno"
        ),
        "SELECT NULL::TEXT AS \"relname\", NULL::TEXT WHERE false",
    );
    let outer = "SELECT c.relname FROM pg_class c LEFT JOIN pg_inherits i ON c.oid = i.inhparent";
    assert_eq!(rewritten(outer), outer, "a left join keeps its rows");
    assert_eq!(rewritten("SELECT count(*) FROM pg_inherits"), "SELECT count(*) FROM pg_inherits", "one row");
}

#[test]
fn correlated_subqueries_are_aggregated_and_outer_conditions_moved_out() {
    assert_eq!(
        rewritten(
            "SELECT (SELECT d.adbin FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND a.atthasdef) FROM pg_attribute a"
        ),
        "SELECT CASE WHEN a.atthasdef THEN (SELECT max(d.adbin) FROM pg_attrdef d WHERE d.adrelid = a.attrelid) END \
         FROM pg_attribute a",
    );
}

#[test]
fn queries_over_user_tables_are_left_alone() {
    let query = "SELECT (SELECT x FROM u WHERE u.a = t.a), EXISTS (SELECT 1 FROM u) FROM t";
    assert_eq!(rewritten(query), query);
}
