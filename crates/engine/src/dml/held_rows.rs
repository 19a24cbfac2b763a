//! Rows that a statement or a transaction holds in memory: they count against what batch queries
//! may use together, and one row too many is refused instead of taken.

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use sql::{SqlError, SqlErrorKind};

use crate::engine::Shared;

/// A share of the memory of batch queries, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldRows {
    reservation: MemoryReservation,
    /// Bytes that all queries share.
    limit: Option<usize>,
}

impl HeldRows {
    pub(crate) fn new(shared: &Shared) -> Self {
        let pool = &shared.query_env.memory_pool;
        let limit = match pool.memory_limit() {
            MemoryLimit::Finite(limit) => Some(limit),
            MemoryLimit::Infinite | MemoryLimit::Unknown => None,
        };
        Self { reservation: MemoryConsumer::new("rows").register(pool), limit }
    }

    /// Adds some bytes.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), SqlError> {
        self.reservation.try_grow(bytes).map_err(|_| {
            let held = self.reservation.size() + bytes;
            let of = self.limit.map(|limit| format!(" of the {limit} bytes that all queries share"));
            let detail = format!("The rows need {held} bytes{}.", of.unwrap_or_default());
            let hint = "Write fewer rows in one transaction, or start the server with more --memory.";
            SqlErrorKind::OutOfMemory.detail(detail).hint(hint)
        })
    }
}
