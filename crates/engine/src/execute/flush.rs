//! FLUSH: waits until everything that has come in is visible (semantics 19).

use sql::{SqlError, SqlErrorKind};

use crate::error::from_runtime;
use crate::{Output, Session};

pub(super) async fn run(session: &mut Session, durable: bool) -> Result<Output, SqlError> {
    super::refuse_in_block(session, "FLUSH")?;
    let answer = session.shared.runtime.flush(durable).await;
    answer.map_err(|_| SqlErrorKind::AdminShutdown)?.map_err(from_runtime)?;
    Ok(Output::tag("FLUSH"))
}
