//! Verification of a database before it is opened for writing.
//!
//! ```text
//!  link (table files and logs linked, MANIFEST and CURRENT copied)
//!    └─► open the links read-only, strictly ──────────► judge the chains against the fence
//!          │ refused: perhaps only a torn last write                    │
//!          └─► open them up to the first fault ──► judge ───────────────┤
//!                                                                       ├─► whole: drop the links
//!                                                                       └─► refused: keep them
//!                                                                           as evidence
//! ```
//!
//! An open for writing would already delete what a shortened MANIFEST no longer names, so the
//! question "is everything here?" is asked of a read-only view of links that nobody deletes.
//!
//! A process that is killed while it writes a commit leaves a torn record at the end of the log.
//! That is no damage: the commit was never acknowledged, and the fence says so. Which faults in a
//! log matter is therefore not decided by its recovery mode but by the chain: everything up to the
//! fence must be there, in every family.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rocksdb::{DB, DBRecoveryMode, InfoLogger, LogLevel};
use tracing::warn;

use super::rocks::{ChainEntry, DatabaseOptions, Family, fault_of, read_chain};
use crate::{Epoch, Result, StateError, file};

/// Memory for the read-only look.
const MEMORY: usize = 32 << 20;

const ADVICE: &str = "nothing was changed; restore the whole data folder from a backup or savepoint";

/// A database that holds everything it must.
#[derive(Debug)]
pub(super) struct Verified {
    /// How its logs are to be read.
    pub(super) recovery: DBRecoveryMode,
    /// Its last commit.
    pub(super) last: ChainEntry,
}

/// Checks that the database holds every commit up to `fenced`. Works in `links`, which is gone
/// afterwards; when the database is refused, it becomes `evidence` (the first one is kept).
pub(super) fn verify(database: &Path, links: &Path, evidence: &Path, fenced: Epoch) -> Result<Verified> {
    file::remove_folder_if_there(links)?;
    if !database.is_dir() {
        return Err(StateError::damaged(database, format!("it is missing; {ADVICE}")));
    }
    link_files(database, links)?;
    let verdict = judge_links(links, fenced);
    if verdict.is_err() && !evidence.exists() {
        fs::rename(links, evidence).map_err(StateError::io("rename", links))?;
    }
    file::remove_folder_if_there(links)?;
    verdict.map_err(|refusal| {
        let (reason, evidence) = (refusal.reason(), evidence.display());
        let reason = format!("{reason}; {ADVICE}; the files as found are kept in {evidence}");
        StateError::damaged(&refusal.file(database), reason)
    })
}

fn judge_links(links: &Path, fenced: Epoch) -> Result<Verified, Refusal> {
    let strictly = DBRecoveryMode::AbsoluteConsistency;
    let refusal = match open_and_judge(links, strictly, fenced) {
        Ok(last) => return Ok(Verified { recovery: strictly, last }),
        Err(refusal) => refusal,
    };
    // Only `RocksDB`'s own refusal may turn out to be a torn last write.
    if matches!(refusal, Refusal::RocksDb { .. }) {
        let up_to_fault = DBRecoveryMode::PointInTime;
        if let Ok(last) = open_and_judge(links, up_to_fault, fenced) {
            warn!(reason = %refusal.reason(), "the last write to the log was cut short and had not been acknowledged");
            return Ok(Verified { recovery: up_to_fault, last });
        }
    }
    Err(refusal)
}

/// Why a database is refused.
#[derive(Debug)]
enum Refusal {
    /// `RocksDB` noticed, and perhaps said in which file.
    RocksDb { reason: String, file: Option<String> },
    /// Commits are missing that were flushed once, or that only one family lost.
    Missing(String),
    /// The last commits are missing.
    Short(String),
    /// The fence is from another time than the database.
    OldFence(String),
}

impl Refusal {
    fn rocksdb(error: &rocksdb::Error, diary: &Diary) -> Self {
        let reason = error.to_string();
        let file = file_named_in(&reason).or_else(|| diary.log_dropped());
        Self::RocksDb { reason, file }
    }

