//! All integration tests of the workspace, in one binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crash;
mod eviction;
mod memory;
mod nexmark;
mod slt;
mod tidy;
