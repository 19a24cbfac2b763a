//! All integration tests of the workspace, in one binary.

#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "test code; its lints are not worked through yet"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

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
