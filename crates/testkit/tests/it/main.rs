//! All integration tests of the workspace, in one binary.

mod slt;
mod tidy;
