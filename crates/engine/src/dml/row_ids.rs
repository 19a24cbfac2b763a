//! Row ids: the hidden keys of tables without a primary key.
//!
//! **Invariant.** An id is never given out twice while a row has it: the first id after a start is
//! one more than the greatest in the table, looked up once its inbox has been applied.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{ArrayRef, Int64Array};
use catalog::RelationId;
use hashbrown::HashMap;
use sql::{SqlError, SqlErrorKind};
use state::{Published, ViewRange, encode_keys};
use tokio::sync::Mutex;

use crate::engine::Shared;
use crate::error::from_state;
use crate::live::Stored;
use crate::transaction::ReadView;

/// The next row id of each table that has been inserted into since the start.
#[derive(Default)]
pub(crate) struct RowIds {
    next: Mutex<HashMap<RelationId, Arc<AtomicI64>>>,
}

impl RowIds {
    /// `count` ids nobody has; returns the first.
    pub(crate) async fn allocate(
        &self,
        shared: &Arc<Shared>,
        id: RelationId,
        stored: &Arc<Stored>,
        count: usize,
    ) -> Result<i64, SqlError> {
        let next = {
            let mut next = self.next.lock().await;
            match next.get(&id) {
                Some(next) => Arc::clone(next),
                None => {
                    let sequence = shared.writes.acknowledged_everywhere();
                    let view = ReadView::after(shared, sequence).await?;
                    view.refuse_unready(&[id].into())?;
                    let published = view.published;
                    let stored = Arc::clone(stored);
                    let first = shared.workers.block(move || greatest(&published, &stored)).await? + 1;
                    let first = Arc::new(AtomicI64::new(first));
                    next.insert(id, Arc::clone(&first));
                    first
                }
            }
        };
        let count = i64::try_from(count).map_err(|_| SqlErrorKind::internal("more rows than row ids"))?;
        Ok(next.fetch_add(count, Ordering::Relaxed))
    }

    /// The table is gone.
    pub(crate) async fn forget(&self, id: RelationId) {
        self.next.lock().await.remove(&id);
    }
}

/// The greatest row id of a table, or 0: a binary search, because a table is scanned upwards only.
fn greatest(published: &Published, stored: &Stored) -> Result<i64, SqlError> {
    let mut low = 0;
    let mut high = i64::MAX;
    while low < high {
        // Rounded up, so that the range shrinks.
        let middle = low + (high - low) / 2 + (high - low) % 2;
        if any_from(published, stored, middle)? { low = middle } else { high = middle - 1 }
    }
    Ok(low)
}

/// Whether a row has this id or a greater one.
fn any_from(published: &Published, stored: &Stored, id: i64) -> Result<bool, SqlError> {
    let key: ArrayRef = Arc::new(Int64Array::from(vec![id]));
    let start = encode_keys(&[key], 1).map_err(from_state)?.get(0).to_vec();
    let range = ViewRange { start: Some(start), end: None };
    for batch in published.scan(stored.table, &stored.schema, range, 1) {
        if batch.map_err(from_state)?.num_rows() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
