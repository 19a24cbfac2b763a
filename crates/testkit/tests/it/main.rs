//! All integration tests of the workspace, in one binary.

mod crash;
mod nexmark;
mod slt;
mod tidy;
