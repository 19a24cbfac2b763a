//! Reads one JSON object into a row.

use crate::format::column::{Column, Nested, TextKind, Token};
use crate::format::json::canonical::canonical_text;
use crate::format::json::scanner::{Scanner, SyntaxError, Value, unescape};
use crate::format::names::{Names, Target};
use crate::format::rows::Rows;
use crate::format::value::ValueError;

/// Reads the records of one chunk and learns the order of their keys.
pub(super) struct RecordReader<'a> {
    names: &'a Names,
    guesses: Vec<Guess>,
    /// Room for strings with escapes.
    scratch: String,
}

/// A key of an earlier record.
struct Guess {
    /// From the opening quote to the colon.
    bytes: Vec<u8>,
    target: Target,
}

impl<'a> RecordReader<'a> {
    pub(super) fn new(names: &'a Names) -> Self {
        Self { names, guesses: Vec::new(), scratch: String::new() }
    }

    /// Sets the values of the record in `rows`; the caller ends the record.
    pub(super) fn read(&mut self, text: &str, rows: &mut Rows<'_>) -> Result<(), ValueError> {
        let mut scanner = Scanner::new(text);
        if scanner.peek() != b'{' {
            return Err(SyntaxError { at: scanner.at(), expected: "an object" }.into());
        }
        let mut next = 0;
        scanner.members(b'{', |scanner| match self.target(scanner, &mut next)? {
            Target::Slot { slot, is_exact } if is_exact || !rows.is_set(slot) => {
                append_value(rows.column(slot), scanner, &mut self.scratch)
                    .map_err(|error| rows.in_column(slot, error))
            }
            Target::Slot { .. } | Target::Skip => {
                scanner.skip()?;
                Ok::<(), ValueError>(())
            }
        })?;
        Ok(scanner.end()?)
    }

    /// Reads the key that is next, guessing that it is the one that was here last time, or one of
    /// those behind it if that is left out.
    #[inline]
    fn target(&mut self, scanner: &mut Scanner<'_>, next: &mut usize) -> Result<Target, ValueError> {
        const LOOK_AHEAD: usize = 4;
        scanner.peek();
        for (ahead, guess) in self.guesses.iter().skip(*next).take(LOOK_AHEAD).enumerate() {
            if scanner.eat_exactly(&guess.bytes) {
                *next += ahead + 1;
                return Ok(guess.target);
            }
        }
        self.look_up(scanner, next)
    }

    #[cold]
    fn look_up(&mut self, scanner: &mut Scanner<'_>, next: &mut usize) -> Result<Target, ValueError> {
        const GUESSES_MAX: usize = 1024;
        let start = scanner.at();
        let key = scanner.key()?;
        let target = if key.has_escapes {
            self.scratch.clear();
            // A key that is no text is not the name of a column either.
            unescape(key.raw, &mut self.scratch).map_or(Target::Skip, |()| self.names.target(&self.scratch))
        } else {
            self.names.target(key.raw)
        };
        let bytes = scanner.since(start).as_bytes();
        if let Some(guess) = self.guesses.get_mut(*next) {
            guess.bytes.clear();
            guess.bytes.extend_from_slice(bytes);
            guess.target = target;
        } else if *next < GUESSES_MAX {
            self.guesses.push(Guess { bytes: bytes.to_vec(), target });
        }
        *next += 1;
        Ok(target)
    }
}

/// Appends the value of a JSON text that is no part of a record, e.g. of a CSV field.
pub(crate) fn append_json_text(column: &mut Column, text: &str) -> Result<(), ValueError> {
    let mut scanner = Scanner::new(text);
    append_value(column, &mut scanner, &mut String::new())?;
    Ok(scanner.end()?)
}

#[inline]
fn append_value(
    column: &mut Column,
    scanner: &mut Scanner<'_>,
    scratch: &mut String,
) -> Result<(), ValueError> {
    match column.text_kind() {
        Some(TextKind::Jsonb) if scanner.peek() != b'n' => {
            return column.push_text(&canonical_text(scanner)?, Token::Json);
        }
        _ => {}
    }
    match scanner.value()? {
        Value::Null => {
            column.push_null();
            Ok(())
        }
        Value::Boolean(text) => column.push_text(text, Token::Json),
        Value::Number(text) => column.push_text(text, Token::Number),
        Value::String(string) if string.has_escapes => {
            scratch.clear();
            unescape(string.raw, scratch).map_err(|reason| ValueError::new("22P05", reason))?;
            column.push_text(scratch, Token::Text)
        }
        Value::String(string) => column.push_text(string.raw, Token::Text),
        Value::Array => append_array(column, scanner, scratch),
        Value::Object => append_object(column, scanner, scratch),
    }
}

#[cold]
fn append_array(
    column: &mut Column,
    scanner: &mut Scanner<'_>,
    scratch: &mut String,
) -> Result<(), ValueError> {
    let Some(Nested::List(item)) = column.nested() else {
        return column.push_text(scanner.skip()?, Token::Json);
    };
    scanner.members(b'[', |scanner| {
        append_value(item, scanner, scratch)?;
        refuse_null(item, "an array element")
    })?;
    column.close_nested()
}

#[cold]
fn append_object(
    column: &mut Column,
    scanner: &mut Scanner<'_>,
    scratch: &mut String,
) -> Result<(), ValueError> {
    let row = column.len();
    let Some(Nested::Struct { fields, children }) = column.nested() else {
        return column.push_text(scanner.skip()?, Token::Json);
    };
    scanner.members(b'{', |scanner| {
        let key = scanner.key()?;
        let position = |matches: &dyn Fn(&str) -> bool| fields.iter().position(|field| matches(field.name()));
        let exact = position(&|name| name == key.raw);
        let child = exact.or_else(|| {
            position(&|name| name.eq_ignore_ascii_case(key.raw)).filter(|idx| children[*idx].len() == row)
        });
        let Some(child) = child else {
            scanner.skip()?;
            return Ok(());
        };
        children[child].truncate(row);
        append_value(&mut children[child], scanner, scratch)
    })?;
    for (child, field) in children.iter_mut().zip(fields) {
        if child.len() == row {
            child.push_null();
        }
        refuse_null(child, field.name())?;
    }
    column.close_nested()
}

fn refuse_null(column: &Column, what: &str) -> Result<(), ValueError> {
    if column.ends_with_forbidden_null() {
        return Err(ValueError::new("23502", format!("null value in {what} violates not-null constraint")));
    }
    Ok(())
}
