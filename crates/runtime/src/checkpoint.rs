//! Putting a checkpoint together, what follows when it is durable, and memory.
//!
//! **Invariant.** A checkpoint holds exactly the effect of everything in front of its barrier: the
//! state all tasks handed over at it, the runs published up to it, and the positions, clocks and
//! inbox sequence of its cut.

use state::{CheckpointWrites, Epoch, KeyGroupRange, TableChanges, TableId};

use crate::coordinator::{Coordinator, Flight};
use crate::exchange::Channel;
use crate::meta::{self, ValueWriter};
use crate::saved::{Saved, VERSION};
use crate::source::SourcePump;
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
        // Never full: the next checkpoint waits for the answer to this one.
        if self.commits.send(writes).is_err() {
            tracing::error!("the commit thread has ended");
        }
    }

    pub(crate) fn on_committed(&mut self, epoch: Epoch) {
        self.checkpoints.committing = None;
        self.checkpoints.durable = epoch;
        for pump in self.all_pumps() {
            pump.on_durable(epoch);
        }
        for mailbox in &self.mailboxes {
            mailbox.order(Order::Durable(epoch));
        }
        if std::mem::take(&mut self.is_short_of_memory) {
            self.pause_sources(false);
        }
    }

    /// Keeps operators, overlays and exchanges within the budget: first clean entries go, then a
    /// checkpoint makes dirty ones clean, and until it is durable the sources wait.
    pub(crate) fn watch_memory(&mut self) {
        let dirty: usize = self.jobs.values().map(|job| job.dirty_bytes).sum();
        let clean: usize = self.jobs.values().map(|job| job.clean_bytes).sum();
        let queued: usize =
            self.jobs.values().flat_map(|job| &job.channels).map(|channel| Channel::bytes(channel)).sum();
        let held = dirty + queued + self.store.memory();
        let budget = self.options.memory;
        let excess = (held + clean).saturating_sub(budget);
        if excess > 0 && clean > 0 {
            let share = excess.min(clean) / self.mailboxes.len() + 1;
            for mailbox in &self.mailboxes {
                mailbox.order(Order::Release(share));
            }
        }
        // What a checkpoint frees.
        let staged = dirty + self.store.memory();
        if staged > budget / 2 && self.checkpoints.is_dirty {
            self.checkpoints.is_forced = true;
        }
        if held > budget && !self.is_short_of_memory {
            self.checkpoints.is_forced = true;
            tracing::warn!(held, budget, "memory is short: sources wait for a checkpoint");
            self.is_short_of_memory = true;
            self.pause_sources(true);
        }
    }

    fn pause_sources(&self, is_paused: bool) {
        self.all_pumps().for_each(|pump: &SourcePump| pump.set_paused(is_paused));
    }
}
