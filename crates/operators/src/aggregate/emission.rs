//! What the end of an epoch emits: for every changed group, −before +after.

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute;
use arrow::compute::kernels::cmp::not_distinct;
use dataflow::{Result, RowError};

use super::accumulator::{Accumulator, Failures};
use super::layout::Reading;

/// Groups evaluated at a time.
const CHUNK: usize = 4096;

/// Results of some groups at one moment.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// The columns of the calls, in parts, oldest first.
    parts: Vec<Vec<ArrayRef>>,
    /// How many groups.
    len: usize,
    /// Of the columns, about.
    bytes: usize,
    /// Those whose results cannot be represented.
    failures: Failures,
}

impl Image {
    /// `counts` are the numbers of rows of the groups in `slots`.
    pub(crate) fn evaluate(
        readings: &[Reading],
        measures: &[Box<dyn Accumulator>],
        slots: &[u32],
        counts: Vec<i64>,
    ) -> Result<Self> {
        let mut failures = Failures::new();
        let counts: ArrayRef = std::sync::Arc::new(Int64Array::from(counts));
        let mut columns = Vec::with_capacity(readings.len());
        for reading in readings {
            columns.push(match reading.measure {
                None => ArrayRef::clone(&counts),
                Some(measure) => {
                    measures[measure].evaluate(reading.function, &reading.output, slots, &mut failures)?
                }
            });
        }
        let bytes = columns.iter().map(|column| column.get_array_memory_size()).sum();
        Ok(Self { parts: vec![columns], len: slots.len(), bytes, failures })
    }

    /// Adds the groups of `later` behind these.
    pub(crate) fn append(&mut self, later: Self) {
        self.failures.extend(later.failures.into_iter().map(|(place, error)| (self.len + place, error)));
        self.parts.extend(later.parts);
        self.len += later.len;
        self.bytes += later.bytes;
    }

    /// Bytes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn joined(mut self) -> Result<Self> {
        if self.parts.len() > 1 {
            let mut columns = Vec::with_capacity(self.parts[0].len());
            for column in 0..self.parts[0].len() {
                let parts: Vec<&dyn Array> = self.parts.iter().map(|part| part[column].as_ref()).collect();
                columns.push(compute::concat(&parts)?);
            }
            self.parts = vec![columns];
        }
        Ok(self)
    }

    fn slice(&self, start: usize, len: usize) -> Self {
        let slice = |column: &ArrayRef| column.slice(start, len);
        Self {
            parts: self.parts.iter().map(|part| part.iter().map(slice).collect()).collect(),
            len,
            bytes: 0,
            failures: self
                .failures
                .range(start..start + len)
                .map(|(place, error)| (place - start, error.clone()))
                .collect(),
        }
    }

    fn take(&self, places: &[usize]) -> Result<Vec<ArrayRef>> {
        let Some(columns) = self.parts.first() else { return Ok(Vec::new()) };
        let places = UInt32Array::from_iter_values(places.iter().map(|&place| place as u32));
        Ok(columns.iter().map(|column| compute::take(column, &places, None)).collect::<Result<_, _>>()?)
    }
}

/// A group that may have changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) slot: u32,
    /// Its place in the image of the groups before the epoch, if it was there.
    pub(crate) before: Option<usize>,
}

/// The changes of an epoch, and how far they have been emitted.
pub(crate) struct Emission {
    changes: Vec<Change>,
    before: Image,
    next: usize,
    next_before: usize,
}

/// Some of the changes of an epoch.
pub(crate) struct Chunk {
    pub(crate) changes: Vec<Change>,
    /// The groups as they were before, those that were there.
    pub(crate) before: Image,
}

impl Emission {
    /// The places of `changes` in `before` ascend by one.
    pub(crate) fn new(changes: Vec<Change>, before: Image) -> Result<Self> {
        Ok(Self { changes, before: before.joined()?, next: 0, next_before: 0 })
    }

    /// Bytes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        self.before.bytes() + self.changes.len() * size_of::<Change>()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.next == self.changes.len()
    }

    pub(crate) fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        if self.is_done() {
            return Ok(None);
        }
        let end = self.changes.len().min(self.next + CHUNK);
        let first = self.next_before;
        let mut changes = self.changes[self.next..end].to_vec();
        for place in changes.iter_mut().filter_map(|change| change.before.as_mut()) {
            *place -= first;
            self.next_before += 1;
        }
        self.next = end;
        Ok(Some(Chunk { changes, before: self.before.slice(first, self.next_before - first) }))
    }
}

