//! A failed job: it and what depends on it leave the barrier set; everything else goes on.

use dataflow::{JobId, JobKind};
use state::TableId;

use crate::coordinator::Coordinator;
use crate::saved::Saved;
use crate::worker::Order;

impl Coordinator {
    /// A task of a job has failed, or its source could not be read.
    pub(crate) fn on_failed(&mut self, job: JobId, reason: String) {
        let Some(failed) = self.jobs.get(&job).filter(|job| job.is_live()) else { return };
        tracing::error!(job = %failed.definition.name, %reason, "job failed");
        let because = format!("job \"{}\" has failed", failed.definition.name);
        let mut tables = self.take_out(job, reason);
        let mut front = vec![job];
        while let Some(upstream) = front.pop() {
            let followers: Vec<JobId> = self
                .jobs
                .values()
                .filter(|job| job.is_live() && job.definition.graph.upstream_jobs().contains(&upstream))
                .map(|job| job.definition.id)
                .collect();
            for follower in followers {
                tables.extend(self.take_out(follower, because.clone()));
                front.push(follower);
            }
        }
        self.settle_demands();
        self.checkpoints.is_forced = true;
        // In this order: whoever reads an instant without these rows can know why.
        self.update_status();
        self.store.forget(&tables);
    }

    /// New jobs may come up behind a barrier during which what they follow has failed.
    pub(crate) fn fail_orphans(&mut self) {
        let has_failed = |id: &JobId| self.jobs.get(id).is_some_and(|job| !job.is_live());
        let orphans: Vec<(JobId, String)> = self
            .jobs
            .values()
            .filter(|job| job.is_live())
            .filter_map(|job| {
                let upstream = job.definition.graph.upstream_jobs().into_iter().find(has_failed)?;
                let reason = format!("job \"{}\" has failed", self.jobs[&upstream].definition.name);
                Some((job.definition.id, reason))
            })
            .collect();
        for (orphan, reason) in orphans {
            self.on_failed(orphan, reason);
        }
    }

    /// Gives the tables whose rows are to be forgotten.
    fn take_out(&mut self, id: JobId, reason: String) -> Vec<TableId> {
        for mailbox in &self.mailboxes {
            mailbox.order(Order::Remove(id));
        }
        self.inbox.detach(id);
        let Some(job) = self.jobs.get_mut(&id) else { return Vec::new() };
        // Whoever sends to it goes on; what it has not read is dropped.
        for channel in &job.channels {
            channel.close();
        }
        let saved = match job.definition.kind {
            JobKind::Table => {
                self.checkpoints.held_sequence.get_or_insert(self.checkpoints.sequence);
                // Without any content on disk it simply begins again.
                if job.is_saved { Saved::Held } else { Saved::New }
            }
            JobKind::Source | JobKind::View | JobKind::Sink => Saved::Failed(reason.clone()),
        };
        self.checkpoints.meta.push(saved.entry(id, &job.definition.graph));
        for backfill in job.backfills.drain(..) {
            let keys = backfill.pump.meta_keys();
            self.checkpoints.meta.extend(keys.into_iter().map(|key| (key, None)));
        }
        job.error = Some(reason);
        job.is_scanning = false;
        job.wake_at = None;
        (job.dirty_bytes, job.clean_bytes) = (0, 0);
        let tables = job.published_tables();
        job.retry.on_failure(self.tuning.retry_after);
        if let Some(flight) = &mut self.flight {
            flight.waiting.remove(&id);
            flight.parts.retain(|part| part.job != id);
        }
        self.failures += 1;
        tables
    }
}
