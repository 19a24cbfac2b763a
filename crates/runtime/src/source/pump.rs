//! The pump: one reader of a source, shared by the lanes of all subtasks.
//!
//! ```text
//!  Reading ── inject ──► Closing ── every claimed chunk stamped: seal ──► Sealed = Reading
//!  (claims)              (no claims; a backfill that ends here:            (each lane emits the
//!                         claims up to the shared reader's cut)             barrier, then claims)
//! ```
//!
//! **Invariant.** A sealed barrier's cut is a position of every split such that exactly the rows
//! before it were emitted in front of the barrier; its watermark is known, because they are all
//! stamped.

use std::sync::{Arc, OnceLock};

use dataflow::{Chunk, DataflowError, Decoder, ReadOutcome, Result, SourceSpec, Watermark};
use datafusion::physical_expr::utils::collect_columns;
use parking_lot::{Mutex, MutexGuard};
use state::Epoch;

use super::splits::{Raise, SplitState, SplitStatus};
use crate::RuntimeError;
use crate::clock::Clock;
use crate::events::Events;
use crate::exchange::{Barrier, Wake};
use crate::meta::{MetaWrite, ValueReader, ValueWriter};

const HEAD_VERSION: u8 = 1;

/// Whose reader a pump is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PumpRole {
    /// The one all caught-up followers share.
    Shared,
    /// One follower's own, until it has caught up.
    Backfill,
}

/// A chunk claimed by a lane.
pub(super) struct Claim {
    split: usize,
    /// Which of the split's chunks this is.
    order: u64,
    pub(super) number: i64,
    pub(super) chunk: Chunk,
    pub(super) decoder: Arc<dyn Decoder>,
    pub(super) stamp_origin: bool,
    /// Wall time of the claim: the ingestion time of its rows.
    pub(super) now: i64,
}

/// What the chunks before a claimed one came to.
pub(super) struct Stamp {
    pub(super) prefix: i64,
    pub(super) raises: Vec<Raise>,
}

/// What a lane does next.
pub(super) enum Next {
    Barrier {
        barrier: Barrier,
        has_caught_up: bool,
    },
    Claim(Claim),
    /// Nothing now; the lane will be woken.
    Nothing,
}

/// One reader of a source.
pub(crate) struct SourcePump {
    pub(super) spec: Arc<SourceSpec>,
    pub(super) role: PumpRole,
    /// Where its `meta` entries are.
    meta_prefix: String,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: Arc<Events>,
    chunk_bytes: usize,
    lanes: OnceLock<Vec<Arc<dyn Wake>>>,
    pub(super) state: Mutex<PumpState>,
}

pub(super) struct PumpState {
    /// Whether the splits have been listed.
    pub(super) is_pinned: bool,
    /// Whether anybody wants rows.
    pub(super) is_active: bool,
    pub(super) splits: Vec<SplitState>,
    decoder: Option<Arc<dyn Decoder>>,
    /// What the decoder decodes.
    columns: Vec<usize>,
    stamp_origin: bool,
    /// Chunks claimed and not stamped yet.
    pub(super) in_flight: usize,
    /// The barrier that waits for `in_flight` to become 0.
    pub(super) closing: Option<Closing>,
    sealed: Option<Closing>,
    /// Watermark of the last sealed barrier.
    pub(super) watermark: Watermark,
    /// Encoded entries of the last sealed checkpoint barrier.
    checkpoint: Vec<MetaWrite>,
}

#[derive(Clone)]
pub(super) struct Closing {
    pub(super) barrier: Barrier,
    /// Whether a backfill's reader goes on to the shared reader's cut first.
    pub(super) catches_up: bool,
}

impl SourcePump {
    pub(crate) fn new(
        spec: Arc<SourceSpec>,
        role: PumpRole,
        meta_prefix: String,
        clock: Arc<dyn Clock>,
        events: Arc<Events>,
        chunk_bytes: usize,
    ) -> Self {
        let state = PumpState {
            is_pinned: false,
            is_active: false,
            splits: Vec::new(),
            decoder: None,
            columns: Vec::new(),
            stamp_origin: false,
            in_flight: 0,
            closing: None,
            sealed: None,
            watermark: Watermark::MIN,
            checkpoint: Vec::new(),
        };
        let state = Mutex::new(state);
        Self { spec, role, meta_prefix, clock, events, chunk_bytes, lanes: OnceLock::new(), state }
    }

