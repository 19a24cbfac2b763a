//! The checkpoint coordinator: the epoch clock, and what happens at its barriers.
//!
//! ```text
//!             inject                 on_report (last one)            commit thread
//!  (between) ───────► in flight ─────────────────────────► published ─────────────► durable
//!      ▲   barriers into sources,        collect: runs of all jobs │   on_committed: operators told,
//!      │   inbox, backfills              shown at once             │   DDL and FLUSH answered
//!      └──────────────────── advance ──────────────────────────────┘
//! ```
//!
//! One epoch is in flight at a time; sources read on for the next one meanwhile. At most one
//! commit is in flight: while it is, barriers are not checkpoints, so dirty state stays where it
//! is and nothing handed over ever waits in a queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use dataflow::{JobId, Watermark};
use hashbrown::HashMap;
use state::{CheckpointWrites, Epoch, KeyGroupRange, Run, Storage, TableChanges, TableId, ViewStore};

use crate::changes::{ChangeQueue, PendingChange, QueuedChange};
use crate::clock::{Clock, instant};
use crate::events::{Events, Happened, Request, TaskReport};
use crate::exchange::{Attachment, Barrier};
use crate::inbox_reader::InboxReader;
use crate::jobs::RunningJob;
use crate::meta::MetaWrite;
use crate::pacing::{Demand, Pacing};
use crate::polling::Polling;
use crate::rebuild::Wiping;
use crate::side::{SideKind, SideRows};
use crate::source::SplitCut;
use crate::status::Shared;
use crate::waiters::Waiter;
use crate::worker::{Mailbox, Order};
use crate::{RuntimeError, RuntimeOptions, Tuning};

/// An epoch between its barrier and its publication.
pub(crate) struct Flight {
    pub(crate) epoch: Epoch,
    pub(crate) is_checkpoint: bool,
    pub(crate) inbox_sequence: u64,
    /// Tasks that have not reported yet.
    pub(crate) waiting: HashMap<JobId, usize>,
    pub(crate) parts: Vec<JobPart>,
    pub(crate) change: Option<PendingChange>,
    /// Backfills that end with this epoch: job and index.
    pub(crate) joins: Vec<(JobId, usize)>,
    pub(crate) end_nanos: u64,
}

/// What one task brought.
pub(crate) struct JobPart {
    pub(crate) job: JobId,
    pub(crate) runs: Vec<(TableId, Run)>,
    pub(crate) changes: Vec<(TableId, KeyGroupRange, TableChanges)>,
}

/// What is going on with checkpoints.
#[derive(Default)]
pub(crate) struct Checkpoints {
    /// The inbox sequence of the last checkpoint that was put together.
    pub(crate) sequence: u64,
    /// The inbox sequence that tables have applied on disk, those held back excepted.
    pub(crate) applied: u64,
    /// The sequence that checkpoints may not go beyond, because a failed table has not applied
    /// what is behind it.
    pub(crate) held_sequence: Option<u64>,
    /// The epoch whose commit is in flight.
    pub(crate) committing: Option<Epoch>,
    /// Bytes that this commit takes beside the state and the runs it is made from.
    pub(crate) committing_bytes: usize,
    pub(crate) durable: Epoch,
    /// Whether something happened since the last checkpoint barrier.
    pub(crate) is_dirty: bool,
    /// Whether the next barrier has to be a checkpoint, soon.
    pub(crate) is_forced: bool,
    /// `meta` writes for the next checkpoint, besides those of the jobs there are.
    pub(crate) meta: Vec<MetaWrite>,
    pub(crate) dropped_tables: Vec<TableId>,
}

/// The thread that decides everything.
pub(crate) struct Coordinator {
    pub(crate) options: RuntimeOptions,
    pub(crate) tuning: Tuning,
    pub(crate) storage: Storage,
    pub(crate) store: Arc<ViewStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: Arc<Events>,
    pub(crate) mailboxes: Vec<Arc<Mailbox>>,
    pub(crate) inbox: Arc<InboxReader>,
    pub(crate) commits: SyncSender<CheckpointWrites>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) jobs: BTreeMap<JobId, RunningJob>,
    pub(crate) next_task: u64,
    /// Jobs taken out so far.
    pub(crate) failures: u64,
    /// The last epoch injected.
    pub(crate) epoch: Epoch,
    pub(crate) published: Epoch,
    /// Wall time of the last barrier.
    pub(crate) now: i64,
    pub(crate) flight: Option<Flight>,
    pub(crate) changes: ChangeQueue,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) pacing: Pacing,
    pub(crate) polling: Polling,
    pub(crate) wiping: Wiping,
    pub(crate) has_input: bool,
    pub(crate) shutdown: Vec<crate::events::Reply>,
}

