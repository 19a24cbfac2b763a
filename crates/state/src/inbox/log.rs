//! The open segment log: appends that share an fsync.
//!
//! ```text
//!            append: frame joins `pending`
//!                        │
//!        nobody writes ──┴── somebody writes
//!              │                    │
//!           leader               follower: waits until its sequence is durable,
//!   takes all of `pending`,      or until it may lead the next group
//!   write → fdatasync → fence
//!              │
//!        wakes everybody
//! ```
//!
//! While one group is being synced the next one gathers, so the size of a group follows the load
//! by itself. What gathers is bounded by the callers, each of which waits for its own record.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::segment::{LogEnd, Segment, SegmentReader, encode_frame, encode_header, segment_path};
use crate::fence::Fence;
use crate::{Result, StateError, file};

/// Size at which the next group begins a new segment.
const SEGMENT_BYTES: u64 = 64 << 20;

/// The log, open for appending.
#[derive(Debug)]
pub(crate) struct SegmentLog {
    folder: PathBuf,
    segment_bytes: u64,
    fence: Arc<Fence>,
    group: Mutex<Group>,
    written: Condvar,
    tail: Mutex<Tail>,
    /// Keeps the data folder ours for as long as anybody can append.
    _lock: Arc<File>,
}

/// The records that wait for the next fsync.
#[derive(Debug)]
struct Group {
    /// Their frames.
    pending: Vec<u8>,
    /// Sequence and checksum of the last of them.
    last: u64,
    checksum: u32,
    /// Sequence and checksum of the last record on disk: the one before `pending`, unless a
    /// leader is at work.
    durable: u64,
    durable_checksum: u32,
    is_writing: bool,
    has_failed: bool,
}

/// The end of the log on disk.
#[derive(Debug)]
struct Tail {
    segments: Vec<Segment>,
    file: File,
    length: u64,
}

impl SegmentLog {
    /// Creates an empty log.
    pub(crate) fn create(folder: &Path) -> Result<()> {
        file::create_folder(folder)?;
        file::create_file(&segment_path(folder, 1), &encode_header(1, 0)).map(drop)
    }

    /// Opens a log that has been checked: cuts off what was never acknowledged.
    pub(crate) fn open(folder: &Path, end: LogEnd, fence: Arc<Fence>, lock: Arc<File>) -> Result<Self> {
        if let Some(unfinished) = &end.unfinished {
            file::remove_file_if_there(unfinished)?;
            file::sync_folder(folder)?;
        }
        let Some(last) = end.segments.last() else {
            return Err(StateError::Internal("an inbox without segments was opened".to_owned()));
        };
        let file =
            File::options().append(true).open(&last.path).map_err(StateError::io("open", &last.path))?;
        // The sync makes records durable that were whole but perhaps only in the page cache; only
        // then may the fence count them.
        file.set_len(end.length).and_then(|()| file.sync_all()).map_err(StateError::io("cut", &last.path))?;
        fence.advance_inbox(end.sequence)?;
        let group = Group {
            pending: Vec::new(),
            last: end.sequence,
            checksum: end.checksum,
            durable: end.sequence,
            durable_checksum: end.checksum,
            is_writing: false,
            has_failed: false,
        };
        Ok(Self {
            folder: folder.to_path_buf(),
            segment_bytes: SEGMENT_BYTES,
            fence,
            group: Mutex::new(group),
            written: Condvar::new(),
            tail: Mutex::new(Tail { segments: end.segments, file, length: end.length }),
            _lock: lock,
        })
    }

    /// Appends a record; returns when it is durable and fenced.
    pub(super) fn append(&self, payload: &[u8]) -> Result<u64> {
        if u32::try_from(payload.len()).is_err() {
            return Err(StateError::Encoding("a transaction is limited to 4 GiB".to_owned()));
        }
        let mut group = self.group.lock();
        let sequence = group.push(payload);
        loop {
            if group.has_failed {
                return Err(failed_before());
            }
            if group.durable >= sequence {
                return Ok(sequence);
            }
            if group.is_writing {
                self.written.wait(&mut group);
                continue;
            }
            let frames = std::mem::take(&mut group.pending);
            let (last, checksum) = (group.last, group.checksum);
            let (first, checksum_before) = (group.durable + 1, group.durable_checksum);
            group.is_writing = true;
            drop(group);
            let result = self
                .write_group(&frames, first, checksum_before)
                .and_then(|()| self.fence.advance_inbox(last));
            group = self.group.lock();
            group.is_writing = false;
            match &result {
                Ok(()) => (group.durable, group.durable_checksum) = (last, checksum),
                Err(_) => group.has_failed = true,
            }
            self.written.notify_all();
            result.map_err(StateError::into_fatal)?;
        }
    }

    pub(super) fn last_sequence(&self) -> u64 {
        self.group.lock().durable
    }

