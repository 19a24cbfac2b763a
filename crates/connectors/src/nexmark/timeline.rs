//! When the events of the auction stream happen and in which order they arrive.
//!
//! Event number `i` happens at `t(i)`, a running sum of random gaps, and arrives some delay later.
//! Records come in the order of their arrival, ties by number, and the *position* of a record is
//! its rank in that order.
//!
//! Neither the sum nor the rank has a closed form, yet any range of positions can be made on its
//! own. Events are cut into blocks of [`BLOCK`] numbers, and `t` before each block is kept in an
//! index that grows as it is needed. Let `T(j)` be the time of the first event of block `j`. Later
//! events arrive at `T(j)` or after, so the rank of the first arrival at or after `T(j)` is
//! `j * BLOCK` less the earlier events that are still on their way, and those lie no further back
//! than the longest delay.

use parking_lot::Mutex;

use crate::random::RandomField;

/// Events whose times are found from one entry of the index.
const BLOCK: i64 = 4096;

/// A person, three auctions and 46 bids make an epoch.
pub(super) const EPOCH_EVENTS: i64 = 50;

/// Delays of late bids in milliseconds.
const LATE_MIN: i64 = 60_000;
const LATE_SPREAD: i64 = 30_001;

/// What the user can choose.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) seed: u64,
    /// Number of events, or `i64::MAX`.
    pub(super) events: i64,
    pub(super) start_ms: i64,
    /// Mean time between events.
    pub(super) gap_ms: i64,
    /// How much later than its time an event may arrive.
    pub(super) out_of_order_ms: i64,
    /// How many of a thousand bids arrive later than any watermark allows.
    pub(super) late_permille: i64,
}

/// One event: its number and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) number: i64,
    pub(super) time_ms: i64,
    pub(super) is_late: bool,
}

#[derive(Debug)]
pub(super) struct Timeline {
    shape: Shape,
    gap: RandomField,
    pause: RandomField,
    is_delayed: RandomField,
    delay: RandomField,
    is_late: RandomField,
    late_delay: RandomField,
    /// Entry `j` is the time of the event before block `j`.
    index: Mutex<Vec<i64>>,
}

impl Timeline {
    pub(super) fn new(shape: Shape) -> Self {
        let field = |number| RandomField::new(shape.seed, number);
        Self {
            gap: field(1),
            pause: field(2),
            is_delayed: field(3),
            delay: field(4),
            is_late: field(5),
            late_delay: field(6),
            index: Mutex::new(vec![shape.start_ms]),
            shape,
        }
    }

    /// Time between the event before and this one.
    #[inline]
    fn gap(&self, number: i64) -> i64 {
        const PAUSE_EVERY: i64 = 20_000;
        // A person and the first auction of its epoch happen at once.
        let gap = if number % EPOCH_EVENTS == 1 {
            0
        } else {
            1 + self.gap.below(number, (2 * self.shape.gap_ms - 1).max(1))
        };
        if number % PAUSE_EVERY == PAUSE_EVERY - 1 {
            gap + 15_000 + self.pause.below(number, 10_001)
        } else {
            gap
        }
    }

    /// How much later than its time an event arrives, and whether that makes it late.
    #[inline]
    fn delay(&self, number: i64) -> (i64, bool) {
        let shape = &self.shape;
        let is_late = shape.late_permille > 0
            && number % EPOCH_EVENTS > 3
            && self.is_late.below(number, 1000) < shape.late_permille
            && number > 5000
            && number < shape.events - 10_000;
        if is_late {
            (LATE_MIN + self.late_delay.below(number, LATE_SPREAD), true)
        } else if shape.out_of_order_ms == 0 || self.is_delayed.below(number, 10) < 7 {
            (0, false)
        } else {
            (1 + self.delay.below(number, shape.out_of_order_ms), false)
        }
    }

    fn delay_max(&self) -> i64 {
        if self.shape.late_permille > 0 {
            self.shape.out_of_order_ms.max(LATE_MIN + LATE_SPREAD)
        } else {
            self.shape.out_of_order_ms
        }
    }

    /// The times of the events before blocks `0..=block`.
    fn with_index<T>(&self, block: i64, read: impl FnOnce(&[i64]) -> T) -> T {
        let mut index = self.index.lock();
        while (index.len() as i64) <= block {
            let last = index.len() as i64 - 1;
            let gaps: i64 = (last * BLOCK..(last + 1) * BLOCK).map(|number| self.gap(number)).sum();
            let time = index[index.len() - 1] + gaps;
            index.push(time);
        }
        read(&index)
    }

    fn last_block(&self) -> i64 {
        (self.shape.events - 1).max(0) / BLOCK
    }

    /// The number of events in the blocks up to here; blocks behind the last have none.
    fn end_of(&self, block: i64) -> i64 {
        block.saturating_add(1).saturating_mul(BLOCK).min(self.shape.events)
    }

    /// Position of the first event that arrives when block `block` begins, or later.
    fn rank(&self, block: i64) -> i64 {
        if block > self.last_block() {
            return self.shape.events;
        }
        let mut rank = block * BLOCK;
        self.scan(block, block * BLOCK, |_, is_before| rank -= i64::from(is_before));
        rank
    }

