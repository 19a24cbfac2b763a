//! All integration tests of the workspace, in one binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "what a failed test was doing")]

mod command_line;
mod crash;
mod event_time;
mod eviction;
mod hostile;
mod memory;
mod nexmark;
mod protocol;
mod psql;
mod random_views;
mod readme;
mod slt;
mod tidy;