impl Coordinator {
    /// Runs until the database is dropped or shut down.
    pub(crate) fn run(mut self) {
        loop {
            let deadline = self.deadline();
            let happened = self.events.wait(deadline, self.has_input);
            let stop = happened.stop;
            self.on_happened(happened);
            self.poll_sources();
            self.retry_failed();
            self.advance();
            if stop || self.has_shut_down() {
                break;
            }
        }
        self.end();
    }

    fn on_happened(&mut self, happened: Happened) {
        if happened.input && !self.has_input {
            self.has_input = true;
            self.pacing.on_input(instant());
            self.polling.on_input();
        }
        if happened.pending {
            self.polling.on_pending();
        }
        for (job, reason) in happened.failures {
            self.on_failed(job, reason);
        }
        for report in happened.reports {
            self.on_report(report);
        }
        if happened.room {
            self.let_input_in();
        }
        if let Some(snapshot) = happened.committed {
            self.on_committed(snapshot.epoch());
        }
        for request in happened.requests {
            self.on_request(request);
        }
    }

    fn on_request(&mut self, request: Request) {
        match request {
            Request::Apply { change, reply, waits_for_jobs } => {
                self.changes.push(QueuedChange { change, reply, waits_for_jobs });
            }
            Request::WaitForInbox { sequence, reply } => {
                self.waiters.push(Waiter::for_inbox(sequence, reply))
            }
            Request::Flush { durable, reply } => self.on_flush(durable, reply),
            Request::Shutdown(reply) => self.shutdown.push(reply),
        }
    }

    /// Injects and collects as far as that goes now.
    fn advance(&mut self) {
        loop {
            self.answer_waiters();
            if self.flight.as_ref().is_some_and(|flight| flight.waiting.is_empty()) {
                self.collect();
                continue;
            }
            let now = instant();
            if self.due(now).is_none_or(|due| due > now) {
                return;
            }
            self.inject(now);
        }
    }

    // ---- when ---------------------------------------------------------------------------------

    fn demand(&self) -> Demand {
        let may_checkpoint = self.checkpoints.committing.is_none();
        let wake_at = self.jobs.values().filter_map(|job| job.wake_at).min();
        let wake_in = wake_at.map(|at| Duration::from_micros((at - self.clock.now()).max(0) as u64));
        Demand {
            input: self.has_input,
            urgent: self.is_urgent(may_checkpoint),
            checkpoint: may_checkpoint && self.checkpoints.is_dirty,
            wake_in,
        }
    }

    fn is_urgent(&self, may_checkpoint: bool) -> bool {
        let needs_checkpoint =
            self.checkpoints.is_forced || !self.changes.is_empty() || !self.shutdown.is_empty();
        (may_checkpoint && needs_checkpoint)
            || self.jobs.values().any(|job| job.is_live() && (job.is_scanning || job.can_join()))
            || self.waiters.iter().any(|waiter| self.wants_barrier(waiter))
    }

    fn due(&self, now: Instant) -> Option<Instant> {
        // While the last checkpoint is on its way, no epoch behind it is begun.
        let is_ending = !self.shutdown.is_empty() && self.checkpoints.committing.is_some();
        if self.flight.is_some() || is_ending || self.has_shut_down() {
            return None;
        }
        self.pacing.due(now, self.demand())
    }

    fn deadline(&self) -> Option<Instant> {
        let due = self.due(instant());
        [due, self.polling.next(), self.next_retry()].into_iter().flatten().min()
    }

    // ---- a barrier goes in --------------------------------------------------------------------

