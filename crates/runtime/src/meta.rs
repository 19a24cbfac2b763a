//! The runtime's own entries in `meta`: keys, and values as bytes.
//!
//! | key | value |
//! |---|---|
//! | `runtime/clock` | wall time of the last barrier |
//! | `runtime/inbox` | inbox sequence that the tables have applied, those held back excepted |
//! | `runtime/job/<job>` | whether the job's state belongs to this checkpoint |
//! | `runtime/source/<job>/head` | whether the splits are pinned, the source's watermark |
//! | `runtime/source/<job>/split/<index>` | one split: see `source::splits` |
//! | `runtime/backfill/<job>/<vertex>/<input>/…` | the same two, of a follower's own reader |
//!
//! Numbers in keys are hexadecimal and padded, so that key order is number order. Values begin
//! with a format version; integers are little-endian, texts have a `u32` length in front.

use dataflow::JobId;

use crate::RuntimeError;

/// A write to `meta`; `None` deletes.
pub(crate) type MetaWrite = (Vec<u8>, Option<Vec<u8>>);

/// Key of the last barrier's wall time.
pub(crate) const CLOCK_KEY: &[u8] = b"runtime/clock";

/// Key of the inbox sequence that tables have applied.
pub(crate) const INBOX_KEY: &[u8] = b"runtime/inbox";

pub(crate) fn job_key(job: JobId) -> Vec<u8> {
    format!("runtime/job/{:08x}", job.0).into_bytes()
}

pub(crate) fn source_prefix(job: JobId) -> String {
    format!("runtime/source/{:08x}/", job.0)
}

/// Prefix of everything the readers of a job's backfills keep.
pub(crate) fn backfills_prefix(job: JobId) -> String {
    format!("runtime/backfill/{:08x}/", job.0)
}

pub(crate) fn backfill_prefix(job: JobId, vertex: usize, input: usize) -> String {
    format!("{}{vertex:04x}/{input:04x}/", backfills_prefix(job))
}

/// Writes a value.
pub(crate) struct ValueWriter {
    bytes: Vec<u8>,
}

impl ValueWriter {
    pub(crate) fn new(version: u8) -> Self {
        Self { bytes: vec![version] }
    }

    pub(crate) fn int(mut self, value: i64) -> Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn text(mut self, value: &str) -> Self {
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(value.as_bytes());
        self
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads a value back. Every error names the key: the entry is damaged or from a later version.
pub(crate) struct ValueReader<'a> {
    key: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> ValueReader<'a> {
    pub(crate) fn new(key: &'a [u8], bytes: &'a [u8], known: u8) -> Result<Self, RuntimeError> {
        match bytes.split_first() {
            Some((version, rest)) if *version <= known => Ok(Self { key, bytes: rest }),
            Some((version, _)) => Err(RuntimeError::Internal(format!(
                "entry {} has format version {version}, this program knows up to {known}",
                String::from_utf8_lossy(key)
            ))),
            None => Err(Self { key, bytes }.damaged()),
        }
    }

    pub(crate) fn int(&mut self) -> Result<i64, RuntimeError> {
        let (value, rest) = self.bytes.split_first_chunk().ok_or_else(|| self.damaged())?;
        self.bytes = rest;
        Ok(i64::from_le_bytes(*value))
    }

    pub(crate) fn text(&mut self) -> Result<String, RuntimeError> {
        let (length, rest) = self.bytes.split_first_chunk().ok_or_else(|| self.damaged())?;
        let (text, rest) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(|| self.damaged())?;
        let text = str::from_utf8(text).map_err(|_| self.damaged())?;
        self.bytes = rest;
        Ok(text.to_owned())
    }

    fn damaged(&self) -> RuntimeError {
        RuntimeError::Internal(format!("entry {} is damaged", String::from_utf8_lossy(self.key)))
    }
}