    fn reason(&self) -> &str {
        match self {
            Self::RocksDb { reason, .. }
            | Self::Missing(reason)
            | Self::Short(reason)
            | Self::OldFence(reason) => reason,
        }
    }

    /// The file to look at first.
    fn file(&self, database: &Path) -> PathBuf {
        let found = match self {
            Self::RocksDb { file: Some(file), .. } => Some(database.join(file)),
            Self::RocksDb { file: None, .. } | Self::Missing(_) => current_manifest(database),
            Self::Short(_) => newest_log(database),
            Self::OldFence(_) => database.parent().map(|folder| folder.join("fence")),
        };
        found.unwrap_or_else(|| database.join("CURRENT"))
    }
}

fn open_and_judge(links: &Path, recovery: DBRecoveryMode, fenced: Epoch) -> Result<ChainEntry, Refusal> {
    let diary = Diary::default();
    let refused = |error| Refusal::rocksdb(&error, &diary);
    let mut options = DatabaseOptions::new(MEMORY, recovery);
    options.database.set_info_logger(diary.logger());
    let db = DB::open_cf_descriptors_read_only(&options.database, links, options.families(), false)
        .map_err(refused)?;
    let mut chains = Vec::new();
    for family in Family::ALL {
        let name = family.name();
        let Some(handle) = db.cf_handle(name) else {
            return Err(Refusal::Missing(format!("column family {name} is missing")));
        };
        chains.push((name, read_chain(&db, handle).map_err(refused)?));
    }
    judge(&chains, fenced)
}

/// The last commit, if no family lacks one and the last is the fenced one or the one after it.
fn judge(chains: &[(&str, Vec<ChainEntry>)], fenced: Epoch) -> Result<ChainEntry, Refusal> {
    for (family, chain) in chains {
        if let Some(fault) = fault_of(chain) {
            return Err(Refusal::Missing(format!("in column family {family}, {fault}")));
        }
    }
    let ends = chains.iter().map(|(family, chain)| (*family, chain.last().copied().unwrap_or_default()));
    let (Some((first, shortest)), Some((other, last))) =
        (ends.clone().min_by_key(|(_, end)| end.number), ends.max_by_key(|(_, end)| end.number))
    else {
        return Err(Refusal::Missing("there is no column family".to_owned()));
    };
    if shortest != last {
        let (at, up_to) = (shortest.epoch, last.epoch);
        return Err(Refusal::Missing(format!(
            "column family {first} ends at epoch {at}, {other} at epoch {up_to}"
        )));
    }
    let before = chains.iter().find_map(|(_, chain)| chain.iter().nth_back(1)).copied().unwrap_or_default();
    let end = last.epoch;
    if end == fenced || (end > fenced && before.epoch == fenced) {
        Ok(last)
    } else if end < fenced {
        Err(Refusal::Short(format!("the database ends at epoch {end}, but epoch {fenced} was completed")))
    } else {
        Err(Refusal::OldFence(format!(
            "it says that epoch {fenced} is the last one, but the database ends at epoch {end}"
        )))
    }
}

/// Makes `links` a copy of the database that shares its large files.
fn link_files(database: &Path, links: &Path) -> Result<()> {
    file::create_folder(links)?;
    for name in file_names(database)? {
        let (from, to) = (database.join(&name), links.join(&name));
        let is_shared = name.ends_with(".sst") || name.ends_with(".log");
        // A file system without links gets copies.
        if is_shared && fs::hard_link(&from, &to).is_ok() {
            continue;
        }
        if is_shared || name.starts_with("MANIFEST-") || name == "CURRENT" || name == "IDENTITY" {
            fs::copy(&from, &to).map_err(StateError::io("copy", &from))?;
        }
    }
    Ok(())
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(StateError::io("read", folder))?;
    let name = |entry: std::io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names =
        entries.map(name).collect::<std::io::Result<Vec<_>>>().map_err(StateError::io("read", folder))?;
    names.sort();
    Ok(names)
}

