//! The dialect given to sqlparser: PostgreSQL, and Flink's `` `quoted` `` names and
//! `FOR SYSTEM_TIME AS OF`.
//!
//! sqlparser decides by dialect in two ways, by `TypeId` and by flags. The wrapper answers the
//! first as PostgreSQL and forwards **every** flag: a flag left out would silently mean "no".

use std::any::TypeId;

use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Reserved words of PostgreSQL at which an expression cannot begin.
const NEVER_A_NAME: &[Keyword] = &[
    Keyword::AND,
    Keyword::ELSE,
    Keyword::EXCEPT,
    Keyword::FROM,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::INTERSECT,
    Keyword::LIMIT,
    Keyword::OR,
    Keyword::ORDER,
    Keyword::THEN,
    Keyword::UNION,
    Keyword::WHEN,
    Keyword::WHERE,
];

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

/// The dialect of every statement.
#[derive(Debug, Default, Clone, Copy)]
pub struct HighwaterDialect;

/// Writes the wrapper with one forwarding method a flag.
macro_rules! forward_flags {
    ($($flag:ident)*) => {
        impl Dialect for HighwaterDialect {
            fn dialect(&self) -> TypeId {
                TypeId::of::<PostgreSqlDialect>()
            }

            fn is_delimited_identifier_start(&self, ch: char) -> bool {
                ch == '"' || ch == '`'
            }

            fn supports_table_versioning(&self) -> bool {
                true
            }

            /// Not as PostgreSQL: each argument would be read twice, as a name and as itself, and the
            /// argument of a function in a function in a function eight times. A name is a word.
            fn supports_named_fn_args_with_expr_name(&self) -> bool {
                false
            }

            fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
                POSTGRES.identifier_quote_style(identifier)
            }

            fn is_identifier_start(&self, ch: char) -> bool {
                POSTGRES.is_identifier_start(ch)
            }

            fn is_identifier_part(&self, ch: char) -> bool {
                POSTGRES.is_identifier_part(ch)
            }

            fn is_custom_operator_part(&self, ch: char) -> bool {
                ch != '`' && POSTGRES.is_custom_operator_part(ch)
            }

            fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
                POSTGRES.is_reserved_for_identifier(keyword)
            }

            fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
                POSTGRES.get_next_precedence(parser)
            }

            /// sqlparser takes any word for a name, so `a + FROM t` would read a column "from".
            fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
                let next = parser.peek_token();
                match &next.token {
                    Token::Word(word) if word.quote_style.is_none() && NEVER_A_NAME.contains(&word.keyword) => {
                        Some(parser.expected("an expression", next))
                    }
                    _ => None,
                }
            }

            fn parse_infix(
                &self,
                parser: &mut Parser<'_>,
                expr: &Expr,
                precedence: u8,
            ) -> Option<Result<Expr, ParserError>> {
                match distinct_from(parser, expr, precedence) {
                    None => POSTGRES.parse_infix(parser, expr, precedence),
                    parsed => parsed,
                }
            }

            fn prec_value(&self, precedence: Precedence) -> u8 {
                POSTGRES.prec_value(precedence)
            }

            fn prec_unknown(&self) -> u8 {
                POSTGRES.prec_unknown()
            }

            $(fn $flag(&self) -> bool {
                POSTGRES.$flag()
            })*
        }
    };
}

/// `left IS [NOT] DISTINCT FROM right`, where `right` ends in front of AND and OR as in PostgreSQL:
/// sqlparser would take them in.
fn distinct_from(parser: &mut Parser<'_>, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
    let is_not = if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
        false
    } else if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
        true
    } else {
        return None;
    };
    let left = Box::new(left.clone());
    Some(parser.parse_subexpr(precedence).map(Box::new).map(|right| {
        if is_not { Expr::IsNotDistinctFrom(left, right) } else { Expr::IsDistinctFrom(left, right) }
    }))
}

