//! Cuts a file into chunks of whole records.
//!
//! Every chunk is read at its own offset and cut behind the last whole record in it; the rest is
//! read again with the next one, so the only state is the position. A record that does not fit the
//! buffer makes the buffer grow, up to [`RECORD_BYTES_MAX`]; beyond it the record is skipped to the
//! next newline without being kept, and only its beginning is handed over.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};

use bytes::Bytes;
use dataflow::{Chunk, DataflowError, ReadOutcome, Result, Split, SplitReader};
use memchr::{memchr, memrchr};

use crate::file::source::failed;
use crate::format::{BYTE_ORDER_MARK, CsvFraming, RAW_BYTES_MAX, RECORD_BYTES_MAX};

/// The least that is read at once.
const READ_BYTES_MIN: usize = 4 << 10;

pub(super) struct FileReader {
    file: File,
    name: String,
    position: u64,
    /// The pinned length of a bounded split.
    end: Option<u64>,
    csv: Option<CsvFraming>,
    /// The header line of a CSV file, once it has been read.
    header: Vec<u8>,
    /// Length of the file when nothing whole was behind the position.
    exhausted_at: Option<u64>,
    skipping: Option<Skip>,
}

/// A record that is too long, up to now.
struct Skip {
    beginning: Bytes,
    /// Bytes up to here are without a newline.
    scanned: u64,
}

impl FileReader {
    pub(super) fn new(file: File, split: &Split, position: i64, csv: Option<CsvFraming>) -> Self {
        Self {
            file,
            name: split.name.clone(),
            position: u64::try_from(position).unwrap_or(0),
            end: split.end.and_then(|end| u64::try_from(end).ok()),
            csv,
            header: Vec::new(),
            exhausted_at: None,
            skipping: None,
        }
    }

    fn failed(&self, reason: impl std::fmt::Display) -> DataflowError {
        failed(&self.name, &reason.to_string())
    }

    /// Up to where the file may be read now.
    fn limit(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(|error| self.failed(error))?;
        let length = metadata.len();
        if length < self.position || self.end.is_some_and(|end| length < end) {
            return Err(self.failed("the file has become shorter while it is read"));
        }
        Ok(self.end.unwrap_or(length))
    }

