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
    session.set(name, value, local)?;
    if local && session.transaction.is_none() {
        // It would end with a transaction, and there is none: undone at once.
        session.settings.reset(name)?;
        return Ok(Output::tag("SET").warning("SET LOCAL can only be used in transaction blocks"));
    }
    Ok(Output::tag("SET"))
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
