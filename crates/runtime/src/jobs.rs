//! Jobs as they run: building their tasks, wiring them to what they follow, taking them down.
//!
//! How a follower gets the rows of another job:
//!
//! | upstream | the follower is new | after a restart |
//! |---|---|---|
//! | new in the same change | attached from the start | – |
//! | stored relation | scans it in its first epoch, attached meanwhile | attached |
//! | source that has not begun | attached from the start | attached |
//! | source | its own reader, attached at the barrier where it has caught up | goes on so, or attached |

use std::sync::Arc;

use dataflow::{
    BuildContext, DataflowError, Exchange, JobGraph, JobId, JobVertex, Start, VertexInput, Watermark,
};
use state::{Epoch, KeyGroupRange, StateBackend, TableId, ViewStore};

use crate::chain::{ChainEnv, TaskState};
use crate::clock::Clock;
use crate::events::{Events, NoWake};
use crate::exchange::{Attachment, Channel, Wake};
use crate::gate::{InputGate, Lane};
use crate::inbox_reader::InboxReader;
use crate::meta;
use crate::partition::{Output, ResultPartition};
use crate::rebuild::Retry;
use crate::scan::Scan;
use crate::side::SideWriter;
use crate::source::{PumpRole, SourceLane, SourcePump};
use crate::task::{JobCounters, TaskPlan};
use crate::worker::{Mailbox, Signal, TaskId};
use crate::{JobDefinition, RuntimeError, Tuning};

/// A follower's own reader of a source.
pub(crate) struct Backfill {
    pub(crate) upstream: JobId,
    pub(crate) pump: Arc<SourcePump>,
    /// What the source's job sends on once the reader has caught up.
    pub(crate) channels: Vec<Arc<Channel>>,
}

/// A job of the barrier set (or a failed one, which has no tasks).
pub(crate) struct RunningJob {
    pub(crate) definition: JobDefinition,
    /// Why it failed.
    pub(crate) error: Option<String>,
    /// How many reports an epoch brings.
    pub(crate) tasks: usize,
    /// The tasks of the last vertex, which followers receive from.
    pub(crate) last: Vec<Arc<Signal>>,
    /// Every channel its tasks receive on.
    pub(crate) channels: Vec<Arc<Channel>>,
    /// Channels that the inbox reader feeds: rows of a table, or nothing but barriers.
    pub(crate) fed: Vec<Arc<Channel>>,
    /// The reader, of a source job.
    pub(crate) pump: Option<Arc<SourcePump>>,
    pub(crate) backfills: Vec<Backfill>,
    /// Whether its first epoch, in which stored relations are scanned, is still to come.
    pub(crate) is_scanning: bool,
    /// Whether the last checkpoint knows the job.
    pub(crate) is_saved: bool,
    /// When it is tried again after a failure.
    pub(crate) retry: Retry,
    pub(crate) side: SideWriter,
    pub(crate) counters: Arc<JobCounters>,
    pub(crate) late_rows: u64,
    pub(crate) error_rows: u64,
    pub(crate) watermark: Watermark,
    pub(crate) dirty_bytes: usize,
    pub(crate) clean_bytes: usize,
    pub(crate) wake_at: Option<i64>,
}

impl RunningJob {
    /// Whether its tasks take part in barriers.
    pub(crate) fn is_live(&self) -> bool {
        self.error.is_none()
    }

