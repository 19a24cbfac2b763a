//! Segment files of the inbox: what they look like, how they are read, what a start checks.
//!
//! A segment is named after the sequence of its first record, `00000000000000000001.inbox`.
//!
//! | bytes of the header | little-endian |
//! |---|---|
//! | 0..8   | `HWINBOX1` |
//! | 8..16  | sequence of the first record |
//! | 16..20 | checksum of the record before it (0: none) |
//! | 20..28 | zero |
//! | 28..32 | crc32c of the bytes before |
//!
//! | bytes of a record | |
//! |---|---|
//! | 0..4   | length of the payload |
//! | 4..12  | sequence |
//! | 12..16 | crc32c of the checksum of the record before, length, sequence, payload |
//! | 16..   | payload |
//!
//! **Invariant.** A segment is only begun when the one before is complete and synced. So only the
//! last one may end in a torn record, and only behind the fence: such a record was never
//! acknowledged and is cut off. Anything else that is wrong refuses the start.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::{Result, StateError};

const MAGIC: &[u8; 8] = b"HWINBOX1";
const EXTENSION: &str = "inbox";
const HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 16;
const ADVICE: &str = "the data folder must be restored as a whole";

/// A segment file.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    /// Sequence of its first record.
    pub(super) first: u64,
}

/// Where a checked log ends, and so where it goes on.
#[derive(Debug)]
pub(crate) struct LogEnd {
    /// All segments, oldest first.
    pub(super) segments: Vec<Segment>,
    /// Sequence of the last whole record.
    pub(super) sequence: u64,
    /// Its checksum.
    pub(super) checksum: u32,
    /// Bytes of the last segment up to its end.
    pub(super) length: u64,
    /// A segment that was being begun when the process ended.
    pub(super) unfinished: Option<PathBuf>,
}

impl LogEnd {
    /// Checks every segment of a log without changing anything. `fenced` is the last sequence that
    /// may have been acknowledged, `contained` what the last checkpoint contains.
    pub(crate) fn check(folder: &Path, fenced: u64, contained: u64) -> Result<Self> {
        let (mut segments, unfinished) = list_segments(folder, fenced)?;
        let Some(oldest) = segments.first() else {
            return Err(StateError::damaged(folder, format!("it holds no segment; {ADVICE}")));
        };
        if oldest.first > contained + 1 {
            let reason = format!("the segment with record {} is missing; {ADVICE}", contained + 1);
            return Err(StateError::damaged(folder, reason));
        }
        let (mut sequence, mut checksum, mut length) = (oldest.first - 1, None, 0);
        let count = segments.len();
        for (idx, segment) in segments.iter_mut().enumerate() {
            let is_last = idx + 1 == count;
            if segment.first != sequence + 1 {
                let reason =
                    format!("the segment with record {} before it is missing; {ADVICE}", sequence + 1);
                return Err(StateError::damaged(&segment.path, reason));
            }
            let mut reader = SegmentReader::open(segment)?;
            if checksum.is_some_and(|checksum| checksum != reader.checksum) {
                let reason = format!("it does not continue the segment before it; {ADVICE}");
                return Err(StateError::damaged(&segment.path, reason));
            }
            let end = reader.read_to_end(|_, _| Ok(()))?;
            (sequence, checksum, length) = (reader.next - 1, Some(reader.checksum), reader.offset);
            match end {
                End::Clean => {}
                End::Torn(_) if is_last && sequence >= fenced => {}
                End::Torn(reason) => {
                    let at = reader.offset;
                    let reason = format!("record {} at byte {at} {reason}; {ADVICE}", sequence + 1);
                    return Err(StateError::damaged(&segment.path, reason));
                }
            }
        }
        if sequence < fenced {
            let file = segments.last().map_or(folder, |segment| &segment.path);
            let reason =
                format!("it ends at record {sequence}, but record {fenced} was acknowledged; {ADVICE}");
            return Err(StateError::damaged(file, reason));
        }
        Ok(Self { segments, sequence, checksum: checksum.unwrap_or_default(), length, unfinished })
    }
}

