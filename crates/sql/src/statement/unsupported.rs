//! Statements of PostgreSQL and of other streaming databases that we do not have.
//!
//! They answer 0A000 with the construct's name instead of a syntax error, so that a user learns
//! that the statement is understood and missing, not misspelt.

use crate::error::{SqlError, SqlErrorKind};
use crate::parser::grammar::Grammar;

/// Verbs that stand alone: the verb is the construct.
const VERBS: &[&str] = &[
    "ANALYZE",
    "CALL",
    "CANCEL",
    "CHECKPOINT",
    "CLUSTER",
    "COPY",
    "DECLARE",
    "DO",
    "EXECUTE",
    "FETCH",
    "GRANT",
    "KILL",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MERGE",
    "MOVE",
    "NOTIFY",
    "PAUSE",
    "PREPARE",
    "REASSIGN",
    "RECOVER",
    "REINDEX",
    "RELEASE",
    "RESUME",
    "REVOKE",
    "SAVEPOINT",
    "SUBSCRIBE",
    "TRUNCATE",
    "USE",
    "VACUUM",
    "WAIT",
];

/// Verbs followed by the kind of object they act on.
const VERBS_WITH_OBJECT: &[&str] = &["ALTER", "COMMENT", "CREATE", "DROP", "IMPORT", "REFRESH", "SECURITY"];

/// Words between the verb and the kind of object.
const MODIFIERS: &[&str] =
    &["OR", "REPLACE", "TEMP", "TEMPORARY", "UNLOGGED", "GLOBAL", "LOCAL", "RECURSIVE", "UNIQUE", "TRUSTED"];

/// Kinds of objects, one or two words.
const OBJECTS: &[&str] = &[
    "ACCESS METHOD",
    "AGGREGATE",
    "CAST",
    "COLLATION",
    "CONNECTION",
    "CONVERSION",
    "DATABASE",
    "DEFAULT PRIVILEGES",
    "DOMAIN",
    "EVENT TRIGGER",
    "EXTENSION",
    "FOREIGN",
    "FUNCTION",
    "GROUP",
    "INDEX",
    "LANGUAGE",
    "LARGE OBJECT",
    "LABEL",
    "MATERIALIZED VIEW",
    "OPERATOR",
    "OWNED",
    "POLICY",
    "PROCEDURE",
    "PUBLICATION",
    "ROLE",
    "ROUTINE",
    "RULE",
    "SCHEMA",
    "SECRET",
    "SEQUENCE",
    "SERVER",
    "SINK",
    "SOURCE",
    "STATISTICS",
    "SUBSCRIPTION",
    "SYSTEM",
    "TABLE",
    "TABLESPACE",
    "TEXT SEARCH",
    "TRANSFORM",
    "TRIGGER",
    "TYPE",
    "USER",
    "VIEW",
];

/// The error of a statement that no family knows.
pub(crate) fn refuse(grammar: &Grammar<'_>) -> SqlError {
    let Some(verb) = grammar.peek_word(0) else {
        return grammar.unexpected();
    };
    if VERBS.contains(&verb.as_str()) {
        return grammar.unsupported(verb);
    }
    if !VERBS_WITH_OBJECT.contains(&verb.as_str()) {
        return grammar.unexpected();
    }
    let mut words = vec![verb.clone()];
    let mut ahead = 1;
    if verb == "COMMENT" && grammar.peek_word(1).as_deref() == Some("ON") {
        return grammar.unsupported("COMMENT ON");
    }
    while let Some(word) = grammar.peek_word(ahead).filter(|word| MODIFIERS.contains(&word.as_str())) {
        words.push(word);
        ahead += 1;
    }
    let one = grammar.peek_word(ahead);
    let two = one.as_ref().zip(grammar.peek_word(ahead + 1)).map(|(one, two)| format!("{one} {two}"));
    let object = [two, one].into_iter().flatten().find(|object| OBJECTS.contains(&object.as_str()));
    match object {
        Some(object) => {
            words.push(object);
            SqlErrorKind::unsupported(words.join(" ")).at(grammar.position())
        }
        None => grammar.unexpected_ahead(ahead),
    }
}
