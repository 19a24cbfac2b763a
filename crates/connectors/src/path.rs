//! Paths that SQL may name: only those inside of the allowed folders.
//!
//! **Invariant.** A path is compared with the allowed folders after every symbolic link and `..`
//! in it has been resolved, and again each time a file is found or opened: what a link points to
//! may change after the statement that named it.

use std::path::{Component, Path, PathBuf};

use dataflow::{ConnectorContext, OptionError};

/// The allowed folders, resolved.
#[derive(Debug, Clone)]
pub(crate) struct AllowedFolders {
    folders: Vec<PathBuf>,
}

impl AllowedFolders {
    /// Resolves the folders of the context. Folders that do not exist allow nothing.
    pub(crate) fn new(ctx: &ConnectorContext) -> Self {
        let folders = ctx.allowed_paths.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        Self { folders }
    }

    /// Makes a path absolute and resolves it as far as it exists.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, OptionError> {
        let not_allowed = || OptionError::PathNotAllowed { path: path.to_owned() };
        let absolute = self.folders.first().ok_or_else(not_allowed)?.join(path);
        let resolved = resolve_existing(&absolute).ok_or_else(not_allowed)?;
        if self.contain(&resolved) { Ok(resolved) } else { Err(not_allowed()) }
    }

    /// Whether a path is inside once it is resolved.
    pub(crate) fn allow(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|resolved| self.contain(&resolved))
    }

    fn contain(&self, resolved: &Path) -> bool {
        self.folders.iter().any(|folder| resolved.starts_with(folder))
    }
}

/// Resolves the part of a path that exists and appends the rest, in which `..` has no meaning yet.
fn resolve_existing(path: &Path) -> Option<PathBuf> {
    let mut existing = path;
    loop {
        if let Ok(resolved) = existing.canonicalize() {
            let rest = path.strip_prefix(existing).ok()?;
            let is_plain = rest.components().all(|component| matches!(component, Component::Normal(_)));
            // Joining an empty rest would add a slash and make a file look like a folder.
            return is_plain
                .then(|| if rest.as_os_str().is_empty() { resolved } else { resolved.join(rest) });
        }
        // A dangling link resolves to nothing, yet creating the file would follow it.
        if existing.is_symlink() {
            return None;
        }
        existing = existing.parent()?;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folders() -> (tempfile::TempDir, AllowedFolders) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("data/sub")).unwrap();
        fs::create_dir(dir.path().join("secret")).unwrap();
        fs::write(dir.path().join("data/a.json"), "").unwrap();
        fs::write(dir.path().join("secret/key"), "").unwrap();
        let ctx = ConnectorContext { allowed_paths: vec![dir.path().join("data")] };
        let allowed = AllowedFolders::new(&ctx);
        (dir, allowed)
    }

    #[test]
    fn a_relative_path_starts_at_the_first_allowed_folder() {
        let (dir, allowed) = folders();
        let expected = dir.path().canonicalize().unwrap().join("data/a.json");
        assert_eq!(allowed.resolve("a.json").unwrap(), expected);
        assert_eq!(allowed.resolve("sub/../a.json").unwrap(), expected);
    }

    #[test]
    fn a_path_outside_is_refused_however_it_is_written() {
        let (dir, allowed) = folders();
        symlink(dir.path().join("secret"), dir.path().join("data/link")).unwrap();
        symlink(dir.path().join("nowhere"), dir.path().join("data/dangling")).unwrap();
        let absolute = dir.path().join("secret/key").display().to_string();
        for path in [
            "../secret/key",
            absolute.as_str(),
            "link/key",
            "link",
            "new/../../secret/key",
            "/etc/passwd",
            "..",
            "dangling",
            "dangling/x",
        ] {
            assert_eq!(
                allowed.resolve(path).unwrap_err(),
                OptionError::PathNotAllowed { path: path.to_owned() }
            );
        }
    }

    #[test]
    fn a_path_that_does_not_exist_yet_is_resolved_as_far_as_it_does() {
        let (dir, allowed) = folders();
        let expected = dir.path().canonicalize().unwrap().join("data/sub/new.json");
        assert_eq!(allowed.resolve("sub/new.json").unwrap(), expected);
    }

    #[test]
    fn a_folder_whose_name_only_begins_alike_is_outside() {
        let (dir, allowed) = folders();
        fs::create_dir(dir.path().join("data2")).unwrap();
        assert!(allowed.resolve("../data2").is_err());
    }

    #[test]
    fn without_allowed_folders_nothing_is_allowed() {
        assert!(AllowedFolders::new(&ConnectorContext::default()).resolve("/tmp").is_err());
    }
}