forward_flags! {
    supports_string_literal_backslash_escape
    ignores_wildcard_escapes
    supports_unicode_string_literal
    supports_filter_during_aggregation
    supports_window_clause_named_window_reference
    supports_within_after_array_aggregation
    supports_partition_by_after_order_by
    supports_array_join_syntax
    supports_group_by_expr
    supports_group_by_with_modifier
    supports_left_associative_joins_without_parens
    supports_outer_join_operator
    supports_cross_join_constraint
    supports_connect_by
    supports_execute_immediate
    supports_match_recognize
    supports_in_empty_list
    supports_start_transaction_modifier
    supports_end_transaction_modifier
    supports_named_fn_args_with_eq_operator
    supports_named_fn_args_with_colon_operator
    supports_named_fn_args_with_assignment_operator
    supports_named_fn_args_with_rarrow_operator
    supports_numeric_prefix
    supports_numeric_literal_underscores
    supports_window_function_null_treatment_arg
    supports_dictionary_syntax
    support_map_literal_syntax
    supports_lambda_functions
    supports_parenthesized_set_variables
    supports_comma_separated_set_assignments
    supports_update_order_by
    supports_select_wildcard_except
    convert_type_before_value
    supports_triple_quoted_string
    supports_trailing_commas
    supports_limit_comma
    supports_string_literal_concatenation
    supports_string_literal_concatenation_with_newline
    supports_projection_trailing_commas
    supports_from_trailing_commas
    supports_column_definition_trailing_commas
    supports_object_name_double_dot_notation
    supports_struct_literal
    supports_empty_projections
    supports_select_expr_star
    supports_from_first_select
    supports_from_first_insert
    supports_pipe_operator
    supports_user_host_grantee
    supports_match_against
    supports_select_wildcard_exclude
    supports_select_exclude
    supports_create_table_multi_schema_info_sources
    supports_select_modifiers
    describe_requires_table_keyword
    allow_extract_custom
    allow_extract_single_quotes
    supports_extract_comma_syntax
    supports_subquery_as_function_arg
    supports_create_view_comment_syntax
    supports_array_typedef_without_element_type
    supports_parens_around_table_factor
    supports_values_as_table_factor
    supports_dollar_placeholder
    supports_dollar_as_money_prefix
    supports_create_index_with_clause
    require_interval_qualifier
    supports_explain_with_utility_options
    supports_asc_desc_in_column_definition
    supports_factorial_operator
    supports_bitwise_shift_operators
    supports_nested_comments
    supports_multiline_comment_hints
    supports_eq_alias_assignment
    supports_try_convert
    supports_bang_not_operator
    supports_listen_notify
    supports_load_data
    supports_load_extension
    supports_top_before_distinct
    supports_boolean_literals
    supports_show_like_before_in
    supports_comment_on
    supports_create_table_select
    supports_partiql
    supports_constraint_keyword_without_name
    supports_key_column_option
    supports_table_sample_before_alias
    supports_insert_set
    supports_insert_table_function
    supports_insert_table_query
    supports_insert_format
    supports_insert_table_alias
    supports_set_stmt_without_operator
    supports_string_escape_constant
    supports_table_hints
    requires_single_line_comment_whitespace
    supports_array_typedef_with_brackets
    supports_geometric_types
    supports_order_by_all
    supports_set_names
    supports_space_separated_column_options
    supports_alter_column_type_using
    supports_comma_separated_drop_column_list
    supports_notnull_operator
    supports_data_type_signed_suffix
    supports_interval_options
    supports_create_table_like_parenthesized
    supports_semantic_view_table_factor
    supports_quote_delimited_string
    supports_comment_optimizer_hint
    supports_double_ampersand_operator
    supports_binary_kw_as_cast
    supports_select_wildcard_replace
    supports_select_wildcard_ilike
    supports_select_wildcard_rename
    supports_select_wildcard_with_alias
    supports_optimize_table
    supports_install
    supports_detach
    supports_prewhere
    supports_with_fill
    supports_limit_by
    supports_interpolate
    supports_settings
    supports_select_format
    supports_comma_separated_trim
    supports_cte_without_as
    supports_select_item_multi_column_alias
    supports_xml_expressions
    supports_create_table_using
    supports_long_type_as_bigint
    supports_map_literal_with_angle_brackets
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::Statement;

    use super::{HighwaterDialect, Parser};

    fn parse(text: &str) -> Statement {
        Parser::parse_sql(&HighwaterDialect, text).unwrap().remove(0)
    }

    #[test]
    fn postgresql_operators_parse_through_the_wrapper() {
        assert_eq!(
            parse("SELECT a ? 'k', a @> b, !!3, a::int[]").to_string(),
            "SELECT a ? 'k', a @> b, !!3, a::INT[]"
        );
    }

    #[test]
    fn backticks_quote_names() {
        assert_eq!(parse("SELECT `Some Name` FROM `T`").to_string(), "SELECT `Some Name` FROM `T`");
    }

    #[test]
    fn system_time_versions_parse() {
        parse("SELECT * FROM a FOR SYSTEM_TIME AS OF now()");
    }
}