    fn inject(&mut self, now: Instant) {
        let may_checkpoint = self.checkpoints.committing.is_none();
        let change = if may_checkpoint { self.next_change() } else { None };
        let is_checkpoint = may_checkpoint
            && (change.is_some()
                || self.checkpoints.is_forced
                || !self.shutdown.is_empty()
                || ((self.checkpoints.is_dirty || self.has_input) && self.pacing.is_checkpoint_due(now)));
        self.events.forget_input();
        self.checkpoints.is_dirty |= self.has_input || self.wake_is_due();
        self.has_input = false;
        if is_checkpoint {
            self.checkpoints.is_dirty = false;
            self.checkpoints.is_forced = false;
        }
        self.epoch = self.epoch.next();
        self.now = self.now.max(self.clock.now());
        self.pacing.on_barrier(now, is_checkpoint);

        for job in self.jobs.values_mut() {
            job.begin_epoch();
        }
        let joins = self.joins();
        let in_front = self.waiters_in_front();
        let mut mutation = change.as_ref().map(PendingChange::mutation).unwrap_or_default();
        mutation.attach.extend(joins.iter().filter_map(|join| self.join_attachment(*join)));
        let has_mutation = !mutation.attach.is_empty() || !mutation.drop.is_empty();
        let barrier = Barrier {
            epoch: self.epoch,
            now: self.now,
            is_checkpoint,
            watermark: Watermark::MIN,
            mutation: has_mutation.then(|| Arc::new(mutation)),
        };
        self.widen_demands(change.as_ref());
        let waiting = self.jobs.values().filter(|job| job.is_live());
        self.flight = Some(Flight {
            epoch: self.epoch,
            is_checkpoint,
            inbox_sequence: 0,
            waiting: waiting.map(|job| (job.definition.id, job.tasks)).collect(),
            parts: Vec::new(),
            change,
            joins,
            end_nanos: 0,
        });
        let sequence = self.inject_everywhere(&barrier);
        if let Some(flight) = &mut self.flight {
            flight.inbox_sequence = sequence;
        }
        self.assign_waiters(&in_front, sequence);
        if let Some(flight) = &self.flight {
            let new = flight.change.as_ref().map(PendingChange::new_jobs).unwrap_or_default();
            self.activate_sources(new, &flight.joins);
        }
    }

    /// Every place where barriers enter. A source whose followers still read on their own tells
    /// them where it stands.
    fn inject_everywhere(&self, barrier: &Barrier) -> u64 {
        let sequence = self.inbox.inject(barrier);
        let mut cuts: HashMap<JobId, Vec<SplitCut>> = HashMap::new();
        for job in self.jobs.values().filter(|job| job.is_live()) {
            if let Some(pump) = &job.pump {
                cuts.insert(job.definition.id, pump.inject(barrier.clone()));
            }
        }
        let joins = self.flight.as_ref().map(|flight| flight.joins.as_slice()).unwrap_or_default();
        for job in self.jobs.values().filter(|job| job.is_live()) {
            for (idx, backfill) in job.backfills.iter().enumerate() {
                let catches_up = joins.contains(&(job.definition.id, idx));
                let cut = cuts.get(&backfill.upstream).map(Vec::as_slice).unwrap_or_default();
                backfill.pump.inject_backfill(barrier.clone(), cut, catches_up);
            }
        }
        sequence
    }

    /// Backfills that have read everything there was at the last barrier: they go on to this
    /// barrier's cut and are attached there.
    fn joins(&self) -> Vec<(JobId, usize)> {
        let mut joins = Vec::new();
        for job in self.jobs.values().filter(|job| job.is_live()) {
            let ready = job.backfills.iter().enumerate().filter(|(_, backfill)| backfill.pump.is_at_cut());
            joins.extend(ready.map(|(idx, _)| (job.definition.id, idx)));
        }
        joins
    }

    fn join_attachment(&self, (job, idx): (JobId, usize)) -> Option<Attachment> {
        let backfill = self.jobs.get(&job)?.backfills.get(idx)?;
        let channels = backfill.channels.clone();
        Some(Attachment { upstream: backfill.upstream, follower: job, channels })
    }

    fn wake_is_due(&self) -> bool {
        let now = self.clock.now();
        self.jobs.values().filter_map(|job| job.wake_at).any(|at| at <= now)
    }

    // ---- a barrier comes out ------------------------------------------------------------------

    fn on_report(&mut self, report: TaskReport) {
        let Some(flight) = &mut self.flight else { return };
        let Some(waiting) = flight.waiting.get_mut(&report.job).filter(|_| flight.epoch == report.epoch)
        else {
            return;
        };
        *waiting -= 1;
        if *waiting == 0 {
            flight.waiting.remove(&report.job);
        }
        flight.end_nanos += report.end_nanos;
        let Some(job) = self.jobs.get_mut(&report.job) else { return };
        job.note(&report);
        flight.parts.push(JobPart { job: report.job, runs: report.runs, changes: report.changes });
        for side in report.side {
            self.on_side_rows(report.job, side);
        }
    }

