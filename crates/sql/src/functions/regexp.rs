//! `regexp_match(text, pattern[, flags])` as PostgreSQL has it.
//!
//! DataFusion's function drops groups that took no part in the match, which moves the others, and
//! lets `.` stop at a line's end. `(regexp_match(…))[n]` with a constant `n` is one function that
//! makes no lists: see `analyze`.
//!
//! Patterns are those of the `regex` crate with PostgreSQL's escapes `\y \Y \m \M \Z`. Back
//! references are an error (2201B); of alternatives the first that matches is taken, where
//! PostgreSQL takes the longest.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringViewArray, StringViewBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use regex::{Captures, Regex, RegexBuilder};

use super::arithmetic::scalar;
use super::refuse;
use crate::error::SqlErrorKind;
use crate::evaluation::EvaluationError;
use crate::types::type_name;

/// The name of `(regexp_match(text, pattern[, flags]))[n]`.
pub(super) const GROUP_NAME: &str = "regexp_match_group";

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpMatch {
    signature: Signature,
}

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(RegexpMatch { signature: Signature::user_defined(Volatility::Immutable) })
}

impl ScalarUDFImpl for RegexpMatch {
    fn name(&self) -> &'static str {
        "regexp_match"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        text_arguments(self.name(), arg_types)
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new("item", DataType::Utf8View, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = Call::new(&args.args, args.number_rows)?;
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        for row in 0..call.rows {
            let Some((text, regex)) = call.row(row) else {
                lists.append_null();
                continue;
            };
            match regex.captures(text) {
                None => lists.append_null(),
                Some(captures) => {
                    for group in groups(&captures) {
                        lists.values().append_option(captures.get(group).map(|found| found.as_str()));
                    }
                    lists.append(true);
                }
            }
        }
        call.result(Arc::new(lists.finish()))
    }
}

/// What PostgreSQL puts into the array: the groups, or the whole match if there are none.
fn groups(captures: &Captures<'_>) -> std::ops::Range<usize> {
    if captures.len() == 1 { 0..1 } else { 1..captures.len() }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpMatchGroup {
    signature: Signature,
}

/// `regexp_match_group(n, text, pattern[, flags])`.
pub(super) fn group_function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(RegexpMatchGroup { signature }))
    });
    Arc::clone(&FUNCTION)
}

impl ScalarUDFImpl for RegexpMatchGroup {
    fn name(&self) -> &'static str {
        GROUP_NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [_, rest @ ..] = arg_types else {
            return internal_err!("regexp_match_group takes three or four arguments");
        };
        let mut types = vec![DataType::Int64];
        types.extend(text_arguments("regexp_match", rest)?);
        Ok(types)
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(ScalarValue::Int64(Some(subscript))), rest @ ..] = args.args.as_slice()
        else {
            return internal_err!("the subscript of regexp_match_group is a constant");
        };
        let index = usize::try_from(*subscript).ok().and_then(|subscript| subscript.checked_sub(1));
        let call = Call::new(rest, args.number_rows)?;
        let mut texts = StringViewBuilder::with_capacity(call.rows);
        for row in 0..call.rows {
            let captures = call.row(row).and_then(|(text, regex)| regex.captures(text));
            let found = captures.as_ref().and_then(|captures| {
                let group = groups(captures).nth(index?)?;
                captures.get(group)
            });
            texts.append_option(found.map(|found| found.as_str()));
        }
        call.result(Arc::new(texts.finish()))
    }
}

fn text_arguments(name: &str, arg_types: &[DataType]) -> Result<Vec<DataType>> {
    let is_text = |data_type: &DataType| {
        matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
    };
    if matches!(arg_types.len(), 2 | 3) && arg_types.iter().all(is_text) {
        return Ok(vec![DataType::Utf8View; arg_types.len()]);
    }
    let types: Vec<String> = arg_types.iter().map(type_name).collect();
    Err(refuse(SqlErrorKind::UndefinedFunction { signature: format!("{name}({})", types.join(", ")) }))
}

/// The arguments of a call with their patterns compiled.
struct Call {
    texts: StringViewArray,
    patterns: Patterns,
    rows: usize,
    is_scalar: bool,
}

enum Patterns {
    /// `None`: pattern or flags are NULL.
    Constant(Option<Regex>),
    /// One a row; neighbours with the same pattern share it.
    Each(Vec<Option<Regex>>),
}

