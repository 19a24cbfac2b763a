//! Reads JSON tokens from a text, strictly by RFC 8259, without building anything.
//!
//! Values stay slices of the input: what a number or a string means is the column's business, and
//! a value nobody asked for costs only finding its end. Nesting deeper than [`DEPTH_MAX`] is
//! refused, so that no input can exhaust the stack.

/// Levels of arrays and objects inside of one record.
pub(crate) const DEPTH_MAX: usize = 128;

/// What is wrong with a JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// Byte of the record, counted from 0.
    pub(crate) at: usize,
    pub(crate) expected: &'static str,
}

type Result<T, E = SyntaxError> = std::result::Result<T, E>;

/// The next value of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Boolean(&'a str),
    Number(&'a str),
    String(JsonString<'a>),
    /// An array or object begins here; nothing of it has been read.
    Array,
    Object,
}

/// A string without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JsonString<'a> {
    pub(crate) raw: &'a str,
    pub(crate) has_escapes: bool,
}

/// A position in a text.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Where the scanner is.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The text from an earlier position up to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T> {
        Err(SyntaxError { at: self.at, expected })
    }

    /// The next byte that is not white space; 0 at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    /// Reads one punctuation byte.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        if self.peek() == byte {
            self.at += 1;
            return Ok(());
        }
        self.fail(expected)
    }

    /// Reads one punctuation byte if it is next.
    #[inline]
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == byte;
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads a literal run of bytes if it is next, without skipping white space before it.
    #[inline]
    pub(crate) fn eat_exactly(&mut self, pattern: &[u8]) -> bool {
        let is_next = starts_with(&self.text.as_bytes()[self.at..], pattern);
        if is_next {
            self.at += pattern.len();
        }
        is_next
    }

    /// Only white space may be left.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { self.fail("the end of the record") }
    }

    /// Reads a scalar, or stops in front of an array or object.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Value<'a>> {
        match self.peek() {
            b'"' => self.string().map(Value::String),
            b'-' | b'0'..=b'9' => self.number().map(Value::Number),
            b'{' => Ok(Value::Object),
            b'[' => Ok(Value::Array),
            b't' => self.literal("true").map(Value::Boolean),
            b'f' => self.literal("false").map(Value::Boolean),
            b'n' => self.literal("null").map(|_| Value::Null),
            _ => self.fail("a value"),
        }
    }

    fn literal(&mut self, word: &'static str) -> Result<&'a str> {
        let start = self.at;
        if self.eat_exactly(word.as_bytes()) { Ok(self.since(start)) } else { self.fail("a value") }
    }

    /// Reads a key and the colon behind it.
    pub(crate) fn key(&mut self) -> Result<JsonString<'a>> {
        if self.peek() != b'"' {
            return self.fail("a key in double quotes");
        }
        let key = self.string()?;
        self.expect(b':', "\":\"")?;
        Ok(key)
    }

    /// Reads a string whose opening quote is next.
    #[inline]
    fn string(&mut self) -> Result<JsonString<'a>> {
        self.at += 1;
        let start = self.at;
        let mut has_escapes = false;
        loop {
            self.at += plain_prefix(&self.text.as_bytes()[self.at..]);
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    let raw = self.since(start);
                    self.at += 1;
                    return Ok(JsonString { raw, has_escapes });
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.escape()?;
                }
                Some(_) => return self.fail("no control character in a string"),
                None => return self.fail("the end of the string"),
            }
        }
    }

    /// Checks the form of an escape; `unescape` does its meaning.
    #[cold]
    fn escape(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u')
                if bytes
                    .get(self.at + 2..self.at + 6)
                    .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
            {
                self.at += 6
            }
            _ => return self.fail("a valid escape"),
        }
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<&'a str> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += usize::from(bytes[start] == b'-');
        let first = self.at;
        self.digits()?;
        if bytes[first] == b'0' && self.at > first + 1 {
            return self.fail("no leading zero");
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(self.since(start))
    }

    #[inline]
    fn digits(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { self.fail("a digit") }
    }

    /// Reads any value and returns its text.
    pub(crate) fn skip(&mut self) -> Result<&'a str> {
        self.peek();
        let start = self.at;
        self.skip_nested(0)?;
        Ok(self.since(start))
    }

    fn skip_nested(&mut self, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return self.fail("fewer nested values");
        }
        match self.value()? {
            Value::Null | Value::Boolean(_) | Value::Number(_) | Value::String(_) => Ok(()),
            Value::Array => self.members(b'[', |scanner| scanner.skip_nested(depth + 1)),
            Value::Object => self.members(b'{', |scanner| {
                scanner.key()?;
                scanner.skip_nested(depth + 1)
            }),
        }
    }

    /// Reads an array or object whose opening bracket is next, one `member` at a time.
    pub(crate) fn members<E: From<SyntaxError>>(
        &mut self,
        open: u8,
        mut member: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let (close, expected) =
            if open == b'{' { (b'}', "\",\" or \"}\"") } else { (b']', "\",\" or \"]\"") };
        self.expect(open, "an opening bracket")?;
        if self.eat(close) {
            return Ok(());
        }
        loop {
            member(self)?;
            if self.eat(b',') {
                continue;
            }
            return Ok(self.expect(close, expected)?);
        }
    }
}

