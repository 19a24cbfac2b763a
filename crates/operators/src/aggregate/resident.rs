//! The part of a state table that is in memory: which keys, how often each counts, and what of
//! it the disk does not hold yet.
//!
//! ```text
//!             resolve                touch              hand_over             durable
//!  (not here) ───────► clean/new ───────────► dirty ────────────► in flight ─────────► clean
//!      ▲                   │                    ▲                     │                  │
//!      └─────── evict ─────┘                    └────── touch ────────┘     evict ◄──────┘
//! ```
//!
//! A key whose count has become 0 goes the same way as a *tombstone*: it stays until the
//! checkpoint that deletes it is durable, because until then the disk would still answer with it.
//!
//! **Invariant.** While `is_complete`, no key is on disk that is not here: a miss needs no read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray, RecordBatch, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, FieldRef, Int64Type, TimestampMicrosecondType};
use dataflow::{DataflowError, Result, StateAccess};
use state::{Epoch, TableChanges, TableSchema};

use super::accumulator::Moves;
use super::index::{Created, KeyIndex, key_index};

/// Fewer unused slots are not worth the work of moving the others.
const COMPACTED_MIN: usize = if cfg!(test) { 1 } else { 1 << 12 };

const LIVE: u8 = 1;
/// Touched in this epoch.
const TOUCHED: u8 = 2;
/// Changed since the last hand-over.
const DIRTY: u8 = 4;
/// The disk, or a hand-over on its way there, may hold the key.
const STORED: u8 = 8;

/// What is kept of each key besides what its owner keeps.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    count: i64,
    /// The epoch (low bits) of the hand-over that is not durable yet; 0: none.
    handed: u32,
    flags: u8,
}

/// A key touched in this epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    pub(crate) slot: u32,
    /// Its count before.
    pub(crate) before: i64,
}

/// Rows of the table that were read because their keys were asked for.
pub(crate) struct Loaded {
    pub(crate) slots: Vec<u32>,
    /// All columns of the table.
    pub(crate) rows: RecordBatch,
}

/// What a hand-over contains.
pub(crate) struct HandOver {
    pub(crate) puts: Vec<u32>,
    pub(crate) deletes: Vec<u32>,
    /// Everything whose first key column is at most this is gone as well.
    pub(crate) delete_up_to: Option<i64>,
}

/// Ends of windows by slot, for tables whose first key column is one.
#[derive(Debug, Default)]
struct WindowEnds {
    /// `i64::MAX` for NULL, which no watermark but the last reaches.
    ends: Vec<i64>,
    /// How many keys here have each end.
    resident: BTreeMap<i64, usize>,
    /// How many keys on disk but not here have each end.
    absent: BTreeMap<i64, usize>,
    /// Windows up to here are closed.
    closed: i64,
}

/// The resident keys of one state table.
pub(crate) struct Resident {
    index: Box<dyn KeyIndex>,
    key_len: usize,
    slots: Vec<Slot>,
    touched: Vec<Touched>,
    dirty: Vec<u32>,
    in_flight: VecDeque<(Epoch, Vec<u32>)>,
    is_complete: bool,
    /// A count of 0 does not make a key vanish: the one row of a global aggregate.
    keeps_empty: bool,
    windows: Option<WindowEnds>,
    delete_up_to: Option<i64>,
    live: usize,
    /// How many keys may not be evicted, about.
    pinned: usize,
    /// Where the search for keys to evict goes on.
    hand: usize,
    created: Vec<Created>,
    /// Slots whose keys are gone, for the owner to clear.
    freed: Vec<u32>,
}

impl Resident {
    /// Nothing resident. `is_windowed`: the first key column is the end of a window.
    pub(crate) fn new(key_fields: &[FieldRef], is_windowed: bool, keeps_empty: bool) -> Self {
        let windows = is_windowed.then(|| WindowEnds { closed: i64::MIN, ..WindowEnds::default() });
        Self {
            index: key_index(key_fields),
            key_len: key_fields.len(),
            slots: Vec::new(),
            touched: Vec::new(),
            dirty: Vec::new(),
            in_flight: VecDeque::new(),
            is_complete: true,
            keeps_empty,
            windows,
            delete_up_to: None,
            live: 0,
            pinned: 0,
            hand: 0,
            created: Vec::new(),
            freed: Vec::new(),
        }
    }

