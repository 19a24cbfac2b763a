//! Words, names and lists: what the statement files read a statement with.
//!
//! A [`Grammar`] walks the tokens of one statement. Our own words (`WATERMARK`, `LATENESS` …) are
//! compared by their text, so that none of them has to be a keyword of sqlparser; expressions,
//! types and queries are sqlparser's. An error points at the token the parser stopped at.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's tokens list what every database knows")]

use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::dialect::HighwaterDialect;
use crate::error::{SqlError, SqlErrorKind};
use crate::parser::keywords::is_reserved;
use crate::parser::source::Source;
use crate::parser::{group_window, limits, table_command, window_table};
use crate::statement::QualifiedName;

/// How deep sqlparser may call itself. Depth of brackets is bounded before (see `limits`).
const RECURSION_LIMIT: usize = 400;

/// Stands where a query has to end: it is no alias and no operator, and no statement has one of
/// its own any more.
const END_OF_QUERY: Token = Token::SemiColon;

pub(crate) type Result<T> = std::result::Result<T, SqlError>;

/// The tokens of one statement and how far they have been read.
pub(crate) struct Grammar<'a> {
    parser: Parser<'static>,
    text: &'a str,
    /// Where every token begins, and the position behind it.
    spans: Vec<(u32, u32)>,
    /// Indices of words that may begin an `EMIT` clause.
    emit_candidates: Vec<usize>,
    notices: Vec<String>,
}

/// A query with its own text.
pub(crate) struct QueryText {
    pub(crate) query: Box<ast::Query>,
    pub(crate) text: String,
}

impl<'a> Grammar<'a> {
    pub(crate) fn new(source: Source<'a>) -> Result<Self> {
        limits::check(&source.tokens)?;
        let mut notices = Vec::new();
        let mut tokens = table_command::to_select(window_table::to_canonical(source.tokens, &mut notices));
        end_queries_at_options(&mut tokens);
        let spans = tokens.iter().map(|token| (column(token.span.start), column(token.span.end))).collect();
        Ok(Self {
            emit_candidates: emit_candidates(&tokens),
            parser: parser(tokens),
            text: source.text,
            spans,
            notices,
        })
    }

    pub(crate) fn into_notices(self) -> Vec<String> {
        self.notices
    }

    pub(crate) fn notice(&mut self, text: String) {
        if !self.notices.contains(&text) {
            self.notices.push(text);
        }
    }

    // Looking.

    fn peek(&self, ahead: usize) -> &TokenWithSpan {
        self.parser.peek_nth_token_ref(ahead)
    }

    pub(crate) fn peek_token(&self) -> &Token {
        &self.peek(0).token
    }