    /// Whether it still reads what was there before it.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_scanning || !self.backfills.is_empty()
    }

    /// The relation inputs that read a job's output.
    fn inputs_from(&self, upstream: JobId) -> impl Iterator<Item = (&Vec<usize>, bool)> {
        let inputs = self.definition.graph.vertices.iter().flat_map(|vertex| &vertex.inputs);
        inputs.filter_map(move |input| match input {
            VertexInput::Relation { job, columns, needs_origin, .. } if *job == upstream => {
                Some((columns, *needs_origin))
            }
            VertexInput::Relation { .. }
            | VertexInput::Exchange { .. }
            | VertexInput::Source(_)
            | VertexInput::Inbox { .. } => None,
        })
    }

    /// Whether some of its inputs receive the output of `upstream` (rather than reading a source
    /// on their own).
    pub(crate) fn is_attached_to(&self, upstream: JobId) -> bool {
        let own = self.backfills.iter().filter(|backfill| backfill.upstream == upstream).count();
        self.is_live() && self.inputs_from(upstream).count() > own
    }

    /// Adds the columns it reads of a job; returns whether it reads origins.
    pub(crate) fn add_demand(&self, upstream: JobId, columns: &mut Vec<usize>) -> bool {
        let mut stamp_origin = false;
        for (read, needs_origin) in self.inputs_from(upstream) {
            columns.extend(read);
            stamp_origin |= needs_origin;
        }
        stamp_origin
    }

    /// Every table it has.
    pub(crate) fn all_tables(&self) -> Vec<TableId> {
        let state = self.definition.graph.operators().flat_map(|node| &node.tables).map(|table| table.id);
        self.published_tables().into_iter().chain(state).collect()
    }

    /// Why nobody can read it.
    pub(crate) fn failure(&self) -> Option<RuntimeError> {
        let reason = self.error.clone()?;
        Some(RuntimeError::JobFailed { name: self.definition.name.clone(), reason })
    }

    /// The tables in which its content and its errors are.
    pub(crate) fn published_tables(&self) -> Vec<TableId> {
        let graph = &self.definition.graph;
        let view = graph.view_table().map(|view| view.table);
        view.into_iter().chain(graph.side_tables.late).chain([graph.side_tables.errors]).collect()
    }
}

/// What a change builds before its barrier.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) jobs: Vec<RunningJob>,
    pub(crate) plans: Vec<TaskPlan>,
    /// New followers of jobs that run already.
    pub(crate) attachments: Vec<Attachment>,
}

/// What building needs.
pub(crate) struct Builder<'a> {
    pub(crate) parallelism: usize,
    pub(crate) mailboxes: &'a [Arc<Mailbox>],
    pub(crate) backend: &'a Arc<dyn StateBackend>,
    pub(crate) store: &'a Arc<ViewStore>,
    pub(crate) clock: &'a Arc<dyn Clock>,
    pub(crate) events: &'a Arc<Events>,
    pub(crate) inbox: &'a Arc<InboxReader>,
    pub(crate) tuning: &'a Tuning,
    /// Counts tasks.
    pub(crate) next_task: &'a mut u64,
    /// The epoch behind which the tasks begin.
    pub(crate) epoch: Epoch,
    /// Whether there is nothing to restore.
    pub(crate) is_new: bool,
    pub(crate) built: Built,
}

/// Where one relation input begins.
enum Entry {
    Attached,
    Scan,
    Backfill(Arc<SourcePump>),
}

/// The parts of a job that come up while its vertices are built.
struct Parts {
    signals: Vec<Vec<Arc<Signal>>>,
    /// Per vertex, what it sends to inside of the job: per subtask.
    outputs: Vec<Vec<Vec<Output>>>,
    channels: Vec<Arc<Channel>>,
    fed: Vec<Arc<Channel>>,
    pump: Option<Arc<SourcePump>>,
    backfills: Vec<Backfill>,
}

