//! Runs job graphs: tasks, exchanges, the epoch clock, checkpoints, recovery.
//!
//! ```text
//!  engine ── Runtime ──► coordinator ── barriers ──► source pumps, inbox reader
//!               │            ▲    │                        │ lanes
//!               │            │    └─► commit thread        ▼
//!               │         reports                  tasks on engine threads ── exchanges ── tasks
//!               ▼            └──────────────────────────── │ ◄───────────────────────────────┘
//!           ViewStore ◄──────────── one publish per epoch ─┘
//! ```
//!
//! Threads: `parallelism` engine threads (subtask i of every vertex runs on thread i), one
//! coordinator, one commit thread. Nothing here knows what any operator does.

mod answers;
mod api;
mod chain;
mod changes;
mod checkpoint;
mod clock;
mod committer;
mod coordinator;
mod events;
mod exchange;
mod failure;
mod gate;
mod gauge;
mod inbox_reader;
mod jobs;
mod meta;
mod pacing;
mod partition;
mod polling;
mod readiness;
mod rebuild;
mod recovery;
mod saved;
mod scan;
mod side;
mod source;
mod status;
mod task;
#[cfg(test)]
mod tests;
mod waiters;
mod worker;

pub(crate) use api::Tuning;
pub use api::{Change, JobDefinition, JobState, JobStatus, Runtime, RuntimeError, RuntimeOptions};
pub use clock::{Clock, SystemClock};
pub use readiness::{Readiness, Unready};