    /// The disk may hold keys from now on that are not here.
    pub(crate) fn set_incomplete(&mut self) {
        self.is_complete = false;
    }

    /// One more than the greatest slot ever given.
    pub(crate) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn count(&self, slot: u32) -> i64 {
        self.slots[slot as usize].count
    }

    /// Whether a key with this count is there for the user.
    pub(crate) fn exists(&self, count: i64) -> bool {
        count > 0 || self.keeps_empty
    }

    pub(crate) fn counts(&self, slots: &[u32]) -> Vec<i64> {
        slots.iter().map(|&slot| self.count(slot)).collect()
    }

    pub(crate) fn keys(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.index.keys(slots)
    }

    /// The keys touched in this epoch, in the order of their first touch.
    pub(crate) fn touched(&self) -> &[Touched] {
        &self.touched
    }

    /// Pushes the slot of each key. Keys that are not here are read from state table `table`,
    /// whose column behind the key is the count; what was found is returned, for the owner to
    /// take in the other columns.
    pub(crate) fn resolve(
        &mut self,
        keys: &[ArrayRef],
        rows: usize,
        state: &dyn StateAccess,
        table: usize,
        slots: &mut Vec<u32>,
    ) -> Result<Vec<Loaded>> {
        let mut created = std::mem::take(&mut self.created);
        created.clear();
        self.index.find_or_insert(keys, rows, slots, &mut created)?;
        self.add(&created, keys)?;
        let mut loaded = Vec::new();
        if !self.is_complete && !created.is_empty() {
            loaded = self.read(&created, keys, state, table)?;
            for part in &loaded {
                self.take_in(part)?;
            }
        }
        self.created = created;
        Ok(loaded)
    }

    fn add(&mut self, created: &[Created], keys: &[ArrayRef]) -> Result<()> {
        if created.is_empty() {
            return Ok(());
        }
        self.slots.resize(self.index.slot_count(), Slot::default());
        self.live += created.len();
        for new in created {
            self.slots[new.slot as usize] = Slot { flags: LIVE, ..Slot::default() };
        }
        if let Some(windows) = &mut self.windows {
            windows.ends.resize(self.slots.len(), i64::MAX);
            let ends = micros(&keys[0])?;
            for new in created {
                let row = new.row as usize;
                let end = if ends.is_null(row) { i64::MAX } else { ends.value(row) };
                windows.ends[new.slot as usize] = end;
                *windows.resident.entry(end).or_default() += 1;
            }
        }
        Ok(())
    }

    fn read(
        &self,
        created: &[Created],
        keys: &[ArrayRef],
        state: &dyn StateAccess,
        table: usize,
    ) -> Result<Vec<Loaded>> {
        if self.key_len == 0 {
            let one = |rows| Ok(Loaded { slots: vec![created[0].slot], rows: rows? });
            let parts: Result<Vec<Loaded>> = state.scan(table, None)?.map(one).collect();
            return Ok(parts?.into_iter().filter(|part| part.rows.num_rows() == 1).collect());
        }
        let rows = UInt32Array::from_iter_values(created.iter().map(|new| new.row));
        let missing: Vec<ArrayRef> =
            keys.iter().map(|column| compute::take(column, &rows, None)).collect::<Result<_, _>>()?;
        let found = state.multi_get(table, &missing)?;
        let slots: Vec<u32> =
            found.key_idx.values().iter().map(|&asked| created[asked as usize].slot).collect();
        Ok(if slots.is_empty() { Vec::new() } else { vec![Loaded { slots, rows: found.rows }] })
    }

    /// Takes in rows of the table that a scan has found: those whose keys are not here and whose
    /// windows were not closed before.
    pub(crate) fn adopt(&mut self, rows: &RecordBatch) -> Result<Loaded> {
        let keys = &rows.columns()[..self.key_len];
        let (mut slots, mut created) = (Vec::new(), Vec::new());
        self.index.find_or_insert(keys, rows.num_rows(), &mut slots, &mut created)?;
        self.add(&created, keys)?;
        // A window that was closed before is on disk only until that is durable.
        let is_closed = |new: &Created| self.is_closed(self.end_of(new.slot));
        let (closed, open): (Vec<Created>, Vec<Created>) = created.iter().partition(|new| is_closed(new));
        self.free(&closed.iter().map(|new| new.slot).collect::<Vec<_>>());
        let indices = UInt32Array::from_iter_values(open.iter().map(|new| new.row));
        let loaded = Loaded {
            slots: open.iter().map(|new| new.slot).collect(),
            rows: compute::take_record_batch(rows, &indices)?,
        };
        self.take_in(&loaded)?;
        Ok(loaded)
    }