impl Builder<'_> {
    /// Builds a job. `running`: the jobs there are, for wiring.
    pub(crate) fn add(
        &mut self,
        definition: JobDefinition,
        running: &dyn Fn(JobId) -> Option<Upstream>,
    ) -> Result<(), RuntimeError> {
        let graph = &definition.graph;
        let mut parts = self.parts(graph);
        let mut gates = Vec::new();
        for vertex in &graph.vertices {
            gates.push(self.lanes(&definition, vertex, &mut parts, running)?);
        }
        let counters = Arc::new(JobCounters::default());
        self.plan_tasks(&definition, gates, &mut parts, &counters);
        let has_scan = graph.vertices.iter().flat_map(|vertex| &vertex.inputs).any(is_stored);
        self.built.jobs.push(RunningJob {
            tasks: graph.vertices.len() * self.parallelism,
            last: parts.signals.last().cloned().unwrap_or_default(),
            channels: parts.channels,
            fed: parts.fed,
            pump: parts.pump,
            error: None,
            is_scanning: self.is_new && has_scan,
            backfills: parts.backfills,
            is_saved: !self.is_new,
            retry: Retry::default(),
            side: SideWriter::new(graph),
            counters,
            late_rows: 0,
            error_rows: 0,
            watermark: Watermark::MIN,
            dirty_bytes: 0,
            clean_bytes: 0,
            wake_at: None,
            definition,
        });
        Ok(())
    }

    fn parts(&mut self, graph: &JobGraph) -> Parts {
        let mut signals = Vec::new();
        for _ in &graph.vertices {
            let vertex = self.mailboxes.iter().map(|mailbox| {
                *self.next_task += 1;
                Signal::new(TaskId(*self.next_task), Arc::clone(mailbox))
            });
            signals.push(vertex.collect());
        }
        let outputs = graph.vertices.iter().map(|_| (0..self.parallelism).map(|_| Vec::new()).collect());
        Parts {
            outputs: outputs.collect(),
            signals,
            channels: Vec::new(),
            fed: Vec::new(),
            pump: None,
            backfills: Vec::new(),
        }
    }

    /// The lanes of a vertex, per subtask.
    fn lanes(
        &mut self,
        definition: &JobDefinition,
        vertex: &JobVertex,
        parts: &mut Parts,
        running: &dyn Fn(JobId) -> Option<Upstream>,
    ) -> Result<Vec<Vec<(usize, Lane)>>, RuntimeError> {
        let idx = vertex.id.0 as usize;
        let mut lanes: Vec<Vec<(usize, Lane)>> = (0..self.parallelism).map(|_| Vec::new()).collect();
        for (number, input) in vertex.inputs.iter().enumerate() {
            let of_input = match input {
                VertexInput::Exchange { from, exchange } => {
                    self.exchange_lanes(from.0 as usize, idx, exchange, parts)
                }
                VertexInput::Source(spec) => {
                    let pump = Arc::new(SourcePump::new(
                        Arc::clone(spec),
                        PumpRole::Shared,
                        meta::source_prefix(definition.id),
                        Arc::clone(self.clock),
                        Arc::clone(self.events),
                        self.tuning.chunk_bytes,
                    ));
                    let prefix = meta::source_prefix(definition.id);
                    let saved = self.backend.snapshot().scan_meta(prefix.as_bytes()).map_err(internal)?;
                    pump.restore(&saved)?;
                    parts.pump = Some(Arc::clone(&pump));
                    self.source_lanes(&pump, &parts.signals[idx])
                }
                VertexInput::Inbox { .. } => self.fed_lanes(idx, parts),
                VertexInput::Relation { job, .. } => {
                    let upstream = running(*job).or_else(|| self.built_upstream(*job));
                    let upstream = upstream.ok_or_else(|| {
                        RuntimeError::Internal(format!(
                            "job {} follows a job that does not run",
                            definition.id.0
                        ))
                    })?;
                    let place = (idx, number);
                    self.relation_lanes(definition.id, place, input, &upstream, parts)?
                }
            };
            for (subtask, of_subtask) in of_input.into_iter().enumerate() {
                lanes[subtask].extend(of_subtask.into_iter().map(|lane| (number, lane)));
            }
        }
        if vertex.inputs.is_empty() {
            for (subtask, lane) in self.fed_lanes(idx, parts).into_iter().enumerate() {
                lanes[subtask].extend(lane.into_iter().map(|lane| (0, lane)));
            }
        }
        Ok(lanes)
    }

    fn built_upstream(&self, job: JobId) -> Option<Upstream> {
        let job = self.built.jobs.iter().find(|built| built.definition.id == job)?;
        Some(Upstream::of(job, self.is_new))
    }

    fn channel(&self, sender: Arc<dyn Wake>, receiver: &Arc<Signal>, parts: &mut Parts) -> Arc<Channel> {
        let receiver: Arc<dyn Wake> = Arc::<Signal>::clone(receiver);
        let channel = Channel::new(self.tuning.channel_bytes, sender, receiver);
        parts.channels.push(Arc::clone(&channel));
        channel
    }

    fn exchange_lanes(
        &self,
        from: usize,
        to: usize,
        exchange: &Exchange,
        parts: &mut Parts,
    ) -> Vec<Vec<Lane>> {
        let mut lanes: Vec<Vec<Lane>> = (0..self.parallelism).map(|_| Vec::new()).collect();
        for sender in 0..self.parallelism {
            let receivers = match exchange {
                Exchange::Forward => sender..sender + 1,
                Exchange::Hash(_) | Exchange::Broadcast | Exchange::Rebalance => 0..self.parallelism,
            };
            let mut channels = Vec::new();
            for receiver in receivers {
                let signal = Arc::<Signal>::clone(&parts.signals[from][sender]);
                let to = Arc::clone(&parts.signals[to][receiver]);
                let channel = self.channel(signal, &to, parts);
                lanes[receiver].push(Lane::Channel(Arc::clone(&channel)));
                channels.push(channel);
            }
            parts.outputs[from][sender].push(Output::new(None, exchange.clone(), channels));
        }
        lanes
    }

    fn source_lanes(&self, pump: &Arc<SourcePump>, signals: &[Arc<Signal>]) -> Vec<Vec<Lane>> {
        pump.set_lanes(signals.iter().map(|signal| Arc::<Signal>::clone(signal) as Arc<dyn Wake>).collect());
        let lane = |subtask| Lane::Source(SourceLane::new(Arc::clone(pump), subtask, self.epoch));
        (0..self.parallelism).map(|subtask| vec![lane(subtask)]).collect()
    }

    fn fed_lanes(&self, vertex: usize, parts: &mut Parts) -> Vec<Vec<Lane>> {
        let mut lanes = Vec::new();
        for subtask in 0..self.parallelism {
            let signal = Arc::clone(&parts.signals[vertex][subtask]);
            let channel = self.channel(self.inbox.waker(), &signal, parts);
            parts.fed.push(Arc::clone(&channel));
            lanes.push(vec![Lane::Channel(channel)]);
        }
        lanes
    }

    fn relation_lanes(
        &mut self,
        follower: JobId,
        place: (usize, usize),
        input: &VertexInput,
        upstream: &Upstream,
        parts: &mut Parts,
    ) -> Result<Vec<Vec<Lane>>, RuntimeError> {
        let VertexInput::Relation { job, schema, needs_origin, stored, columns, .. } = input else {
            return Ok(Vec::new());
        };
        let entry = self.entry(follower, place, stored.is_some(), columns, *needs_origin, upstream)?;
        let mut channels = Vec::new();
        for subtask in 0..self.parallelism {
            let sender: Arc<dyn Wake> = match upstream.last.get(subtask) {
                Some(signal) => Arc::<Signal>::clone(signal),
                None => Arc::new(NoWake),
            };
            let receiver = Arc::clone(&parts.signals[place.0][subtask]);
            channels.push(self.channel(sender, &receiver, parts));
        }
        let lane = |subtask: usize| {
            let channel = Arc::clone(&channels[subtask]);
            match (&entry, stored) {
                (Entry::Scan, Some(table)) if subtask == 0 => {
                    let store = Arc::clone(self.store);
                    let scan = Scan::new(store, *job, table.clone(), Arc::clone(schema), *needs_origin);
                    Lane::Scan(scan, channel)
                }
                (Entry::Backfill(pump), _) => {
                    Lane::Backfill(SourceLane::new(Arc::clone(pump), subtask, self.epoch), channel)
                }
                (Entry::Scan | Entry::Attached, _) => Lane::Channel(channel),
            }
        };
        let lanes = (0..self.parallelism).map(|subtask| vec![lane(subtask)]).collect();
        match entry {
            Entry::Backfill(pump) => {
                let signals = parts.signals[place.0].iter();
                pump.set_lanes(signals.map(|signal| Arc::<Signal>::clone(signal) as Arc<dyn Wake>).collect());
                parts.backfills.push(Backfill { upstream: *job, pump, channels });
            }
            Entry::Scan | Entry::Attached => self.attach(Attachment { upstream: *job, follower, channels }),
        }
        Ok(lanes)
    }

    fn entry(
        &self,
        follower: JobId,
        (vertex, input): (usize, usize),
        is_stored: bool,
        columns: &[usize],
        needs_origin: bool,
        upstream: &Upstream,
    ) -> Result<Entry, RuntimeError> {
        // A source that is rebuilt together with its followers may have begun long ago.
        if upstream.is_new && !upstream.pump.as_ref().is_some_and(|pump| pump.has_begun()) {
            return Ok(Entry::Attached);
        }
        if is_stored {
            return Ok(if self.is_new { Entry::Scan } else { Entry::Attached });
        }
        let Some(shared) = &upstream.pump else { return Ok(Entry::Attached) };
        let prefix = meta::backfill_prefix(follower, vertex, input);
        let pump = SourcePump::new(
            Arc::clone(shared.shared_spec()),
            PumpRole::Backfill,
            prefix.clone(),
            Arc::clone(self.clock),
            Arc::clone(self.events),
            self.tuning.chunk_bytes,
        );
        let goes_on = if self.is_new {
            shared.has_begun()
        } else {
            pump.restore(&self.backend.snapshot().scan_meta(prefix.as_bytes()).map_err(internal)?)?
        };
        if !goes_on {
            return Ok(Entry::Attached);
        }
        pump.set_demand(true, columns, needs_origin).map_err(of_source)?;
        Ok(Entry::Backfill(Arc::new(pump)))
    }

    /// Wires a follower to tasks that are not started yet, or remembers it for the barrier.
    fn attach(&mut self, attachment: Attachment) {
        let mut is_planned = false;
        for plan in &mut self.built.plans {
            if plan.job == attachment.upstream && plan.is_last {
                is_planned = true;
                let channel = Arc::clone(&attachment.channels[plan.build.subtask]);
                let output = Output::new(Some(attachment.follower), Exchange::Forward, vec![channel]);
                plan.env.partition.outputs.push(output);
            }
        }
        if !is_planned {
            self.built.attachments.push(attachment);
        }
    }

    fn plan_tasks(
        &mut self,
        definition: &JobDefinition,
        gates: Vec<Vec<Vec<(usize, Lane)>>>,
        parts: &mut Parts,
        counters: &Arc<JobCounters>,
    ) {
        let last = definition.graph.vertices.len().saturating_sub(1);
        for (vertex, gates) in definition.graph.vertices.iter().zip(gates) {
            let idx = vertex.id.0 as usize;
            for (subtask, lanes) in gates.into_iter().enumerate() {
                let key_groups = KeyGroupRange::of_subtask(subtask, self.parallelism);
                let state = TaskState {
                    backend: Arc::clone(self.backend),
                    store: Arc::clone(self.store),
                    key_groups,
                    runs: Vec::new(),
                    changes: Vec::new(),
                };
                let partition = ResultPartition { outputs: std::mem::take(&mut parts.outputs[idx][subtask]) };
                self.built.plans.push(TaskPlan {
                    job: definition.id,
                    vertex: idx,
                    is_first: !vertex.inputs.iter().all(is_exchange),
                    is_last: idx == last,
                    build: BuildContext { subtask, parallelism: self.parallelism, key_groups },
                    start: Start { is_new: self.is_new, epoch: self.epoch, key_groups },
                    chain: vertex.chain.clone(),
                    gate: InputGate::new(lanes),
                    env: ChainEnv { state, side: Vec::new(), partition, rows_out: 0 },
                    events: Arc::clone(self.events),
                    counters: Arc::clone(counters),
                    signal: Arc::clone(&parts.signals[idx][subtask]),
                });
            }
        }
    }
}

/// What a follower needs to know of the job it follows.
pub(crate) struct Upstream {
    last: Vec<Arc<Signal>>,
    pump: Option<Arc<SourcePump>>,
    /// Whether it begins together with the follower.
    is_new: bool,
}

impl Upstream {
    pub(crate) fn of(job: &RunningJob, is_new: bool) -> Self {
        Self { last: job.last.clone(), pump: job.pump.clone(), is_new }
    }
}

fn is_stored(input: &VertexInput) -> bool {
    matches!(input, VertexInput::Relation { stored: Some(_), .. })
}

fn is_exchange(input: &VertexInput) -> bool {
    matches!(input, VertexInput::Exchange { .. })
}

/// An error of a source: the world's fault or ours.
pub(crate) fn of_source(error: DataflowError) -> RuntimeError {
    if matches!(error, DataflowError::Connector { .. }) {
        RuntimeError::Connector(error.to_string())
    } else {
        internal(error)
    }
}

pub(crate) fn internal(error: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::Internal(error.to_string())
}
