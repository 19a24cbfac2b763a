//! Looking at the outside: splits that had nothing, and new splits.
//!
//! Sources are looked at only while somebody follows them, and ever more rarely while nothing
//! comes, so an idle database costs nothing.

use std::time::{Duration, Instant};

use crate::clock::instant;
use crate::coordinator::Coordinator;
use crate::source::SourcePump;

const POLL_MIN: Duration = Duration::from_millis(2);
const POLL_MAX: Duration = Duration::from_millis(50);
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// When to look next.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    next_poll: Option<Instant>,
    interval: Duration,
    next_discovery: Option<Instant>,
    next_idle: Option<Instant>,
}

impl Polling {
    pub(crate) fn next(&self) -> Option<Instant> {
        [self.next_poll, self.next_discovery, self.next_idle].into_iter().flatten().min()
    }

    /// A lane has found nothing more to read.
    pub(crate) fn on_pending(&mut self) {
        let interval = self.interval.max(POLL_MIN);
        self.next_poll.get_or_insert_with(|| instant() + interval);
    }

    /// Rows have come: look often.
    pub(crate) fn on_input(&mut self) {
        self.interval = POLL_MIN;
    }
}

impl Coordinator {
    /// Does what is due.
    pub(crate) fn poll_sources(&mut self) {
        let now = instant();
        if self.polling.next_poll.is_some_and(|at| at <= now) {
            self.polling.next_poll = None;
            self.polling.interval = (self.polling.interval * 2).clamp(POLL_MIN, POLL_MAX);
            self.events.forget_pending();
            for pump in self.all_pumps() {
                pump.poll_pending();
            }
        }
        if self.polling.next_discovery.is_none_or(|at| at <= now) {
            self.discover();
            let is_wanted = self.all_pumps().any(|pump| pump.can_grow());
            self.polling.next_discovery = is_wanted.then(|| now + DISCOVERY_INTERVAL);
        }
        self.watch_idleness(now);
        // How a split entered is logged by a checkpoint, unless that is on its way.
        let is_logging = self.flight.as_ref().is_some_and(|flight| flight.is_checkpoint);
        if !is_logging && self.all_pumps().any(SourcePump::has_entering) {
            self.checkpoints.is_forced = true;
        }
    }

    /// Every reader of every live job.
    pub(crate) fn all_pumps(&self) -> impl Iterator<Item = &SourcePump> {
        self.jobs.values().filter(|job| job.is_live()).flat_map(|job| {
            let own = job.backfills.iter().map(|backfill| &backfill.pump);
            job.pump.iter().chain(own).map(AsRef::as_ref)
        })
    }

    /// Looks for new splits.
    pub(crate) fn discover(&mut self) {
        let mut failed = Vec::new();
        for job in self.jobs.values().filter(|job| job.is_live()) {
            if let Some(pump) = job.pump.as_ref().filter(|pump| pump.can_grow())
                && let Err(error) = pump.discover()
            {
                failed.push((job.definition.id, error.to_string()));
            }
        }
        for (job, reason) in failed {
            self.on_failed(job, reason);
        }
    }

    /// A split that becomes idle moves the watermark: that takes a barrier.
    fn watch_idleness(&mut self, now: Instant) {
        let idle_at = self.all_pumps().filter_map(SourcePump::idle_at).min();
        let wait = idle_at.map(|at| at.saturating_sub(self.clock.now()));
        self.polling.next_idle = None;
        match wait {
            Some(wait) if wait <= 0 && self.flight.is_none() => self.events.input(),
            Some(wait) => self.polling.next_idle = Some(now + Duration::from_micros(wait.max(1000) as u64)),
            None => {}
        }
    }
}
