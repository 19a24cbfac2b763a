//! The commit thread: makes one checkpoint durable at a time, while the jobs go on.
//!
//! ```text
//!  coordinator ── CheckpointWrites ─► backend.commit ─► ViewStore::rebase ─► Inbox::truncate
//!       ▲                                                                        │
//!       └──────────────────────── Events::committed ─────────────────────────────┘
//! ```
//!
//! **Invariant.** A commit that fails ends the process: after a failed fsync nobody knows what the
//! disk holds, and the next start finds out.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use state::{CheckpointWrites, Storage, ViewStore};

use crate::events::Events;

/// Commits until the coordinator is gone.
pub(crate) fn run(
    checkpoints: &Receiver<CheckpointWrites>,
    storage: &Storage,
    store: &Arc<ViewStore>,
    events: &Arc<Events>,
) {
    for writes in checkpoints {
        let (epoch, sequence) = (writes.epoch, writes.inbox_sequence);
        let snapshot = storage.backend.commit(writes).unwrap_or_else(|error| fatal("commit", &error));
        store.rebase(Arc::clone(&snapshot));
        storage.inbox.truncate(sequence).unwrap_or_else(|error| fatal("truncate the inbox", &error));
        tracing::debug!(%epoch, sequence, "checkpoint durable");
        events.committed(snapshot);
    }
}

/// Says why, and ends the process.
pub(crate) fn fatal(action: &str, error: &state::StateError) -> ! {
    tracing::error!(%error, "cannot {action}: the process ends; what was acknowledged is on disk");
    std::process::abort()
}
