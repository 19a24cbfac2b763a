//! Flink's window table functions in the canonical spelling, on tokens.
//!
//! | written | becomes |
//! |---|---|
//! | `TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), size))` | `TUMBLE(t, c, size)` |
//! | `TUMBLE(TABLE t, DESCRIPTOR(c), size)`        | `TUMBLE(t, c, size)` |
//! | `TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(c), SIZE => s)` | `TUMBLE(t, c, s)` |
//!
//! sqlparser cannot read the left column. Spans stay, so error positions do too.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's tokens list what every database knows")]

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parser::grammar::is_word;

/// Window functions with the names Flink gives their arguments, in order.
const WINDOW_FUNCTIONS: &[(&str, &[&str])] = &[
    ("TUMBLE", &["DATA", "TIMECOL", "SIZE", "OFFSET"]),
    ("HOP", &["DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"]),
    ("CUMULATE", &["DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"]),
    ("SESSION", &["DATA", "TIMECOL", "GAP"]),
];

/// Rewrites every window table function of a statement.
pub(crate) fn to_canonical(tokens: Vec<TokenWithSpan>, notices: &mut Vec<String>) -> Vec<TokenWithSpan> {
    let has_marker = tokens.windows(2).any(|pair| {
        pair[1].token == Token::LParen
            && (is_word(&pair[0].token, "TABLE") || is_word(&pair[0].token, "DESCRIPTOR"))
            || is_word(&pair[0].token, "DATA") && pair[1].token == Token::RArrow
    });
    if !has_marker {
        return tokens;
    }
    let mut rewriter =
        Rewriter { tokens: &tokens, out: Vec::with_capacity(tokens.len()), mapped: Vec::new() };
    rewriter.copy(0..tokens.len());
    for name in rewriter.mapped {
        notices.push(format!(
            "TABLE({name}(TABLE …, DESCRIPTOR(…), …)) was mapped to {name}(relation, column, …)"
        ));
    }
    rewriter.out
}

struct Rewriter<'a> {
    tokens: &'a [TokenWithSpan],
    out: Vec<TokenWithSpan>,
    mapped: Vec<&'static str>,
}

impl Rewriter<'_> {
    /// Copies a range; the depth of recursion is bounded by `limits`.
    fn copy(&mut self, range: Range<usize>) {
        let mut index = range.start;
        while index < range.end {
            index = self.window_call(index, range.end).unwrap_or_else(|| {
                self.out.push(self.tokens[index].clone());
                index + 1
            });
        }
    }

    /// Rewrites the call that starts at `start` and returns the index behind it.
    fn window_call(&mut self, start: usize, end: usize) -> Option<usize> {
        let wrapped = self.word(start, "TABLE") && self.is(start + 1, &Token::LParen);
        let name = if wrapped { start + 2 } else { start };
        let (function, parameters) =
            WINDOW_FUNCTIONS.iter().find(|(function, _)| self.word(name, function))?;
        if !self.is(name + 1, &Token::LParen) {
            return None;
        }
        let close = self.closing(name + 1, end)?;
        let behind =
            if wrapped { self.is(close + 1, &Token::RParen).then_some(close + 2)? } else { close + 1 };
        let arguments = self.arguments(name + 2..close);
        let flinkish = wrapped || arguments.iter().any(|argument| self.is_flinkish(argument));
        if !flinkish {
            return None;
        }
        self.out.push(self.tokens[name].clone());
        self.out.push(self.tokens[name + 1].clone());
        for (position, argument) in self.in_order(arguments, parameters).into_iter().enumerate() {
            if position > 0 {
                self.out.push(TokenWithSpan::new(Token::Comma, self.tokens[name + 1].span));
            }
            self.argument(argument);
        }
        self.out.push(self.tokens[close].clone());
        if !self.mapped.contains(function) {
            self.mapped.push(function);
        }
        Some(behind)
    }

    /// `TABLE t` → `t`, `DESCRIPTOR(c)` → `c`.
    fn argument(&mut self, range: Range<usize>) {
        if self.word(range.start, "DESCRIPTOR") && self.is(range.start + 1, &Token::LParen) && range.len() > 3
        {
            self.copy(range.start + 2..range.end - 1);
        } else if self.word(range.start, "TABLE") && range.len() > 1 {
            self.copy(range.start + 1..range.end);
        } else {
            self.copy(range);
        }
    }

    fn is_flinkish(&self, argument: &Range<usize>) -> bool {
        let value = self.value(argument);
        value.start > argument.start
            || self.word(value.start, "DESCRIPTOR") && self.is(value.start + 1, &Token::LParen)
            || self.word(value.start, "TABLE") && value.len() > 1
    }

    /// An argument without its `NAME =>`.
    fn value(&self, argument: &Range<usize>) -> Range<usize> {
        if self.is(argument.start + 1, &Token::RArrow) && argument.len() > 2 {
            argument.start + 2..argument.end
        } else {
            argument.clone()
        }
    }

    /// Named arguments in the order of the function's parameters; others as they stand.
    fn in_order(&self, arguments: Vec<Range<usize>>, parameters: &[&str]) -> Vec<Range<usize>> {
        let mut numbered: Vec<(usize, Range<usize>)> = arguments
            .into_iter()
            .enumerate()
            .map(|(position, argument)| {
                let value = self.value(&argument);
                let named = value.start > argument.start;
                let place =
                    parameters.iter().position(|parameter| named && self.word(argument.start, parameter));
                (place.unwrap_or(position), value)
            })
            .collect();
        numbered.sort_by_key(|(place, _)| *place);
        numbered.into_iter().map(|(_, value)| value).collect()
    }

    /// Splits at the commas outside of brackets.
    fn arguments(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = range.start;
        let mut depth = 0usize;
        for index in range.clone() {
            match self.tokens[index].token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
                Token::Comma if depth == 0 => {
                    found.push(start..index);
                    start = index + 1;
                }
                _ => {}
            }
        }
        found.push(start..range.end);
        found
    }

    /// The bracket that closes the one at `open`.
    fn closing(&self, open: usize, end: usize) -> Option<usize> {
        let mut depth = 0usize;
        for index in open..end {
            match self.tokens[index].token {
                Token::LParen => depth += 1,
                Token::RParen => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(index);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn is(&self, index: usize, wanted: &Token) -> bool {
        self.tokens.get(index).is_some_and(|token| token.token == *wanted)
    }

    fn word(&self, index: usize, wanted: &str) -> bool {
        self.tokens.get(index).is_some_and(|token| is_word(&token.token, wanted))
    }
}
