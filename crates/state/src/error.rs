//! What can go wrong with durable state.

use std::path::{Path, PathBuf};

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
    /// A write or an fsync failed, so nobody knows what reached the disk, and a later success would
    /// prove nothing. The caller must end the process; the next start finds out what is there.
    #[error("{reason}; what reached the disk is unknown, so the process must end")]
    Fatal {
        /// What failed.
        reason: String,
    },
    /// Another process has the data folder open.
    #[error("the data folder {path} is in use by another process")]
    InUse {
        /// The folder.
        path: PathBuf,
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

impl StateError {
    /// Whether the process must end: see [`StateError::Fatal`].
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Fatal { .. })
    }

    /// Whether the operating system refused: no space, no permission, a failing disk.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Io { .. })
            || matches!(self, Self::RocksDb(error) if error.kind() == rocksdb::ErrorKind::IOError)
    }

    /// For `map_err` on an operation on a file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_path_buf(), source }
    }

    /// A file that is not what was written.
    pub(crate) fn damaged(file: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { file: file.to_path_buf(), reason: reason.into() }
    }

    /// This error, raised by a write that must not be tried again.
    pub(crate) fn into_fatal(self) -> Self {
        if self.is_fatal() { self } else { Self::Fatal { reason: self.to_string() } }
    }
}

/// The result of the state layer.
pub type Result<T, E = StateError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_to_the_database_is_no_bug() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let refused =
            rocksdb::DB::open_for_read_only(&rocksdb::Options::default(), missing, false).unwrap_err();
        assert!(StateError::from(refused).is_io());
        assert!(!StateError::Internal("a bug".to_owned()).is_io());
    }
}
