//! Errors of DataFusion and Arrow in the words of PostgreSQL.
//!
//! Variants are mapped where there are any. Many errors are only a sentence; the sentences we know
//! are matched here, in one place, and the rest keeps its words under the code of its class.

use std::error::Error;

use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::{Column, Diagnostic, SchemaError, TableReference};
use datafusion::error::DataFusionError;

use crate::error::{SqlError, SqlErrorKind};
use crate::evaluation::EvaluationError;
use crate::nearest::nearest;
use crate::types::type_name;

/// Never loses an error of ours that DataFusion carried, nor the place of one of its own.
#[must_use]
pub fn from_datafusion(error: DataFusionError) -> SqlError {
    convert(&error)
}

fn convert(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::Context(_, inner) => convert(inner),
        DataFusionError::Shared(inner) => convert(inner),
        DataFusionError::Diagnostic(diagnostic, inner) => with_diagnostic(convert(inner), diagnostic),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => convert(first),
            None => SqlErrorKind::internal("an empty collection of errors").into(),
        },
        DataFusionError::External(error) => from_other(error.as_ref()),
        DataFusionError::ArrowError(error, _) => from_arrow(error),
        DataFusionError::SchemaError(error, _) => from_schema(error),
        DataFusionError::Plan(message) => from_plan(message),
        DataFusionError::NotImplemented(message) => unsupported(message),
        DataFusionError::Execution(message) => from_execution(message),
        DataFusionError::ResourcesExhausted(message) => out_of_memory(message),
        DataFusionError::Configuration(message) => {
            SqlErrorKind::InvalidArgument { message: clause(message) }.into()
        }
        DataFusionError::SQL(error, _) => SqlErrorKind::Syntax { message: clause(&error.to_string()) }.into(),
        DataFusionError::IoError(error) => SqlErrorKind::Io { message: error.to_string() }.into(),
        DataFusionError::Internal(message)
        | DataFusionError::Substrait(message)
        | DataFusionError::Ffi(message) => SqlErrorKind::internal(clause(message)).into(),
        DataFusionError::ExecutionJoin(error) => SqlErrorKind::internal(error.to_string()).into(),
        #[allow(unreachable_patterns, reason = "variants of features that other crates may switch on")]
        other => SqlErrorKind::internal(clause(&other.strip_backtrace())).into(),
    }
}

fn out_of_memory(message: &str) -> SqlError {
    let hint = "Let the query keep less (a narrower WHERE, fewer columns or groups), or start the server with more \
                --memory.";
    SqlErrorKind::OutOfMemory.detail(message).hint(hint)
}

/// The place of the innermost diagnostic wins: it is the most exact.
fn with_diagnostic(error: SqlError, diagnostic: &Diagnostic) -> SqlError {
    let place = diagnostic.span.and_then(|span| u32::try_from(span.start.column).ok());
    match place {
        Some(place) if error.position.is_none() && place > 0 => error.at(place),
        _ => error,
    }
}

/// An error somebody boxed: ours, DataFusion's, Arrow's, or one with its code in its text.
fn from_other(error: &(dyn Error + 'static)) -> SqlError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(own) = error.downcast_ref::<SqlError>() {
            return own.clone();
        }
        if let Some(EvaluationError { sqlstate, message }) = error.downcast_ref() {
            return SqlErrorKind::Evaluation { sqlstate, message: message.clone() }.into();
        }
        if let Some(datafusion) = error.downcast_ref::<DataFusionError>() {
            return convert(datafusion);
        }
        if let Some(arrow) = error.downcast_ref::<ArrowError>() {
            return from_arrow(arrow);
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return SqlErrorKind::Io { message: io.to_string() }.into();
        }
        cause = error.source();
    }
    let text = error.to_string();
    if text.starts_with("regex parse error") {
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        return evaluation("2201B", format!("invalid regular expression: {reason}"));
    }
    with_code(&text).unwrap_or_else(|| SqlErrorKind::internal(text).into())
}