    fn end_of(&self, slot: u32) -> i64 {
        self.windows.as_ref().map_or(i64::MAX, |windows| windows.ends[slot as usize])
    }

    fn take_in(&mut self, part: &Loaded) -> Result<()> {
        let counts = part.rows.column(self.key_len).as_primitive::<Int64Type>();
        for (&slot, &count) in part.slots.iter().zip(counts.values()) {
            let at = &mut self.slots[slot as usize];
            at.count = count;
            at.flags |= STORED;
            if let Some(windows) = &mut self.windows {
                windows.no_longer_absent(windows.ends[slot as usize]);
            }
        }
        Ok(())
    }

    /// Adds `diffs` to the counts of `slots`; keys touched for the first time in this epoch are
    /// appended to [`Self::touched`].
    pub(crate) fn touch(&mut self, slots: &[u32], diffs: Option<&[i64]>) {
        match diffs {
            None => slots.iter().for_each(|&slot| self.touch_one(slot, 1)),
            Some(diffs) => slots.iter().zip(diffs).for_each(|(&slot, &diff)| self.touch_one(slot, diff)),
        }
    }

    #[inline]
    pub(crate) fn touch_one(&mut self, slot: u32, diff: i64) {
        let at = &mut self.slots[slot as usize];
        if at.flags & TOUCHED == 0 {
            self.touched.push(Touched { slot, before: at.count });
            if at.flags & DIRTY == 0 {
                self.dirty.push(slot);
                self.pinned += usize::from(at.handed == 0);
            }
            at.flags |= TOUCHED | DIRTY;
        }
        at.count += diff;
    }

    /// The epoch is over: nothing is touched any more. A negative count is a broken promise.
    pub(crate) fn end_epoch(&mut self) -> Result<()> {
        for Touched { slot, .. } in self.touched.drain(..) {
            let at = &mut self.slots[slot as usize];
            at.flags &= !TOUCHED;
            if at.flags & LIVE != 0 && at.count < 0 {
                return Err(DataflowError::Internal(format!(
                    "a key has the multiplicity {} at the end of an epoch",
                    at.count
                )));
            }
        }
        Ok(())
    }

    /// What changed since the last hand-over, now on its way to disk.
    pub(crate) fn hand_over(&mut self, epoch: Epoch) -> HandOver {
        let mut hand_over =
            HandOver { puts: Vec::new(), deletes: Vec::new(), delete_up_to: self.delete_up_to.take() };
        let mut flight = Vec::with_capacity(self.dirty.len());
        let mut vanished = Vec::new();
        for slot in std::mem::take(&mut self.dirty) {
            let keeps_empty = self.keeps_empty;
            let at = &mut self.slots[slot as usize];
            // Closed with its window meanwhile, or listed twice because its slot was reused.
            if at.flags & DIRTY == 0 {
                continue;
            }
            at.flags &= !DIRTY;
            if at.count > 0 || keeps_empty {
                hand_over.puts.push(slot);
            } else if at.flags & STORED != 0 {
                hand_over.deletes.push(slot);
            } else {
                vanished.push(slot);
                continue;
            }
            at.flags |= STORED;
            at.handed = epoch.0 as u32;
            flight.push(slot);
        }
        self.pinned -= vanished.len();
        self.free(&vanished);
        self.in_flight.push_back((epoch, flight));
        hand_over
    }

    /// The checkpoint of `epoch` is on disk, so its tombstones can go.
    pub(crate) fn durable(&mut self, epoch: Epoch) {
        let mut gone = Vec::new();
        while self.in_flight.front().is_some_and(|(handed, _)| *handed <= epoch) {
            let Some((handed, slots)) = self.in_flight.pop_front() else { break };
            for slot in slots {
                let at = &mut self.slots[slot as usize];
                if at.flags & LIVE == 0 || at.handed != handed.0 as u32 {
                    continue;
                }
                at.handed = 0;
                if at.flags & DIRTY == 0 {
                    self.pinned -= 1;
                    if at.count == 0 && !self.keeps_empty {
                        gone.push(slot);
                    }
                }
            }
        }
        self.free(&gone);
    }

