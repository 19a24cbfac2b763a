//! A task: one subtask of a vertex, as a state machine.
//!
//! ```text
//!            batch: chain.on_batch
//!  Running ──┐                      aligned barrier
//!     ▲  ◄───┘ ──────────────────────────────────────► Ending
//!     │                                                  │ chain.on_epoch_end until Done,
//!     └───────────── finish_epoch: barrier out, report ──┘ pausing while receivers are full
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dataflow::{
    BuildContext, ChangeBatch, DataflowError, EpochEnd, Exchange, JobId, OperatorNode, Progress, Result,
    Start, Watermark,
};
use state::Epoch;

use crate::chain::{ChainEnv, EndOfEpoch, OperatorChain};
use crate::clock::instant;
use crate::events::{Events, TaskReport};
use crate::exchange::Barrier;
use crate::gate::{GateEvent, InputGate};
use crate::partition::Output;
use crate::worker::Signal;

/// Steps a task may do before it lets others run.
const QUANTUM: usize = 16;

/// Rows counted by the tasks of a job.
#[derive(Debug, Default)]
pub(crate) struct JobCounters {
    pub(crate) rows_in: AtomicU64,
    pub(crate) rows_out: AtomicU64,
}

/// Everything a worker needs to make a task.
pub(crate) struct TaskPlan {
    pub(crate) job: JobId,
    pub(crate) vertex: usize,
    /// Whether rows come from outside of the job.
    pub(crate) is_first: bool,
    /// Whether followers receive its output.
    pub(crate) is_last: bool,
    pub(crate) build: BuildContext,
    pub(crate) start: Start,
    pub(crate) chain: Vec<OperatorNode>,
    pub(crate) gate: InputGate,
    pub(crate) env: ChainEnv,
    pub(crate) events: Arc<Events>,
    pub(crate) counters: Arc<JobCounters>,
    pub(crate) signal: Arc<Signal>,
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// There is more to do.
    Again,
    /// No input.
    Idle,
    /// A receiver is full.
    Blocked,
    /// The job has ended.
    Finished,
}

enum Phase {
    Running,
    Ending { barrier: Barrier, ending: EndOfEpoch, nanos: u64 },
}

/// A running task.
pub(crate) struct Task {
    job: JobId,
    vertex: usize,
    subtask: usize,
    is_first: bool,
    is_last: bool,
    gate: InputGate,
    chain: OperatorChain,
    env: ChainEnv,
    phase: Phase,
    watermark: Watermark,
    events: Arc<Events>,
    counters: Arc<JobCounters>,
    /// What the gauge knows of it.
    held: usize,
}

impl Task {
    /// Builds and opens the operators.
    pub(crate) fn open(plan: TaskPlan) -> Result<Self> {
        let mut chain = OperatorChain::build(&plan.chain, &plan.build)?;
        let mut env = plan.env;
        chain.open(&plan.start, &mut env)?;
        Ok(Self {
            job: plan.job,
            vertex: plan.vertex,
            subtask: plan.build.subtask,
            is_first: plan.is_first,
            is_last: plan.is_last,
            gate: plan.gate,
            chain,
            env,
            phase: Phase::Running,
            watermark: Watermark::MIN,
            events: plan.events,
            counters: plan.counters,
            held: 0,
        })
    }

    pub(crate) fn job(&self) -> JobId {
        self.job
    }

    /// Does a bounded number of steps.
    pub(crate) fn run(&mut self) -> Result<Ran> {
        for _ in 0..QUANTUM {
            if !self.env.partition.has_room() {
                return Ok(Ran::Blocked);
            }
            match self.step()? {
                Ran::Again => {}
                stopped @ (Ran::Idle | Ran::Blocked | Ran::Finished) => return Ok(stopped),
            }
        }
        Ok(Ran::Again)
    }

