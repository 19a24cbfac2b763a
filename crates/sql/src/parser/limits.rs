//! Bounds on nesting, checked on the tokens before anything recursive sees them.
//!
//! A syntax tree is walked and freed by recursion, here, in the planner and in DataFusion, on
//! threads with small stacks. Brackets make it deep; so do long chains of operators
//! (`a + a + a …`), which sqlparser reads in a loop but builds as a left-deep tree. Lists stay
//! flat, so they may be as long as memory allows.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's tokens list what every database knows")]

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{SqlError, SqlErrorKind};
use crate::parser::grammar::is_word;

/// Brackets inside brackets.
const DEPTH_MAX: usize = 100;
/// Operators between two commas, with those inside of the brackets between them: how deep a tree can
/// get.
const CHAIN_MAX: usize = 1_000;
/// Brackets of [`SPECIAL`] forms inside each other. When such a form does not parse, sqlparser reads
/// it again as a call of a function: each one doubles the time until the error.
const SPECIAL_MAX: usize = 12;
/// Words that have a form of their own in front of a bracket, and are read as a function otherwise.
const SPECIAL: &[&str] = &[
    "ARRAY",
    "CASE",
    "CAST",
    "CEIL",
    "CONVERT",
    "EXISTS",
    "EXTRACT",
    "FLOOR",
    "INTERVAL",
    "MAP",
    "MATCH",
    "NOT",
    "OVERLAY",
    "POSITION",
    "PRIOR",
    "SAFE_CAST",
    "STRUCT",
    "SUBSTR",
    "SUBSTRING",
    "TRIM",
    "TRY_CAST",
    "TRY_CONVERT",
];
/// Prefixes in a row, e.g. `NOT NOT x` or `ARRAY<ARRAY<…`.
const PREFIXES_MAX: usize = 100;

/// What one bracket (or the statement itself) has seen since its last comma.
#[derive(Default)]
struct Level {
    operators: usize,
    set_operators: usize,
    /// The longest chain before its last comma.
    longest: usize,
    /// How deep the deepest of the brackets in it is.
    below: usize,
    /// [`SPECIAL`] forms around it.
    special: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.longest.max(self.operators) + self.set_operators + self.below
    }
}

/// Refuses a statement that is nested too deeply, with SQLSTATE 54001 as PostgreSQL does.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut levels = vec![Level::default()];
    let mut prefixes = 0;
    let mut previous = &Token::EOF;
    for token in tokens {
        let kind = &token.token;
        prefixes = if is_prefix(kind) { prefixes + 1 } else { 0 };
        match kind {
            Token::LParen | Token::LBracket | Token::LBrace => {
                let around = levels.last().map_or(0, |level| level.special);
                let is_special = SPECIAL.iter().any(|word| is_word(previous, word));
                levels.push(Level { special: around + usize::from(is_special), ..Level::default() });
            }
            Token::Whitespace(_) => continue,
            Token::RParen | Token::RBracket | Token::RBrace if levels.len() > 1 => {
                let closed = levels.pop().map_or(0, |level| level.depth() + 1);
                if let Some(around) = levels.last_mut() {
                    around.below = around.below.max(closed);
                }
            }
            _ => {}
        }
        previous = kind;
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { continue };
        match kind {
            Token::Comma => level.longest = level.longest.max(std::mem::take(&mut level.operators)),
            _ if is_set_operator(kind) => level.set_operators += 1,
            _ if is_operator(kind) => level.operators += 1,
            _ => {}
        }
        let chain = level.depth();
        let special = level.special;
        if depth > DEPTH_MAX || chain > CHAIN_MAX || prefixes > PREFIXES_MAX || special > SPECIAL_MAX {
            let position = u32::try_from(token.span.start.column).unwrap_or(u32::MAX);
            let hint = "Use fewer brackets, or a list (IN, VALUES, ANY) instead of a chain of operators.";
            return Err(SqlErrorKind::StackDepthExceeded.at(position).hint(hint));
        }
    }
    Ok(())
}

