//! The text of statements as tokens that know their character positions.
//!
//! sqlparser counts lines and columns; PostgreSQL's protocol counts characters. So every token's
//! span is rewritten right after tokenising: line 1, column = 1-based character position in the
//! **statement's own text**. From then on `span.start.column` of any token or syntax tree node is
//! the number a client expects, whatever lines and multi-byte characters stand before it.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's tokens list what every database knows")]

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError};

use crate::dialect::HighwaterDialect;
use crate::error::{SqlError, SqlErrorKind};

/// One statement of a text: its tokens without white space and comments.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    /// The statement's own text, from its first token to the end of its last.
    pub(crate) text: &'a str,
    /// Characters of the whole text before `text`.
    pub(crate) offset: u32,
    pub(crate) tokens: Vec<TokenWithSpan>,
}

/// Splits a text at its semicolons. Empty statements are left out.
pub(crate) fn split(text: &str) -> Result<Vec<Source<'_>>, SqlError> {
    let tokens = Tokenizer::new(&HighwaterDialect, text)
        .tokenize_with_location()
        .map_err(|error| tokenizer_error(text, &error))?;
    let mut cursor = Cursor::new(text);
    let mut sources = Vec::new();
    let mut current: Option<Pending> = None;
    for token in tokens {
        let start = cursor.advance_to(token.span.start);
        match token.token {
            Token::EOF | Token::Whitespace(_) => {}
            Token::SemiColon => sources.extend(current.take().map(|pending| pending.finish(text))),
            kind => {
                let end = cursor.advance_to(token.span.end);
                current.get_or_insert_with(|| Pending::new(start)).push(kind, start, end);
            }
        }
    }
    sources.extend(current.map(|pending| pending.finish(text)));
    Ok(sources)
}

/// A place in the text, counted both ways.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Characters before it.
    chars: u64,
    /// Bytes before it.
    bytes: usize,
}

/// A statement whose end has not been found yet.
struct Pending {
    start: Place,
    end: Place,
    tokens: Vec<TokenWithSpan>,
}

impl Pending {
    fn new(start: Place) -> Self {
        Self { start, end: start, tokens: Vec::new() }
    }

    fn push(&mut self, token: Token, start: Place, end: Place) {
        let location = |place: Place| Location::new(1, place.chars - self.start.chars + 1);
        let span = Span::new(location(start), location(end));
        self.end = end;
        self.tokens.push(TokenWithSpan::new(token, span));
    }

    fn finish(self, text: &str) -> Source<'_> {
        Source {
            text: &text[self.start.bytes..self.end.bytes],
            offset: u32::try_from(self.start.chars).unwrap_or(u32::MAX),
            tokens: self.tokens,
        }
    }
}

/// Walks the text once, from token to token, and never back.
struct Cursor<'a> {
    rest: std::str::Chars<'a>,
    location: Location,
    chars: u64,
    length: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text.chars(), location: Location::new(1, 1), chars: 0, length: text.len() }
    }

    fn advance_to(&mut self, target: Location) -> Place {
        while self.location < target {
            let Some(char) = self.rest.next() else { break };
            self.chars += 1;
            if char == '\n' {
                self.location = Location::new(self.location.line + 1, 1);
            } else {
                self.location.column += 1;
            }
        }
        Place { chars: self.chars, bytes: self.length - self.rest.as_str().len() }
    }
}

/// What PostgreSQL says about text that is not made of tokens.
fn tokenizer_error(text: &str, error: &TokenizerError) -> SqlError {
    let start = Cursor::new(text).advance_to(error.location);
    let rest = &text[start.bytes..];
    let message = if error.message.contains("comment") {
        "unterminated /* comment".to_owned()
    } else if error.message.contains("dollar-quoted") {
        "unterminated dollar-quoted string".to_owned()
    } else if error.message.starts_with("Unterminated") || error.message.contains("EOF") {
        let what = if rest.starts_with(['"', '`']) { "identifier" } else { "string" };
        format!("unterminated quoted {what} at or near \"{rest}\"")
    } else {
        let near: String = rest.chars().take_while(|char| !char.is_whitespace()).collect();
        if near.is_empty() {
            "syntax error at end of input".to_owned()
        } else {
            format!("syntax error at or near \"{near}\"")
        }
    };
    let position = u32::try_from(start.chars + 1).unwrap_or(u32::MAX);
    SqlErrorKind::Syntax { message }.at(position)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_text_is_split_at_semicolons_that_are_tokens() {
        let sources = split(" SELECT ';' ;; -- ; \n/* ; */ SELECT $$;$$").unwrap();
        let parts: Vec<_> = sources.iter().map(|source| (source.offset, source.text)).collect();
        assert_eq!(parts, [(1, "SELECT ';'"), (29, "SELECT $$;$$")]);
    }

    #[test]
    fn positions_count_characters_from_the_statement_on() {
        let sources = split("SELECT 'é';\nSELECT\n 'ä', x").unwrap();
        let source = &sources[1];
        assert_eq!(source.offset, 12);
        let columns: Vec<_> = source.tokens.iter().map(|token| token.span.start.column).collect();
        assert_eq!(columns, [1, 9, 12, 14]);
    }

    #[test]
    fn an_open_quote_is_reported_where_it_opens() {
        let error = split("SELECT 1;\nSELECT 'abc").unwrap_err();
        assert_eq!(error.to_string(), "unterminated quoted string at or near \"'abc\"");
        assert_eq!(error.position, Some(18));
    }
}
