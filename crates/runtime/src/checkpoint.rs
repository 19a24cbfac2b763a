//! Putting a checkpoint together, what follows when it is durable, and memory.
//!
//! **Invariant.** A checkpoint holds exactly the effect of everything in front of its barrier: the
//! state all tasks handed over at it, the runs published up to it, and the positions, clocks and
//! inbox sequence of its cut.

use dataflow::row_bytes;
use state::{CheckpointWrites, Epoch, KeyGroupRange, TableChanges, TableId};

use crate::coordinator::{Coordinator, Flight};
use crate::exchange::Channel;
use crate::meta::{self, ValueWriter};
use crate::saved::{Saved, VERSION};
use crate::worker::Order;

impl Coordinator {
    /// Hands a checkpoint to the commit thread.
    pub(crate) fn checkpoint(&mut self, flight: &Flight, state: Vec<(TableId, KeyGroupRange, TableChanges)>) {
        let clock = ValueWriter::new(VERSION).int(self.now).finish();
        let applied = self.checkpoints.applied.max(flight.inbox_sequence);
        self.checkpoints.applied = applied;
        let sequence = ValueWriter::new(VERSION).int(applied as i64).finish();
        let mut meta =
            vec![(meta::CLOCK_KEY.to_vec(), Some(clock)), (meta::INBOX_KEY.to_vec(), Some(sequence))];
        self.note_wiping(flight.epoch);
        self.checkpoints.sequence = self.checkpoints.held_sequence.unwrap_or(flight.inbox_sequence);
        for pump in self.all_pumps() {
            meta.extend(pump.take_checkpoint());
        }
        for job in self.jobs.values_mut().filter(|job| job.is_live() && !job.is_saved) {
            // A table that begins again while the inbox is replayed may be behind the others.
            let is_held = job.has_inbox() && flight.inbox_sequence < applied;
            job.is_saved = !is_held;
            let saved = if is_held { Saved::Held } else { Saved::Restored };
            meta.push(saved.entry(job.definition.id, &job.definition.graph));
        }
        meta.append(&mut self.checkpoints.meta);
        let writes = CheckpointWrites {
            epoch: flight.epoch,
            state,
            views: self.store.runs_up_to(flight.epoch),
            meta,
            dropped_tables: std::mem::take(&mut self.checkpoints.dropped_tables),
            inbox_sequence: self.checkpoints.sequence,
        };
        self.checkpoints.committing = Some(flight.epoch);
        self.checkpoints.committing_bytes = commit_bytes(&writes);
        // Never full: the next checkpoint waits for the answer to this one.
        if self.commits.send(writes).is_err() {
            tracing::error!("the commit thread has ended");
        }
    }

    pub(crate) fn on_committed(&mut self, epoch: Epoch) {
        self.checkpoints.committing = None;
        self.checkpoints.committing_bytes = 0;
        self.checkpoints.durable = epoch;
        for pump in self.all_pumps() {
            pump.on_durable(epoch);
        }
        for mailbox in &self.mailboxes {
            mailbox.order(Order::Durable(epoch));
        }
        self.weigh_stored();
    }

    /// Keeps operators, overlays and exchanges within the budget: first clean entries go, then a
    /// checkpoint makes dirty ones clean. Input waits by itself, see [`Gauge`](crate::gauge::Gauge).
    pub(crate) fn watch_memory(&mut self) {
        let dirty: usize = self.jobs.values().map(|job| job.dirty_bytes).sum();
        let clean: usize = self.jobs.values().map(|job| job.clean_bytes).sum();
        let queued: usize =
            self.jobs.values().flat_map(|job| &job.channels).map(|channel| Channel::bytes(channel)).sum();
        let stored = self.weigh_stored();
        let budget = self.options.memory;
        let excess = (dirty + queued + stored + clean).saturating_sub(budget);
        if excess > 0 && clean > 0 {
            let share = excess.min(clean) / self.mailboxes.len() + 1;
            for mailbox in &self.mailboxes {
                mailbox.order(Order::Release(share));
            }
        }
        // What a checkpoint frees. Long before input has to wait: a commit takes memory of its own.
        let staged = dirty + self.store.memory();
        if staged > budget / 8 && self.checkpoints.is_dirty {
            self.checkpoints.is_forced = true;
        }
        if self.events.gauge.is_full() {
            self.checkpoints.is_forced = true;
            tracing::debug!(dirty, stored, queued, budget, "memory is short: input waits for a checkpoint");
        }
    }

    /// Tells the gauge what the overlay and the commit on its way take.
    fn weigh_stored(&self) -> usize {
        let stored = self.store.memory() + self.checkpoints.committing_bytes;
        self.events.gauge.set_stored(stored);
        if self.events.gauge.has_room_again() {
            self.let_input_in();
        }
        stored
    }

    /// Whoever waited for memory looks again.
    pub(crate) fn let_input_in(&self) {
        self.inbox.wake_writers();
        self.all_pumps().for_each(|pump| pump.wake_all());
    }
}

/// What a commit takes for a while: state as columns, everything encoded, and the batch of all of it.
fn commit_bytes(writes: &CheckpointWrites) -> usize {
    let state = writes.state.iter().flat_map(|(_, _, changes)| &changes.puts);
    let views = writes.views.iter().map(|(_, run)| run.memory_size());
    3 * state.map(row_bytes).sum::<usize>() + 2 * views.sum::<usize>()
}
