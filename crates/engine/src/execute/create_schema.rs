//! CREATE SCHEMA.

use std::sync::Arc;

use runtime::Change;
use sql::SqlError;

use crate::error::from_catalog;
use crate::{Output, Session};

pub(super) async fn run(session: &mut Session, name: &str, if_not_exists: bool) -> Result<Output, SqlError> {
    super::refuse_in_block(session, "CREATE SCHEMA")?;
    let shared = Arc::clone(&session.shared);
    let name = name.to_owned();
    let created = session
        .shared
        .workers
        .finish(async move {
            let _turn = shared.ddl.lock().await;
            let live = shared.live();
            if if_not_exists && live.catalog.schemas().contains(&name.as_str()) {
                return Ok(Some(format!("schema \"{name}\" already exists, skipping")));
            }
            let mut catalog = (*live.catalog).clone();
            let meta = catalog.create_schema(&name).map_err(from_catalog)?;
            let mut next = (*live).clone();
            next.catalog = Arc::new(catalog);
            shared.apply(Change { meta, ..Change::default() }, next).await?;
            Ok(None)
        })
        .await?;
    Ok(created.into_iter().fold(Output::tag("CREATE SCHEMA"), Output::notice))
}