    /// Whether the next tokens are these words, unquoted, in any case.
    pub(crate) fn at(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(ahead, word)| is_word(&self.peek(ahead).token, word))
    }

    /// The next word in upper case, if it is an unquoted word.
    pub(crate) fn peek_word(&self, ahead: usize) -> Option<String> {
        match &self.peek(ahead).token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
            _ => None,
        }
    }

    pub(crate) fn at_end(&self) -> bool {
        *self.peek_token() == Token::EOF
    }

    /// 1-based character position of the next token.
    pub(crate) fn position(&self) -> u32 {
        self.spans.get(self.parser.index()).map_or_else(|| self.end_position(), |(start, _)| *start)
    }

    // Taking.

    pub(crate) fn advance(&mut self) {
        self.parser.advance_token();
    }

    /// Takes these words if all of them are next.
    pub(crate) fn take(&mut self, words: &[&str]) -> bool {
        let found = self.at(words);
        if found {
            for _ in words {
                self.advance();
            }
        }
        found
    }

    pub(crate) fn expect(&mut self, words: &[&str]) -> Result<()> {
        for word in words {
            if !self.take(&[word]) {
                return Err(self.unexpected());
            }
        }
        Ok(())
    }

    pub(crate) fn take_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    pub(crate) fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.take_token(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(crate) fn expect_end(&self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Whether `WITH (` is next: see [`end_queries_at_options`].
    pub(crate) fn at_options(&self) -> bool {
        *self.peek_token() == END_OF_QUERY
    }

    /// Takes the `WITH` of `WITH (…)`.
    pub(crate) fn take_options(&mut self) -> bool {
        let found = self.at_options();
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn if_not_exists(&mut self) -> bool {
        self.take(&["IF", "NOT", "EXISTS"])
    }

    pub(crate) fn if_exists(&mut self) -> bool {
        self.take(&["IF", "EXISTS"])
    }

    /// An identifier, folded as PostgreSQL folds: lower case unless quoted.
    pub(crate) fn identifier(&mut self) -> Result<String> {
        let Token::Word(word) = self.peek_token() else { return Err(self.unexpected()) };
        if word.quote_style.is_none() && is_reserved(&word.value) {
            return Err(self.unexpected());
        }
        let name = fold(&word.value, word.quote_style);
        if name.is_empty() {
            let message = "zero-length delimited identifier".to_owned();
            return Err(SqlErrorKind::Syntax { message }.at(self.position()));
        }
        self.advance();
        Ok(name)
    }

    /// `name` or `schema.name`.
    pub(crate) fn name(&mut self) -> Result<QualifiedName> {
        let position = self.position();
        let first = self.identifier()?;
        if !self.take_token(&Token::Period) {
            return Ok(QualifiedName { schema: None, name: first, position });
        }
        let second = self.identifier_after_dot()?;
        if *self.peek_token() == Token::Period {
            let kind = SqlErrorKind::unsupported("a name with a database");
            return Err(kind
                .at(position)
                .hint(format!("Write \"{first}\".\"{second}\" as schema and relation.")));
        }
        Ok(QualifiedName { schema: Some(first), name: second, position })
    }

    /// After a dot PostgreSQL allows reserved words too.
    fn identifier_after_dot(&mut self) -> Result<String> {
        if let Token::Word(word) = self.peek_token() {
            let name = fold(&word.value, word.quote_style);
            self.advance();
            return Ok(name);
        }
        Err(self.unexpected())
    }

    /// `item, item …`
    pub(crate) fn comma_separated<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(item, item …)`
    pub(crate) fn parenthesized<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_token(&Token::LParen)?;
        let items = self.comma_separated(item)?;
        self.expect_token(&Token::RParen)?;
        Ok(items)
    }

    /// A literal as text: a string, a number with its sign, or a word in lower case.
    pub(crate) fn literal(&mut self) -> Result<String> {
        let negative = self.take_token(&Token::Minus);
        if !negative {
            self.take_token(&Token::Plus);
        }
        let text = match self.peek_token() {
            Token::Number(digits, _) if negative => format!("-{digits}"),
            Token::Number(digits, _) => digits.clone(),
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) if !negative => text.clone(),
            Token::DollarQuotedString(quoted) if !negative => quoted.value.clone(),
            Token::Word(word) if !negative => fold(&word.value, word.quote_style),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(text)
    }

    /// A word, reserved or not, or a literal, in lower case.
    pub(crate) fn option_word(&mut self) -> Result<String> {
        Ok(self.literal()?.to_ascii_lowercase())
    }

    /// `name` or `extension.name` of a setting, in lower case.
    pub(crate) fn setting_name(&mut self) -> Result<String> {
        let mut name = self.identifier()?.to_ascii_lowercase();
        while self.take_token(&Token::Period) {
            name.push('.');
            name.push_str(&self.identifier_after_dot()?.to_ascii_lowercase());
        }
        Ok(name)
    }

    // What sqlparser reads.

    /// Calls a method of sqlparser's parser.
    pub(crate) fn sqlparser<T>(
        &mut self,
        read: impl FnOnce(&mut Parser<'static>) -> std::result::Result<T, ParserError>,
    ) -> Result<T> {
        read(&mut self.parser).map_err(|error| self.parser_error(&error))
    }

    pub(crate) fn expression(&mut self) -> Result<ast::Expr> {
        self.sqlparser(Parser::parse_expr)
    }

    pub(crate) fn data_type(&mut self) -> Result<ast::DataType> {
        self.sqlparser(Parser::parse_data_type)
    }

    /// A query, with its aliases rewritten to the canonical dialect.
    pub(crate) fn query(&mut self) -> Result<Box<ast::Query>> {
        let mut query = self.sqlparser(Parser::parse_query)?;
        group_window::to_canonical(&mut query, &mut self.notices)?;
        Ok(query)
    }

    /// A query with its own text: as it was written, or as the canonical dialect writes it if an
    /// alias was mapped.
    pub(crate) fn query_with_text(&mut self) -> Result<QueryText> {
        let start = self.position();
        let query = self.query()?;
        let written = self.slice(start, self.position()).trim_end();
        let text = if self.notices.is_empty() { written.to_owned() } else { query.to_string() };
        Ok(QueryText { query, text })
    }

    /// A query, and whether an `EMIT` clause follows; then the word `EMIT` is taken.
    ///
    /// A column, table or alias may be called `emit`, so the clause is looked for only where the
    /// text is no complete query with that name in it.
    pub(crate) fn query_to_emit(&mut self) -> Result<(QueryText, bool)> {
        let start = self.parser.index();
        let Some(emit) = self.emit_candidates.iter().copied().rfind(|index| *index > start) else {
            return Ok((self.query_with_text()?, false));
        };
        if let Some(query) = self.try_query() {
            return Ok((query, false));
        }
        self.edit_tokens(|tokens, _| tokens[emit].token = END_OF_QUERY);
        let query = self.query_with_text()?;
        if self.parser.index() != emit {
            return Err(self.unexpected());
        }
        self.advance();
        Ok((query, true))
    }

    /// Tries to read a query with all that belongs to it; otherwise nothing is taken.
    fn try_query(&mut self) -> Option<QueryText> {
        let index = self.parser.index();
        let notices = self.notices.len();
        let query = self.query_with_text().ok();
        if query.is_some()
            && (self.at_end() || self.at_options() || self.at(&["WITH"]) || self.at(&["FORMAT"]))
        {
            return query;
        }
        while self.parser.index() > index {
            self.parser.prev_token();
        }
        self.notices.truncate(notices);
        None
    }

    /// `FROM relation`, read as `SELECT * FROM relation`.
    pub(crate) fn relation_as_query(&mut self) -> Result<QueryText> {
        let start = self.position();
        let index = self.parser.index();
        let words = [Token::make_keyword("SELECT"), Token::Mul];
        self.edit_tokens(|tokens, spans| {
            let at = tokens[index].span;
            tokens.splice(index..index, words.map(|word| TokenWithSpan::new(word, at)));
            spans.splice(index..index, [spans[index]; 2]);
        });
        let query = self.query()?;
        // SELECT, *, FROM and a name of one or two parts.
        if !matches!(self.parser.index() - index, 4 | 6) {
            return Err(self.unexpected());
        }
        let from = self.slice(start, self.position()).trim_end();
        Ok(QueryText { query, text: format!("SELECT * {from}") })
    }

    /// Changes tokens behind those read.
    fn edit_tokens(&mut self, edit: impl FnOnce(&mut Vec<TokenWithSpan>, &mut Vec<(u32, u32)>)) {
        let read = self.parser.index();
        let mut tokens = std::mem::replace(&mut self.parser, parser(Vec::new())).into_tokens();
        edit(&mut tokens, &mut self.spans);
        self.parser = parser(tokens);
        for _ in 0..read {
            self.parser.advance_token();
        }
    }

    // Errors.

    /// `syntax error at or near` the next token.
    pub(crate) fn unexpected(&self) -> SqlError {
        self.unexpected_at(self.spans.get(self.parser.index()).copied())
    }

    /// `syntax error at or near` a token behind the next one.
    pub(crate) fn unexpected_ahead(&self, ahead: usize) -> SqlError {
        self.unexpected_at(self.spans.get(self.parser.index() + ahead).copied())
    }

    fn unexpected_at(&self, span: Option<(u32, u32)>) -> SqlError {
        let (message, position) = match span {
            Some((start, end)) => (format!("syntax error at or near \"{}\"", self.slice(start, end)), start),
            None => ("syntax error at end of input".to_owned(), self.end_position()),
        };
        SqlErrorKind::Syntax { message }.at(position)
    }

    /// `feature is not supported`, at the next token.
    pub(crate) fn unsupported(&self, feature: impl Into<String>) -> SqlError {
        SqlErrorKind::unsupported(feature).at(self.position())
    }

    /// sqlparser says where in the words of its message; without a place it stopped here.
    fn parser_error(&self, error: &ParserError) -> SqlError {
        let message = match error {
            ParserError::RecursionLimitExceeded => {
                return SqlErrorKind::StackDepthExceeded.at(self.position());
            }
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        };
        let place: Option<u32> =
            message.rsplit_once(" at Line: 1, Column: ").and_then(|(_, place)| place.parse().ok());
        if let Some(place) = place {
            self.unexpected_at(self.spans.iter().find(|(start, _)| *start == place).copied())
        } else if message.ends_with("found: EOF") {
            self.unexpected_at(None)
        } else {
            self.unexpected()
        }
    }

    fn end_position(&self) -> u32 {
        u32::try_from(self.text.chars().count() + 1).unwrap_or(u32::MAX)
    }

    /// The text between two 1-based character positions.
    fn slice(&self, start: u32, end: u32) -> &'a str {
        let byte = |position: u32| {
            let chars = position.saturating_sub(1) as usize;
            self.text.char_indices().nth(chars).map_or(self.text.len(), |(byte, _)| byte)
        };
        &self.text[byte(start)..byte(end)]
    }
}

/// A sqlparser parser of our dialect.
fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&HighwaterDialect).with_recursion_limit(RECURSION_LIMIT).with_tokens_with_locations(tokens)
}

/// Marks the `WITH` of every `WITH (…)`. In PostgreSQL's queries the two never stand together, but
/// sqlparser would take them for hints of another database.
fn end_queries_at_options(tokens: &mut [TokenWithSpan]) {
    for index in 1..tokens.len() {
        if tokens[index].token == Token::LParen && is_word(&tokens[index - 1].token, "WITH") {
            tokens[index - 1].token = END_OF_QUERY;
        }
    }
}

/// `EMIT ON` and `EMIT EVERY` outside of brackets, where a clause can begin.
fn emit_candidates(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut depth = 0usize;
    let mut found = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        match &pair[0].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            token if depth == 0 && is_word(token, "EMIT") && begins_emission(&pair[1].token) => {
                found.push(index)
            }
            _ => {}
        }
    }
    found
}

fn begins_emission(token: &Token) -> bool {
    is_word(token, "ON") || is_word(token, "EVERY")
}

fn column(location: Location) -> u32 {
    u32::try_from(location.column).unwrap_or(u32::MAX)
}

/// Whether a token is this word, unquoted, in any case.
pub(crate) fn is_word(token: &Token, wanted: &str) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted),
        _ => false,
    }
}

/// Lower case for ASCII only, as PostgreSQL folds in a multi-byte encoding.
pub(crate) fn fold(value: &str, quote_style: Option<char>) -> String {
    match quote_style {
        Some(_) => value.to_owned(),
        None => value.to_ascii_lowercase(),
    }
}
