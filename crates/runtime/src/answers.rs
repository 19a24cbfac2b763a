//! Which waiting sessions can be answered, and what they wait for.

use crate::RuntimeError;
use crate::coordinator::Coordinator;
use crate::events::Reply;
use crate::jobs::{RunningJob, internal};
use crate::waiters::Waiter;

impl Coordinator {
    /// FLUSH: fixes now what has to be published.
    pub(crate) fn on_flush(&mut self, durable: bool, reply: Reply) {
        self.discover();
        let mut sources = Vec::new();
        for (id, job) in self.jobs.iter().filter(|(_, job)| job.is_live()) {
            match job.pump.as_ref().map(|pump| pump.reach()).transpose() {
                Ok(reach) => {
                    sources.extend(reach.filter(|reach| !reach.is_empty()).map(|reach| (*id, reach)))
                }
                Err(error) => {
                    let _ = reply.send(Err(internal(error)));
                    return;
                }
            }
        }
        // What had nothing may have something by now.
        for pump in self.all_pumps() {
            pump.poll_pending();
        }
        self.waiters.push(Waiter {
            sources,
            durable,
            fails_with_jobs: true,
            ..Waiter::for_inbox(self.storage.inbox.last_sequence(), reply)
        });
    }

    /// Whether a barrier would bring a waiting session further.
    pub(crate) fn wants_barrier(&self, waiter: &Waiter) -> bool {
        waiter.epoch.is_none() && self.has_read(waiter) && waiter.inbox <= self.inbox.sequence()
    }

    fn has_read(&self, waiter: &Waiter) -> bool {
        waiter.sources.iter().all(|(id, reach)| {
            let pump = self.jobs.get(id).filter(|job| job.is_live()).and_then(|job| job.pump.as_ref());
            pump.is_none_or(|pump| pump.has_reached(reach))
        })
    }

    /// Before a barrier goes in: the waiters whose sources have been read far enough. Asked before,
    /// because behind the barrier the sources read on at once.
    pub(crate) fn waiters_in_front(&self) -> Vec<bool> {
        self.waiters.iter().map(|waiter| waiter.epoch.is_none() && self.has_read(waiter)).collect()
    }

    /// After a barrier went in: those it has to be published for.
    pub(crate) fn assign_waiters(&mut self, in_front: &[bool], inbox_sequence: u64) {
        for (waiter, is_in_front) in self.waiters.iter_mut().zip(in_front) {
            if *is_in_front && waiter.inbox <= inbox_sequence {
                waiter.epoch = Some(self.epoch);
            }
        }
    }

    /// Answers everybody who can be answered.
    pub(crate) fn answer_waiters(&mut self) {
        self.follow_jobs();
        for idx in (0..self.waiters.len()).rev() {
            if let Some(answer) = self.answer(&self.waiters[idx]) {
                self.waiters.swap_remove(idx).answer(answer);
            }
        }
        let needs_checkpoint = self.waiters.iter().any(|waiter| self.needs_checkpoint(waiter));
        self.checkpoints.is_forced |= needs_checkpoint;
        let has_backfills = self.jobs.values().any(|job| !job.backfills.is_empty());
        let is_watched = has_backfills || self.waiters.iter().any(|waiter| !waiter.sources.is_empty());
        self.events.watch(is_watched);
    }

    fn answer(&self, waiter: &Waiter) -> Option<Result<(), RuntimeError>> {
        let mut asked = self
            .jobs
            .values()
            .filter(|job| waiter.fails_with_jobs || waiter.jobs.contains(&job.definition.id));
        if let Some(failed) = asked.find_map(RunningJob::failure) {
            return Some(Err(failed));
        }
        let epoch = waiter.epoch?;
        let is_there = self.published >= epoch && (!waiter.durable || self.checkpoints.durable >= epoch);
        (is_there && !self.has_job_behind(waiter)).then_some(Ok(()))
    }

    fn has_job_behind(&self, waiter: &Waiter) -> bool {
        waiter.jobs.iter().filter_map(|id| self.jobs.get(id)).any(|job| self.is_behind(job))
    }

    /// Whoever waits for jobs that are behind waits for the checkpoint of a later epoch.
    fn follow_jobs(&mut self) {
        let behind: Vec<bool> = self.waiters.iter().map(|waiter| self.has_job_behind(waiter)).collect();
        for (waiter, is_behind) in self.waiters.iter_mut().zip(behind) {
            if is_behind {
                waiter.epoch = waiter.epoch.max(Some(self.published.next()));
            }
        }
    }

    /// Whether no checkpoint that is on its way contains what a waiter waits for.
    fn needs_checkpoint(&self, waiter: &Waiter) -> bool {
        let Some(epoch) = waiter.epoch.filter(|epoch| waiter.durable && *epoch <= self.published) else {
            return false;
        };
        let committing = self.checkpoints.committing.max(Some(self.checkpoints.durable));
        let in_flight = self.flight.as_ref().filter(|flight| flight.is_checkpoint).map(|flight| flight.epoch);
        committing.max(in_flight) < Some(epoch)
    }
}