    pub(crate) fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    pub(crate) fn shared_spec(&self) -> &Arc<SourceSpec> {
        &self.spec
    }

    /// Names the tasks that read through it, by subtask.
    pub(crate) fn set_lanes(&self, lanes: Vec<Arc<dyn Wake>>) {
        let _ = self.lanes.set(lanes);
    }

    pub(super) fn wake_lane(&self, lane: usize) {
        if let Some(lane) = self.lanes.get().and_then(|lanes| lanes.get(lane)) {
            lane.wake();
        }
    }

    /// Lets every lane look again.
    pub(crate) fn wake_all(&self) {
        for lane in self.lanes.get().into_iter().flatten() {
            lane.wake();
        }
    }

    /// Whether rows have passed (or may at any moment): then a new follower has to read what was
    /// before it.
    pub(crate) fn has_begun(&self) -> bool {
        let state = self.state.lock();
        state.is_active || state.splits.iter().any(|split| split.position != split.split.start)
    }

    pub(super) fn number(&self, index: usize) -> i64 {
        i64::from(self.spec.job.0) << 32 | index as i64
    }

    /// Sets which columns are decoded and whether rows carry their origin, from the next chunk
    /// on; no column at all and `is_active` false: nobody reads.
    pub(crate) fn set_demand(&self, is_active: bool, columns: &[usize], stamp_origin: bool) -> Result<()> {
        let mut columns = columns.to_vec();
        if let Some(watermark) = &self.spec.watermark {
            columns.push(watermark.column);
            columns.extend(collect_columns(&watermark.expression).iter().map(|column| column.index()));
        }
        columns.sort_unstable();
        columns.dedup();
        let mut state = self.state.lock();
        if is_active && (state.decoder.is_none() || state.columns != columns) {
            state.decoder = Some(self.spec.source.decoder(&columns)?);
            state.columns = columns;
        }
        state.stamp_origin = stamp_origin;
        let begins = is_active && !std::mem::replace(&mut state.is_active, is_active);
        drop(state);
        if begins {
            self.wake_all();
        }
        Ok(())
    }

    /// Whether anybody wants rows.
    pub(crate) fn is_active(&self) -> bool {
        self.state.lock().is_active
    }

    /// Whether new splits may come up that somebody wants.
    pub(crate) fn can_grow(&self) -> bool {
        self.role == PumpRole::Shared && !self.spec.source.is_bounded() && self.is_active()
    }

    /// What the last sealed checkpoint barrier has to store.
    pub(crate) fn take_checkpoint(&self) -> Vec<MetaWrite> {
        std::mem::take(&mut self.state.lock().checkpoint)
    }

    /// Keys of all its entries, to delete them.
    pub(crate) fn meta_keys(&self) -> Vec<Vec<u8>> {
        let state = self.state.lock();
        let splits = state.splits.iter().enumerate().map(|(idx, _)| self.split_key(idx));
        splits.chain([self.head_key()]).collect()
    }

    fn split_key(&self, index: usize) -> Vec<u8> {
        format!("{}split/{index:08x}", self.meta_prefix).into_bytes()
    }

    fn head_key(&self) -> Vec<u8> {
        format!("{}head", self.meta_prefix).into_bytes()
    }