/// The convention of [`EvaluationError`].
fn with_code(text: &str) -> Option<SqlError> {
    let EvaluationError { sqlstate, message } = EvaluationError::from_text(text)?;
    Some(SqlErrorKind::Evaluation { sqlstate, message }.into())
}

// Names.

fn from_schema(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => undefined_column(field, valid_fields),
        SchemaError::AmbiguousReference { field } => {
            SqlErrorKind::AmbiguousColumn { name: field.name.clone() }.into()
        }
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => {
            SqlErrorKind::DuplicateColumn { name: name.clone() }.into()
        }
    }
}

fn undefined_column(field: &Column, valid: &[Column]) -> SqlError {
    let qualifier = field.relation.as_ref().map(TableReference::table);
    let unknown_qualifier = qualifier.is_some()
        && !valid.is_empty()
        && !valid.iter().any(|column| column.relation.as_ref().map(TableReference::table) == qualifier);
    if let (Some(name), true) = (qualifier, unknown_qualifier) {
        return SqlErrorKind::MissingFromEntry { name: name.to_owned() }.into();
    }
    let error = SqlError::from(SqlErrorKind::undefined_column(qualifier, &field.name));
    let candidates = valid.iter().filter(|column| {
        qualifier.is_none() || column.relation.as_ref().map(TableReference::table) == qualifier
    });
    match nearest(&field.name, candidates.map(|column| column.name.as_str())) {
        Some(near) => error.hint(format!("Perhaps you meant to reference the column \"{near}\".")),
        None => error,
    }
}

// Sentences of the planner.

fn from_plan(message: &str) -> SqlError {
    if let Some(error) = with_code(message) {
        return error;
    }
    let known = [
        undefined_table,
        undefined_function,
        undefined_operator,
        grouping,
        set_operation,
        parameter,
        cast,
        shape,
    ];
    for read in known {
        if let Some(error) = read(message) {
            return error;
        }
    }
    let lower = message.to_lowercase();
    if ["not supported", "unsupported", "not implemented", "not yet"]
        .iter()
        .any(|words| lower.contains(words))
    {
        return unsupported(message);
    }
    SqlErrorKind::Syntax { message: clause(message) }.into()
}

fn undefined_table(message: &str) -> Option<SqlError> {
    let quoted = message.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    let full = quoted.or_else(|| message.strip_prefix("Table not found: "))?;
    let parts: Vec<&str> = full.split('.').collect();
    let name = match parts.as_slice() {
        [_, "public", table] => (*table).to_owned(),
        [_, schema, table] => format!("{schema}.{table}"),
        _ => full.to_owned(),
    };
    Some(SqlErrorKind::UndefinedTable { name }.into())
}

fn undefined_function(message: &str) -> Option<SqlError> {
    if let Some(rest) = message.strip_prefix("Invalid function '") {
        let (name, rest) = rest.split_once("'.")?;
        let error = SqlErrorKind::UndefinedFunction { signature: name.to_owned() };
        let near = rest.split('\'').nth(1).and_then(|near| nearest(name, [near]));
        return Some(match near {
            Some(near) => error.hint(format!("Perhaps you meant to call the function {near}.")),
            None => error.into(),
        });
    }
    for words in
        ["Function ", "Aggregate Function ", "Window Function ", "There is no window function named "]
    {
        let name = message.strip_prefix(words).map(|rest| rest.trim_end_matches(" not found"));
        if let Some(name) = name.filter(|name| !name.contains(' ')) {
            return Some(SqlErrorKind::UndefinedFunction { signature: name.to_owned() }.into());
        }
    }
    let hint =
        "No function matches the given name and argument types. You might need to add explicit type casts.";
    // "… No function matches the given name and argument types 'abs(Utf8View)'. …"
    if let Some((_, rest)) = message.split_once("argument types '") {
        let (call, _) = rest.split_once("'.")?;
        return Some(SqlErrorKind::UndefinedFunction { signature: sql_signature(call) }.hint(hint));
    }
    // "Failed to coerce arguments to satisfy a call to 'sum' function: coercion from Utf8, … to …"
    if let Some((_, rest)) = message.split_once("satisfy a call to '") {
        let (name, rest) = rest.split_once('\'')?;
        let types =
            rest.split_once("coercion from ").and_then(|(_, rest)| rest.split_once(" to the signature"));
        let types = types.map_or("", |(types, _)| types).trim_matches(['[', ']']);
        return Some(
            SqlErrorKind::UndefinedFunction { signature: sql_signature(&format!("{name}({types})")) }
                .hint(hint),
        );
    }
    None
}

