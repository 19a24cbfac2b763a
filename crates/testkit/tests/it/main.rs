//! All integration tests of the workspace, in one binary.

mod nexmark;
mod slt;
mod tidy;
