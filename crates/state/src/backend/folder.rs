//! The data folder: what lies where, and the order in which a start touches it.
//!
//! | name | |
//! |---|---|
//! | `LOCK` | held by the one process that has the folder open |
//! | `FORMAT` | `highwater format 1`; with `creating` behind it the folder was never used |
//! | `fence` | how far the disk has come |
//! | `rocksdb/` | checkpoints |
//! | `inbox/` | the segment log |
//! | `verify/` | links to `rocksdb/` while a start verifies |
//! | `spill/` | what running batch queries have put aside; emptied at the start |
//! | `evidence/` | those links, kept from the first refusal until somebody deletes them |
//!
//! **Invariant.** Nothing in the folder changes before everything in it has been checked.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Storage;
use super::rocks::RocksBackend;
use super::verify::verify;
use crate::fence::Fence;
use crate::inbox::{LogEnd, SegmentLog};
use crate::{Inbox, Result, StateError, file};

const FORMAT: u32 = 1;

/// Verifies the folder and opens it; a folder that is new or empty becomes a data folder.
pub(super) fn open(path: &Path, memory: usize) -> Result<Storage> {
    file::create_folder(path)?;
    let folder = Folder { path: path.to_path_buf() };
    let lock = Arc::new(folder.lock()?);
    if folder.must_be_created()? {
        folder.create()?;
    }
    let position = Fence::read(&folder.fence())?;
    let verified = verify(&folder.database(), &folder.links(), &folder.evidence(), position.epoch)?;
    let end = LogEnd::check(&folder.inbox(), position.inbox_sequence, verified.last.inbox_sequence)?;

    let fence = Arc::new(Fence::open(&folder.fence())?);
    let log = SegmentLog::open(&folder.inbox(), end, Arc::clone(&fence), Arc::clone(&lock))?;
    let backend = RocksBackend::open(&folder.database(), memory, verified, fence, lock)?;
    Ok(Storage { backend: Arc::new(backend), inbox: Arc::new(Inbox::on_disk(log)) })
}

struct Folder {
    path: PathBuf,
}

impl Folder {
    fn format(&self) -> PathBuf {
        self.path.join("FORMAT")
    }

    fn fence(&self) -> PathBuf {
        self.path.join("fence")
    }

    fn database(&self) -> PathBuf {
        self.path.join("rocksdb")
    }

    fn inbox(&self) -> PathBuf {
        self.path.join("inbox")
    }

    fn links(&self) -> PathBuf {
        self.path.join("verify")
    }

    fn evidence(&self) -> PathBuf {
        self.path.join("evidence")
    }

    fn lock(&self) -> Result<File> {
        let path = self.path.join("LOCK");
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = open.map_err(StateError::io("open", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => Err(StateError::InUse { path: self.path.clone() }),
            Err(TryLockError::Error(error)) => Err(StateError::io("lock", &path)(error)),
        }
    }

    /// Whether nothing was ever stored here. Refuses a folder that is not ours or of another
    /// format.
    fn must_be_created(&self) -> Result<bool> {
        let path = self.format();
        if !path.exists() {
            return self.check_empty().map(|()| true);
        }
        let text = fs::read_to_string(&path).map_err(StateError::io("read", &path))?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let (found, is_new) = match words.as_slice() {
            ["highwater", "format", found] => (found.parse().ok(), false),
            ["highwater", "format", found, "creating"] => (found.parse().ok(), true),
            _ => (None, false),
        };
        match found {
            Some(FORMAT) => Ok(is_new),
            Some(found) => Err(StateError::Version { what: "the data folder", found, known: FORMAT }),
            None => {
                Err(StateError::damaged(&path, "it does not name a format; restore the whole data folder"))
            }
        }
    }

    /// A folder without `FORMAT` must hold nothing: it may be anybody's, or `FORMAT` was lost.
    fn check_empty(&self) -> Result<()> {
        for entry in fs::read_dir(&self.path).map_err(StateError::io("read", &self.path))? {
            let name = entry.map_err(StateError::io("read", &self.path))?.file_name();
            if name != "LOCK" && name != "FORMAT.new" && name != "lost+found" {
                let reason = format!(
                    "it is missing, but the folder holds {}; give an empty folder, or restore the whole data folder",
                    name.display()
                );
                return Err(StateError::damaged(&self.format(), reason));
            }
        }
        Ok(())
    }

    /// Creates an empty database. Interrupted at any point, the next start begins anew: `FORMAT`
    /// says that nothing was stored yet.
    fn create(&self) -> Result<()> {
        let format = format!("highwater format {FORMAT}");
        file::replace_file(&self.format(), format!("{format} creating\n").as_bytes())?;
        file::remove_folder_if_there(&self.database())?;
        file::remove_folder_if_there(&self.inbox())?;
        file::remove_file_if_there(&self.fence())?;
        RocksBackend::create(&self.database())?;
        SegmentLog::create(&self.inbox())?;
        Fence::create(&self.fence())?;
        file::replace_file(&self.format(), format!("{format}\n").as_bytes())
    }
}
