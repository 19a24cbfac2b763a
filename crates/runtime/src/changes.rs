//! DDL: new and dropped jobs, applied at a barrier.
//!
//! ```text
//!  apply ─► queue ─► next_change: build tasks ─► barrier N, a checkpoint, carries the Mutation
//!                                                   │ every task: attach and detach behind N
//!           answer ◄─ durable, caught up ◄─ finish_change: dropped jobs go, new tasks start
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use dataflow::{JobId, VertexInput};
use state::{Epoch, TableId};

use crate::coordinator::Coordinator;
use crate::events::Reply;
use crate::exchange::{Attachment, Mutation};
use crate::jobs::{Builder, Built, RunningJob, Upstream, of_source};
use crate::meta::{self, MetaWrite};
use crate::source::SourcePump;
use crate::waiters::Waiter;
use crate::worker::Order;
use crate::{Change, RuntimeError};

/// Changes that wait for their barrier.
#[derive(Default)]
pub(crate) struct ChangeQueue {
    changes: VecDeque<QueuedChange>,
}

/// A change as a session asked for it.
pub(crate) struct QueuedChange {
    pub(crate) change: Change,
    pub(crate) reply: Reply,
    /// Whether the answer comes only when new jobs have caught up.
    pub(crate) waits_for_jobs: bool,
}

impl ChangeQueue {
    pub(crate) fn push(&mut self, change: QueuedChange) {
        self.changes.push_back(change);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(crate) fn refuse_all(&mut self) {
        for queued in self.changes.drain(..) {
            let _ = queued.reply.send(Err(RuntimeError::ShuttingDown));
        }
    }
}

/// A change whose barrier is in flight.
pub(crate) struct PendingChange {
    built: Built,
    drop: Vec<JobId>,
    drop_tables: Vec<TableId>,
    meta: Vec<MetaWrite>,
    reply: Reply,
    waits_for_jobs: bool,
}

impl PendingChange {
    /// What the barrier carries.
    pub(crate) fn mutation(&self) -> Mutation {
        let attach = self.built.attachments.iter().map(|attachment| Attachment {
            upstream: attachment.upstream,
            follower: attachment.follower,
            channels: attachment.channels.clone(),
        });
        Mutation { attach: attach.collect(), drop: self.drop.clone() }
    }

    pub(crate) fn new_jobs(&self) -> &[RunningJob] {
        &self.built.jobs
    }
}

impl Coordinator {
    /// Prepares the next change; those that cannot be prepared are answered at once.
    pub(crate) fn next_change(&mut self) -> Option<PendingChange> {
        while let Some(queued) = self.changes.changes.pop_front() {
            let QueuedChange { change, reply, waits_for_jobs } = queued;
            match self.build_change(&change) {
                Ok(built) => {
                    let Change { drop, drop_tables, meta, .. } = change;
                    return Some(PendingChange { built, drop, drop_tables, meta, reply, waits_for_jobs });
                }
                Err(error) => {
                    self.put_off(&change, &error.to_string());
                    let _ = reply.send(Err(error));
                }
            }
        }
        None
    }

    fn build_change(&mut self, change: &Change) -> Result<Built, RuntimeError> {
        let jobs = &self.jobs;
        let mut builder = Builder {
            parallelism: self.options.parallelism,
            mailboxes: &self.mailboxes,
            backend: &self.storage.backend,
            store: &self.store,
            clock: &self.clock,
            events: &self.events,
            inbox: &self.inbox,
            tuning: &self.tuning,
            next_task: &mut self.next_task,
            epoch: self.epoch.next(),
            is_new: true,
            built: Built::default(),
        };
        for definition in &change.add {
            for upstream in definition.graph.upstream_jobs() {
                let is_new = change.add.iter().any(|new| new.id == upstream);
                if let Some(failure) = jobs.get(&upstream).filter(|_| !is_new).and_then(RunningJob::failure) {
                    return Err(failure);
                }
            }
            let live = |job: &JobId| jobs.get(job).filter(|job| job.is_live());
            builder.add(definition.clone(), &|job| live(&job).map(|job| Upstream::of(job, false)))?;
        }
        let built = builder.built;
        self.pin_sources(&built)?;
        Ok(built)
    }

