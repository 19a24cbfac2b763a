//! Cuts: where a reader stands at a barrier, and how a backfill's reader meets the shared one.
//!
//! ```text
//!  shared   ──────────‖ cut of 7 ────────‖ cut of 8 ───────────‖ cut of 9
//!  backfill ───────► limit: cut of 7 ──► limit: cut of 8 … has it been reached when barrier 9
//!                                        comes, it reads on to the cut of 9 exactly, and from
//!                                        there on its job receives what the shared one reads
//! ```

use dataflow::Split;

use super::pump::{Closing, PumpState, SourcePump};
use super::splits::{Raise, SplitState, SplitStatus};
use crate::exchange::Barrier;

/// Where a reader stands in a split at a barrier, for the readers that have to meet it there.
#[derive(Debug, Clone)]
pub(crate) struct SplitCut {
    number: i64,
    split: Split,
    position: i64,
    ended: bool,
    raises: Vec<Raise>,
}

impl SourcePump {
    /// Lets a barrier in: what has been claimed is in front of it. Returns the cut, for readers
    /// that have to meet this one there.
    pub(crate) fn inject(&self, barrier: Barrier) -> Vec<SplitCut> {
        let mut state = self.state.lock();
        state.closing = Some(Closing { barrier, catches_up: false });
        let cut = state.cut();
        self.seal_if_done(&mut state);
        cut
    }

    /// Lets a barrier into a backfill's reader. `cut`: where the shared reader is at this
    /// barrier; with `catches_up` the reader first goes on to exactly there.
    pub(crate) fn inject_backfill(&self, barrier: Barrier, cut: &[SplitCut], catches_up: bool) {
        let mut state = self.state.lock();
        state.closing = Some(Closing { barrier, catches_up });
        self.set_limits(&mut state, cut);
        self.seal_if_done(&mut state);
        drop(state);
        self.wake_all();
    }

    /// Tells a backfill's reader how far it may go for now.
    pub(crate) fn set_cut(&self, cut: &[SplitCut]) {
        self.set_limits(&mut self.state.lock(), cut);
        self.wake_all();
    }

    fn set_limits(&self, state: &mut PumpState, cut: &[SplitCut]) {
        state.is_pinned = true;
        for target in cut {
            let known = state.splits.iter().position(|split| split.number == target.number);
            let idx = known.unwrap_or_else(|| {
                state.splits.push(SplitState::new(target.number, target.split.clone(), self.clock.now()));
                state.splits.len() - 1
            });
            let split = &mut state.splits[idx];
            split.raises.clone_from(&target.raises);
            if split.limit != Some(target.position) {
                split.limit = Some(target.position);
                split.reader = None;
            }
            if split.status != SplitStatus::Ended {
                let is_there = split.position >= target.position;
                split.status = match (is_there, target.ended) {
                    (true, true) => SplitStatus::Ended,
                    (true, false) => SplitStatus::AtLimit,
                    (false, _) => SplitStatus::Ready,
                };
            }
        }
        // A split that ends at its limit is over when the shared reader says so: at the seal.
        state.ends_at_limit(cut);
    }

    /// Whether a backfill's reader has read everything up to the last cut it was told.
    pub(crate) fn is_at_cut(&self) -> bool {
        let state = self.state.lock();
        state.in_flight == 0 && state.is_at_limits()
    }

    /// The cut as it is now, between barriers.
    pub(crate) fn current_cut(&self) -> Vec<SplitCut> {
        self.state.lock().cut()
    }
}

impl PumpState {
    pub(super) fn cut(&self) -> Vec<SplitCut> {
        let cut = self.splits.iter().map(|split| SplitCut {
            number: split.number,
            split: split.split.clone(),
            position: split.position,
            ended: split.status == SplitStatus::Ended,
            raises: split.raises.clone(),
        });
        cut.collect()
    }

    pub(super) fn is_at_limits(&self) -> bool {
        self.splits.iter().all(|split| matches!(split.status, SplitStatus::AtLimit | SplitStatus::Ended))
    }

    /// Remembers which splits are over once they are at their limit.
    fn ends_at_limit(&mut self, cut: &[SplitCut]) {
        for split in &mut self.splits {
            let target = cut.iter().find(|target| target.number == split.number);
            if target.is_some_and(|target| target.ended) {
                split.split.end = split.limit;
            }
        }
    }

    pub(super) fn end_at_limits(&mut self) {
        for split in &mut self.splits {
            if split.status == SplitStatus::AtLimit
                && split.split.end.is_some_and(|end| split.position >= end)
            {
                split.status = SplitStatus::Ended;
            }
        }
    }
}
