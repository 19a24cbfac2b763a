//! Files and folders whose existence must survive a power failure.
//!
//! A new name is durable only after an fsync of its folder: without it the file may be whole and
//! yet unreachable.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::{Result, StateError};

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(StateError::io("sync", folder))
}

/// Creates a file that must not exist yet, durably with its name.
pub(crate) fn create_file(path: &Path, content: &[u8]) -> Result<File> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(StateError::io("create", path))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(StateError::io("write", path))?;
    sync_parent(path)?;
    Ok(file)
}

/// Replaces the content of a file: afterwards, and after any crash, it is the old or the new one.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    remove_file_if_there(&new)?;
    create_file(&new, content)?;
    fs::rename(&new, path).map_err(StateError::io("replace", path))?;
    sync_parent(path)
}

/// Creates a folder and those above it, durably.
pub(crate) fn create_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => create_folder(parent)?,
        Some(_) | None => {}
    }
    fs::create_dir(path).map_err(StateError::io("create", path))?;
    sync_parent(path)
}

/// Removes a file that may not exist.
pub(crate) fn remove_file_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StateError::io("remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes a folder that may not exist, with all it holds.
pub(crate) fn remove_folder_if_there(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StateError::io("remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        Some(_) | None => sync_folder(Path::new(".")),
    }
}
