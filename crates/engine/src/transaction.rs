//! Transactions: one snapshot for all statements, and the rows written so far.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catalog::RelationId;
use dataflow::JobId;
use runtime::Readiness;
use sql::{SqlError, SqlErrorKind};
use state::Published;

use crate::dml::Writes;
use crate::engine::Shared;
use crate::live::Live;

/// The instant a statement reads.
#[derive(Clone)]
pub(crate) struct ReadView {
    pub(crate) published: Arc<Published>,
    /// Which jobs `published` does not show right.
    readiness: Arc<Readiness>,
    /// `published` contains the inbox up to here.
    pub(crate) sequence: u64,
    /// What the transaction itself has written and not committed.
    pub(crate) writes: Writes,
}

impl ReadView {
    /// The newest instant, once it contains the inbox up to `sequence`.
    pub(crate) async fn after(shared: &Shared, sequence: u64) -> Result<Self, SqlError> {
        shared.writes.wait_visible(shared, sequence).await?;
        Ok(Self::now(shared))
    }

    /// The newest instant.
    pub(crate) fn now(shared: &Shared) -> Self {
        // In this order: what is published later contains at least as much.
        let sequence = shared.writes.visible();
        let (published, readiness) = shared.runtime.instant();
        Self { published, readiness, sequence, writes: Writes::default() }
    }

    /// Refuses relations whose content here is not one instant of the database: those still
    /// backfilling and those whose job, or a job below it, has failed (semantics 17, 27).
    pub(crate) fn refuse_unready(&self, relations: &BTreeSet<RelationId>) -> Result<(), SqlError> {
        if self.readiness.is_complete() {
            return Ok(());
        }
        let Some(job) = relations.iter().find_map(|id| self.readiness.of(JobId(id.0))) else {
            return Ok(());
        };
        let name = &job.name;
        let message = match &job.error {
            None => format!("\"{name}\" is still reading what was there before it"),
            Some(reason) => format!("job \"{name}\" has failed: {reason}"),
        };
        Err(SqlErrorKind::NotInPrerequisiteState { message }.into())
    }
}

/// An open transaction block.
pub(crate) struct Transaction {
    /// When it began (microseconds): what `now()` says in it.
    pub(crate) began_at: i64,
    /// Set by an error in a statement or in the rows it streams.
    pub(crate) failed: Arc<AtomicBool>,
    /// What it reads, fixed by its first statement that reads.
    pub(crate) snapshot: Option<(Arc<Live>, ReadView)>,
}

impl Transaction {
    pub(crate) fn new(began_at: i64) -> Self {
        Self { began_at, failed: Arc::new(AtomicBool::new(false)), snapshot: None }
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Its snapshot, taken now if it has none: it contains every DML acknowledged before.
    pub(crate) async fn snapshot(&mut self, shared: &Shared) -> Result<&mut (Arc<Live>, ReadView), SqlError> {
        if self.snapshot.is_none() {
            let view = ReadView::after(shared, shared.writes.acknowledged_everywhere()).await?;
            self.snapshot = Some((shared.live(), view));
        }
        self.snapshot
            .as_mut()
            .ok_or_else(|| SqlErrorKind::internal("a transaction without a snapshot").into())
    }
}