    /// Nothing whole is left: a bounded split ends, a followed file is waited for.
    fn nothing_left(&mut self, limit: u64) -> Result<ReadOutcome> {
        if self.end.is_some() {
            return Ok(ReadOutcome::End);
        }
        self.exhausted_at = Some(limit);
        let opened = self.file.metadata().map_err(|error| self.failed(error))?;
        match fs::metadata(&self.name) {
            Ok(named) if (named.dev(), named.ino()) == (opened.dev(), opened.ino()) => {
                Ok(ReadOutcome::Pending)
            }
            Ok(_) => Err(self.failed("the file has been replaced while it is read")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(self.failed("the file has been removed while it is read"))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Bytes from the position on, behind the header where chunks need one.
    fn fill(&self, count: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::with_capacity(self.header.len() + count);
        buffer.extend_from_slice(&self.header);
        // Not `read_exact_at`, which wants the room cleared before it is filled.
        let mut file = &self.file;
        let read = file
            .seek(SeekFrom::Start(self.position))
            .and_then(|_| file.take(count as u64).read_to_end(&mut buffer))
            .map_err(|error| self.failed(error))?;
        if read < count {
            return Err(self.failed("the file has become shorter while it is read"));
        }
        Ok(buffer)
    }

    /// Where the last whole record of a buffer ends, whose first record begins at `start`.
    fn last_record_end(&self, buffer: &[u8], start: usize) -> Option<usize> {
        match &self.csv {
            Some(csv) => {
                let mark = if self.position == 0 && buffer.starts_with(BYTE_ORDER_MARK) {
                    BYTE_ORDER_MARK.len()
                } else {
                    0
                };
                csv.last_record_end(buffer, start + mark)
            }
            None => memrchr(b'\n', &buffer[start..]).map(|newline| start + newline + 1),
        }
    }

    /// Reads the header line, unless the next chunk begins with it anyway.
    fn read_header(&mut self) -> Result<()> {
        let needs_header = self.csv.as_ref().is_some_and(|csv| csv.header) && self.position > 0;
        if !needs_header || !self.header.is_empty() {
            return Ok(());
        }
        let Some(csv) = self.csv else {
            return Ok(());
        };
        let length = usize::try_from(self.position).unwrap_or(RECORD_BYTES_MAX).min(RECORD_BYTES_MAX);
        let mut count = length.min(READ_BYTES_MIN);
        loop {
            let mut buffer = vec![0; count];
            self.file.read_exact_at(&mut buffer, 0).map_err(|error| self.failed(error))?;
            let start = if buffer.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
            if let Some(newline) = csv.record_end(&buffer, start) {
                buffer.truncate(newline + 1);
                self.header = buffer;
                return Ok(());
            }
            if count == length {
                return Err(self.failed("the header line has no end"));
            }
            count = (count * 4).min(length);
        }
    }

    fn chunk(&mut self, end: u64, bytes: Bytes) -> Result<ReadOutcome> {
        let start = self.position;
        self.position = end;
        let signed = |position: u64| i64::try_from(position).map_err(|_| self.failed("the file is too long"));
        Ok(ReadOutcome::Chunk(Chunk { start: signed(start)?, end: signed(end)?, bytes }))
    }

    /// Goes on looking for the end of a record that is too long.
    fn skip(&mut self, mut skip: Skip, limit: u64) -> Result<ReadOutcome> {
        const BLOCK_BYTES: u64 = 1 << 20;
        const BLOCKS_MAX: usize = 64;
        for _ in 0..BLOCKS_MAX {
            let count = usize::try_from(BLOCK_BYTES.min(limit - skip.scanned)).unwrap_or(0);
            if count == 0 {
                break;
            }
            let mut block = vec![0; count];
            self.file.read_exact_at(&mut block, skip.scanned).map_err(|error| self.failed(error))?;
            if let Some(newline) = memchr(b'\n', &block) {
                return self.chunk(skip.scanned + newline as u64 + 1, skip.beginning);
            }
            skip.scanned += count as u64;
        }
        if self.end == Some(skip.scanned) {
            return self.chunk(skip.scanned, skip.beginning);
        }
        self.skipping = Some(skip);
        Ok(ReadOutcome::Pending)
    }
}

impl SplitReader for FileReader {
    fn read(&mut self, bytes_max: usize) -> Result<ReadOutcome> {
        let limit = self.limit()?;
        if let Some(skip) = self.skipping.take() {
            return self.skip(skip, limit);
        }
        if self.position >= limit || self.exhausted_at == Some(limit) {
            return self.nothing_left(limit);
        }
        self.exhausted_at = None;
        self.read_header()?;
        let available = usize::try_from(limit - self.position).unwrap_or(usize::MAX);
        let mut count = bytes_max.clamp(READ_BYTES_MIN, RECORD_BYTES_MAX).min(available);
        loop {
            let mut buffer = self.fill(count)?;
            let start = self.header.len();
            let is_rest = self.end.is_some() && count == available;
            let end = if is_rest { Some(buffer.len()) } else { self.last_record_end(&buffer, start) };
            if let Some(end) = end {
                buffer.truncate(end);
                return self.chunk(self.position + (end - start) as u64, buffer.into());
            }
            if count >= RECORD_BYTES_MAX {
                let beginning = Bytes::copy_from_slice(&buffer[start..start + RAW_BYTES_MAX]);
                // A record that is too long ends at its first newline, in quotes or not: an open
                // quote must not swallow the rest of the file.
                return self.skip(Skip { beginning, scanned: self.position }, limit);
            }
            if count == available {
                return self.nothing_left(limit);
            }
            count = (count * 4).min(RECORD_BYTES_MAX).min(available);
        }
    }
}
