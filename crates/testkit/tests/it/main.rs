//! All integration tests of the workspace, in one binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crash;
mod event_time;
mod nexmark;
mod random_views;
mod slt;
mod tidy;