    /// Visits the events that arrive at the time of the first event of `block` or later, up to
    /// event number `end`, saying of each whether it belongs to an earlier block.
    fn scan(&self, block: i64, end: i64, mut visit: impl FnMut(Arrival, bool)) {
        let first = block * BLOCK;
        let (threshold, from, mut time) = self.with_index(block, |index| {
            let threshold = index[block as usize] + self.gap(first);
            let earliest = threshold - self.delay_max();
            // Everything before an entry of at most that time has arrived.
            let from = index[..=block as usize].partition_point(|time| *time < earliest).saturating_sub(1);
            (threshold, from as i64 * BLOCK, index[from])
        });
        for number in from..end {
            time += self.gap(number);
            let (delay, is_late) = self.delay(number);
            if time + delay >= threshold {
                let event = Event { number, time_ms: time, is_late };
                visit(Arrival { at_ms: time + delay, event }, number < first);
            }
        }
    }

    /// The block whose arrivals include a position, and the positions of its first and behind its
    /// last arrival.
    fn block_of(&self, position: i64) -> (i64, i64, i64) {
        // Ranks lag behind numbers: the block of the same number is this one or an earlier one.
        let mut block = position / BLOCK;
        let mut start = self.rank(block);
        loop {
            let end = self.rank(block + 1);
            if position < end || block >= self.last_block() {
                return (block, start, end);
            }
            (block, start) = (block + 1, end);
        }
    }

    /// Where a chunk that begins at a position ends best.
    pub(super) fn chunk_end(&self, position: i64) -> i64 {
        self.block_of(position).2
    }

    /// The events at positions `start..end`, in order.
    pub(super) fn events(&self, start: i64, end: i64) -> Vec<Event> {
        let mut events = Vec::with_capacity(usize::try_from(end - start).unwrap_or(0));
        let mut position = start;
        while position < end.min(self.shape.events) {
            let (block, block_start, block_end) = self.block_of(position);
            let arrivals = self.arrivals(block);
            let range = (position - block_start) as usize..(end.min(block_end) - block_start) as usize;
            events.extend(arrivals[range].iter().map(|arrival| arrival.event));
            position = block_end;
        }
        events
    }

    /// All arrivals of a block, in order.
    fn arrivals(&self, block: i64) -> Vec<Arrival> {
        let until = if block < self.last_block() {
            self.with_index(block + 1, |index| index[block as usize + 1]) + self.gap((block + 1) * BLOCK)
        } else {
            i64::MAX
        };
        let mut arrivals = Vec::with_capacity(BLOCK as usize);
        self.scan(block, self.end_of(block), |arrival, _| {
            if arrival.at_ms < until {
                arrivals.push(arrival);
            }
        });
        arrivals.sort_unstable_by_key(|arrival| (arrival.at_ms, arrival.event.number));
        arrivals
    }
}

/// An event on its way.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at_ms: i64,
    event: Event,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(events: i64, late_permille: i64) -> Shape {
        Shape { seed: 3, events, start_ms: 1_000_000, gap_ms: 10, out_of_order_ms: 3000, late_permille }
    }

    /// All events in order, the simple way.
    fn all(shape: &Shape) -> Vec<Event> {
        let timeline = Timeline::new(shape.clone());
        let mut time = shape.start_ms;
        let mut arrivals: Vec<(i64, i64, Event)> = (0..shape.events)
            .map(|number| {
                time += timeline.gap(number);
                let (delay, is_late) = timeline.delay(number);
                (time + delay, number, Event { number, time_ms: time, is_late })
            })
            .collect();
        arrivals.sort_unstable_by_key(|(at, number, _)| (*at, *number));
        arrivals.into_iter().map(|(_, _, event)| event).collect()
    }

    #[test]
    fn ranges_put_together_are_the_whole() {
        for shape in [shape(30_000, 0), shape(30_000, 20), shape(4096, 0), shape(1, 0)] {
            let timeline = Timeline::new(shape.clone());
            let mut events = Vec::new();
            while (events.len() as i64) < shape.events {
                let start = events.len() as i64;
                events.extend(timeline.events(start, timeline.chunk_end(start)));
            }
            assert_eq!(events, all(&shape));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_range_can_be_made_on_its_own(start in 0i64..30_000, length in 0i64..9000, late in 0i64..30) {
            let shape = shape(30_000, late);
            let end = (start + length).min(shape.events);
            let expected = &all(&shape)[start as usize..end as usize];
            prop_assert_eq!(Timeline::new(shape).events(start, end), expected);
        }
    }

    #[test]
    fn late_bids_arrive_behind_any_watermark() {
        let events = all(&shape(40_000, 10));
        let mut seen = 0;
        let mut late = 0;
        for event in events {
            if event.is_late {
                // A minute late, of which a pause may hide up to 25 seconds.
                assert!(event.time_ms + 30_000 < seen);
                late += 1;
            }
            seen = seen.max(event.time_ms);
        }
        assert!(late > 100);
    }
}