    /// Restores what a checkpoint stored. Returns whether there was anything.
    pub(crate) fn restore(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<bool, RuntimeError> {
        let now = self.clock.now();
        let mut state = self.state.lock();
        for (key, bytes) in entries {
            if *key == self.head_key() {
                let mut value = ValueReader::new(key, bytes, HEAD_VERSION)?;
                state.is_pinned = value.int()? == 1;
                state.watermark = Watermark(value.int()?);
            } else {
                state.splits.push(SplitState::decode(key, bytes, now)?);
            }
        }
        let watermark = state.watermark.0;
        for split in state.splits.iter_mut().filter(|_| self.role == PumpRole::Shared) {
            split.is_idle = split.status != SplitStatus::Ended && split.watermark < watermark;
        }
        Ok(!entries.is_empty())
    }

    pub(super) fn next(&self, lane: usize, emitted: Epoch) -> Result<Next> {
        let mut state = self.state.lock();
        if let Some(sealed) = &state.sealed
            && sealed.barrier.epoch > emitted
        {
            return Ok(Next::Barrier { barrier: sealed.barrier.clone(), has_caught_up: sealed.catches_up });
        }
        let may_claim = match &state.closing {
            Some(closing) => closing.catches_up,
            None => state.is_active && !self.events.gauge.is_full(),
        };
        if !may_claim {
            return Ok(Next::Nothing);
        }
        let claim = self.claim(&mut state)?;
        // A catching-up reader that finds nothing more to claim may be the one to seal.
        self.seal_if_done(&mut state);
        if claim.is_none()
            && let Some(sealed) = &state.sealed
            && sealed.barrier.epoch > emitted
        {
            return Ok(Next::Barrier { barrier: sealed.barrier.clone(), has_caught_up: sealed.catches_up });
        }
        let more_to_claim = state.splits.iter().any(|split| split.status == SplitStatus::Ready);
        drop(state);
        match claim {
            Some(claim) => {
                self.events.input();
                if more_to_claim {
                    let lanes = self.lanes.get().map_or(1, Vec::len);
                    self.wake_lane((lane + 1) % lanes);
                }
                Ok(Next::Claim(claim))
            }
            None => Ok(Next::Nothing),
        }
    }

    /// Reads the next chunk of the split that is furthest behind in event time.
    fn claim(&self, state: &mut MutexGuard<'_, PumpState>) -> Result<Option<Claim>> {
        let Some(decoder) = state.decoder.clone() else { return Ok(None) };
        let (stamp_origin, source_watermark) = (state.stamp_origin, state.watermark);
        loop {
            let ready = state.splits.iter_mut().enumerate();
            let ready = ready.filter(|(_, split)| split.status == SplitStatus::Ready);
            let Some((idx, split)) = ready.min_by_key(|(_, split)| split.watermark) else {
                self.events.caught_up();
                if state.splits.iter().any(|split| split.status == SplitStatus::Pending) {
                    self.events.pending();
                }
                return Ok(None);
            };
            match split.read(&self.spec, self.chunk_bytes)? {
                ReadOutcome::Chunk(_) if split.is_idle && source_watermark.0 > split.watermark => {
                    split.enter(source_watermark);
                    self.events.input();
                }
                ReadOutcome::Chunk(chunk) => {
                    if split.limit.is_some_and(|limit| chunk.end > limit) {
                        let name = &split.split.name;
                        let message =
                            format!("the reader of split \"{name}\" went past the end it was given");
                        return Err(DataflowError::Internal(message));
                    }
                    let now = self.clock.now();
                    split.on_chunk(&chunk, now);
                    let claim = Claim {
                        split: idx,
                        order: split.claimed - 1,
                        number: split.number,
                        chunk,
                        decoder,
                        stamp_origin,
                        now,
                    };
                    state.in_flight += 1;
                    return Ok(Some(claim));
                }
                ReadOutcome::Pending => {
                    split.status = SplitStatus::Pending;
                    split.misses += 1;
                    split.is_silent = true;
                }
                ReadOutcome::End => {
                    split.reader = None;
                    split.is_dirty = true;
                    split.is_silent = false;
                    split.status = match (self.role, split.limit) {
                        (PumpRole::Backfill, Some(_)) => SplitStatus::AtLimit,
                        (PumpRole::Backfill, None) | (PumpRole::Shared, _) => SplitStatus::Ended,
                    };
                    // The end of a split may be the end of the source, which a barrier must tell.
                    self.events.input();
                }
            }
        }
    }

    /// The watermark of the chunks before a claimed one, once they are all stamped; `proposed`
    /// then counts for those behind it. `None`: not yet, the lane will be woken.
    pub(super) fn stamp(&self, claim: &Claim, proposed: i64, lane: usize) -> Option<Stamp> {
        let mut state = self.state.lock();
        let split = &mut state.splits[claim.split];
        let is_ordered = self.spec.watermark.is_some();
        if is_ordered && split.stamped != claim.order {
            split.waiting.push((claim.order, lane));
            return None;
        }
        let prefix = split.watermark;
        let raises: Vec<Raise> = split
            .raises
            .iter()
            .filter(|raise| (claim.chunk.start..claim.chunk.end).contains(&raise.position))
            .copied()
            .collect();
        if is_ordered {
            let raised = raises.iter().map(|raise| raise.watermark).max().unwrap_or(Watermark::MIN.0);
            split.watermark = prefix.max(proposed).max(raised);
        }
        split.stamped += 1;
        let stamped = split.stamped;
        let waiting = split.waiting.iter().position(|(order, _)| *order == stamped);
        let waiting = waiting.map(|idx| split.waiting.swap_remove(idx).1);
        state.in_flight -= 1;
        self.seal_if_done(&mut state);
        if self.role == PumpRole::Backfill && state.in_flight == 0 && state.is_at_limits() {
            self.events.caught_up();
        }
        drop(state);
        if let Some(lane) = waiting {
            self.wake_lane(lane);
        }
        Some(Stamp { prefix, raises })
    }

    pub(super) fn seal_if_done(&self, state: &mut PumpState) {
        let Some(closing) = &state.closing else { return };
        if state.in_flight > 0 || (closing.catches_up && !state.is_at_limits()) {
            return;
        }
        let Some(mut closing) = state.closing.take() else { return };
        state.update_idle(self.spec.idle_timeout, closing.barrier.now);
        if closing.catches_up {
            state.end_at_limits();
        }
        state.watermark = state.watermark.max(state.current_watermark(&self.spec));
        closing.barrier.watermark = state.watermark;
        if closing.barrier.is_checkpoint {
            self.encode_checkpoint(state, closing.barrier.epoch);
        }
        state.sealed = Some(closing);
        self.wake_all();
    }

    fn encode_checkpoint(&self, state: &mut PumpState, epoch: Epoch) {
        let head =
            ValueWriter::new(HEAD_VERSION).int(i64::from(state.is_pinned)).int(state.watermark.0).finish();
        let mut writes = vec![(self.head_key(), Some(head))];
        for (idx, split) in state.splits.iter_mut().enumerate() {
            if split.status == SplitStatus::Entering(None) {
                split.status = SplitStatus::Entering(Some(epoch));
            }
            if std::mem::take(&mut split.is_dirty) {
                writes.push((self.split_key(idx), Some(split.encode())));
            }
        }
        state.checkpoint = writes;
    }
}

impl SplitState {
    fn read(&mut self, spec: &SourceSpec, bytes_max: usize) -> Result<ReadOutcome> {
        if self.reader.is_none() {
            self.reader = Some(spec.source.open(&self.to_open(), self.position)?);
        }
        match &mut self.reader {
            Some(reader) => reader.read(bytes_max),
            None => Ok(ReadOutcome::Pending),
        }
    }

    fn on_chunk(&mut self, chunk: &Chunk, now: i64) {
        self.is_idle = false;
        self.is_silent = false;
        self.position = chunk.end;
        self.claimed += 1;
        self.last_input = now;
        self.is_dirty = true;
        if self.limit.is_some_and(|limit| self.position >= limit) {
            self.status = SplitStatus::AtLimit;
            self.reader = None;
        }
    }
}

impl PumpState {
    /// The minimum over the splits that still count.
    fn current_watermark(&self, spec: &SourceSpec) -> Watermark {
        let has_ended = self.splits.iter().all(|split| split.status == SplitStatus::Ended);
        if self.is_pinned && has_ended && spec.source.is_bounded() {
            return Watermark::MAX;
        }
        let counting =
            self.splits.iter().filter(|split| split.status != SplitStatus::Ended && !split.is_idle);
        counting.map(|split| Watermark(split.watermark)).min().unwrap_or(Watermark::MIN)
    }
}
