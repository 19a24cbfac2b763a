//! When the next barrier is due.
//!
//! | reason | spacing from the last barrier |
//! |---|---|
//! | a session waits | 2 ms |
//! | first rows after a pause | half of the shortest spacing from those rows |
//! | rows under load | 20 times the cost of a barrier, between `epoch_min` and `epoch_max` |
//! | an operator's wake time, a checkpoint that is due | when it is due |
//! | nothing | never |

use std::time::{Duration, Instant};

use crate::RuntimeOptions;

/// Shortest time between two barriers that sessions ask for.
const URGENT_SPACING: Duration = Duration::from_millis(2);
/// A barrier may cost this share of the time.
const COST_SHARE: u32 = 20;

/// What the coordinator knows when it asks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Demand {
    /// Rows have come since the last barrier.
    pub(crate) input: bool,
    /// A session waits for a barrier.
    pub(crate) urgent: bool,
    /// Something is not in a checkpoint yet, and a checkpoint can be taken now.
    pub(crate) checkpoint: bool,
    /// Until an operator wants an epoch to end.
    pub(crate) wake_in: Option<Duration>,
}

/// Measures and decides.
#[derive(Debug)]
pub(crate) struct Pacing {
    epoch_min: Duration,
    epoch_max: Duration,
    checkpoint_interval: Duration,
    last_barrier: Instant,
    last_checkpoint: Instant,
    first_input: Option<Instant>,
    spacing: Duration,
}

impl Pacing {
    pub(crate) fn new(options: &RuntimeOptions, now: Instant) -> Self {
        Self {
            epoch_min: options.epoch_min,
            epoch_max: options.epoch_max.max(options.epoch_min),
            checkpoint_interval: options.checkpoint_interval,
            last_barrier: now,
            last_checkpoint: now,
            first_input: None,
            spacing: options.epoch_min,
        }
    }

    /// Rows have been seen.
    pub(crate) fn on_input(&mut self, now: Instant) {
        self.first_input.get_or_insert(now);
    }

    pub(crate) fn on_barrier(&mut self, now: Instant, is_checkpoint: bool) {
        self.last_barrier = now;
        self.first_input = None;
        if is_checkpoint {
            self.last_checkpoint = now;
        }
    }

    /// The end of an epoch took so much of each engine thread.
    pub(crate) fn on_cost(&mut self, cost: Duration) {
        self.spacing = (cost * COST_SHARE).clamp(self.epoch_min, self.epoch_max);
    }

    pub(crate) fn is_checkpoint_due(&self, now: Instant) -> bool {
        now.duration_since(self.last_checkpoint) >= self.checkpoint_interval
    }

    /// When the next barrier is due; `None`: not until something happens.
    pub(crate) fn due(&self, now: Instant, demand: Demand) -> Option<Instant> {
        let urgent = demand.urgent.then(|| self.last_barrier + URGENT_SPACING);
        let input = self.first_input.filter(|_| demand.input).map(|first| {
            let is_after_pause = first.duration_since(self.last_barrier) >= self.epoch_min;
            if is_after_pause { first + self.epoch_min / 2 } else { self.last_barrier + self.spacing }
        });
        let checkpoint = demand.checkpoint.then(|| self.last_checkpoint + self.checkpoint_interval);
        let wake = demand.wake_in.map(|wait| now + wait);
        [urgent, input, checkpoint, wake].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::instant;

    fn pacing(now: Instant) -> Pacing {
        let options = RuntimeOptions {
            parallelism: 1,
            memory: 0,
            epoch_min: Duration::from_millis(10),
            epoch_max: Duration::from_millis(200),
            checkpoint_interval: Duration::from_secs(1),
        };
        Pacing::new(&options, now)
    }

    #[test]
    fn an_idle_database_has_no_next_barrier() {
        let now = instant();
        assert_eq!(pacing(now).due(now, Demand::default()), None);
    }

    #[test]
    fn the_first_row_after_a_pause_waits_half_as_long() {
        let now = instant();
        let mut pacing = pacing(now);
        let later = now + Duration::from_secs(9);
        pacing.on_input(later);
        let due = pacing.due(later, Demand { input: true, ..Demand::default() });
        assert_eq!(due, Some(later + Duration::from_millis(5)));
    }

    #[test]
    fn costly_barriers_are_further_apart_up_to_the_longest_epoch() {
        let now = instant();
        let mut pacing = pacing(now);
        let demand = Demand { input: true, ..Demand::default() };
        pacing.on_input(now);
        pacing.on_cost(Duration::from_millis(3));
        assert_eq!(pacing.due(now, demand), Some(now + Duration::from_millis(60)));
        pacing.on_cost(Duration::from_millis(30));
        assert_eq!(pacing.due(now, demand), Some(now + Duration::from_millis(200)));
    }

    #[test]
    fn a_session_does_not_wait_for_the_spacing() {
        let now = instant();
        let due = pacing(now).due(now, Demand { urgent: true, input: true, ..Demand::default() });
        assert_eq!(due, Some(now + Duration::from_millis(2)));
    }
}