    /// Lists the splits of the sources that get their first follower.
    fn pin_sources(&self, built: &Built) -> Result<(), RuntimeError> {
        for job in &built.jobs {
            for upstream in job.definition.graph.upstream_jobs() {
                let new = built.jobs.iter().find(|job| job.definition.id == upstream);
                let job = new.or_else(|| self.jobs.get(&upstream));
                if let Some(pump) = job.and_then(|job| job.pump.as_ref()) {
                    pump.pin().map_err(of_source)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the dropped jobs out, before the checkpoint of their barrier is put together.
    pub(crate) fn drop_jobs(&mut self, change: &mut PendingChange) {
        self.store.forget(&change.drop_tables);
        self.checkpoints.dropped_tables.append(&mut change.drop_tables);
        self.checkpoints.meta.append(&mut change.meta);
        for id in &change.drop {
            let Some(job) = self.jobs.remove(id) else { continue };
            self.inbox.detach(*id);
            let pumps = job.pump.iter().chain(job.backfills.iter().map(|backfill| &backfill.pump));
            let keys = pumps.flat_map(|pump| pump.meta_keys()).chain([meta::job_key(*id)]);
            self.checkpoints.meta.extend(keys.map(|key| (key, None)));
            tracing::info!(job = %job.definition.name, "job dropped");
        }
        if !self.jobs.values().any(|job| job.has_inbox() && !job.is_live()) {
            self.checkpoints.held_sequence = None;
        }
    }

    /// Starts the new jobs behind the barrier of `epoch`.
    pub(crate) fn finish_change(&mut self, change: PendingChange, epoch: Epoch) {
        let new = change.built.jobs.iter().filter(|_| change.waits_for_jobs);
        let new: Vec<JobId> = new.map(|job| job.definition.id).collect();
        self.start_jobs(change.built);
        self.fail_orphans();
        self.waiters.push(Waiter::for_change(epoch, new, change.reply));
    }

    /// Puts built jobs into the barrier set.
    pub(crate) fn start_jobs(&mut self, built: Built) {
        let mut started = Vec::new();
        for mut job in built.jobs {
            if let Some(failed) = self.jobs.get(&job.definition.id) {
                job.retry = failed.retry;
            }
            job.retry.on_start();
            tracing::info!(job = %job.definition.name, tasks = job.tasks, "job started");
            if !job.fed.is_empty() {
                self.inbox.attach(job.definition.id, job.fed.clone(), job.has_inbox());
            }
            started.push(job.definition.id);
            self.jobs.insert(job.definition.id, job);
        }
        for id in started {
            self.show_cuts(id);
        }
        self.settle_demands();
        for plan in built.plans {
            let mailbox = &self.mailboxes[plan.build.subtask];
            mailbox.order(Order::Start(Box::new(plan)));
        }
    }

    /// Tells a job's own readers how far the shared ones are.
    fn show_cuts(&self, job: JobId) {
        let Some(job) = self.jobs.get(&job) else { return };
        for backfill in &job.backfills {
            let shared = self.jobs.get(&backfill.upstream).and_then(|upstream| upstream.pump.as_ref());
            if let Some(shared) = shared {
                backfill.pump.set_cut(&shared.current_cut());
            }
        }
    }

    // ---- what sources have to decode ----------------------------------------------------------

    /// Before a barrier: sources that run decode also what the followers it attaches need.
    pub(crate) fn widen_demands(&self, change: Option<&PendingChange>) {
        let new = change.map(PendingChange::new_jobs).unwrap_or_default();
        for (id, pump) in self.live_pumps() {
            if pump.is_active() {
                let (columns, stamp_origin) = self.demand_of(id, new);
                self.set_demand(id, pump, true, &columns, stamp_origin);
            }
        }
    }

    /// Behind a barrier: sources that the barrier gave their first follower begin to read. Not
    /// before it: what they had read in front of it would be lost.
    pub(crate) fn activate_sources(&self, new: &[RunningJob], joins: &[(JobId, usize)]) {
        for (id, pump) in self.live_pumps() {
            let joins_here = joins.iter().any(|(job, idx)| {
                let backfill = self.jobs.get(job).and_then(|job| job.backfills.get(*idx));
                backfill.is_some_and(|backfill| backfill.upstream == id)
            });
            if !pump.is_active() && (joins_here || new.iter().any(|job| job.is_attached_to(id))) {
                let (columns, stamp_origin) = self.demand_of(id, new);
                self.set_demand(id, pump, true, &columns, stamp_origin);
            }
        }
    }

    /// Between barriers: sources decode exactly what their followers need, or rest.
    pub(crate) fn settle_demands(&self) {
        for (id, pump) in self.live_pumps() {
            let is_active = self.jobs.values().any(|job| job.is_attached_to(id));
            let (columns, stamp_origin) = self.demand_of(id, &[]);
            self.set_demand(id, pump, is_active, &columns, stamp_origin);
        }
    }

    fn set_demand(&self, job: JobId, pump: &SourcePump, active: bool, columns: &[usize], stamp_origin: bool) {
        if let Err(error) = pump.set_demand(active, columns, stamp_origin) {
            self.events.failed(job, error.to_string());
        }
    }

    fn live_pumps(&self) -> impl Iterator<Item = (JobId, &Arc<SourcePump>)> {
        let live = self.jobs.iter().filter(|(_, job)| job.is_live());
        live.filter_map(|(id, job)| Some((*id, job.pump.as_ref()?)))
    }

    /// The columns that the followers of a source read, and whether any of them reads origins.
    fn demand_of(&self, source: JobId, new: &[RunningJob]) -> (Vec<usize>, bool) {
        let mut columns = Vec::new();
        let mut stamp_origin = false;
        for job in self.jobs.values().filter(|job| job.is_live()).chain(new) {
            stamp_origin |= job.add_demand(source, &mut columns);
        }
        columns.sort_unstable();
        columns.dedup();
        (columns, stamp_origin)
    }
}

impl RunningJob {
    /// Whether it applies the inbox of a table.
    pub(crate) fn has_inbox(&self) -> bool {
        let inputs = self.definition.graph.vertices.iter().flat_map(|vertex| &vertex.inputs);
        inputs.into_iter().any(|input| matches!(input, VertexInput::Inbox { .. }))
    }
}