    fn step(&mut self) -> Result<Ran> {
        match &mut self.phase {
            Phase::Running => match self.gate.poll(&mut self.env.side)? {
                GateEvent::Batch(input, batch) => self.on_batch(input, batch),
                GateEvent::Barrier(barrier, watermarks) => {
                    self.on_barrier(barrier, watermarks);
                    Ok(Ran::Again)
                }
                GateEvent::Pending => Ok(Ran::Idle),
            },
            Phase::Ending { ending, nanos, .. } => {
                let begin = instant();
                let progress = self.chain.on_epoch_end(ending, &mut self.env)?;
                *nanos += u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
                match progress {
                    Progress::More => Ok(Ran::Again),
                    Progress::Done => self.finish_epoch(),
                }
            }
        }
    }

    fn on_batch(&mut self, input: usize, batch: ChangeBatch) -> Result<Ran> {
        if self.is_first {
            self.counters.rows_in.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        self.chain.on_batch(input, batch, &mut self.env)?;
        self.weigh();
        if self.gate.is_scanning() {
            self.events.gauge.check()?;
        }
        Ok(Ran::Again)
    }

    fn on_barrier(&mut self, barrier: Barrier, watermarks: Vec<Watermark>) {
        let end = EpochEnd {
            epoch: barrier.epoch,
            now: barrier.now,
            is_checkpoint: barrier.is_checkpoint,
            watermark: watermarks.iter().copied().min().unwrap_or(Watermark::MAX),
            watermarks,
        };
        self.phase = Phase::Ending { barrier, ending: EndOfEpoch::new(end), nanos: 0 };
    }

    /// Lets the barrier out, applies the change of jobs it carries, and reports.
    fn finish_epoch(&mut self) -> Result<Ran> {
        let Phase::Ending { mut barrier, ending, nanos } = std::mem::replace(&mut self.phase, Phase::Running)
        else {
            return Ok(Ran::Again);
        };
        barrier.watermark = ending.watermark();
        if barrier.watermark < self.watermark {
            return Err(DataflowError::Internal(format!(
                "the watermark went back from {} to {}",
                self.watermark, barrier.watermark
            )));
        }
        self.watermark = barrier.watermark;
        self.env.partition.send_barrier(&barrier);
        let is_dropped = self.apply_mutation(&barrier);
        self.report(&barrier, nanos);
        Ok(if is_dropped { Ran::Finished } else { Ran::Again })
    }

    /// Returns whether the task's own job ends here.
    fn apply_mutation(&mut self, barrier: &Barrier) -> bool {
        let Some(mutation) = &barrier.mutation else { return false };
        let outputs = &mut self.env.partition.outputs;
        outputs.retain(|output| output.follower.is_none_or(|follower| !mutation.drop.contains(&follower)));
        for attachment in mutation.attach.iter().filter(|to| self.is_last && to.upstream == self.job) {
            let channel = Arc::clone(&attachment.channels[self.subtask]);
            outputs.push(Output::new(Some(attachment.follower), Exchange::Forward, vec![channel]));
        }
        mutation.drop.contains(&self.job)
    }

    fn report(&mut self, barrier: &Barrier, end_nanos: u64) {
        if self.is_last {
            let rows = std::mem::take(&mut self.env.rows_out);
            self.counters.rows_out.fetch_add(rows, Ordering::Relaxed);
        }
        let (dirty_bytes, clean_bytes) = self.chain.memory();
        self.weigh();
        self.events.report(TaskReport {
            job: self.job,
            vertex: self.vertex,
            epoch: barrier.epoch,
            runs: std::mem::take(&mut self.env.state.runs),
            changes: std::mem::take(&mut self.env.state.changes),
            side: std::mem::take(&mut self.env.side),
            watermark: barrier.watermark,
            dirty_bytes,
            clean_bytes,
            wake_at: self.chain.wake_at(),
            end_nanos,
        });
    }

    pub(crate) fn on_checkpoint_durable(&mut self, epoch: Epoch) {
        self.chain.on_checkpoint_durable(epoch);
        self.weigh();
    }

    /// Tells the gauge what it holds.
    fn weigh(&mut self) {
        let (dirty, _) = self.chain.memory();
        let before = std::mem::replace(&mut self.held, dirty);
        self.events.hold(before, dirty);
    }

    pub(crate) fn release_memory(&mut self, bytes: usize) -> usize {
        self.chain.release_memory(bytes)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.events.hold(self.held, 0);
    }
}