    /// Calls `apply` with every durable record behind `after`.
    pub(super) fn replay(&self, after: u64, apply: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let durable = self.last_sequence();
        let segments = self.tail.lock().segments.clone();
        let mut replayed = after;
        for (idx, segment) in segments.iter().enumerate() {
            let ends_before = segments.get(idx + 1).is_some_and(|next| next.first <= after + 1);
            if ends_before {
                continue;
            }
            SegmentReader::open(segment)?.read_to_end(|sequence, payload| {
                if sequence <= after || sequence > durable {
                    return Ok(());
                }
                replayed = sequence;
                apply(sequence, payload)
            })?;
        }
        if replayed < durable {
            let reason = format!("the replay ended at record {replayed} instead of {durable}");
            return Err(StateError::damaged(&self.folder, reason));
        }
        Ok(())
    }

    /// Deletes the segments, all but the last, that hold nothing behind `sequence`.
    pub(super) fn truncate(&self, sequence: u64) -> Result<()> {
        let mut tail = self.tail.lock();
        let gone =
            tail.segments.windows(2).take_while(|pair| pair[1].first <= sequence.saturating_add(1)).count();
        if gone == 0 {
            return Ok(());
        }
        // Oldest first: a crash in between leaves a log without a hole.
        for segment in tail.segments.drain(..gone) {
            fs::remove_file(&segment.path).map_err(StateError::io("remove", &segment.path))?;
        }
        file::sync_folder(&self.folder)
    }

    fn write_group(&self, frames: &[u8], first: u64, checksum_before: u32) -> Result<()> {
        let mut tail = self.tail.lock();
        let has_records = tail.segments.last().is_some_and(|segment| segment.first < first);
        if has_records && tail.length >= self.segment_bytes {
            let header = encode_header(first, checksum_before);
            let path = segment_path(&self.folder, first);
            tail.file = file::create_file(&path, &header)?;
            tail.length = header.len() as u64;
            tail.segments.push(Segment { path, first });
        }
        let written = tail.file.write_all(frames).and_then(|()| tail.file.sync_data());
        let path = tail.segments.last().map_or(self.folder.as_path(), |segment| &segment.path);
        written.map_err(StateError::io("write", path))?;
        tail.length += frames.len() as u64;
        Ok(())
    }
}

impl Group {
    fn push(&mut self, payload: &[u8]) -> u64 {
        self.last += 1;
        self.checksum = encode_frame(&mut self.pending, self.checksum, self.last, payload);
        self.last
    }
}

