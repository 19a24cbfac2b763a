//! `WITH (key = value, …)` and `FORMAT … ENCODE … (…)`.
//!
//! Keys may be bare, dotted or quoted (`topic`, `scan.startup.mode`, `'format'`); they are compared
//! in lower case. `WITH (format = 'json')` and `FORMAT PLAIN ENCODE JSON` are the same, and so are
//! `'csv.delimiter' = ';'` and `ENCODE CSV (delimiter = ';')`: both end up in [`FormatDefinition`].

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's tokens list what every database knows")]

use std::collections::BTreeMap;

use sqlparser::tokenizer::Token;

use crate::error::SqlErrorKind;
use crate::parser::grammar::{Grammar, Result};

/// `FORMAT PLAIN ENCODE JSON (…)`, or the same from `WITH (format = 'json')`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatDefinition {
    pub format: Option<String>,
    pub encode: Option<String>,
    pub options: BTreeMap<String, String>,
}

/// Encodings whose options may stand in WITH as `encoding.option`.
const ENCODINGS: &[&str] = &["json", "csv", "avro", "protobuf", "raw", "debezium-json"];

/// Reads `(key = value, …)`; the word before it is taken already.
pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<BTreeMap<String, String>> {
    let mut options = BTreeMap::new();
    grammar.expect_token(&Token::LParen)?;
    if grammar.take_token(&Token::RParen) {
        return Ok(options);
    }
    grammar.comma_separated(|grammar| {
        let position = grammar.position();
        let key = key(grammar)?;
        grammar.expect_token(&Token::Eq)?;
        let value = grammar.literal()?;
        if options.contains_key(&key) {
            let message = format!("option \"{key}\" specified more than once");
            return Err(SqlErrorKind::Syntax { message }.at(position));
        }
        options.insert(key, value);
        Ok(())
    })?;
    grammar.expect_token(&Token::RParen)?;
    Ok(options)
}

/// `WITH (…)`, if it is there.
pub(crate) fn parse_with(grammar: &mut Grammar<'_>) -> Result<BTreeMap<String, String>> {
    if grammar.take_options() { parse(grammar) } else { Ok(BTreeMap::new()) }
}

fn key(grammar: &mut Grammar<'_>) -> Result<String> {
    let mut key = String::new();
    loop {
        match grammar.peek_token() {
            Token::Word(word) => key.push_str(&word.value.to_lowercase()),
            Token::SingleQuotedString(text) => key.push_str(&text.to_lowercase()),
            _ => return Err(grammar.unexpected()),
        }
        grammar.advance();
        if !grammar.take_token(&Token::Period) {
            return Ok(key);
        }
        key.push('.');
    }
}

/// Reads `FORMAT f [ENCODE e [(…)]]`, if it is there, and joins it with what WITH says of it.
pub(crate) fn parse_format(
    grammar: &mut Grammar<'_>,
    with: &mut BTreeMap<String, String>,
) -> Result<FormatDefinition> {
    let mut definition = from_options(with);
    let position = grammar.position();
    if grammar.take(&["FORMAT"]) {
        let mut clause = FormatDefinition { format: Some(grammar.literal()?), ..FormatDefinition::default() };
        if grammar.take(&["ENCODE"]) {
            clause.encode = Some(grammar.literal()?);
            if *grammar.peek_token() == Token::LParen {
                clause.options = parse(grammar)?;
            }
        }
        if definition.encode.is_some() {
            let message = "FORMAT and the option \"format\" are both given".to_owned();
            return Err(SqlErrorKind::Syntax { message }.at(position));
        }
        definition.options.extend(clause.options);
        definition.format = clause.format.map(|format| format.to_lowercase());
        definition.encode = clause.encode.map(|encode| encode.to_lowercase());
    }
    Ok(definition)
}

/// Moves `format`, `encode` and the options of encodings out of WITH.
fn from_options(with: &mut BTreeMap<String, String>) -> FormatDefinition {
    let mut definition = FormatDefinition::default();
    let format = with.remove("format").map(|format| format.to_lowercase().replace('_', "-"));
    let encode = with.remove("encode").map(|encode| encode.to_lowercase());
    (definition.format, definition.encode) = match (format.as_deref(), encode) {
        (None, None) => (None, None),
        (Some("debezium-json"), None) => (Some("debezium".to_owned()), Some("json".to_owned())),
        (Some(format @ ("plain" | "upsert" | "debezium")), encode) => (Some(format.to_owned()), encode),
        (Some(encode), None) => (Some("plain".to_owned()), Some(encode.to_owned())),
        (Some(format), encode) => (Some(format.to_owned()), encode),
        (None, encode) => (Some("plain".to_owned()), encode),
    };
    for encoding in ENCODINGS {
        let prefix = format!("{encoding}.");
        let moved: Vec<String> = with.keys().filter(|key| key.starts_with(&prefix)).cloned().collect();
        for key in moved {
            if let Some(value) = with.remove(&key) {
                definition.options.insert(key[prefix.len()..].to_owned(), value);
            }
        }
    }
    definition
}
