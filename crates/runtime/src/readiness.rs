//! Which jobs' rows are, at the moment, not one instant of the database.

use std::collections::BTreeMap;

use dataflow::JobId;

/// The jobs that cannot be read, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// How many jobs have been taken out so far.
    pub(crate) failures: u64,
    pub(crate) unready: BTreeMap<JobId, Unready>,
}

/// A job that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unready {
    /// The job's relation.
    pub name: String,
    /// Why it failed; `None`: it, or a job it follows, still reads what was there before it.
    pub error: Option<String>,
}

impl Readiness {
    /// Why a job cannot be read; `None`: it can, or there is no such job.
    #[must_use]
    pub fn of(&self, job: JobId) -> Option<&Unready> {
        self.unready.get(&job)
    }

    /// Whether every job can be read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unready.is_empty()
    }
}
