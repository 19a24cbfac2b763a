//! Harnesses for tests; never part of the product.

pub mod crash;
pub mod database;
pub mod oracle;
pub mod shape;
pub mod slt;
pub mod wire;

use std::path::PathBuf;

/// The root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root.pop();
    root
}
