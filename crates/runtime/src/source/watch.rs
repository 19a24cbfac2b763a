//! Looking at a source between barriers: its splits, what is new, what is idle, and how far it
//! reaches (for FLUSH).

use dataflow::{Result, Split};
use state::Epoch;

use super::pump::{PumpState, SourcePump};
use super::splits::{SplitState, SplitStatus};

/// What a split has to be read up to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitReach {
    number: i64,
    end: i64,
    /// Looks that had found nothing when this was asked.
    misses: u64,
}

/// What a source has to be read up to.
pub(crate) type Reach = Vec<SplitReach>;

impl SourcePump {
    /// Lists the splits, once, when the first follower starts.
    pub(crate) fn pin(&self) -> Result<()> {
        if self.state.lock().is_pinned {
            return Ok(());
        }
        let splits = self.spec.source.splits()?;
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.is_pinned = true;
        let is_bounded = self.spec.source.is_bounded();
        for split in splits {
            let number = self.number(state.splits.len());
            // In an unbounded source the end says only how far the split reaches now.
            let split = Split { end: split.end.filter(|_| is_bounded), ..split };
            state.splits.push(SplitState::new(number, split, now));
        }
        Ok(())
    }

    /// Looks again at splits that had nothing.
    pub(crate) fn poll_pending(&self) {
        let mut state = self.state.lock();
        let mut any = false;
        for split in &mut state.splits {
            if split.status == SplitStatus::Pending {
                split.status = SplitStatus::Ready;
                any = true;
            }
        }
        drop(state);
        if any {
            self.wake_lane(0);
        }
    }

    /// Wall time at which the next split becomes idle.
    pub(crate) fn idle_at(&self) -> Option<i64> {
        let timeout = self.spec.idle_timeout?;
        let state = self.state.lock();
        let waiting = state.splits.iter().filter(|split| split.is_silent && !split.is_idle);
        waiting.map(|split| split.last_input.saturating_add(timeout)).min().filter(|_| state.is_active)
    }

    /// Adds the splits that have come up since (unbounded sources only). They begin at the
    /// source's watermark of the last barrier.
    pub(crate) fn discover(&self) -> Result<()> {
        let listed = self.spec.source.splits()?;
        let now = self.clock.now();
        let mut state = self.state.lock();
        let watermark = state.watermark;
        for split in listed {
            if state.splits.iter().any(|known| known.split.name == split.name) {
                continue;
            }
            let number = self.number(state.splits.len());
            // Where it ends now is only how far it reaches now.
            let mut found = SplitState::new(number, Split { end: None, ..split }, now);
            found.enter(watermark);
            tracing::info!(source = %self.spec.name, split = %found.split.name, number, "split found");
            state.splits.push(found);
        }
        Ok(())
    }

    /// Whether a split waits for a checkpoint that logs how it entered.
    pub(crate) fn has_entering(&self) -> bool {
        self.state.lock().splits.iter().any(|split| split.status == SplitStatus::Entering(None))
    }

    /// A checkpoint is durable: the splits it has logged may be read.
    pub(crate) fn on_durable(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        let mut any = false;
        for split in &mut state.splits {
            if matches!(split.status, SplitStatus::Entering(Some(logged)) if logged <= epoch) {
                split.status = SplitStatus::Ready;
                any = true;
            }
        }
        drop(state);
        if any {
            self.wake_all();
        }
    }

    /// How far every split reaches now.
    pub(crate) fn reach(&self) -> Result<Reach> {
        if !self.is_active() {
            return Ok(Reach::default());
        }
        let is_bounded = self.spec.source.is_bounded();
        let listed = if is_bounded { Vec::new() } else { self.spec.source.splits()? };
        let state = self.state.lock();
        let reach = state.splits.iter().map(|split| {
            let listed = listed.iter().find(|listed| listed.name == split.split.name);
            let end = match listed {
                // A split that cannot say (an endless generator) reaches as far as it was read.
                Some(listed) => listed.end.unwrap_or(split.position),
                // A bounded split is read until it says that it has ended, because that moves the
                // watermark, and a look that finds nothing does not count.
                None if is_bounded => i64::MAX,
                None => split.position,
            };
            let misses = if is_bounded { u64::MAX } else { split.misses };
            SplitReach { number: split.number, end, misses }
        });
        Ok(reach.collect())
    }

    /// Whether everything up to `reach` has been claimed. A split that ends in the middle of a
    /// record never gets to its end: a look that found nothing more is enough.
    pub(crate) fn has_reached(&self, reach: &[SplitReach]) -> bool {
        let state = self.state.lock();
        reach.iter().all(|target| {
            let split = state.splits.iter().find(|split| split.number == target.number);
            split.is_none_or(|split| {
                split.position >= target.end
                    || split.status == SplitStatus::Ended
                    || split.misses > target.misses
            })
        })
    }
}

impl PumpState {
    /// Splits that have been silent for too long no longer count.
    pub(super) fn update_idle(&mut self, timeout: Option<i64>, now: i64) {
        let Some(timeout) = timeout else { return };
        for split in &mut self.splits {
            split.is_idle |= split.is_silent && now.saturating_sub(split.last_input) >= timeout;
        }
    }
}