/// What a chunk emits.
pub(crate) struct Difference {
    /// (slot, place in the image before).
    retracted: Vec<(u32, usize)>,
    /// (slot, place in the image after).
    inserted: Vec<(u32, usize)>,
    /// (slot, diff, error).
    failures: Vec<(u32, i64, RowError)>,
}

impl Chunk {
    /// Compares the groups before with those after; `after_places` says where each change's
    /// group is in `after`, if it is still there.
    pub(crate) fn difference(&self, after: &Image, after_places: &[Option<usize>]) -> Result<Difference> {
        let same = self.unchanged(after, after_places)?;
        let mut difference = Difference { retracted: Vec::new(), inserted: Vec::new(), failures: Vec::new() };
        for (number, (change, &after_place)) in self.changes.iter().zip(after_places).enumerate() {
            let failure = |image: &Image, place: Option<usize>| {
                place.and_then(|place| image.failures.get(&place)).cloned()
            };
            let (old, new) = (failure(&self.before, change.before), failure(after, after_place));
            if same.value(number) && old == new {
                continue;
            }
            match (old, change.before) {
                (Some(error), _) => difference.failures.push((change.slot, -1, error)),
                (None, Some(place)) => difference.retracted.push((change.slot, place)),
                (None, None) => {}
            }
            match (new, after_place) {
                (Some(error), _) => difference.failures.push((change.slot, 1, error)),
                (None, Some(place)) => difference.inserted.push((change.slot, place)),
                (None, None) => {}
            }
        }
        Ok(difference)
    }

    /// For each change whether its group is there before and after with the same results.
    fn unchanged(&self, after: &Image, after_places: &[Option<usize>]) -> Result<BooleanArray> {
        let is_in_both =
            |number: usize| self.changes[number].before.is_some() && after_places[number].is_some();
        let mut same = BooleanArray::new(BooleanBuffer::collect_bool(self.changes.len(), is_in_both), None);
        // A group that is not in both is compared with any other: the result is masked.
        let befores: Vec<usize> = self.changes.iter().map(|change| change.before.unwrap_or(0)).collect();
        let afters: Vec<usize> = after_places.iter().map(|place| place.unwrap_or(0)).collect();
        if same.true_count() > 0 {
            for (before, after) in self.before.take(&befores)?.iter().zip(after.take(&afters)?) {
                same = compute::and(&same, &not_distinct(before, &after)?)?;
            }
        }
        Ok(same)
    }
}

impl Difference {
    pub(crate) fn len(&self) -> usize {
        self.retracted.len() + self.inserted.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The groups of the emitted rows.
    pub(crate) fn slots(&self) -> Vec<u32> {
        self.retracted.iter().chain(&self.inserted).map(|&(slot, _)| slot).collect()
    }

    /// The results in the emitted rows.
    pub(crate) fn columns(&self, before: &Image, after: &Image) -> Result<Vec<ArrayRef>> {
        let places = |rows: &[(u32, usize)]| rows.iter().map(|&(_, place)| place).collect::<Vec<_>>();
        let inserted = after.take(&places(&self.inserted))?;
        if self.retracted.is_empty() {
            return Ok(inserted);
        }
        let retracted = before.take(&places(&self.retracted))?;
        if self.inserted.is_empty() {
            return Ok(retracted);
        }
        let pairs = retracted.iter().zip(&inserted);
        Ok(pairs.map(|(old, new)| compute::concat(&[old, new])).collect::<Result<_, _>>()?)
    }

    pub(crate) fn diffs(&self) -> Int64Array {
        let diffs = self.retracted.iter().map(|_| -1).chain(self.inserted.iter().map(|_| 1));
        Int64Array::from_iter_values(diffs)
    }

    /// Groups that cannot be represented any more (+1) or can be again (−1), if there are any.
    pub(crate) fn into_failures(self) -> Option<(Vec<u32>, Vec<i64>, Vec<RowError>)> {
        if self.failures.is_empty() {
            return None;
        }
        let (mut slots, mut diffs, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, diff, error) in self.failures {
            slots.push(slot);
            diffs.push(diff);
            errors.push(error);
        }
        Some((slots, diffs, errors))
    }
}
