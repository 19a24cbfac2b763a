//! SET and SET TRANSACTION.

use sql::SqlError;
use sql::statement::TransactionModes;

use crate::{Output, Session};

pub(super) fn run(
    session: &mut Session,
    name: &str,
    value: &[String],
    local: bool,
) -> Result<Output, SqlError> {
    if local && session.transaction.is_none() {
        // It would end with a transaction, and there is none: only checked.
        session.settings.clone().set(name, value)?;
        return Ok(Output::tag("SET").warning("SET LOCAL can only be used in transaction blocks"));
    }
    session.set(name, value, local)?;
    let output = Output::tag("SET");
    if name.eq_ignore_ascii_case("TimeZone") && session.setting("TimeZone").as_deref() != Some("UTC") {
        return Ok(output.warning("timestamps with time zone are still read and shown in UTC"));
    }
    Ok(output)
}

/// `SET TRANSACTION`, `SET SESSION CHARACTERISTICS AS TRANSACTION`. Every isolation level gives one
/// snapshot a transaction, which is at least what each asks for.
pub(super) fn transaction(
    session: &mut Session,
    modes: TransactionModes,
    whole_session: bool,
) -> Result<Output, SqlError> {
    let prefix = if whole_session { "default_transaction_" } else { "transaction_" };
    if !whole_session && session.transaction.is_none() {
        return Ok(Output::tag("SET").warning("SET TRANSACTION can only be used in transaction blocks"));
    }
    apply(session, modes, prefix, !whole_session)?;
    Ok(Output::tag("SET"))
}

/// Turns modes into settings.
pub(super) fn apply(
    session: &mut Session,
    modes: TransactionModes,
    prefix: &str,
    local: bool,
) -> Result<(), SqlError> {
    if let Some(isolation) = modes.isolation {
        session.set(&format!("{prefix}isolation"), &[isolation.name().to_owned()], local)?;
    }
    if let Some(read_only) = modes.read_only {
        let value = if read_only { "on" } else { "off" };
        session.set(&format!("{prefix}read_only"), &[value.to_owned()], local)?;
    }
    Ok(())
}
