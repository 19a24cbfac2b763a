//! The words PostgreSQL 15 reserves: never a name unless quoted.

use sqlparser::ast::Ident;

use crate::error::{SqlError, SqlErrorKind};

const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "initially",
    "intersect",
    "into",
    "lateral",
    "leading",
    "limit",
    "localtime",
    "localtimestamp",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "placing",
    "primary",
    "references",
    "returning",
    "select",
    "session_user",
    "some",
    "symmetric",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "when",
    "where",
    "window",
    "with",
];

/// Whether an unquoted word can never be a name.
pub(crate) fn is_reserved(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    RESERVED.binary_search(&lower.as_str()).is_ok()
}

/// Words that are reserved and stand for a function, which may be read as a table.
const FUNCTIONS: &[&str] = &[
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "user",
];

/// The error of a relation's name that sqlparser takes and PostgreSQL does not.
pub(crate) fn refuse_name(ident: &Ident) -> Option<SqlError> {
    let position = u32::try_from(ident.span.start.column).unwrap_or(u32::MAX);
    let message = if ident.value.is_empty() {
        "zero-length delimited identifier".to_owned()
    } else if ident.quote_style.is_none()
        && is_reserved(&ident.value)
        && !FUNCTIONS.contains(&ident.value.to_ascii_lowercase().as_str())
    {
        format!("syntax error at or near \"{}\"", ident.value)
    } else {
        return None;
    };
    Some(SqlErrorKind::Syntax { message }.at(position))
}

#[cfg(test)]
mod tests {
    use super::RESERVED;

    #[test]
    fn the_list_is_sorted_for_binary_search() {
        assert!(RESERVED.is_sorted());
    }
}
