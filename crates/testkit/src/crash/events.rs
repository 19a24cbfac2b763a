//! The file that a source follows: lines added all the time, whether the server lives or not.
//!
//! The writer knows what must come out: which lines do not decode, and which are late. A row is
//! late for its window iff the window ended at or before the greatest time of the lines before it
//! minus the delay of the watermark. What is late says so in the line, for the batch oracle.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::random::Random;

const WINDOW_MS: i64 = 10_000;
const DELAY_MS: i64 = 5_000;

/// Lines between two pauses.
const LINES_PER_BURST: i64 = 40;

/// Time between two bursts.
const PAUSE: Duration = Duration::from_millis(10);

/// Writes the file.
pub(super) struct EventWriter {
    file: File,
    random: Random,
    /// Lines so far, and so the number of the next.
    lines: i64,
    latest_ms: i64,
    late: i64,
    undecodable: i64,
}

impl EventWriter {
    /// Starts a new file.
    pub(super) fn create(path: &Path, random: Random) -> Self {
        let file = File::create(path).expect("the event file is ours");
        Self { file, random, lines: 0, latest_ms: 0, late: 0, undecodable: 0 }
    }

    /// Adds lines until told otherwise. The file ends with a whole line whenever this is not polled.
    pub(super) async fn write_on(&mut self) {
        let mut tick = tokio::time::interval(PAUSE);
        loop {
            self.burst();
            tick.tick().await;
        }
    }

    /// Adds lines at once, in pieces that do not end where lines do.
    pub(super) fn burst(&mut self) {
        let text: String = (0..LINES_PER_BURST).map(|_| self.line()).collect();
        let cut = usize::try_from(self.random.below(text.len() as i64)).unwrap_or(0);
        let (first, second) = text.as_bytes().split_at(cut);
        for part in [first, second] {
            self.file.write_all(part).expect("the event file is ours");
        }
    }

    fn line(&mut self) -> String {
        self.lines += 1;
        if self.random.one_in(500) {
            self.undecodable += 1;
            return format!("no json, line {}\n", self.lines);
        }
        let now_ms = self.lines * 17;
        let at_ms = match self.random.below(100) {
            0 => now_ms - 60_000,
            1..30 => now_ms - self.random.below(9_000),
            _ => now_ms,
        }
        .max(0);
        let window_end = at_ms - at_ms % WINDOW_MS + WINDOW_MS;
        let is_late = window_end <= self.latest_ms - DELAY_MS;
        self.late += i64::from(is_late);
        self.latest_ms = self.latest_ms.max(at_ms);
        format!(
            "{{\"number\":{},\"kind\":{},\"amount\":{},\"happened\":\"{}\",\"late\":{is_late}}}\n",
            self.lines,
            self.random.below(4),
            self.random.below(2_000) - 1_000,
            timestamp(at_ms),
        )
    }

    /// Lines that are events.
    #[must_use]
    pub(super) fn events(&self) -> i64 {
        self.lines - self.undecodable
    }

    /// Events that are late for their window.
    #[must_use]
    pub(super) fn late(&self) -> i64 {
        self.late
    }

    /// Lines that are no event.
    #[must_use]
    pub(super) fn undecodable(&self) -> i64 {
        self.undecodable
    }

    /// The watermark after the last line.
    #[must_use]
    pub(super) fn watermark(&self) -> String {
        timestamp(self.latest_ms - DELAY_MS)
    }
}

/// Milliseconds of the first days of 2024 as text.
fn timestamp(ms: i64) -> String {
    // The second of January, so that a watermark before the first event has a place.
    let ms = ms + 86_400_000;
    let (day, ms) = (ms / 86_400_000 + 1, ms % 86_400_000);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("2024-01-{day:02} {hour:02}:{minute:02}:{second:02}.{:03}", ms % 1_000)
}
