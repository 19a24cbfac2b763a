//! `TABLE t`, PostgreSQL's short form of `SELECT * FROM t`, on tokens.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parser::grammar::is_word;

/// Words that `TABLE` may follow where a query begins.
const BEFORE: &[&str] =
    &["AS", "UNION", "ALL", "DISTINCT", "INTERSECT", "EXCEPT", "EXPLAIN", "ANALYZE", "VERBOSE"];

/// Replaces the word by the three it stands for; all get its place in the text.
pub(crate) fn to_select(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(&token.token, "TABLE")) {
        return tokens;
    }
    let insert = tokens.first().is_some_and(|token| is_word(&token.token, "INSERT"));
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 2);
    for (index, token) in tokens.iter().enumerate() {
        let names_relation = matches!(tokens.get(index + 1).map(|next| &next.token), Some(Token::Word(_)));
        let begins_query = match index.checked_sub(1).map(|previous| &tokens[previous].token) {
            None | Some(Token::LParen | Token::RParen) => true,
            Some(word) => {
                BEFORE.iter().any(|before| is_word(word, before)) || insert && !is_word(word, "INTO")
            }
        };
        if names_relation && begins_query && is_word(&token.token, "TABLE") {
            let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            out.extend(words.map(|word| TokenWithSpan::new(word, token.span)));
        } else {
            out.push(token.clone());
        }
    }
    out
}
