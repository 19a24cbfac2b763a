//! The split log: what a source reads, from where, and how far it has come.
//!
//! One `meta` entry per split (version 1):
//!
//! | field | type | |
//! |---|---|---|
//! | number | int | `$split`: source job in the high 32 bits, index in the log in the low |
//! | name | text | the connector's name |
//! | start, end | int, int | where it begins; where it ends, `i64::MIN`: not known |
//! | position | int | behind the last record read |
//! | watermark | int | greatest watermark of the records before `position` |
//! | ended | int | 1: nothing will come any more |
//! | raises | int, then pairs | `(position, watermark)`: from there on at least that watermark |
//!
//! A raise says with which watermark a split entered: one found later than the first ones, or
//! back from idleness, begins at the source's watermark of that moment. It is durable before the
//! first row behind it passes, and every later reader of the split (a restart, a backfill) applies
//! the same raises at the same positions.
//!
//! **Invariant.** Only an idle split is behind the source's watermark; a restart knows by that
//! which splits were idle.

use dataflow::{JobId, Split, SplitReader, Watermark};
use state::{Epoch, Snapshot};

use crate::RuntimeError;
use crate::meta::{ValueReader, ValueWriter, source_prefix};

const VERSION: u8 = 1;
const NO_END: i64 = i64::MIN;

/// From `position` on, rows carry at least `watermark`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raise {
    pub(crate) position: i64,
    pub(crate) watermark: i64,
}

/// Whether a split can be read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplitStatus {
    /// There may be something.
    Ready,
    /// Nothing at the last look.
    Pending,
    /// Found, or back from idleness: no row of it passes before the log says, durably, with which
    /// watermark it entered. The checkpoint that does is named once it is on its way.
    Entering(Option<Epoch>),
    /// A private reader is where it was told to stop.
    AtLimit,
    /// Nothing will come any more.
    Ended,
}

/// One split as a pump works on it.
pub(crate) struct SplitState {
    pub(crate) number: i64,
    pub(crate) split: Split,
    pub(crate) reader: Option<Box<dyn SplitReader>>,
    /// Behind the last chunk claimed.
    pub(crate) position: i64,
    pub(crate) status: SplitStatus,
    /// Where a private reader stops for now.
    pub(crate) limit: Option<i64>,
    /// Chunks claimed so far: the order of the next one.
    pub(crate) claimed: u64,
    /// Chunks whose watermark is known, in order.
    pub(crate) stamped: u64,
    /// Greatest watermark of the stamped chunks.
    pub(crate) watermark: i64,
    /// Lanes that wait to stamp the chunk of that order.
    pub(crate) waiting: Vec<(u64, usize)>,
    pub(crate) raises: Vec<Raise>,
    /// How often a look found nothing more for now.
    pub(crate) misses: u64,
    /// Whether the last look found nothing.
    pub(crate) is_silent: bool,
    /// Wall time of the last chunk.
    pub(crate) last_input: i64,
    pub(crate) is_idle: bool,
    /// Whether the stored entry is older than this.
    pub(crate) is_dirty: bool,
}

impl SplitState {
    pub(crate) fn new(number: i64, split: Split, now: i64) -> Self {
        Self {
            number,
            position: split.start,
            split,
            reader: None,
            status: SplitStatus::Ready,
            limit: None,
            claimed: 0,
            stamped: 0,
            watermark: Watermark::MIN.0,
            waiting: Vec::new(),
            raises: Vec::new(),
            misses: 0,
            is_silent: false,
            last_input: now,
            is_idle: false,
            is_dirty: true,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = ValueWriter::new(VERSION)
            .int(self.number)
            .text(&self.split.name)
            .int(self.split.start)
            .int(self.split.end.unwrap_or(NO_END))
            .int(self.position)
            .int(self.watermark)
            .int(i64::from(self.status == SplitStatus::Ended))
            .int(self.raises.len() as i64);
        for raise in &self.raises {
            value = value.int(raise.position).int(raise.watermark);
        }
        value.finish()
    }

    pub(crate) fn decode(key: &[u8], bytes: &[u8], now: i64) -> Result<Self, RuntimeError> {
        let mut value = ValueReader::new(key, bytes, VERSION)?;
        let number = value.int()?;
        let name = value.text()?;
        let (start, end) = (value.int()?, value.int()?);
        let split = Split { name, start, end: (end != NO_END).then_some(end) };
        let mut state = Self::new(number, split, now);
        state.position = value.int()?;
        state.watermark = value.int()?;
        if value.int()? == 1 {
            state.status = SplitStatus::Ended;
        }
        for _ in 0..value.int()? {
            state.raises.push(Raise { position: value.int()?, watermark: value.int()? });
        }
        state.is_dirty = false;
        Ok(state)
    }

    /// The split counts from here on, with the source's watermark.
    pub(crate) fn enter(&mut self, watermark: Watermark) {
        if watermark != Watermark::MIN {
            self.watermark = watermark.0;
            self.raises.push(Raise { position: self.position, watermark: watermark.0 });
        }
        self.is_idle = false;
        self.is_silent = false;
        self.is_dirty = true;
        // What a reader has read ahead is read again.
        self.reader = None;
        self.status = SplitStatus::Entering(None);
    }

    /// The split as its reader is opened now.
    pub(crate) fn to_open(&self) -> Split {
        Split { end: self.limit.or(self.split.end), ..self.split.clone() }
    }
}

/// The splits of a source as a checkpoint knows them; `None`: not pinned yet.
pub(crate) fn stored_splits(snapshot: &dyn Snapshot, job: JobId) -> Result<Option<Vec<Split>>, RuntimeError> {
    let prefix = format!("{}split/", source_prefix(job));
    let entries =
        snapshot.scan_meta(prefix.as_bytes()).map_err(|error| RuntimeError::Internal(error.to_string()))?;
    let splits: Result<Vec<Split>, RuntimeError> =
        entries.iter().map(|(key, value)| Ok(SplitState::decode(key, value, 0)?.split)).collect();
    splits.map(|splits| (!splits.is_empty()).then_some(splits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_entry_reads_back_as_written() {
        let split = Split { name: "a/b.json".to_owned(), start: 3, end: None };
        let mut state = SplitState::new(7 << 32 | 1, split, 0);
        state.position = 99;
        state.watermark = -5;
        state.status = SplitStatus::Ended;
        state.raises = vec![Raise { position: 3, watermark: -9 }, Raise { position: 50, watermark: -6 }];
        let bytes = state.encode();
        let read = SplitState::decode(b"key", &bytes, 0).unwrap();
        assert_eq!(read.encode(), bytes);
        assert!(SplitState::decode(b"key", &bytes[..bytes.len() - 1], 0).is_err());
    }
}
