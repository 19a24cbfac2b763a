//! How much memory is held that only a checkpoint, or the end of an epoch, gives back.
//!
//! | held | |
//! |---|---|
//! | up to half of the budget | everything goes on |
//! | more | sources and writers wait until it is less: at the latest until the next checkpoint |
//! | much more than the budget | a job that reads a stored relation ends |
//!
//! Waiting does not help against the rows of a stored relation, which a new follower reads in one
//! epoch: what an epoch changes stays until its end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dataflow::{DataflowError, Result};

/// What may be held beyond the budget before a job has to end.
const GRACE: usize = 32 << 20;

#[derive(Default)]
pub(crate) struct Gauge {
    /// By tasks: kept up to date while they work.
    tasks: AtomicUsize,
    /// By the overlay and a commit on its way: as of the last epoch.
    stored: AtomicUsize,
    budget: usize,
    /// Somebody waits.
    has_refused: AtomicBool,
}

impl Gauge {
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, ..Self::default() }
    }

    /// A task that held `before` holds `now`.
    pub(crate) fn set(&self, before: usize, now: usize) {
        if now >= before {
            self.tasks.fetch_add(now - before, Ordering::SeqCst);
        } else {
            self.tasks.fetch_sub(before - now, Ordering::SeqCst);
        }
    }

    /// What is held besides.
    pub(crate) fn set_stored(&self, bytes: usize) {
        self.stored.store(bytes, Ordering::SeqCst);
    }

    fn held(&self) -> usize {
        self.tasks.load(Ordering::SeqCst) + self.stored.load(Ordering::SeqCst)
    }

    /// Whether more input has to wait. Whoever is told so is woken by
    /// [`Events`](crate::events::Events).
    pub(crate) fn is_full(&self) -> bool {
        if self.held() <= self.budget / 2 {
            return false;
        }
        self.has_refused.store(true, Ordering::SeqCst);
        // Again, because nobody knew until now that somebody waits.
        self.held() > self.budget / 2
    }

    /// Whether somebody waits and need not any more; says so once.
    pub(crate) fn has_room_again(&self) -> bool {
        self.held() <= self.budget / 2 && self.has_refused.swap(false, Ordering::SeqCst)
    }

    /// An error if so much is held that a scan cannot go on.
    pub(crate) fn check(&self) -> Result<()> {
        let (held, budget) = (self.held(), self.budget);
        if held <= budget + GRACE {
            return Ok(());
        }
        Err(DataflowError::OutOfMemory(format!(
            "what is read of a stored relation in one epoch takes {held} bytes of a budget of {budget} bytes; \
             start the server with more --memory"
        )))
    }
}