/// `abs(Utf8View, Int64)` → `abs(text, bigint)`.
fn sql_signature(call: &str) -> String {
    let Some((name, arguments)) = call.split_once('(') else { return call.to_owned() };
    let arguments = arguments.trim_end_matches(')');
    format!(
        "{name}({})",
        split_types(arguments).iter().map(|name| sql_type(name)).collect::<Vec<_>>().join(", ")
    )
}

/// Splits at the commas outside of brackets.
fn split_types(list: &str) -> Vec<&str> {
    let mut depth = 0i32;
    let parts = list.split(|char| {
        match char {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        char == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// PostgreSQL's name of a type that is given in Arrow's words.
fn sql_type(text: &str) -> String {
    match text {
        "String" => "text".to_owned(),
        _ => text.parse::<DataType>().map_or_else(|_| text.to_lowercase(), |data_type| type_name(&data_type)),
    }
}

fn undefined_operator(message: &str) -> Option<SqlError> {
    let start = [
        "Cannot coerce arithmetic expression ",
        "Cannot infer common argument type for comparison operation ",
        "Cannot infer common argument type for logical boolean operation ",
        "Cannot infer common argument type for regex operation ",
        "Cannot infer common string type for string concat operation ",
        "Cannot infer common type for bitwise operation ",
        "There isn't a common type to coerce ",
    ]
    .into_iter()
    .find_map(|words| message.find(words).map(|at| at + words.len()))?;
    let rest = message[start..].trim_end_matches(" to valid types").trim_end_matches('.');
    let words: Vec<&str> = rest.split(' ').collect();
    let operator = words
        .iter()
        .position(|word| !word.is_empty() && word.chars().all(|char| "+-*/%=<>!~&|^#@".contains(char)))?;
    let left = sql_type(&words[..operator].join(" "));
    let right = sql_type(&words[operator + 1..].join(" "));
    let sign = match words[operator] {
        "!=" => "<>",
        sign => sign,
    };
    let hint =
        "No operator matches the given name and argument types. You might need to add explicit type casts.";
    Some(SqlErrorKind::UndefinedOperator { signature: format!("{left} {sign} {right}") }.hint(hint))
}

fn grouping(message: &str) -> Option<SqlError> {
    let (_, rest) = message.split_once("olumn \"")?;
    let (column, rest) = rest.split_once('"')?;
    rest.contains("must appear in the GROUP BY clause")
        .then(|| SqlErrorKind::Grouping { column: column.to_owned() }.into())
}

fn set_operation(message: &str) -> Option<SqlError> {
    let (operation, _) = message.split_once(" queries have different number of columns")?;
    let operation = operation.split(' ').next().unwrap_or(operation);
    let message = format!("each {operation} query must have the same number of columns");
    Some(SqlErrorKind::Syntax { message }.into())
}

fn parameter(message: &str) -> Option<SqlError> {
    let name = message
        .strip_prefix("Unknown placeholder: ")
        .or_else(|| message.strip_prefix("Placeholder type could not be resolved. Make sure that the placeholder is bound to a concrete type, e.g. by providing parameter values."))?;
    let number = name.trim_start_matches('$').parse().ok()?;
    Some(SqlErrorKind::UndefinedParameter { number }.into())
}

/// `Unsupported CAST from Utf8 to List(…)`, `Cannot automatically convert Utf8 to Int64`.
fn cast(message: &str) -> Option<SqlError> {
    let start = ["Unsupported CAST from ", "Cannot automatically convert ", "Casting from "];
    let rest =
        start.into_iter().find_map(|words| message.find(words).map(|at| &message[at + words.len()..]))?;
    let rest = rest.trim_end_matches(" not supported");
    let (from, to) = rest.split_once(" to ")?;
    Some(SqlErrorKind::CannotCoerce { from: sql_type(from), to: sql_type(to) }.into())
}

/// What is wrong with the shape of a query.
fn shape(message: &str) -> Option<SqlError> {
    let quoted = |at: usize| message.split(['\'', '"']).nth(at).unwrap_or_default().to_owned();
    let number = || -> String {
        let digits = message.chars().skip_while(|char| !char.is_ascii_digit());
        digits.take_while(char::is_ascii_digit).collect()
    };
    let is = |words: &str| message.to_lowercase().contains(words);
    let kind = if is("cannot create filter with non-boolean predicate") {
        let found = message.rsplit(' ').next().map(sql_type).unwrap_or_default();
        let message = format!("argument of WHERE must be type boolean, not type {found}");
        SqlErrorKind::DatatypeMismatch { message }
    } else if is("'not' requires a boolean") {
        SqlErrorKind::DatatypeMismatch { message: "argument of NOT must be type boolean".to_owned() }
    } else if is("expected limit to be an integer") {
        SqlErrorKind::DatatypeMismatch { message: "argument of LIMIT must be type bigint".to_owned() }
    } else if is("aggregate function calls cannot be nested") {
        SqlErrorKind::GroupingMessage { message: "aggregate function calls cannot be nested".to_owned() }
    } else if is("aggregate functions are not allowed in the where clause") {
        SqlErrorKind::GroupingMessage { message: "aggregate functions are not allowed in WHERE".to_owned() }
    } else if is("order by column out of bounds") {
        let message = format!("ORDER BY position {} is not in select list", number());
        SqlErrorKind::InvalidColumnReference { message }
    } else if is("cannot find column with position") {
        let message = format!("GROUP BY position {} is not in select list", number());
        SqlErrorKind::InvalidColumnReference { message }
    } else if is("limit must be >=") {
        SqlErrorKind::Evaluation { sqlstate: "2201W", message: "LIMIT must not be negative".to_owned() }
    } else if is("offset must be >=") {
        SqlErrorKind::Evaluation { sqlstate: "2201X", message: "OFFSET must not be negative".to_owned() }
    } else if is("with query name") {
        let message = format!("WITH query name \"{}\" specified more than once", quoted(1));
        SqlErrorKind::Evaluation { sqlstate: "42712", message }
    } else if is("no built-in encoding named") {
        SqlErrorKind::InvalidArgument { message: format!("unrecognized encoding: \"{}\"", quoted(1)) }
    } else {
        return None;
    };
    Some(kind.into())
}

fn unsupported(message: &str) -> SqlError {
    if let Some(error) = cast(message) {
        return error;
    }
    if let Some((_, expression)) = message.split_once("does not support logical expression ") {
        if expression.starts_with("WindowFunction") {
            let message = "window functions are not allowed here".to_owned();
            return SqlErrorKind::Windowing { message }.into();
        }
        if ["InSubquery", "SetComparison", "Exists"].iter().any(|name| expression.starts_with(name)) {
            return SqlErrorKind::unsupported("IN, ANY, ALL or EXISTS (SELECT …) outside of WHERE").into();
        }
    }
    let text = clause(message);
    let feature =
        ["unsupported ", "unsupported: "].iter().find_map(|words| text.strip_prefix(words)).unwrap_or(&text);
    let end = [
        " is not supported",
        " not supported",
        " are not supported",
        " is not implemented",
        " not implemented",
    ];
    let end = end.iter().filter_map(|words| feature.find(words)).min();
    match end {
        Some(end) => SqlErrorKind::unsupported(&feature[..end]).into(),
        None => SqlErrorKind::unsupported(feature).into(),
    }
}

// Values.

fn from_execution(message: &str) -> SqlError {
    if let Some(error) = with_code(message) {
        return error;
    }
    if let Some(error) = bad_value(message) {
        return error.into();
    }
    if message.contains("field position must not be zero") {
        return evaluation("22023", "field position must not be zero");
    }
    let lower = message.to_lowercase();
    let quoted = || message.split(['\'', '"']).nth(1).unwrap_or_default();
    if lower.contains("date_trunc granularity") {
        return evaluation("22023", format!("unit \"{}\" not recognized", quoted()));
    }
    if lower.contains("invalid timezone") {
        return evaluation("22023", format!("time zone \"{}\" not recognized", quoted()));
    }
    if lower.contains("failed to decode value") {
        return evaluation("22023", clause(message));
    }
    if lower.starts_with("value of ") && lower.contains("is out of range") {
        let type_name = if lower.ends_with("int16") {
            "smallint"
        } else if lower.ends_with("int64") {
            "bigint"
        } else {
            "integer"
        };
        return evaluation("22003", format!("{type_name} out of range"));
    }
    if lower.contains("overflow on abs") {
        return evaluation("22003", "integer out of range");
    }
    if lower.contains("square root of a negative number") {
        return evaluation("2201F", "cannot take square root of a negative number");
    }
    if lower.contains("zero raised to a negative power") {
        return evaluation("2201F", "zero raised to a negative power is undefined");
    }
    if lower.contains("scalar subquery") && lower.contains("more than one row") {
        return SqlErrorKind::CardinalityViolation.into();
    }
    if lower.contains("regex") || lower.contains("regular expression") {
        return evaluation("2201B", format!("invalid regular expression: {}", clause(message)));
    }
    evaluation("22000", clause(message))
}

fn from_arrow(error: &ArrowError) -> SqlError {
    match error {
        ArrowError::ExternalError(inner) => from_other(inner.as_ref()),
        ArrowError::DivideByZero => SqlErrorKind::DivisionByZero.into(),
        ArrowError::ArithmeticOverflow(message) => {
            evaluation("22003", "value out of range: overflow").detail(clause(message))
        }
        ArrowError::CastError(message)
        | ArrowError::ParseError(message)
        | ArrowError::ComputeError(message)
        | ArrowError::InvalidArgumentError(message) => from_execution(message),
        ArrowError::NotYetImplemented(message) => unsupported(message),
        ArrowError::SchemaError(message) => {
            SqlErrorKind::DatatypeMismatch { message: clause(message) }.into()
        }
        ArrowError::MemoryError(message) => out_of_memory(message),
        ArrowError::IoError(message, _) => SqlErrorKind::Io { message: message.clone() }.into(),
        ArrowError::OffsetOverflowError(_) => {
            let message = "a batch of text is larger than 2 GB".to_owned();
            SqlErrorKind::ProgramLimitExceeded { message }.into()
        }
        ArrowError::CsvError(message) | ArrowError::JsonError(message) | ArrowError::AvroError(message) => {
            evaluation("22P02", clause(message))
        }
        ArrowError::IpcError(message)
        | ArrowError::ParquetError(message)
        | ArrowError::CDataInterface(message) => SqlErrorKind::internal(message).into(),
        ArrowError::DictionaryKeyOverflowError | ArrowError::RunEndIndexOverflowError => {
            SqlErrorKind::internal(error.to_string()).into()
        }
    }
}

/// What the casts of Arrow say of a value.
fn bad_value(message: &str) -> Option<SqlErrorKind> {
    // "Cannot cast string 'x' to value of Int64 type", "Cannot cast value 'x' to value of Boolean type"
    if let Some((_, rest)) =
        message.split_once("Cannot cast string '").or_else(|| message.split_once("Cannot cast value '"))
    {
        let (value, target) = rest.rsplit_once("' to value of ")?;
        return Some(bad_text(value, target.trim_end_matches(" type")));
    }
    // "Can't cast value 300 to type Int16"
    if let Some((_, rest)) = message.split_once("Can't cast value ") {
        let (_, target) = rest.rsplit_once(" to type ")?;
        return Some(match sql_type(target).as_str() {
            "smallint" => SqlErrorKind::NumericOutOfRange { type_name: "smallint" },
            "integer" => SqlErrorKind::NumericOutOfRange { type_name: "integer" },
            "bigint" => SqlErrorKind::NumericOutOfRange { type_name: "bigint" },
            _ => SqlErrorKind::NumericOutOfRange { type_name: "value" },
        });
    }
    // "Error parsing timestamp from 'x': …"
    if let Some((_, rest)) = message.split_once("Error parsing timestamp from '") {
        let (value, reason) = rest.rsplit_once("': ")?;
        if reason.contains("out of range") || reason.contains("overflow") {
            return Some(SqlErrorKind::DatetimeOverflow { value: value.to_owned() });
        }
        return Some(bad_datetime(value.to_owned(), "timestamp".to_owned()));
    }
    // "Invalid input syntax for type interval: \"x\""
    if let Some((_, value)) = message.split_once("Invalid input syntax for type interval: \"") {
        let value = value.trim_end_matches('"').to_owned();
        return Some(SqlErrorKind::InvalidDatetime { type_name: "interval".to_owned(), value });
    }
    let decimal_overflow = message.contains("too large to store in a Decimal")
        || message.contains("Cannot cast to Decimal")
        || message.contains("Decimal") && message.to_lowercase().contains("overflow");
    if decimal_overflow {
        let message = "numeric field overflow".to_owned();
        return Some(SqlErrorKind::Evaluation { sqlstate: "22003", message });
    }
    if message.contains("ivide by zero") || message.contains("ivision by zero") {
        return Some(SqlErrorKind::DivisionByZero);
    }
    None
}

/// Text that is no value of a type: out of its range if it is a number, wrong syntax otherwise.
fn bad_text(value: &str, target: &str) -> SqlErrorKind {
    let type_name = match target.split(['(', ' ']).next() {
        Some("Timestamp") if target.contains("None") => "timestamp".to_owned(),
        Some("Timestamp") => "timestamp with time zone".to_owned(),
        Some("Decimal128" | "Decimal256") => "numeric".to_owned(),
        Some("Time64" | "Time32") => "time".to_owned(),
        Some("Interval") => "interval".to_owned(),
        _ => sql_type(target),
    };
    let value = value.to_owned();
    let is_number = value.trim().parse::<i128>().is_ok();
    match type_name.as_str() {
        "smallint" | "integer" | "bigint" if is_number => SqlErrorKind::ValueOutOfRange { value, type_name },
        "date" | "time" | "timestamp" | "timestamp with time zone" | "interval" => {
            bad_datetime(value, type_name)
        }
        _ => SqlErrorKind::InvalidText { type_name, value },
    }
}

/// Fields in the right places with wrong numbers are out of range, anything else is no date or time.
fn bad_datetime(value: String, type_name: String) -> SqlErrorKind {
    let is_punctuation = |char: char| "-:. T+Z".contains(char);
    let has_fields = value.starts_with(|first: char| first.is_ascii_digit())
        && value.contains(['-', ':'])
        && value.chars().all(|char| char.is_ascii_digit() || is_punctuation(char));
    if has_fields {
        SqlErrorKind::DatetimeOverflow { value }
    } else {
        SqlErrorKind::InvalidDatetime { type_name, value }
    }
}

fn evaluation(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
    SqlErrorKind::Evaluation { sqlstate, message: message.into() }.into()
}

/// The first line of a message as one lower-case clause without a full stop.
fn clause(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim().trim_end_matches('.');
    let mut chars = line.chars();
    match chars.next() {
        Some(first) if chars.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => line.to_owned(),
    }
}
