//! The fence: how far the disk is known to have come, written behind the data it speaks of.
//!
//! A start that finds less than the fence says has lost something, whatever the files look like.
//! The file is two slots of 512 bytes (one sector each) that are written in turn, so a write that
//! is cut short leaves the other slot.
//!
//! | bytes of a slot | little-endian |
//! |---|---|
//! | 0..8     | `HWFENCE1` |
//! | 8..16    | generation: grows by one with every write; its parity is the slot |
//! | 16..24   | epoch of the last checkpoint |
//! | 24..32   | sequence of the last inbox record |
//! | 32..508  | zero |
//! | 508..512 | crc32c of the bytes before |
//!
//! **Invariant.** Nothing is acknowledged or published before the fence behind it is on disk, and
//! neither number ever goes back.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::{Epoch, Result, StateError, file};

const SLOT_BYTES: usize = 512;
const CHECKSUM_AT: usize = SLOT_BYTES - 4;
const MAGIC: &[u8; 8] = b"HWFENCE1";

/// What the fence says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FencePosition {
    /// The last checkpoint.
    pub(crate) epoch: Epoch,
    /// The last inbox record.
    pub(crate) inbox_sequence: u64,
}

/// The open fence, shared by checkpoints and inbox.
#[derive(Debug)]
pub(crate) struct Fence {
    path: PathBuf,
    file: File,
    last: Mutex<Slot>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    generation: u64,
    position: FencePosition,
}

impl Fence {
    /// Creates the fence of an empty database.
    pub(crate) fn create(path: &Path) -> Result<()> {
        let slots = [0, 1].map(|generation| Slot { generation, position: FencePosition::default() }.encode());
        file::create_file(path, slots.as_flattened()).map(drop)
    }

    /// What the fence says; changes nothing.
    pub(crate) fn read(path: &Path) -> Result<FencePosition> {
        Ok(read_last_slot(path)?.position)
    }

    /// Opens the fence for writing.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let last = read_last_slot(path)?;
        let file = File::options().write(true).open(path).map_err(StateError::io("open", path))?;
        Ok(Self { path: path.to_path_buf(), file, last: Mutex::new(last) })
    }

    /// The checkpoint of `epoch` is on disk. An error is fatal.
    pub(crate) fn advance_epoch(&self, epoch: Epoch) -> Result<()> {
        self.advance(|position| position.epoch = epoch)
    }

    /// Every inbox record up to `sequence` is on disk. An error is fatal.
    pub(crate) fn advance_inbox(&self, sequence: u64) -> Result<()> {
        self.advance(|position| position.inbox_sequence = sequence)
    }

    fn advance(&self, change: impl FnOnce(&mut FencePosition)) -> Result<()> {
        let mut last = self.last.lock();
        let mut next = Slot { generation: last.generation + 1, position: last.position };
        change(&mut next.position);
        let went_back = next.position.epoch < last.position.epoch
            || next.position.inbox_sequence < last.position.inbox_sequence;
        if went_back {
            return Err(StateError::Internal(format!("fence goes back from {last:?} to {next:?}")));
        }
        let offset = (next.generation % 2) * SLOT_BYTES as u64;
        self.file
            .write_all_at(&next.encode(), offset)
            .and_then(|()| self.file.sync_data())
            .map_err(|error| StateError::io("write", &self.path)(error).into_fatal())?;
        *last = next;
        Ok(())
    }
}

impl Slot {
    fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.position.epoch.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.position.inbox_sequence.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; SLOT_BYTES]) -> Option<Self> {
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let position = FencePosition { epoch: Epoch(number(16)?), inbox_sequence: number(24)? };
        let slot = Self { generation: number(8)?, position };
        // Encoding again checks the magic, the zeros and the checksum at once.
        (slot.encode() == *bytes).then_some(slot)
    }
}

fn read_last_slot(path: &Path) -> Result<Slot> {
    if !path.exists() {
        return Err(StateError::damaged(path, "it is missing; restore the whole data folder"));
    }
    let bytes = fs::read(path).map_err(StateError::io("read", path))?;
    if bytes.len() != 2 * SLOT_BYTES {
        let reason = format!(
            "it has {} bytes instead of {}; restore the whole data folder",
            bytes.len(),
            2 * SLOT_BYTES
        );
        return Err(StateError::damaged(path, reason));
    }
    let slots = bytes.as_chunks::<SLOT_BYTES>().0.iter().map(Slot::decode);
    slots.flatten().max_by_key(|slot| slot.generation).ok_or_else(|| {
        StateError::damaged(path, "neither slot has a valid checksum; restore the whole data folder")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence_at_epoch_3() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fence");
        Fence::create(&path).unwrap();
        let fence = Fence::open(&path).unwrap();
        for epoch in 1..=3 {
            fence.advance_epoch(Epoch(epoch)).unwrap();
            fence.advance_inbox(epoch * 10).unwrap();
        }
        (folder, path)
    }

    fn flip(path: &Path, at: usize) {
        let mut bytes = fs::read(path).unwrap();
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn the_last_write_is_what_a_start_finds() {
        let (_folder, path) = fence_at_epoch_3();
        assert_eq!(Fence::read(&path).unwrap(), FencePosition { epoch: Epoch(3), inbox_sequence: 30 });
    }

    #[test]
    fn a_torn_slot_leaves_the_write_before() {
        let (_folder, path) = fence_at_epoch_3();
        // Generation 7 (odd) is the last one: slot 1.
        flip(&path, SLOT_BYTES + 20);
        assert_eq!(Fence::read(&path).unwrap(), FencePosition { epoch: Epoch(3), inbox_sequence: 20 });
    }

    #[test]
    fn two_damaged_slots_are_refused() {
        let (_folder, path) = fence_at_epoch_3();
        flip(&path, 100);
        flip(&path, SLOT_BYTES + 511);
        let error = Fence::read(&path).unwrap_err();
        assert!(matches!(&error, StateError::Damaged { file, .. } if *file == path), "{error}");
    }

    #[test]
    fn a_shortened_fence_is_refused() {
        let (_folder, path) = fence_at_epoch_3();
        File::options().write(true).open(&path).unwrap().set_len(512).unwrap();
        assert!(matches!(Fence::read(&path), Err(StateError::Damaged { .. })));
    }

    #[test]
    fn the_fence_never_goes_back() {
        let (_folder, path) = fence_at_epoch_3();
        let fence = Fence::open(&path).unwrap();
        assert!(matches!(fence.advance_inbox(29), Err(StateError::Internal(_))));
        assert!(matches!(fence.advance_epoch(Epoch(2)), Err(StateError::Internal(_))));
    }
}
