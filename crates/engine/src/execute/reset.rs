//! RESET.

use sql::SqlError;

use crate::{Output, Session};

pub(super) fn run(session: &mut Session, name: Option<&str>) -> Result<Output, SqlError> {
    match name {
        Some(name) => session.settings.reset(name)?,
        None => session.settings.reset_all(),
    }
    if let Some(after) = &mut session.settings_after {
        match name {
            Some(name) => after.commit.reset(name)?,
            None => after.commit.reset_all(),
        }
    }
    Ok(Output::tag("RESET"))
}
