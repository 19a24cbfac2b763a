//! Disordered files from a seed, and what semantics 1 to 7 say about them: a small program of its
//! own that shares nothing with the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use testkit::crash::Random;

/// 2024-01-02 00:00:00 in milliseconds since 1970.
pub(super) const START_MS: i64 = 1_704_153_600_000;
/// How far the watermark of every source here is behind.
pub(super) const DELAY_MS: i64 = 5_000;
/// Length of every window here.
pub(super) const WINDOW_MS: i64 = 10_000;

/// What a line of a file is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Record {
    Event {
        k: i64,
        v: i64,
        ts_ms: i64,
    },
    /// An event without a time.
    Timeless,
    /// An event a thousand years ahead.
    FarFuture,
    /// Not an event.
    Undecodable,
}

/// Files that are read as one source, as lines with the position where each begins.
pub(super) struct Feed {
    pub(super) splits: Vec<Vec<(i64, Record)>>,
    pub(super) texts: Vec<String>,
}

/// How one file moves through time.
struct Pace {
    lines: usize,
    begins_ms: i64,
    step_ms: i64,
}

const PACES: [Pace; 3] = [
    Pace { lines: 330, begins_ms: 0, step_ms: 700 },
    Pace { lines: 200, begins_ms: 8_000, step_ms: 1_500 },
    // A file that is far behind the others when it ends.
    Pace { lines: 120, begins_ms: 3_000, step_ms: 400 },
];

impl Feed {
    /// `has_far_future`: whether there are events a thousand years ahead, which a bounded source
    /// takes for what they are.
    pub(super) fn new(seed: u64, has_far_future: bool) -> Self {
        let mut random = Random::new(seed);
        let mut feed = Self { splits: Vec::new(), texts: Vec::new() };
        for pace in &PACES {
            let (mut lines, mut text) = (Vec::new(), String::new());
            for number in 0..pace.lines {
                let (record, line) = line(&mut random, pace, number, has_far_future);
                lines.push((i64::try_from(text.len()).unwrap(), record));
                text.push_str(&line);
                text.push('\n');
            }
            feed.splits.push(lines);
            feed.texts.push(text);
        }
        feed
    }
}

fn line(random: &mut Random, pace: &Pace, number: usize, has_far_future: bool) -> (Record, String) {
    // Mostly within the delay; now and then far behind.
    let behind = if random.one_in(9) { random.below(45_000) } else { random.below(DELAY_MS) };
    let ts_ms = START_MS + pace.begins_ms + i64::try_from(number).unwrap() * pace.step_ms - behind;
    let (k, v) = (random.below(4), random.below(12));
    let event = |time: &str| format!(r#"{{"id":{number},"k":{k},"v":{v},"ts":{time}}}"#);
    match random.below(40) {
        0 => (Record::Timeless, event("null")),
        1 if has_far_future => (Record::FarFuture, event(r#""2999-01-01 00:00:00""#)),
        2 => (
            Record::Undecodable,
            format!(r#"{{"id":{number},"k":{k},"v":"many","ts":"{}"}}"#, timestamp(ts_ms)),
        ),
        3 => (Record::Undecodable, format!(r#"{{"id":{number},"k":"#)),
        4 => (Record::Undecodable, event(r#""yesterday""#)),
        _ => (Record::Event { k, v, ts_ms }, event(&format!("\"{}\"", timestamp(ts_ms)))),
    }
}

/// Milliseconds since 1970, of the first weeks of 2024, as PostgreSQL writes them.
pub(super) fn timestamp(ms: i64) -> String {
    let since = ms - START_MS + 86_400_000;
    let (day, ms) = (since.div_euclid(86_400_000) + 1, since.rem_euclid(86_400_000));
    let mut text =
        format!("2024-01-{day:02} {:02}:{:02}:{:02}", ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    if ms % 1_000 != 0 {
        write!(text, ".{:03}", ms % 1_000).unwrap();
        text.truncate(text.trim_end_matches('0').len());
    }
    text
}

/// A row that came too late.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Late {
    pub(super) split: usize,
    pub(super) position: i64,
    pub(super) window_start_ms: i64,
    pub(super) watermark_ms: i64,
}

/// What a windowed view over a feed must show.
#[derive(Debug, Default)]
pub(super) struct Reference {
    /// The values in time, by window start and key.
    pub(super) groups: BTreeMap<(i64, i64), Vec<i64>>,
    pub(super) late: BTreeSet<Late>,
    /// Split and position of the lines that are no rows of the source.
    pub(super) refused: BTreeSet<(usize, i64)>,
    /// Split and position of rows in time whose value is 0.
    pub(super) zeros: BTreeSet<(usize, i64)>,
    /// All rows of the source, as key and value.
    pub(super) rows: Vec<(i64, i64)>,
    /// Where the watermark of the source ends; `i64::MAX`: behind everything.
    pub(super) watermark_ms: i64,
}

/// Windows stay open `lateness_ms` longer; `is_bounded`: the source ends with its files.
pub(super) fn reference(feed: &Feed, lateness_ms: i64, is_bounded: bool) -> Reference {
    let mut told = Reference { watermark_ms: i64::MAX, ..Reference::default() };
    for (split, lines) in feed.splits.iter().enumerate() {
        let mut watermark = i64::MIN;
        for &(position, record) in lines {
            let Record::Event { k, v, ts_ms } = record else {
                told.refused.insert((split, position));
                continue;
            };
            told.rows.push((k, v));
            let start = ts_ms.div_euclid(WINDOW_MS) * WINDOW_MS;
            if start + WINDOW_MS + lateness_ms <= watermark {
                told.late.insert(Late { split, position, window_start_ms: start, watermark_ms: watermark });
            } else {
                told.groups.entry((start, k)).or_default().push(v);
                if v == 0 {
                    told.zeros.insert((split, position));
                }
            }
            // The watermark a row carries is that of the rows before it.
            watermark = watermark.max(ts_ms - DELAY_MS);
        }
        told.watermark_ms = told.watermark_ms.min(watermark);
    }
    if is_bounded {
        told.watermark_ms = i64::MAX;
    }
    told
}

impl Reference {
    /// Whether a window is closed in the end.
    pub(super) fn is_closed(&self, start_ms: i64, lateness_ms: i64) -> bool {
        start_ms + WINDOW_MS + lateness_ms <= self.watermark_ms
    }
}
