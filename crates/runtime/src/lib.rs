//! Runs job graphs: tasks, exchanges, the epoch clock, checkpoints, recovery.

mod api;

pub use api::{
    Change, Clock, JobDefinition, JobState, JobStatus, Runtime, RuntimeError, RuntimeOptions,
    SystemClock,
};
