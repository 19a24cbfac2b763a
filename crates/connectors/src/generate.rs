//! What sources that make up their records have in common: positions are record numbers, chunks
//! carry no bytes, and a `rate` decides how many records there are by now.

use std::time::{Duration, Instant};

use bytes::Bytes;
use dataflow::{Chunk, OptionError, OptionSpec, ReadOutcome, Result, SplitReader};

use crate::options::{CheckedOptions, optional};

pub(crate) const RATE: OptionSpec = optional(
    "rate",
    &["rows_per_second", "rows-per-second", "events_per_second", "event_rate"],
    "records a second; without it, as fast as they are read",
);
pub(crate) const SEED: OptionSpec = optional("seed", &[], "start of the random numbers, default 1");

/// Records a second, as an option.
pub(crate) fn rate(options: &CheckedOptions) -> Result<Option<f64>, OptionError> {
    options.parse(RATE.name, "expected a number above 0", |text| {
        text.replace('_', "").parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
    })
}

/// Record `first + n` is there `n / rate` seconds after the reader began.
#[derive(Debug, Clone, Copy)]
struct Pace {
    rate: f64,
    first: i64,
    began: Instant,
}

impl Pace {
    #[expect(
        clippy::disallowed_methods,
        reason = "a rate is about the outside, whose time no replay repeats"
    )]
    fn from_now_on(rate: f64, first: i64) -> Self {
        Self { rate, first, began: Instant::now() }
    }

    /// The position behind the last record that is there after some time.
    fn available_after(&self, elapsed: Duration) -> i64 {
        self.first.saturating_add((elapsed.as_secs_f64() * self.rate) as i64)
    }
}

/// Reads a generated split.
pub(crate) struct GeneratedReader<F> {
    position: i64,
    end: i64,
    pace: Option<Pace>,
    row_bytes: usize,
    /// Where a chunk that begins at a position should end at the latest.
    chunk_end: F,
}

impl<F: Fn(i64) -> i64 + Send> GeneratedReader<F> {
    /// `row_bytes` is about what a row takes in memory.
    pub(crate) fn new(
        position: i64,
        end: Option<i64>,
        rate: Option<f64>,
        row_bytes: usize,
        chunk_end: F,
    ) -> Self {
        let pace = rate.map(|rate| Pace::from_now_on(rate, position));
        Self { position, end: end.unwrap_or(i64::MAX), pace, row_bytes, chunk_end }
    }
}

impl<F: Fn(i64) -> i64 + Send> SplitReader for GeneratedReader<F> {
    fn read(&mut self, bytes_max: usize) -> Result<ReadOutcome> {
        if self.position >= self.end {
            return Ok(ReadOutcome::End);
        }
        let available = self.pace.map_or(i64::MAX, |pace| pace.available_after(pace.began.elapsed()));
        if self.position >= available {
            return Ok(ReadOutcome::Pending);
        }
        let rows = i64::try_from(bytes_max / self.row_bytes).unwrap_or(i64::MAX).max(1);
        let start = self.position;
        let end = start.saturating_add(rows).min(available).min(self.end).min((self.chunk_end)(start));
        self.position = end;
        Ok(ReadOutcome::Chunk(Chunk { start, end, bytes: Bytes::new() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_makes_records_available_one_after_the_other() {
        let pace = Pace::from_now_on(1000.0, 500);
        assert_eq!(pace.available_after(Duration::ZERO), 500);
        assert_eq!(pace.available_after(Duration::from_millis(10)), 510);
        assert_eq!(pace.available_after(Duration::from_secs(u64::MAX / 2)), i64::MAX);
    }

    #[test]
    fn chunks_follow_each_other_up_to_the_end() {
        let mut reader = GeneratedReader::new(3, Some(10), None, 100, |start| start + 4);
        let mut chunks = Vec::new();
        while let ReadOutcome::Chunk(chunk) = reader.read(1000).unwrap() {
            chunks.push((chunk.start, chunk.end));
        }
        assert_eq!(chunks, [(3, 7), (7, 10)]);
        assert!(matches!(reader.read(1000).unwrap(), ReadOutcome::End));
    }
}
