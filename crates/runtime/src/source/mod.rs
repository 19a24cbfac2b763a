//! Reading a source: one shared pump per reader, one lane per subtask.
//!
//! ```text
//!              SourcePump (one lock)                      SourceLane (one per subtask)
//!  split a ──► claim chunk 7 of a, in order ────────────► decode (parallel)
//!  split b ──► claim chunk 3 of b                            │ greatest watermark of the chunk
//!              stamp: prefix of chunks < k ◄─────────────────┘
//!              publish prefix for k + 1     ────────────► rows with origin
//! ```
//!
//! **Invariant.** What a row carries (`$split`, `$position`, `$wm`) depends on the split's bytes
//! and the split log alone, never on chunk sizes, threads or restarts.

mod cut;
mod event_time;
mod lane;
mod pump;
mod splits;
mod watch;

pub(crate) use cut::SplitCut;
pub(crate) use lane::SourceLane;
pub(crate) use pump::{PumpRole, SourcePump};
pub(crate) use splits::stored_splits;
pub(crate) use watch::Reach;
