//! What `SHOW JOBS` and waiting sessions see without asking the coordinator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dataflow::{JobId, Watermark};
use parking_lot::Mutex;

use crate::coordinator::Coordinator;
use crate::jobs::RunningJob;
use crate::readiness::{Readiness, Unready};
use crate::task::JobCounters;
use crate::{JobState, JobStatus};

/// Shared between the coordinator and sessions.
#[derive(Default)]
pub(crate) struct Shared {
    jobs: Mutex<BTreeMap<JobId, (JobStatus, Arc<JobCounters>)>>,
    readiness: Mutex<Arc<Readiness>>,
    published_sequence: AtomicU64,
}

impl Shared {
    /// All jobs, by id, with counters as they are now.
    pub(crate) fn jobs(&self) -> Vec<JobStatus> {
        let jobs = self.jobs.lock();
        let status = jobs.values().map(|(status, counters)| JobStatus {
            rows_in: counters.rows_in.load(Ordering::Relaxed),
            rows_out: counters.rows_out.load(Ordering::Relaxed),
            ..status.clone()
        });
        status.collect()
    }

    /// The inbox sequence that the published epoch contains.
    pub(crate) fn published_sequence(&self) -> u64 {
        self.published_sequence.load(Ordering::Acquire)
    }

    /// Which jobs cannot be read now.
    pub(crate) fn readiness(&self) -> Arc<Readiness> {
        Arc::clone(&self.readiness.lock())
    }

    pub(crate) fn set_published(&self, sequence: u64) {
        self.published_sequence.store(sequence, Ordering::Release);
    }
}

impl Coordinator {
    pub(crate) fn update_status(&self) {
        let status = self.jobs.iter().map(|(id, job)| (*id, (self.status(job), Arc::clone(&job.counters))));
        let status: BTreeMap<_, _> = status.collect();
        let unready = status.iter().filter_map(|(id, (status, _))| Some((*id, unready(status)?))).collect();
        let readiness = Readiness { failures: self.failures, unready };
        *self.shared.jobs.lock() = status;
        let mut current = self.shared.readiness.lock();
        if **current != readiness {
            *current = Arc::new(readiness);
        }
    }

    fn status(&self, job: &RunningJob) -> JobStatus {
        JobStatus {
            id: job.definition.id,
            name: job.definition.name.clone(),
            kind: job.definition.kind,
            state: self.state_of(job),
            error: job.error.clone(),
            rows_in: 0,
            rows_out: 0,
            late_rows: job.late_rows,
            error_rows: job.error_rows,
            watermark: job.watermark,
            memory: job.dirty_bytes + job.clean_bytes,
        }
    }

    fn state_of(&self, job: &RunningJob) -> JobState {
        if job.error.is_some() {
            JobState::Failed
        } else if self.is_behind(job) {
            JobState::Backfilling
        } else if job.watermark == Watermark::MAX {
            JobState::Finished
        } else {
            JobState::Running
        }
    }

    /// Whether the job, or one it follows, still reads what was there before it.
    pub(crate) fn is_behind(&self, job: &RunningJob) -> bool {
        let upstream = job.definition.graph.upstream_jobs();
        job.is_behind()
            || upstream.iter().any(|id| self.jobs.get(id).is_some_and(|upstream| self.is_behind(upstream)))
    }
}

fn unready(status: &JobStatus) -> Option<Unready> {
    match status.state {
        JobState::Running | JobState::Finished => None,
        JobState::Backfilling => Some(Unready { name: status.name.clone(), error: None }),
        JobState::Failed => {
            let error = status.error.clone().unwrap_or_else(|| "unknown reason".to_owned());
            Some(Unready { name: status.name.clone(), error: Some(error) })
        }
    }
}