/// The first database file that a message of `RocksDB` names.
fn file_named_in(message: &str) -> Option<String> {
    let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || "._-/".contains(c)));
    let mut names = words.filter_map(|word| word.trim_end_matches('.').rsplit('/').next());
    let is_file = |name: &&str| {
        name.ends_with(".sst")
            || name.ends_with(".log")
            || name.starts_with("MANIFEST-")
            || *name == "CURRENT"
    };
    names.find(is_file).map(str::to_owned)
}

/// What `RocksDB` warns of while it opens. Its errors about logs name no file, its warnings do.
#[derive(Clone, Default)]
struct Diary {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn logger(&self) -> InfoLogger {
        let lines = Arc::clone(&self.lines);
        InfoLogger::new_callback_logger(LogLevel::Warn, move |_, line| lines.lock().push(line.to_owned()))
    }

    /// The log of which a part was to be dropped.
    fn log_dropped(&self) -> Option<String> {
        self.lines
            .lock()
            .iter()
            .rev()
            .filter(|line| line.contains(": dropping "))
            .find_map(|line| file_named_in(line))
    }
}

fn current_manifest(database: &Path) -> Option<PathBuf> {
    let current = fs::read_to_string(database.join("CURRENT")).ok()?;
    Some(database.join(current.trim_end()))
}

fn newest_log(database: &Path) -> Option<PathBuf> {
    let names = file_names(database).ok()?;
    let newest = names.iter().rfind(|name| name.ends_with(".log"))?;
    Some(database.join(newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(ends: &[u64]) -> Vec<ChainEntry> {
        let entry = |(idx, epoch): (usize, &u64)| ChainEntry {
            number: idx as u64 + 1,
            epoch: Epoch(*epoch),
            inbox_sequence: 0,
        };
        ends.iter().enumerate().map(entry).collect()
    }

    fn judge_equal(epochs: &[u64], fenced: u64) -> Result<ChainEntry, Refusal> {
        judge(&[("meta", chain(epochs)), ("state", chain(epochs)), ("views", chain(epochs))], Epoch(fenced))
    }

    #[test]
    fn the_chain_may_end_at_the_fence_or_one_commit_after() {
        assert_eq!(judge_equal(&[], 0).unwrap().number, 0);
        assert_eq!(judge_equal(&[4], 0).unwrap().number, 1);
        assert_eq!(judge_equal(&[4, 9], 9).unwrap().number, 2);
        assert_eq!(judge_equal(&[4, 9, 17], 9).unwrap().number, 3);
    }

    #[test]
    fn any_other_end_is_refused() {
        assert!(matches!(judge_equal(&[], 4), Err(Refusal::Short(_))));
        assert!(matches!(judge_equal(&[4, 9], 17), Err(Refusal::Short(_))));
        assert!(matches!(judge_equal(&[4, 9, 17], 4), Err(Refusal::OldFence(_))));
        assert!(matches!(judge_equal(&[4, 9], 0), Err(Refusal::OldFence(_))));
    }

    #[test]
    fn families_must_end_alike() {
        let refusal = judge(&[("meta", chain(&[4, 9])), ("state", chain(&[4]))], Epoch(9)).unwrap_err();
        assert_eq!(refusal.reason(), "column family state ends at epoch 4, meta at epoch 9");
    }

    #[test]
    fn the_file_in_a_message_is_found() {
        let sst =
            "Corruption: block checksum mismatch: stored = 1  in /data/verify/000012.sst offset 0 size 31";
        assert_eq!(file_named_in(sst).as_deref(), Some("000012.sst"));
        let wal = "Corruption: Missing WAL with log number: 8 in /data/verify/000008.log.";
        assert_eq!(file_named_in(wal).as_deref(), Some("000008.log"));
        assert_eq!(file_named_in("IO error: no space left"), None);
    }
}