/// How many bytes from the front are neither a quote, a backslash nor a control character; tests
/// eight of them at once.
#[inline]
fn plain_prefix(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The high bit of each byte of `word` that is less than `limit`. Borrows set bits above a true
    // one only, so the lowest is exact.
    let less_than = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let (words, rest) = bytes.as_chunks::<8>();
    for (idx, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quotes = less_than(word ^ (ONES * b'"' as u64), 1);
        let backslashes = less_than(word ^ (ONES * b'\\' as u64), 1);
        let special = (quotes | backslashes | less_than(word, 0x20)) & HIGH;
        if special != 0 {
            return idx * 8 + (special.trailing_zeros() / 8) as usize;
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// `starts_with` for short patterns: a few word comparisons instead of a call.
#[inline]
fn starts_with(bytes: &[u8], pattern: &[u8]) -> bool {
    const WORD: usize = 8;
    let Some(bytes) = bytes.get(..pattern.len()) else {
        return false;
    };
    let (Some(last), Some(last_of_pattern)) = (bytes.last_chunk::<WORD>(), pattern.last_chunk::<WORD>())
    else {
        return bytes.iter().zip(pattern).all(|(byte, expected)| byte == expected);
    };
    let words = bytes.as_chunks::<WORD>().0.iter().zip(pattern.as_chunks::<WORD>().0);
    words.fold(true, |same, (word, expected)| same & (word == expected)) && last == last_of_pattern
}

/// Appends what a raw string means. The only failures are those that no `&str` can hold: half a
/// surrogate pair, and the zero character, which PostgreSQL's text cannot hold either.
pub(crate) fn unescape(raw: &str, out: &mut String) -> Result<(), &'static str> {
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        out.push(match escape {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => unescape_unit(&mut rest)?,
            other => char::from(other),
        });
    }
    out.push_str(rest);
    Ok(())
}

fn unescape_unit(rest: &mut &str) -> Result<char, &'static str> {
    let high = hex_unit(rest);
    let code = match high {
        0 => return Err("\\u0000 cannot be converted to text"),
        0xD800..=0xDBFF => {
            if !rest.starts_with("\\u") {
                return Err("a high surrogate is not followed by a low one");
            }
            *rest = &rest[2..];
            let low = hex_unit(rest);
            if !(0xDC00..=0xDFFF).contains(&low) {
                return Err("a high surrogate is not followed by a low one");
            }
            0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)
        }
        _ => high,
    };
    char::from_u32(code).ok_or("a low surrogate does not follow a high one")
}

/// Four hexadecimal digits, which the scanner has checked.
fn hex_unit(rest: &mut &str) -> u32 {
    let (digits, tail) = rest.split_at(4);
    *rest = tail;
    u32::from_str_radix(digits, 16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_json(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.skip().is_ok() && scanner.end().is_ok()
    }

    #[test]
    fn only_strict_json_is_accepted() {
        for text in [
            "0",
            "-0.5e+10",
            "\"\"",
            "[]",
            "{}",
            " [ 1 , {\"a\" : [null,true,false]} ] ",
            "\"\\u00e9\\n\"",
            "\"é\u{7f}\"",
        ] {
            assert!(is_json(text), "{text}");
        }
        for text in [
            "",
            "01",
            "-",
            "1.",
            ".5",
            "+1",
            "1e",
            "NaN",
            "nul",
            "'a'",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12",
            "\"a\tb\"",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "1 2",
            "]",
            "[}",
            "{]",
            "\u{a0}1",
        ] {
            assert!(!is_json(text), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_a_stack_overflow() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(is_json(&nested(DEPTH_MAX)));
        assert!(!is_json(&nested(100_000)));
    }

    #[test]
    fn every_special_byte_ends_a_plain_run_at_every_offset() {
        for special in ["\"", "\\", "\u{0}", "\u{1f}"] {
            for offset in 0..40 {
                let text = "x".repeat(offset) + special + "ab\u{1}cdefghijkl\"";
                assert_eq!(plain_prefix(text.as_bytes()), offset);
            }
        }
        assert_eq!(plain_prefix("é漢😀\u{7f}!#[]".as_bytes()), "é漢😀\u{7f}!#[]".len());
    }

    #[test]
    fn short_patterns_are_compared_to_the_last_byte() {
        let bytes: Vec<u8> = (0..40).collect();
        for length in 0..40 {
            let mut pattern = bytes[..length].to_vec();
            assert!(starts_with(&bytes, &pattern));
            assert!(length == 0 || !starts_with(&bytes[..length - 1], &pattern));
            for idx in 0..length {
                pattern[idx] ^= 1;
                assert!(!starts_with(&bytes, &pattern));
                pattern[idx] ^= 1;
            }
        }
    }

    #[test]
    fn an_escape_that_no_text_can_hold_is_an_error() {
        for raw in ["\\u0000", "\\ud800", "\\ud800x", "\\ud800\\u0041", "\\udc00"] {
            assert!(unescape(raw, &mut String::new()).is_err(), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn the_scanner_accepts_what_serde_json_accepts(text in "[\\[\\]{}:,\"0-9a.eE+\\- \\\\nultrfs]{0,24}") {
            let expected = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(is_json(&text), expected, "{}", text);
        }

        #[test]
        fn strings_come_back_as_they_were(text in any::<String>().prop_map(|text| text.replace('\0', ""))) {
            let json = serde_json::to_string(&text).unwrap();
            let mut scanner = Scanner::new(&json);
            let Value::String(string) = scanner.value().unwrap() else { panic!() };
            let mut out = String::new();
            unescape(string.raw, &mut out).unwrap();
            prop_assert_eq!(string.has_escapes, string.raw != text);
            prop_assert_eq!(out, text);
        }
    }
}