    /// The slots whose keys are gone since the last call. To be asked before the next `resolve`,
    /// which gives them to other keys.
    pub(crate) fn take_freed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.freed)
    }

    fn free(&mut self, slots: &[u32]) {
        for &slot in slots {
            let at = std::mem::take(&mut self.slots[slot as usize]);
            self.pinned -= usize::from(at.flags & DIRTY != 0 || at.handed != 0);
            if let Some(windows) = &mut self.windows {
                windows.no_longer_resident(slot);
            }
        }
        self.live -= slots.len();
        self.index.remove(slots);
        self.freed.extend_from_slice(slots);
    }

    /// Whether a key, here or on disk, has a window that ends at or before `threshold`.
    pub(crate) fn has_closing(&self, threshold: i64) -> bool {
        self.windows.as_ref().is_some_and(|windows| windows.resident.range(..=threshold).next().is_some())
    }

    /// The same for keys that are on disk only, as far as [`Self::note_absent`] was told.
    pub(crate) fn has_absent_closing(&self, threshold: i64) -> bool {
        self.windows.as_ref().is_some_and(|windows| windows.absent.range(..=threshold).next().is_some())
    }

    /// The keys that have a window which ends at or before `threshold`, in slot order.
    pub(crate) fn closing(&self, threshold: i64) -> Vec<u32> {
        let Some(windows) = &self.windows else { return Vec::new() };
        let is_closing = |slot: &u32| {
            self.slots[*slot as usize].flags & LIVE != 0 && windows.ends[*slot as usize] <= threshold
        };
        (0..self.slots.len() as u32).filter(is_closing).collect()
    }

    /// Frees the keys of windows that end at or before `threshold`, here and on disk.
    pub(crate) fn close(&mut self, threshold: i64) {
        let Some(windows) = &mut self.windows else { return };
        if threshold <= windows.closed {
            return;
        }
        windows.closed = threshold;
        windows.absent = match threshold.checked_add(1) {
            Some(open) => windows.absent.split_off(&open),
            None => BTreeMap::new(),
        };
        let mut closing = if self.has_closing(threshold) { self.closing(threshold) } else { Vec::new() };
        let is_stored = |slot: &u32| self.slots[*slot as usize].flags & STORED != 0;
        if !self.is_complete || closing.iter().any(is_stored) {
            self.delete_up_to = self.delete_up_to.max(Some(threshold));
        }
        closing.retain(|&slot| !self.keep_as_tombstone(slot));
        self.free(&closing);
    }

    /// No range of keys contains those with a NULL window: they are deleted one by one.
    fn keep_as_tombstone(&mut self, slot: u32) -> bool {
        let is_null = self.end_of(slot) == i64::MAX;
        let at = &mut self.slots[slot as usize];
        if !is_null || at.flags & STORED == 0 {
            return false;
        }
        at.count = 0;
        if at.flags & DIRTY == 0 {
            at.flags |= DIRTY;
            self.dirty.push(slot);
            self.pinned += usize::from(at.handed == 0);
        }
        true
    }

    /// Whether the window that ends at `end` was closed before.
    pub(crate) fn is_closed(&self, end: i64) -> bool {
        self.windows.as_ref().is_some_and(|windows| end <= windows.closed)
    }

    /// Takes note of keys that are on disk and not here, by the ends of their windows.
    pub(crate) fn note_absent(&mut self, ends: &ArrayRef) -> Result<()> {
        if let Some(windows) = &mut self.windows {
            for end in &micros(ends)? {
                *windows.absent.entry(end.unwrap_or(i64::MAX)).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Evicts up to `keys` keys that the disk holds as they are here. Returns how many.
    pub(crate) fn evict(&mut self, keys: usize) -> usize {
        let mut evicted = Vec::new();
        for _ in 0..self.slots.len() {
            if evicted.len() >= keys {
                break;
            }
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let at = self.slots[self.hand];
            if at.flags & (LIVE | TOUCHED | DIRTY) == LIVE && at.handed == 0 && at.flags & STORED != 0 {
                evicted.push(self.hand as u32);
            }
        }
        if let Some(windows) = &mut self.windows {
            for &slot in &evicted {
                *windows.absent.entry(windows.ends[slot as usize]).or_default() += 1;
            }
        }
        if !evicted.is_empty() {
            self.is_complete = false;
            self.free(&evicted);
        }
        evicted.len()
    }

    /// Moves the keys into as few slots as hold them, and gives back the room of the others, if that
    /// is at least `percent` of all. The owner has to follow the moves.
    ///
    /// # Contract
    /// No epoch is under way: nothing is touched, and freed slots have been cleared.
    pub(crate) fn compact(&mut self, percent: usize) -> Option<Moves> {
        let unused = self.slots.len() - self.live;
        let is_worth_it = unused >= COMPACTED_MIN && unused * 100 >= self.slots.len() * percent;
        if !is_worth_it || !self.touched.is_empty() || !self.freed.is_empty() {
            return None;
        }
        let is_live = |slots: &[Slot], slot: usize| slots[slot].flags & LIVE != 0;
        let mut moves = Vec::new();
        let mut to = 0;
        for from in (self.live..self.slots.len()).filter(|&from| is_live(&self.slots, from)) {
            while is_live(&self.slots, to) {
                to += 1;
            }
            moves.push((from as u32, to as u32));
            to += 1;
        }
        let moves = Moves { moves, slots: self.live };
        self.follow(&moves);
        Some(moves)
    }

    fn follow(&mut self, moves: &Moves) {
        self.index.compact(moves);
        let flights = self.in_flight.iter_mut().map(|(_, slots)| slots);
        for slots in flights.chain([&mut self.dirty]) {
            // What was freed meanwhile is listed still.
            slots.retain(|&slot| self.slots[slot as usize].flags & LIVE != 0);
            for slot in slots.iter_mut().filter(|slot| **slot as usize >= moves.slots) {
                let at = moves.moves.partition_point(|(from, _)| *from < *slot);
                *slot = moves.moves[at].1;
            }
        }
        moves.apply(&mut self.slots);
        if let Some(windows) = &mut self.windows {
            moves.apply(&mut windows.ends);
        }
        self.touched = Vec::new();
        self.hand = 0;
    }

    /// Keys that may not be evicted and keys that may.
    pub(crate) fn pinned_and_clean(&self) -> (usize, usize) {
        (self.pinned, self.live - self.pinned)
    }

    pub(crate) fn bytes_per_key(&self) -> usize {
        let end = if self.windows.is_some() { 8 } else { 0 };
        self.index.bytes_per_key() + size_of::<Slot>() + end
    }
}

impl WindowEnds {
    fn no_longer_resident(&mut self, slot: u32) {
        decrement(&mut self.resident, self.ends[slot as usize]);
    }

    fn no_longer_absent(&mut self, end: i64) {
        decrement(&mut self.absent, end);
    }
}

fn decrement(counts: &mut BTreeMap<i64, usize>, end: i64) {
    if let Some(count) = counts.get_mut(&end) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&end);
        }
    }
}

