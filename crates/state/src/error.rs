//! What can go wrong with durable state.

use std::path::PathBuf;

/// An error of the state layer. None of these is the user's fault; those that name a file mean
/// that data on disk is not what was written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried, e.g. `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is not what was written: damaged, cut short, older or newer than the rest.
    #[error("{file} is damaged: {reason}")]
    Damaged {
        /// The file at fault.
        file: PathBuf,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// A format version that this program does not know.
    #[error("{what} has format version {found}, this program knows up to {known}")]
    Version {
        /// Which format.
        what: &'static str,
        /// Found on disk.
        found: u32,
        /// Highest known.
        known: u32,
    },
    /// `RocksDB` refused.
    #[error("RocksDB: {0}")]
    RocksDb(#[from] rocksdb::Error),
    /// An Arrow kernel refused.
    #[error("{0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// Bytes that are not what our encoding writes, or a type it does not have.
    #[error("encoding: {0}")]
    Encoding(String),
    /// A promise was broken: a bug.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The result of the state layer.
pub type Result<T, E = StateError> = std::result::Result<T, E>;