fn failed_before() -> StateError {
    StateError::Fatal { reason: "an earlier write to the inbox failed".to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// A log in a temporary folder that rolls after `segment_bytes`.
    struct Fixture {
        folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            Fence::create(&folder.path().join("fence")).unwrap();
            SegmentLog::create(&folder.path().join("inbox")).unwrap();
            Self { folder }
        }

        fn inbox(&self) -> PathBuf {
            self.folder.path().join("inbox")
        }

        fn check(&self, contained: u64) -> Result<LogEnd> {
            let fenced = Fence::read(&self.folder.path().join("fence")).unwrap().inbox_sequence;
            LogEnd::check(&self.inbox(), fenced, contained)
        }

        fn open(&self, segment_bytes: u64) -> SegmentLog {
            let fence = Arc::new(Fence::open(&self.folder.path().join("fence")).unwrap());
            let lock = Arc::new(File::create(self.folder.path().join("LOCK")).unwrap());
            let mut log = SegmentLog::open(&self.inbox(), self.check(0).unwrap(), fence, lock).unwrap();
            log.segment_bytes = segment_bytes;
            log
        }

        fn segments(&self) -> Vec<PathBuf> {
            let mut paths: Vec<_> =
                fs::read_dir(self.inbox()).unwrap().map(|entry| entry.unwrap().path()).collect();
            paths.sort();
            paths
        }
    }

    fn replayed(log: &SegmentLog, after: u64) -> Vec<(u64, String)> {
        let mut records = Vec::new();
        log.replay(after, &mut |sequence, payload| {
            records.push((sequence, String::from_utf8(payload.to_vec()).unwrap()));
            Ok(())
        })
        .unwrap();
        records
    }

    fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    /// Asserts that the start is refused and names `path`.
    fn assert_refused(fixture: &Fixture, path: &Path) {
        match fixture.check(0) {
            Err(StateError::Damaged { file, .. }) => assert_eq!(file, path),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn records_come_back_over_segments_and_restarts() {
        let fixture = Fixture::new();
        for round in 0..3 {
            let log = fixture.open(40);
            for record in 0..4 {
                assert_eq!(
                    log.append(format!("{round}.{record}").as_bytes()).unwrap(),
                    round * 4 + record + 1
                );
            }
        }
        assert!(fixture.segments().len() > 3);
        let log = fixture.open(40);
        assert_eq!(log.last_sequence(), 12);
        let records = replayed(&log, 5);
        assert_eq!(records.first(), Some(&(6, "1.1".to_owned())));
        assert_eq!(records.len(), 7);
    }

    #[test]
    fn threads_share_groups_and_every_record_is_there_once() {
        let fixture = Fixture::new();
        let log = fixture.open(2_000);
        let start = Barrier::new(8);
        let mut sequences: Vec<(u64, String)> = std::thread::scope(|scope| {
            let append_all = |thread: usize| {
                start.wait();
                (0..50)
                    .map(|idx| format!("{thread}/{idx}"))
                    .map(|text| (log.append(text.as_bytes()).unwrap(), text))
                    .collect()
            };
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || append_all(thread))).collect();
            threads.into_iter().flat_map(|thread| -> Vec<_> { thread.join().unwrap() }).collect()
        });
        sequences.sort();
        assert_eq!(replayed(&log, 0), sequences);
        drop(log);
        assert_eq!(replayed(&fixture.open(2_000), 0), sequences);
    }

    #[test]
    fn truncation_deletes_whole_segments_and_never_the_last() {
        let fixture = Fixture::new();
        let log = fixture.open(1);
        (0..5).for_each(|idx| assert!(log.append(&[idx]).is_ok()));
        let before = fixture.segments().len();
        log.truncate(3).unwrap();
        assert_eq!(fixture.segments().len(), before - 3);
        assert_eq!(replayed(&log, 3).len(), 2);
        log.truncate(5).unwrap();
        assert_eq!(fixture.segments().len(), 1);
        assert!(fixture.check(4).is_ok());
        drop(log);
        assert_eq!(fixture.check(5).unwrap().sequence, 5);
    }

    #[test]
    fn a_deleted_segment_that_no_checkpoint_contains_is_refused() {
        let fixture = Fixture::new();
        let log = fixture.open(1);
        (0..5).for_each(|idx| assert!(log.append(&[idx]).is_ok()));
        log.truncate(3).unwrap();
        drop(log);
        assert!(fixture.check(3).is_ok());
        let error = fixture.check(2).unwrap_err();
        assert!(error.to_string().contains("record 3 is missing"), "{error}");
    }

    #[test]
    fn a_torn_record_behind_the_fence_is_cut_off() {
        let fixture = Fixture::new();
        fixture.open(1_000).append(b"acknowledged").unwrap();
        let path = &fixture.segments()[0];
        let whole = fs::read(path).unwrap();
        let mut torn = Vec::new();
        encode_frame(&mut torn, fixture.check(0).unwrap().checksum, 2, b"never acknowledged");
        for length in 0..torn.len() {
            fs::write(path, [&whole, &torn[..length]].concat()).unwrap();
            let log = fixture.open(1_000);
            assert_eq!(replayed(&log, 0).len(), 1);
            drop(log);
            assert_eq!(fs::read(path).unwrap(), whole);
        }
        fs::write(path, [whole, torn].concat()).unwrap();
        assert_eq!(replayed(&fixture.open(1_000), 0).len(), 2, "a whole record is kept");
    }

    #[test]
    fn any_flipped_bit_before_the_fence_is_refused() {
        let fixture = Fixture::new();
        let log = fixture.open(1_000);
        log.append(b"one").unwrap();
        log.append(b"two").unwrap();
        drop(log);
        let path = &fixture.segments()[0];
        for at in 0..fs::metadata(path).unwrap().len() as usize {
            edit(path, |bytes| bytes[at] ^= 0x10);
            assert_refused(&fixture, path);
            edit(path, |bytes| bytes[at] ^= 0x10);
        }
        assert!(fixture.check(0).is_ok());
    }

    #[test]
    fn a_log_shorter_than_the_fence_is_refused() {
        let fixture = Fixture::new();
        let log = fixture.open(1_000);
        log.append(b"one").unwrap();
        let after_one = fs::read(&fixture.segments()[0]).unwrap();
        log.append(b"two").unwrap();
        drop(log);
        fs::write(&fixture.segments()[0], after_one).unwrap();
        assert_refused(&fixture, &fixture.segments()[0]);
    }

    #[test]
    fn a_shortened_older_segment_is_refused() {
        let fixture = Fixture::new();
        let log = fixture.open(1);
        (0..3).for_each(|idx| assert!(log.append(&[idx]).is_ok()));
        drop(log);
        let segments = fixture.segments();
        edit(&segments[1], |bytes| bytes.truncate(bytes.len() - 17));
        // The record is gone without a trace: the next segment does not follow.
        assert_refused(&fixture, &segments[2]);
    }

    #[test]
    fn a_segment_that_was_only_being_begun_is_dropped() {
        let fixture = Fixture::new();
        fixture.open(1_000).append(b"one").unwrap();
        let begun = segment_path(&fixture.inbox(), 2);
        fs::write(&begun, &encode_header(2, 0)[..10]).unwrap();
        let log = fixture.open(1_000);
        assert!(!begun.exists());
        assert_eq!(log.append(b"two").unwrap(), 2);
    }
}
