//! The canonical text of a JSON value: no white space, keys sorted, the last of a key's values.
//!
//! Two JSON texts mean the same JSONB value iff their canonical texts are the same bytes, except
//! for numbers, which keep their spelling.

use std::collections::BTreeMap;

use crate::format::json::scanner::{DEPTH_MAX, Scanner, SyntaxError, Value, unescape};
use crate::format::value::ValueError;

/// Reads the next value and returns its canonical text.
pub(super) fn canonical_text(scanner: &mut Scanner<'_>) -> Result<String, ValueError> {
    let mut out = String::new();
    write_value(scanner, &mut out, 0)?;
    Ok(out)
}

fn write_value(scanner: &mut Scanner<'_>, out: &mut String, depth: usize) -> Result<(), ValueError> {
    if depth > DEPTH_MAX {
        return Err(SyntaxError { at: scanner.at(), expected: "fewer nested values" }.into());
    }
    match scanner.value()? {
        Value::Null => out.push_str("null"),
        Value::Boolean(text) | Value::Number(text) => out.push_str(text),
        Value::String(string) => write_string(&text_of(string.raw)?, out),
        Value::Array => {
            let mut separator = '[';
            scanner.members(b'[', |scanner| {
                out.push(separator);
                separator = ',';
                write_value(scanner, out, depth + 1)
            })?;
            out.push_str(if separator == '[' { "[]" } else { "]" });
        }
        Value::Object => {
            let mut members = BTreeMap::new();
            scanner.members(b'{', |scanner| {
                let key = text_of(scanner.key()?.raw)?;
                let mut value = String::new();
                write_value(scanner, &mut value, depth + 1)?;
                members.insert(key, value);
                Ok::<(), ValueError>(())
            })?;
            write_members(&members, out);
        }
    }
    Ok(())
}

fn write_members(members: &BTreeMap<String, String>, out: &mut String) {
    out.push('{');
    for (idx, (key, value)) in members.iter().enumerate() {
        if idx > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
}

fn text_of(raw: &str) -> Result<String, ValueError> {
    let mut text = String::with_capacity(raw.len());
    unescape(raw, &mut text).map_err(|reason| ValueError::new("22P05", reason))?;
    Ok(text)
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..'\u{20}' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => out.push(char),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_text() {
        let canonical = |text: &str| canonical_text(&mut Scanner::new(text)).unwrap();
        let expected = r#"{"a":[1,{}, "é\n"],"b":1.50}"#.replace(", ", ",");
        assert_eq!(canonical(r#" { "b" : 2 , "a" : [ 1 , { } , "\u00e9\n" ] , "b" : 1.50 } "#), expected);
        assert_eq!(canonical(&expected), expected);
        assert_eq!(canonical(r#""\u0001\u001F""#), r#""\u0001\u001f""#);
        assert_eq!(canonical("[]"), "[]");
    }
}