/// A timestamp column in microseconds.
pub(crate) fn micros(column: &ArrayRef) -> Result<Int64Array> {
    let times = column
        .as_primitive_opt::<TimestampMicrosecondType>()
        .ok_or_else(|| DataflowError::Internal("the end of a window is not a timestamp".to_owned()))?;
    Ok(Int64Array::new(times.values().clone(), times.nulls().cloned()))
}

/// A one-element array of the type of a window column.
pub(crate) fn window_bound(of: &DataType, end: i64) -> ArrayRef {
    let zone = if let DataType::Timestamp(_, zone) = of { zone.clone() } else { None };
    Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from_value(end, 1).with_timezone_opt(zone))
}

/// The changes of a table, unless there are none. `deletes` are the key columns of what is gone.
pub(crate) fn table_changes(
    schema: &Arc<TableSchema>,
    puts: RecordBatch,
    deletes: Option<Vec<ArrayRef>>,
    delete_up_to: Option<i64>,
) -> Option<TableChanges> {
    if puts.num_rows() == 0 && deletes.is_none() && delete_up_to.is_none() {
        return None;
    }
    Some(TableChanges {
        schema: Arc::clone(schema),
        puts: if puts.num_rows() == 0 { Vec::new() } else { vec![puts] },
        deletes: deletes.into_iter().collect(),
        delete_up_to: delete_up_to.map(|end| window_bound(schema.columns.field(0).data_type(), end)),
    })
}
