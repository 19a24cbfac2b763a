//! `WITH (…)`: which connector, what is ours, and the rest, which the connector checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use dataflow::{Connector, FormatOptions, OptionError, Options};
use sql::literals::interval_micros;
use sql::statement::FormatDefinition;
use sql::{SqlError, SqlErrorKind};
use sqlparser::ast;

use crate::session::PlanSession;

/// A split without input for this long no longer holds the watermark back.
const IDLE_TIMEOUT: i64 = 30_000_000;
/// Names of `idle_timeout` in Flink's dialect.
const IDLE_TIMEOUT_NAMES: [&str; 2] = ["idle_timeout", "scan.watermark.idle-timeout"];

/// The connector that `WITH (connector = '…')` names.
pub(super) fn connector<'a>(
    session: &'a PlanSession<'_>,
    options: &BTreeMap<String, String>,
    position: u32,
) -> Result<(String, &'a Arc<dyn Connector>), SqlError> {
    let Some(name) = options.get("connector") else {
        let message = "option \"connector\" is missing".to_owned();
        return Err(SqlErrorKind::InvalidOption { message }.at(position));
    };
    match session.ctx.connectors.get(name) {
        Some(connector) => Ok((name.clone(), connector)),
        None => {
            let names: Vec<&str> = session.ctx.connectors.names().collect();
            let message = format!("unknown connector \"{name}\"");
            let hint = format!("Known connectors: {}.", names.join(", "));
            Err(SqlErrorKind::InvalidOption { message }.at(position).hint(hint))
        }
    }
}

/// The options of a source that the engine takes itself.
#[derive(Debug, Default)]
pub(super) struct SourceOptions {
    /// As given; `Some(0)`: a split never becomes idle.
    idle_timeout: Option<i64>,
}

impl SourceOptions {
    /// Takes ours out of the options; the others are the connector's.
    pub(super) fn split(options: &BTreeMap<String, String>) -> Result<(Self, Options), SqlError> {
        let mut own = Self::default();
        let mut rest = Options::new();
        for (name, value) in options {
            match name.as_str() {
                "connector" => {}
                timeout if IDLE_TIMEOUT_NAMES.contains(&timeout) => {
                    own.idle_timeout = Some(duration(name, value)?);
                }
                "late" if value == "keep" => {}
                "late" => return Err(invalid(name, value, "late rows are always kept: 'keep'")),
                "idle_close" => return Err(SqlErrorKind::unsupported("option \"idle_close\"").into()),
                _ => {
                    rest.insert(name.clone(), value.clone());
                }
            }
        }
        Ok((own, rest))
    }

    /// How long a split may be silent (microseconds); a bounded source is never idle, it ends.
    pub(super) fn idle_timeout(&self, bounded: bool) -> Option<i64> {
        let given = self.idle_timeout.unwrap_or(IDLE_TIMEOUT);
        (!bounded && given > 0).then_some(given)
    }
}

/// `'30s'`, `'5 minutes'`, `'off'`.
fn duration(name: &str, value: &str) -> Result<i64, SqlError> {
    if value.eq_ignore_ascii_case("off") {
        return Ok(0);
    }
    let unit = value.find(|char: char| char.is_alphabetic()).unwrap_or(value.len());
    let (number, unit) = value.split_at(unit);
    let text = format!("{} {unit}", number.trim());
    let literal = ast::Expr::value(ast::Value::SingleQuotedString(text));
    match interval_micros(&literal) {
        Ok(micros) if micros >= 0 => Ok(micros),
        _ => Err(invalid(name, value, "expected a duration, for example '30 seconds'")),
    }
}

fn invalid(name: &str, value: &str, reason: &str) -> SqlError {
    option_error(OptionError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
    })
}

pub(super) fn format(definition: &FormatDefinition) -> FormatOptions {
    FormatOptions {
        format: definition.format.clone(),
        encode: definition.encode.clone(),
        options: definition.options.clone(),
    }
}

/// A connector's refusal as an error of the statement.
pub(super) fn option_error(error: OptionError) -> SqlError {
    let message = error.to_string();
    match error {
        OptionError::Unknown { nearest, .. } => {
            let error = SqlError::from(SqlErrorKind::InvalidOption { message });
            match nearest {
                Some(nearest) => error.hint(format!("Perhaps you mean \"{nearest}\".")),
                None => error,
            }
        }
        OptionError::PathNotAllowed { .. } => SqlErrorKind::InsufficientPrivilege { message }
            .hint("The server was started with --allow-path for other folders."),
        OptionError::Role { .. }
        | OptionError::Missing { .. }
        | OptionError::Value { .. }
        | OptionError::Other(_) => SqlErrorKind::InvalidOption { message }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        assert_eq!(duration("idle_timeout", "30s").unwrap(), 30_000_000);
        assert_eq!(duration("idle_timeout", "5 minutes").unwrap(), 300_000_000);
        assert_eq!(duration("idle_timeout", "off").unwrap(), 0);
        assert!(duration("idle_timeout", "soon").is_err());
        assert!(duration("idle_timeout", "-1s").is_err());
    }

    #[test]
    fn our_options_are_not_the_connectors() {
        let options = [("connector", "file"), ("idle_timeout", "1s"), ("late", "keep"), ("path", "x")];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let (own, rest) = SourceOptions::split(&options).unwrap();
        assert_eq!(own.idle_timeout(false), Some(1_000_000));
        assert_eq!(own.idle_timeout(true), None);
        assert_eq!(rest.keys().collect::<Vec<_>>(), ["path"]);
    }
}