impl Call {
    fn new(args: &[ColumnarValue], number_rows: usize) -> Result<Self> {
        let [texts, pattern, flags @ ..] = args else {
            return internal_err!("regexp_match takes two or three arguments");
        };
        let is_scalar = args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { number_rows };
        let texts = texts.to_array(rows)?.as_string_view().clone();
        let patterns = match (pattern, flags) {
            (ColumnarValue::Scalar(pattern), []) => {
                Patterns::Constant(compile(pattern.try_as_str().flatten(), Some(""))?)
            }
            (ColumnarValue::Scalar(pattern), [ColumnarValue::Scalar(flags)]) => {
                Patterns::Constant(compile(pattern.try_as_str().flatten(), flags.try_as_str().flatten())?)
            }
            _ => {
                let patterns = pattern.to_array(rows)?;
                let flags = flags.first().map(|flags| flags.to_array(rows)).transpose()?;
                Patterns::Each(compile_each(
                    patterns.as_string_view(),
                    flags.as_ref().map(|flags| flags.as_string_view()),
                )?)
            }
        };
        Ok(Self { texts, patterns, rows, is_scalar })
    }

    /// `None` where an argument is NULL.
    fn row(&self, row: usize) -> Option<(&str, &Regex)> {
        let regex = match &self.patterns {
            Patterns::Constant(regex) => regex.as_ref()?,
            Patterns::Each(regexes) => regexes[row].as_ref()?,
        };
        self.texts.is_valid(row).then(|| (self.texts.value(row), regex))
    }

    fn result(&self, array: ArrayRef) -> Result<ColumnarValue> {
        if self.is_scalar { scalar(&array) } else { Ok(ColumnarValue::Array(array)) }
    }
}

fn compile_each(patterns: &StringViewArray, flags: Option<&StringViewArray>) -> Result<Vec<Option<Regex>>> {
    let mut compiled: Vec<Option<Regex>> = Vec::with_capacity(patterns.len());
    for row in 0..patterns.len() {
        let flags_of =
            |row: usize| flags.map_or(Some(""), |flags| flags.is_valid(row).then(|| flags.value(row)));
        let pattern_of = |row: usize| patterns.is_valid(row).then(|| patterns.value(row));
        let same = row > 0 && pattern_of(row) == pattern_of(row - 1) && flags_of(row) == flags_of(row - 1);
        let regex = match compiled.last() {
            Some(previous) if same => previous.clone(),
            _ => compile(pattern_of(row), flags_of(row))?,
        };
        compiled.push(regex);
    }
    Ok(compiled)
}

/// A pattern with its flags; `None` if either is NULL.
fn compile(pattern: Option<&str>, flags: Option<&str>) -> Result<Option<Regex>> {
    let (Some(pattern), Some(flags)) = (pattern, flags) else { return Ok(None) };
    let literal = flags.contains('q');
    let text = if literal { regex::escape(pattern) } else { translate(pattern) };
    let mut builder = RegexBuilder::new(&text);
    // PostgreSQL's `.` takes a line's end, too.
    builder.dot_matches_new_line(true);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'c' => builder.case_insensitive(false),
            'n' | 'm' => builder.multi_line(true).dot_matches_new_line(false),
            'p' => builder.dot_matches_new_line(false),
            'w' => builder.multi_line(true),
            's' => builder.multi_line(false).dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            't' | 'e' | 'b' | 'q' => &mut builder,
            'g' => {
                let message = "regexp_match() does not support the \"global\" option";
                return Err(EvaluationError::new("22023", message).into());
            }
            other => {
                let message = format!("invalid regular expression option: \"{other}\"");
                return Err(EvaluationError::new("22023", message).into());
            }
        };
    }
    match builder.build() {
        Ok(regex) => Ok(Some(regex)),
        Err(error) => {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Err(EvaluationError::new("2201B", format!("invalid regular expression: {reason}")).into())
        }
    }
}

/// PostgreSQL's escapes in the words of the `regex` crate.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('y') => out.push_str("\\b"),
            Some('Y') => out.push_str("\\B"),
            Some('m') => out.push_str("\\b{start}"),
            Some('M') => out.push_str("\\b{end}"),
            Some('Z') => out.push_str("\\z"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}
