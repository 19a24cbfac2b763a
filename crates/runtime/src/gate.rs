//! The input gate: the receiving end of a task, where barriers align.
//!
//! ```text
//!  lane 0 ─ rows ─ rows ─ ‖5 ─ ░░░░   not read any more: barrier 5 has come here
//!  lane 1 ─ rows ─ rows ─ rows ─ …    read until barrier 5 comes
//! ```
//!
//! **Invariant.** The task sees all rows of epoch N from every lane, then barrier N once, then
//! rows of epoch N + 1.

use std::sync::Arc;

use dataflow::{ChangeBatch, Result, Watermark};

use crate::exchange::{Barrier, Channel, Message};
use crate::scan::Scan;
use crate::side::SideRows;
use crate::source::SourceLane;

/// One sequence of rows and barriers.
pub(crate) enum Lane {
    /// What another task (or the inbox) sends.
    Channel(Arc<Channel>),
    /// A subtask's share of a source.
    Source(SourceLane),
    /// First the stored rows of a relation, then what its job sends.
    Scan(Scan, Arc<Channel>),
    /// First the source from its start, then, from the barrier at which this reader has caught
    /// up, what the source's job sends.
    Backfill(SourceLane, Arc<Channel>),
}

/// What a look at a lane gave.
#[allow(clippy::large_enum_variant, reason = "most are batches, and they are only moved")]
pub(crate) enum LaneEvent {
    Batch(ChangeBatch),
    Barrier(Barrier),
    /// Nothing now; the task will be woken.
    Pending,
}

struct GateLane {
    /// Which input of the chain's first operator it feeds.
    input: usize,
    lane: Lane,
    /// The barrier it has delivered and the others have not yet.
    barrier: Option<Barrier>,
}

/// All lanes of a task.
pub(crate) struct InputGate {
    lanes: Vec<GateLane>,
    inputs: usize,
    /// Where the next look begins, so that no lane starves another.
    next: usize,
}

/// What the task does next.
#[allow(clippy::large_enum_variant, reason = "most are batches, and they are only moved")]
pub(crate) enum GateEvent {
    /// Rows of an input.
    Batch(usize, ChangeBatch),
    /// All lanes have delivered the barrier; with the watermark of each input.
    Barrier(Barrier, Vec<Watermark>),
    /// Nothing now; the task will be woken.
    Pending,
}

impl InputGate {
    /// A gate over lanes with their input numbers.
    pub(crate) fn new(lanes: Vec<(usize, Lane)>) -> Self {
        let inputs = lanes.iter().map(|(input, _)| input + 1).max().unwrap_or(0);
        let lanes = lanes.into_iter().map(|(input, lane)| GateLane { input, lane, barrier: None }).collect();
        Self { lanes, inputs, next: 0 }
    }

    /// Whether rows of a stored relation are being read.
    pub(crate) fn is_scanning(&self) -> bool {
        self.lanes.iter().any(|lane| matches!(lane.lane, Lane::Scan(..)))
    }

    /// Looks for rows or an aligned barrier. Errors of a source go to `side`.
    pub(crate) fn poll(&mut self, side: &mut Vec<SideRows>) -> Result<GateEvent> {
        let count = self.lanes.len();
        for turn in 0..count {
            let idx = (self.next + turn) % count;
            let lane = &mut self.lanes[idx];
            if lane.barrier.is_some() {
                continue;
            }
            match lane.lane.poll(side)? {
                LaneEvent::Batch(batch) => {
                    self.next = (idx + 1) % count;
                    return Ok(GateEvent::Batch(lane.input, batch));
                }
                LaneEvent::Barrier(barrier) => lane.barrier = Some(barrier),
                LaneEvent::Pending => {}
            }
        }
        if self.lanes.iter().all(|lane| lane.barrier.is_some()) {
            return Ok(self.align());
        }
        Ok(GateEvent::Pending)
    }

    fn align(&mut self) -> GateEvent {
        let mut watermarks = vec![Watermark::MAX; self.inputs];
        let mut aligned: Option<Barrier> = None;
        for lane in &mut self.lanes {
            if let Some(barrier) = lane.barrier.take() {
                watermarks[lane.input] = watermarks[lane.input].min(barrier.watermark);
                assert!(aligned.as_ref().is_none_or(|other| other.epoch == barrier.epoch));
                aligned = Some(barrier);
            }
        }
        match aligned {
            Some(barrier) => GateEvent::Barrier(barrier, watermarks),
            None => GateEvent::Pending,
        }
    }
}

impl Lane {
    fn poll(&mut self, side: &mut Vec<SideRows>) -> Result<LaneEvent> {
        match self {
            Self::Channel(channel) => Ok(match channel.receive() {
                Some(Message::Batch(batch)) => LaneEvent::Batch(batch),
                Some(Message::Barrier(barrier)) => LaneEvent::Barrier(barrier),
                None => LaneEvent::Pending,
            }),
            Self::Source(source) => source.poll(side),
            Self::Scan(scan, channel) => {
                if let Some(batch) = scan.next_batch()? {
                    return Ok(LaneEvent::Batch(batch));
                }
                *self = Self::Channel(Arc::clone(channel));
                self.poll(side)
            }
            Self::Backfill(source, channel) => {
                let event = source.poll(side)?;
                if matches!(event, LaneEvent::Barrier(_)) && source.has_caught_up() {
                    *self = Self::Channel(Arc::clone(channel));
                }
                Ok(event)
            }
        }
    }
}
