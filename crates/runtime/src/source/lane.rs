//! One subtask's share of a source: claims chunks, decodes them, stamps their rows.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, UInt64Array};
use arrow::compute;
use dataflow::{ChangeBatch, Chunk, Result, RowOrigin, Watermark};
use state::Epoch;

use super::event_time::{TimedRows, refused_rows, stamp, time_rows};
use super::pump::{Claim, Next, SourcePump, Stamp};
use crate::gate::LaneEvent;
use crate::side::SideRows;

/// A decoded chunk that waits for the watermark of the chunks before it.
struct Decoded {
    claim: Claim,
    timed: TimedRows,
    /// Greatest watermark its rows propose.
    proposed: i64,
}

/// One subtask's reading end.
pub(crate) struct SourceLane {
    pump: Arc<SourcePump>,
    lane: usize,
    /// Epoch of the last barrier emitted.
    epoch: Epoch,
    decoded: Option<Decoded>,
    has_caught_up: bool,
}

impl SourceLane {
    /// A lane that begins behind barrier `epoch`.
    pub(crate) fn new(pump: Arc<SourcePump>, lane: usize, epoch: Epoch) -> Self {
        Self { pump, lane, epoch, decoded: None, has_caught_up: false }
    }

    /// Whether the last barrier was the one at which a backfill's reader stands where the shared
    /// one does.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.has_caught_up
    }

    pub(crate) fn poll(&mut self, side: &mut Vec<SideRows>) -> Result<LaneEvent> {
        loop {
            if let Some(decoded) = self.decoded.take() {
                let Some(stamp) = self.pump.stamp(&decoded.claim, decoded.proposed, self.lane) else {
                    self.decoded = Some(decoded);
                    return Ok(LaneEvent::Pending);
                };
                let batch = stamped_batch(decoded, &stamp);
                if batch.is_empty() {
                    continue;
                }
                return Ok(LaneEvent::Batch(batch));
            }
            match self.pump.next(self.lane, self.epoch)? {
                Next::Barrier { barrier, has_caught_up } => {
                    self.epoch = barrier.epoch;
                    self.has_caught_up = has_caught_up;
                    return Ok(LaneEvent::Barrier(barrier));
                }
                Next::Nothing => return Ok(LaneEvent::Pending),
                Next::Claim(claim) => self.decoded = Some(self.decode(claim, side)?),
            }
        }
    }

    fn decode(&self, claim: Claim, side: &mut Vec<SideRows>) -> Result<Decoded> {
        let decoded = claim.decoder.decode(&claim.chunk)?;
        let source = self.pump.spec().job;
        if !decoded.errors.is_empty() {
            side.push(SideRows::of_decode_errors(source, claim.number, &decoded.errors)?);
        }
        let mut timed = time_rows(self.pump.spec(), decoded.rows, decoded.positions, claim.now)?;
        if let Some((rows, positions, errors)) = timed.refused.take() {
            let rows = self.with_all_columns(&claim.chunk, rows, &positions)?;
            let rows = refused_rows(rows, positions, claim.number);
            side.push(SideRows::of_refused_rows(source, &rows, &errors)?);
        }
        let proposed = timed.proposals.iter().copied().max().unwrap_or(Watermark::MIN.0);
        Ok(Decoded { claim, timed, proposed })
    }

    /// Refused rows with the columns that no follower reads as well: `$errors` says the same
    /// whoever follows. A record that fails in one of those stays as it is.
    fn with_all_columns(
        &self,
        chunk: &Chunk,
        rows: RecordBatch,
        positions: &Int64Array,
    ) -> Result<RecordBatch> {
        let spec = self.pump.spec();
        let columns: Vec<usize> = (0..spec.schema.fields().len()).collect();
        let whole = spec.source.decoder(&columns)?.decode(chunk)?;
        let place = |position: &i64| whole.positions.values().binary_search(position).ok();
        let places: Option<Vec<usize>> = positions.values().iter().map(place).collect();
        let Some(places) = places else { return Ok(rows) };
        let places = UInt64Array::from_iter_values(places.into_iter().map(|place| place as u64));
        Ok(compute::take_record_batch(&whole.rows, &places)?)
    }
}

fn stamped_batch(decoded: Decoded, stamped: &Stamp) -> ChangeBatch {
    let Decoded { claim, timed, .. } = decoded;
    let rows = timed.rows.num_rows();
    let mut batch = ChangeBatch::append(timed.rows);
    if claim.stamp_origin {
        let watermarks = if timed.proposals.is_empty() {
            Int64Array::from_value(Watermark::MIN.0, rows)
        } else {
            let positions = timed.positions.values();
            Int64Array::from(stamp(stamped.prefix, &timed.proposals, positions, &stamped.raises).0)
        };
        batch.origin = Some(RowOrigin {
            splits: Int64Array::from_value(claim.number, rows),
            positions: timed.positions,
            ordinals: Int64Array::from_value(0, rows),
            watermarks,
        });
    }
    batch
}