fn is_set_operator(token: &Token) -> bool {
    ["UNION", "INTERSECT", "EXCEPT", "JOIN"].iter().any(|word| is_word(token, word))
}

/// Words and signs that make a tree one deeper. A bracket is counted too: `a(1)(2)`, `x[1][2]`.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(_) => {
            let words = [
                "AND", "OR", "IS", "ISNULL", "NOTNULL", "LIKE", "ILIKE", "IN", "BETWEEN", "COLLATE", "AT",
                "NOT",
            ];
            words.iter().any(|word| is_word(token, word))
        }
        Token::EOF
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::Placeholder(_)
        | Token::Comma
        | Token::LParen
        | Token::RParen
        | Token::RBracket
        | Token::Period => false,
        _ => true,
    }
}

/// Tokens that may stand before an operand any number of times.
fn is_prefix(token: &Token) -> bool {
    match token {
        Token::Word(_) => {
            let words = [
                "NOT", "INTERVAL", "ARRAY", "CASE", "WHEN", "PRIOR", "EXPLAIN", "DISTINCT", "ALL", "LATERAL",
            ];
            words.iter().any(|word| is_word(token, word))
        }
        Token::Minus | Token::Plus | Token::Tilde | Token::ExclamationMark | Token::Lt | Token::AtSign => {
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    fn code(text: &str) -> &'static str {
        parse(text).map_or_else(|error| error.sqlstate(), |_| "00000")
    }

    #[test]
    fn deep_brackets_are_refused() {
        let nested = |depth: usize| format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(code(&nested(90)), "00000");
        assert_eq!(code(&nested(200)), "54001");
        assert_eq!(code(&nested(1_000_000)), "54001");
    }

    #[test]
    fn long_operator_chains_are_refused_and_long_lists_are_not() {
        assert_eq!(code(&format!("SELECT 1{}", " + 1".repeat(900))), "00000");
        assert_eq!(code(&format!("SELECT 1{}", " + 1".repeat(100_000))), "54001");
        assert_eq!(code(&format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(100_000))), "54001");
        assert_eq!(code(&format!("INSERT INTO t VALUES (1){}", ", (-1 + 1)".repeat(100_000))), "00000");
    }

    #[test]
    fn chains_inside_of_chains_count_together() {
        let chain = |operand: &str, length: usize| format!("({operand}{})", " + 1".repeat(length));
        let nested = |levels: usize, length: usize| {
            format!("SELECT {}", (0..levels).fold("1".to_owned(), |operand, _| chain(&operand, length)))
        };
        assert_eq!(code(&nested(9, 100)), "00000");
        assert_eq!(code(&nested(50, 900)), "54001");
        let unions = (0..50).fold("SELECT 1".to_owned(), |operand, _| {
            format!("({operand}{})", " UNION ALL SELECT 1".repeat(900))
        });
        assert_eq!(code(&unions), "54001");
    }

    #[test]
    fn prefixes_in_a_row_are_refused() {
        for prefix in ["NOT ", "- ", "INTERVAL ", "CASE WHEN ", "EXPLAIN "] {
            assert_ne!(code(&format!("SELECT {}1", prefix.repeat(100_000))), "00000", "{prefix}");
        }
        assert_ne!(code(&format!("SELECT 1::{}INT", "ARRAY<".repeat(100_000))), "00000");
    }

    /// What is read by trying must not be tried twice at every level.
    #[test]
    fn nesting_costs_no_more_than_its_length() {
        for (open, middle, close) in [
            ("SELECT ", "1", ""),
            ("SELECT (", "1", ")"),
            ("SELECT abs(", "1", ")"),
            ("SELECT abs(x => ", "1", ")"),
            ("SELECT abs(1, ", "1", ")"),
            ("SELECT count(DISTINCT ", "1", ")"),
            ("SELECT sum(1) FILTER (WHERE ", "true", ")"),
            ("SELECT sum(1) OVER (ORDER BY ", "1", ")"),
            ("SELECT (SELECT ", "1", ")"),
            ("SELECT abs((SELECT ", "1", "))"),
            ("SELECT EXISTS (SELECT ", "1", ")"),
            ("SELECT 1 IN (1, ", "1", ")"),
            ("SELECT 1 IN (", "1", ")"),
            ("SELECT 1 IN (SELECT ", "1", ")"),
            ("SELECT 1 = ANY (", "1", ")"),
            ("SELECT CASE WHEN ", "true", " THEN 1 END"),
            ("SELECT CASE ", "1", " WHEN 1 THEN 1 END"),
            ("SELECT CASE WHEN true THEN 1 ELSE ", "1", " END"),
            ("SELECT CAST(", "1", " AS INT)"),
            ("SELECT ARRAY[", "1", "]"),
            ("SELECT a[", "1", "]"),
            ("SELECT ARRAY(SELECT ", "1", ")"),
            ("SELECT ROW(", "1", ")"),
            ("SELECT (1, ", "1", ")"),
            ("SELECT extract(year FROM ", "a", ")"),
            ("SELECT substring(", "a", " FROM 1)"),
            ("SELECT trim(BOTH 'x' FROM ", "a", ")"),
            ("SELECT position('x' IN ", "a", ")"),
            ("SELECT overlay(", "a", " PLACING 'x' FROM 1)"),
            ("SELECT a BETWEEN ", "1", " AND 2"),
            ("SELECT NOT ", "true", ""),
            ("SELECT - ", "1", ""),
            ("SELECT INTERVAL ", "'1 day'", ""),
            ("SELECT * FROM (", "t", ")"),
            ("SELECT * FROM (t JOIN ", "t", " USING (a))"),
            ("SELECT * FROM t JOIN ", "t", " ON true"),
            ("SELECT * FROM (SELECT * FROM ", "t", ") AS s"),
            ("SELECT * FROM LATERAL (SELECT * FROM ", "t", ") AS s"),
            ("SELECT * FROM TUMBLE((SELECT * FROM ", "t", "), ts, INTERVAL '1 s')"),
            ("SELECT * FROM TABLE(TUMBLE(TABLE ", "t", ", DESCRIPTOR(ts), INTERVAL '1' SECOND))"),
            ("WITH c AS (", "SELECT 1", ") SELECT * FROM c"),
            ("SELECT 1 UNION (", "SELECT 1", ")"),
            ("VALUES (", "1", ")"),
            ("SELECT 1 GROUP BY (", "1", ")"),
            ("SELECT 1 GROUP BY ROLLUP (", "1", ")"),
            ("SELECT 1 ORDER BY (", "1", ")"),
            ("SELECT 1 WINDOW w AS (ORDER BY ", "1", ")"),
            ("INSERT INTO t VALUES (", "1", ")"),
            ("UPDATE t SET a = (", "1", ")"),
            ("DELETE FROM t WHERE (", "true", ")"),
            ("CREATE TABLE t (a INT DEFAULT (", "1", "))"),
            ("CREATE TABLE t (a ARRAY<", "INT", ">)"),
            ("CREATE TABLE t (a STRUCT<b ", "INT", ">)"),
            ("CREATE MATERIALIZED VIEW v AS SELECT abs(", "1", ") FROM t"),
            ("CREATE SOURCE s (a BIGINT, WATERMARK FOR a AS abs(", "a", "))"),
            ("EXPLAIN ", "SELECT 1", ""),
        ] {
            // The statement's head once, what nests many times.
            let at = open.rfind(['(', '[', '<']).map_or(0, |at| {
                let head = &open[..at];
                head.rfind(' ').map_or(0, |space| space + 1)
            });
            let (head, nest) = if at == 0 {
                open.split_at(open.find(' ').map_or(0, |at| at + 1))
            } else {
                open.split_at(at)
            };
            for depth in [30, 90] {
                // Whatever the answer, it must come.
                let _ = parse(&format!("{head}{}{middle}{}", nest.repeat(depth), close.repeat(depth)));
                let _ = parse(&format!("{}{middle}{}", open.repeat(depth), close.repeat(depth)));
                let _ = parse(&format!("{head}{}", nest.repeat(depth)));
            }
        }
    }
}
