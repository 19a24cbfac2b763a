//! BEGIN, COMMIT, ROLLBACK.

use sql::statement::TransactionModes;
use sql::{SqlError, SqlErrorKind};

use super::set;
use crate::dml::Committed;
use crate::session::SettingsAfter;
use crate::transaction::Transaction;
use crate::{Output, Session};

pub(super) fn begin(
    session: &mut Session,
    modes: TransactionModes,
    tag: &'static str,
) -> Result<Output, SqlError> {
    if session.transaction.is_some() {
        return Ok(Output::tag(tag).warning(SqlErrorKind::ActiveTransaction.to_string()));
    }
    session.settings_after =
        Some(SettingsAfter { commit: session.settings.clone(), rollback: session.settings.clone() });
    session.transaction = Some(Transaction::new(session.shared.clock.now()));
    let read_only = session.settings.get("default_transaction_read_only").unwrap_or("off").to_owned();
    let isolation =
        session.settings.get("default_transaction_isolation").unwrap_or("repeatable read").to_owned();
    session.set("transaction_read_only", &[read_only], true)?;
    session.set("transaction_isolation", &[isolation], true)?;
    set::apply(session, modes, "transaction_", true)?;
    Ok(Output::tag(tag))
}

pub(super) async fn commit(session: &mut Session) -> Result<Output, SqlError> {
    let Some(transaction) = session.transaction.take() else {
        return Ok(Output::tag("COMMIT").warning(SqlErrorKind::NoActiveTransaction.to_string()));
    };
    let after = session.settings_after.take();
    if transaction.is_failed() {
        if let Some(after) = after {
            session.settings = after.rollback;
        }
        return Ok(Output::tag("ROLLBACK"));
    }
    let committed = match transaction.snapshot {
        Some((_, mut view)) if !view.writes.is_empty() => {
            let writes = std::mem::take(&mut view.writes);
            let shared = std::sync::Arc::clone(&session.shared);
            session
                .shared
                .workers
                .finish(async move { shared.writes.commit(&shared, &view, &writes).await })
                .await
        }
        Some(_) | None => Ok(Committed::Done),
    };
    if let Some(after) = after {
        session.settings =
            if matches!(committed, Ok(Committed::Done)) { after.commit } else { after.rollback };
    }
    match committed? {
        Committed::Done => Ok(Output::tag("COMMIT")),
        Committed::Conflict => {
            Err(SqlErrorKind::SerializationFailure.hint("The transaction might succeed if retried."))
        }
    }
}

pub(super) fn rollback(session: &mut Session) -> Output {
    if let Some(after) = session.settings_after.take() {
        session.settings = after.rollback;
    }
    match session.transaction.take() {
        Some(_) => Output::tag("ROLLBACK"),
        None => Output::tag("ROLLBACK").warning(SqlErrorKind::NoActiveTransaction.to_string()),
    }
}