    fn on_side_rows(&mut self, reporter: JobId, side: SideRows) {
        let owner = side.source.unwrap_or(reporter);
        let Some(job) = self.jobs.get_mut(&owner).filter(|job| job.is_live()) else { return };
        let rows = side.rows.num_rows() as u64;
        match side.kind {
            SideKind::Late => job.late_rows += rows,
            // What a backfill reads was counted when it was read first.
            SideKind::Errors if owner != reporter => {}
            SideKind::Errors => job.error_rows += rows,
        }
        if let Err(error) = job.side.push(side) {
            self.on_failed(owner, error.to_string());
        }
    }

    /// All tasks have finished the epoch: shows it.
    fn collect(&mut self) {
        let Some(mut flight) = self.flight.take() else { return };
        let mut runs = Vec::new();
        let mut changes = Vec::new();
        for part in flight.parts.drain(..) {
            runs.extend(part.runs.into_iter().map(|(table, run)| (table, Arc::new(run))));
            changes.extend(part.changes);
        }
        let published = self.store.current();
        let mut failed = Vec::new();
        for job in self.jobs.values_mut().filter(|job| job.is_live()) {
            match job.side.finish(&published) {
                Ok(side) => runs.extend(side.into_iter().map(|(table, run)| (table, Arc::new(run)))),
                Err(error) => failed.push((job.definition.id, error.to_string())),
            }
        }
        self.store.publish(flight.epoch, runs);
        self.published = flight.epoch;
        self.shared.set_published(flight.inbox_sequence);
        let cost = Duration::from_nanos(flight.end_nanos / self.options.parallelism as u64);
        self.pacing.on_cost(cost);
        for job in self.jobs.values_mut() {
            job.is_scanning = false;
        }
        self.finish_joins(&flight);
        let mut change = flight.change.take();
        if let Some(change) = &mut change {
            self.drop_jobs(change);
        }
        if flight.is_checkpoint {
            self.checkpoint(&flight, changes);
        }
        if let Some(change) = change {
            self.finish_change(change, flight.epoch);
        }
        for (job, reason) in failed {
            self.on_failed(job, reason);
        }
        self.watch_memory();
        self.update_status();
    }

    fn finish_joins(&mut self, flight: &Flight) {
        // From the last one, so that the indices of the others stay right.
        for &(job, idx) in flight.joins.iter().rev() {
            let Some(job) = self.jobs.get_mut(&job) else { continue };
            if idx >= job.backfills.len() {
                continue;
            }
            let backfill = job.backfills.remove(idx);
            let keys = backfill.pump.meta_keys();
            self.checkpoints.meta.extend(keys.into_iter().map(|key| (key, None)));
            self.checkpoints.is_dirty = true;
            tracing::info!(job = %job.definition.name, "caught up with its source");
        }
    }

    // ---- the end ------------------------------------------------------------------------------

    fn has_shut_down(&self) -> bool {
        !self.shutdown.is_empty()
            && self.flight.is_none()
            && self.checkpoints.committing.is_none()
            && self.checkpoints.durable == self.published
    }

    fn end(mut self) {
        self.inbox.stop();
        for mailbox in &self.mailboxes {
            mailbox.order(Order::Stop);
        }
        for waiter in self.waiters.drain(..) {
            waiter.answer(Err(RuntimeError::ShuttingDown));
        }
        self.changes.refuse_all();
        for reply in self.shutdown.drain(..) {
            let _ = reply.send(Ok(()));
        }
    }
}

impl RunningJob {
    /// Whether a reader of its own has come to where the shared one was: a barrier joins them.
    fn can_join(&self) -> bool {
        self.backfills.iter().any(|backfill| backfill.pump.is_at_cut())
    }

    /// What its tasks report is collected anew.
    fn begin_epoch(&mut self) {
        (self.dirty_bytes, self.clean_bytes, self.wake_at) = (0, 0, None);
    }

    fn note(&mut self, report: &TaskReport) {
        self.dirty_bytes += report.dirty_bytes;
        self.clean_bytes += report.clean_bytes;
        self.wake_at = self.wake_at.into_iter().chain(report.wake_at).min();
        if report.vertex + 1 == self.definition.graph.vertices.len() {
            self.watermark = report.watermark;
        }
    }
}