/// Why a segment has no further record.
pub(super) enum End {
    Clean,
    Torn(&'static str),
}

/// Reads the records of a segment.
pub(super) struct SegmentReader {
    input: BufReader<File>,
    path: PathBuf,
    size: u64,
    /// Behind the last whole record.
    pub(super) offset: u64,
    /// Sequence of the record there.
    pub(super) next: u64,
    /// Checksum of the last whole record.
    pub(super) checksum: u32,
}

impl SegmentReader {
    pub(super) fn open(segment: &Segment) -> Result<Self> {
        let path = segment.path.clone();
        let file = File::open(&path).map_err(StateError::io("open", &path))?;
        let size = file.metadata().map_err(StateError::io("read", &path))?.len();
        let mut input = BufReader::with_capacity(1 << 16, file);
        let mut header = [0; HEADER_BYTES];
        let checksum = (size >= HEADER_BYTES as u64)
            .then(|| input.read_exact(&mut header).map_err(StateError::io("read", &path)))
            .transpose()?
            .and_then(|()| checksum_before(&header, segment.first))
            .ok_or_else(|| StateError::damaged(&path, format!("its header is not valid; {ADVICE}")))?;
        Ok(Self { input, path, size, offset: HEADER_BYTES as u64, next: segment.first, checksum })
    }

    /// Calls `apply` with sequence and payload of every whole record.
    pub(super) fn read_to_end(&mut self, mut apply: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<End> {
        let mut payload = Vec::new();
        while self.offset < self.size {
            let left = self.size - self.offset;
            if left < FRAME_BYTES as u64 {
                return Ok(End::Torn("is incomplete"));
            }
            let mut frame = [0; FRAME_BYTES];
            self.read(&mut frame)?;
            let [l0, l1, l2, l3, sequence @ .., c0, c1, c2, c3] = frame;
            let length = u32::from_le_bytes([l0, l1, l2, l3]);
            if u64::from_le_bytes(sequence) != self.next {
                return Ok(End::Torn("has another sequence"));
            }
            if u64::from(length) > left - FRAME_BYTES as u64 {
                return Ok(End::Torn("is incomplete"));
            }
            payload.resize(length as usize, 0);
            self.read(&mut payload)?;
            let checksum = record_checksum(self.checksum, self.next, &payload);
            if checksum != u32::from_le_bytes([c0, c1, c2, c3]) {
                return Ok(End::Torn("does not match its checksum"));
            }
            apply(self.next, &payload)?;
            self.checksum = checksum;
            self.next += 1;
            self.offset += FRAME_BYTES as u64 + u64::from(length);
        }
        Ok(End::Clean)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.input.read_exact(bytes).map_err(StateError::io("read", &self.path))
    }
}

/// The path of the segment that begins with `first`.
pub(super) fn segment_path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}.{EXTENSION}"))
}

/// The header of a segment; `checksum` is that of the record before.
pub(super) fn encode_header(first: u64, checksum: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&first.to_le_bytes());
    header[16..20].copy_from_slice(&checksum.to_le_bytes());
    let own = crc32c::crc32c(&header[..28]);
    header[28..].copy_from_slice(&own.to_le_bytes());
    header
}

/// Appends a record to `bytes` and returns its checksum; `before` is that of the record before.
pub(super) fn encode_frame(bytes: &mut Vec<u8>, before: u32, sequence: u64, payload: &[u8]) -> u32 {
    let checksum = record_checksum(before, sequence, payload);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&sequence.to_le_bytes());
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(payload);
    checksum
}

fn record_checksum(before: u32, sequence: u64, payload: &[u8]) -> u32 {
    let checksum = crc32c::crc32c(&before.to_le_bytes());
    let checksum = crc32c::crc32c_append(checksum, &(payload.len() as u32).to_le_bytes());
    let checksum = crc32c::crc32c_append(checksum, &sequence.to_le_bytes());
    crc32c::crc32c_append(checksum, payload)
}

/// The checksum of the record before `first`, if this is the header of its segment.
fn checksum_before(header: &[u8; HEADER_BYTES], first: u64) -> Option<u32> {
    let checksum = header[16..20].try_into().map(u32::from_le_bytes).ok()?;
    (encode_header(first, checksum) == *header).then_some(checksum)
}

/// All segments, oldest first, and apart from them one that was only being begun: its header is
/// incomplete and nothing in it can have been acknowledged.
fn list_segments(folder: &Path, fenced: u64) -> Result<(Vec<Segment>, Option<PathBuf>)> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder).map_err(StateError::io("read", folder))? {
        let path = entry.map_err(StateError::io("read", folder))?.path();
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let first = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        match first {
            Some(first) if first > 0 => segments.push(Segment { path, first }),
            Some(_) | None => return Err(StateError::damaged(&path, "its name is not a record number")),
        }
    }
    segments.sort_unstable_by_key(|segment| segment.first);
    let is_unfinished = |segment: &mut Segment| {
        let was_never_used = segment.first > fenced && segment.first > 1;
        was_never_used && matches!(SegmentReader::open(segment), Err(StateError::Damaged { .. }))
    };
    let unfinished = segments.pop_if(is_unfinished).map(|segment| segment.path);
    Ok((segments, unfinished))
}
