//! DISCARD, DEALLOCATE, CLOSE ALL, UNLISTEN: what connection pools send between clients.

use sql::SqlError;

use crate::{Output, Session};

const DISCARD_ALL: &str = "DISCARD ALL";

pub(super) fn run(session: &mut Session, tag: &'static str) -> Result<Output, SqlError> {
    if tag == DISCARD_ALL {
        super::refuse_in_block(session, tag)?;
        session.settings.reset_all();
    }
    Ok(Output::tag(tag))
}
