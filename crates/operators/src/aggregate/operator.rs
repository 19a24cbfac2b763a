//! The running aggregate.
//!
//! ```text
//!  on_batch      keys ─► slots ─► before-images of groups touched for the first time ─► update
//!  on_epoch_end  distinct values ─► −before +after, chunk by chunk ─► close windows ─► hand over
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::buffer::NullBuffer;
use arrow::compute;
use arrow::datatypes::SchemaRef;
use dataflow::{
    ChangeBatch, ChangelogKind, DataflowError, EpochEnd, MemoryUse, Operator, OperatorContext, OperatorSpec,
    Progress, Result, SideOutput, Start, Watermark,
};
use state::{Epoch, key_groups};

use super::Aggregate;
use super::accumulator::{Accumulator, Input};
use super::emission::{Change, Emission, Image};
use super::layout::Layout;
use super::resident::{HandOver, Loaded, Resident, micros, table_changes, window_bound};
use super::values::{Transitions, Values};

/// The state table of the groups.
const GROUPS: usize = 0;

/// Room is given back when so many percent of it are unused: rarely, because new groups want it
/// again.
const SPARSE: usize = 75;
/// When memory is short, much less is too much.
const WASTEFUL: usize = 25;

/// Which rows count, by argument and filter.
type Selections = BTreeMap<(Option<usize>, Option<usize>), Option<NullBuffer>>;

pub(crate) struct AggregateOperator {
    layout: Layout,
    output: SchemaRef,
    is_windowed: bool,
    on_close: bool,
    /// Nothing is ever taken back.
    is_append: bool,
    allowed_lateness: i64,
    groups: Resident,
    measures: Vec<Box<dyn Accumulator>>,
    values: Vec<Values>,
    /// The rows that groups touched in this epoch had before it.
    before: Image,
    /// What is left to emit of the epoch that ends.
    emission: Option<Emission>,
    /// Something was evicted in this epoch.
    is_short_of_memory: bool,
    /// Scratch.
    slots: Vec<u32>,
}

impl AggregateOperator {
    pub(crate) fn new(spec: &Aggregate, output: SchemaRef) -> Result<Self> {
        let layout = Layout::new(spec)?;
        let is_windowed = spec.window_end.is_some();
        let is_global = spec.group_columns.is_empty();
        let is_append_input = spec.input_kind == ChangelogKind::Append;
        let value_tables = layout.value_sets.iter().enumerate();
        Ok(Self {
            output,
            is_windowed,
            on_close: spec.emit_on_window_close,
            is_append: spec.output_kind() == ChangelogKind::Append,
            allowed_lateness: spec.allowed_lateness,
            groups: Resident::new(layout.groups.key_fields(), is_windowed, is_global),
            measures: layout.accumulators()?,
            values: value_tables
                .map(|(number, set)| Values::new(set.clone(), number + 1, is_windowed, is_append_input))
                .collect(),
            before: Image::default(),
            emission: None,
            is_short_of_memory: false,
            slots: Vec::new(),
            layout,
        })
    }

    /// Windows that end at or before this are closed.
    fn threshold(&self, watermark: Watermark) -> i64 {
        watermark.shifted(-self.allowed_lateness).0
    }

    fn check_open(&self, keys: &[ArrayRef]) -> Result<()> {
        if self.is_windowed
            && let Some(least) = compute::min(&micros(&keys[0])?)
            && self.groups.is_closed(least)
        {
            return Err(DataflowError::Internal(format!(
                "a row came for the window that closed at {least}us"
            )));
        }
        Ok(())
    }

    /// Takes in what was read of groups that were not in memory.
    fn load(&mut self, loaded: &[Loaded], ctx: &OperatorContext<'_>) -> Result<()> {
        for part in loaded {
            for (measure, columns) in self.measures.iter_mut().zip(&self.layout.measure_columns) {
                measure.load(&part.slots, &part.rows.columns()[columns.clone()])?;
            }
            self.load_ordered(part, ctx)?;
        }
        Ok(())
    }

    /// Accumulators without state columns get back the values of their groups.
    fn load_ordered(&mut self, part: &Loaded, ctx: &OperatorContext<'_>) -> Result<()> {
        for (number, measure) in self.layout.measures.iter().enumerate() {
            let (Some(values), true) = (measure.values, self.layout.measure_columns[number].is_empty())
            else {
                continue;
            };
            let key_len = self.layout.key_columns.len();
            let found =
                ctx.state.scan_prefixes(self.values[values].table(), &part.rows.columns()[..key_len])?;
            if found.key_idx.is_empty() {
                continue;
            }
            let slots: Vec<u32> =
                found.key_idx.values().iter().map(|&group| part.slots[group as usize]).collect();
            let values = Some(found.rows.column(key_len));
            self.measures[number].update(&Input { values, diffs: None, selected: None, slots: &slots })?;
        }
        Ok(())
    }

    fn clear_freed(&mut self) {
        let freed = self.groups.take_freed();
        if !freed.is_empty() {
            self.measures.iter_mut().for_each(|measure| measure.clear(&freed));
        }
    }

    /// Gives back the room of groups that are gone, if it is so much of all.
    fn compact(&mut self, percent: usize) {
        self.clear_freed();
        if let Some(moves) = self.groups.compact(percent) {
            self.measures.iter_mut().for_each(|measure| measure.compact(&moves));
        }
        self.values.iter_mut().for_each(|values| values.compact(percent));
    }

    fn make_room(&mut self) {
        let slots = self.groups.slot_count();
        self.measures.iter_mut().for_each(|measure| measure.resize(slots));
    }

    /// Evaluates groups that exist, whose numbers of rows are `counts`.
    fn image(&self, slots: &[u32], counts: Vec<i64>) -> Result<Image> {
        Image::evaluate(&self.layout.readings, &self.measures, slots, counts)
    }

    fn update(
        &mut self,
        batch: &ChangeBatch,
        keys: &[ArrayRef],
        slots: &[u32],
        ctx: &OperatorContext<'_>,
    ) -> Result<()> {
        let mut selections = Selections::new();
        let diffs = batch.diffs.as_ref().map(|diffs| &diffs.values()[..]);
        let selection = |selections: &mut Selections, argument: Option<usize>, filter: Option<usize>| {
            let select = || select(batch, argument, filter);
            selections.entry((argument, filter)).or_insert_with(select).clone()
        };
        for (measure, accumulator) in self.layout.measures.iter().zip(&mut self.measures) {
            if measure.values.is_some() {
                continue;
            }
            let selected = selection(&mut selections, measure.argument, measure.filter);
            let values = measure.argument.map(|column| batch.rows.column(column));
            accumulator.update(&Input { values, diffs, selected: selected.as_ref(), slots })?;
        }
        for (set, values) in self.layout.value_sets.iter().zip(&mut self.values) {
            let selected = selection(&mut selections, Some(set.argument), set.filter);
            values.update(batch, keys, slots, selected.as_ref(), &*ctx.state)?;
        }
        Ok(())
    }

    /// Feeds the accumulators of distinct values with what the epoch has changed.
    fn end_values(&mut self) -> Result<()> {
        for (number, values) in self.values.iter_mut().enumerate() {
            let Some(Transitions { values, diffs, groups }) = values.end_epoch()? else { continue };
            let input = Input { values: Some(&values), diffs: Some(&diffs), selected: None, slots: &groups };
            for (measure, accumulator) in self.layout.measures.iter().zip(&mut self.measures) {
                if measure.values == Some(number) {
                    accumulator.update(&input)?;
                }
            }
        }
        Ok(())
    }

    /// What the epoch that ends has to emit.
    fn begin_emission(&mut self, end: &EpochEnd, ctx: &OperatorContext<'_>) -> Result<Emission> {
        self.end_values()?;
        let before = std::mem::take(&mut self.before);
        let changes = if self.on_close {
            let threshold = self.threshold(end.watermark);
            self.load_closing(threshold, ctx)?;
            let closing =
                if self.groups.has_closing(threshold) { self.groups.closing(threshold) } else { Vec::new() };
            let closing = closing.into_iter().filter(|&slot| self.groups.count(slot) > 0);
            closing.map(|slot| Change { slot, before: None }).collect()
        } else {
            let mut images = 0..;
            let touched = self.groups.touched().iter();
            let existed = |count| self.groups.exists(count);
            touched
                .map(|touched| Change {
                    slot: touched.slot,
                    before: if existed(touched.before) { images.next() } else { None },
                })
                .collect()
        };
        self.groups.end_epoch()?;
        Emission::new(changes, before)
    }

    /// Brings groups to memory whose windows close and that are only on disk.
    fn load_closing(&mut self, threshold: i64, ctx: &OperatorContext<'_>) -> Result<()> {
        if !self.groups.has_absent_closing(threshold) {
            return Ok(());
        }
        let of = self.layout.groups.columns.field(0).data_type();
        // The last watermark closes the windows without bounds as well, which sort behind all.
        let upper = (threshold != i64::MAX).then(|| window_bound(of, threshold));
        for rows in ctx.state.scan(GROUPS, upper.as_ref())? {
            let loaded = self.groups.adopt(&rows?)?;
            self.make_room();
            self.clear_freed();
            self.load(&[loaded], ctx)?;
        }
        Ok(())
    }

    /// Emits one chunk.
    fn emit(&self, emission: &mut Emission, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let Some(chunk) = emission.next_chunk()? else { return Ok(()) };
        let exists = |change: &&Change| self.groups.exists(self.groups.count(change.slot));
        let after_slots: Vec<u32> = chunk.changes.iter().filter(exists).map(|change| change.slot).collect();
        let after = self.image(&after_slots, self.groups.counts(&after_slots))?;
        let mut places = 0..;
        let after_places: Vec<Option<usize>> =
            chunk.changes.iter().map(|change| exists(&change).then(|| places.next()).flatten()).collect();
        let difference = chunk.difference(&after, &after_places)?;

        if !difference.is_empty() {
            let keys = self.output_keys(&difference.slots())?;
            let columns = keys.into_iter().chain(difference.columns(&chunk.before, &after)?).collect();
            let rows = with_columns(&self.output, columns, difference.len())?;
            let diffs = if self.is_append { None } else { Some(difference.diffs()) };
            ctx.emit(ChangeBatch { rows, diffs, origin: None });
        }
        if let Some((slots, diffs, errors)) = difference.into_failures() {
            let keys = self.output_keys(&slots)?;
            let schema = Arc::new(self.output.project(&(0..keys.len()).collect::<Vec<_>>())?);
            let keys = with_columns(&schema, keys, slots.len())?;
            let keys = ChangeBatch::with_diffs(keys, Int64Array::from(diffs));
            ctx.side.push(SideOutput::GroupErrors { keys, errors });
        }
        Ok(())
    }

    /// The group columns in the order of the output.
    fn output_keys(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let keys = self.groups.keys(slots)?;
        Ok(self.layout.output_keys.iter().map(|&place| Arc::clone(&keys[place])).collect())
    }

    fn close_windows(&mut self, end: &EpochEnd) {
        let threshold = self.threshold(end.watermark);
        if !self.is_windowed || threshold == i64::MIN {
            return;
        }
        self.groups.close(threshold);
        self.clear_freed();
        self.values.iter_mut().for_each(|values| values.resident().close(threshold));
    }

    fn hand_over(&mut self, epoch: Epoch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let HandOver { puts, deletes, delete_up_to } = self.groups.hand_over(epoch);
        let mut columns = self.groups.keys(&puts)?;
        columns.push(Arc::new(Int64Array::from(self.groups.counts(&puts))));
        for measure in &self.measures {
            columns.extend(measure.save(&puts)?);
        }
        let schema = &self.layout.groups;
        let puts = with_columns(&schema.columns, columns, puts.len())?;
        let deletes = if deletes.is_empty() { None } else { Some(self.groups.keys(&deletes)?) };
        if let Some(changes) = table_changes(schema, puts, deletes, delete_up_to) {
            ctx.state.hand_over(GROUPS, changes)?;
        }
        self.clear_freed();
        for values in &mut self.values {
            if let Some(changes) = values.hand_over(epoch)? {
                ctx.state.hand_over(values.table(), changes)?;
            }
        }
        Ok(())
    }

    fn bytes_per_group(&self) -> usize {
        let measures = self.measures.iter().map(|measure| measure.bytes_per_slot());
        self.groups.bytes_per_key() + measures.sum::<usize>()
    }
}

fn with_columns(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The rows that pass a filter and whose argument is not NULL; `None`: all.
fn select(batch: &ChangeBatch, argument: Option<usize>, filter: Option<usize>) -> Option<NullBuffer> {
    let arguments = argument.and_then(|column| batch.rows.column(column).logical_nulls());
    let passing = filter.map(|column| {
        let filter = batch.rows.column(column).as_boolean();
        let is_true = match filter.nulls() {
            Some(nulls) => filter.values() & nulls.inner(),
            None => filter.values().clone(),
        };
        NullBuffer::new(is_true)
    });
    NullBuffer::union(arguments.as_ref(), passing.as_ref()).filter(|selected| selected.null_count() > 0)
}

impl Operator for AggregateOperator {
    fn open(&mut self, start: &Start, ctx: &mut OperatorContext<'_>) -> Result<()> {
        if !start.is_new {
            self.groups.set_incomplete();
            self.values.iter_mut().for_each(|values| values.resident().set_incomplete());
            if self.on_close {
                for rows in ctx.state.scan(GROUPS, None)? {
                    self.groups.note_absent(rows?.column(0))?;
                }
            }
            return Ok(());
        }
        let is_global = self.layout.key_columns.is_empty();
        if is_global && start.key_groups.contains(key_groups(&[], 1)?[0]) {
            let mut slots = Vec::new();
            self.groups.resolve(&[], 1, &*ctx.state, GROUPS, &mut slots)?;
            self.make_room();
            let mut emission =
                Emission::new(vec![Change { slot: slots[0], before: None }], Image::default())?;
            self.emit(&mut emission, ctx)?;
        }
        Ok(())
    }

    fn on_batch(&mut self, _input: usize, batch: ChangeBatch, ctx: &mut OperatorContext<'_>) -> Result<()> {
        let keys: Vec<ArrayRef> =
            self.layout.key_columns.iter().map(|&column| Arc::clone(batch.rows.column(column))).collect();
        self.check_open(&keys)?;
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        let loaded = self.groups.resolve(&keys, batch.len(), &*ctx.state, GROUPS, &mut slots)?;
        self.make_room();
        self.load(&loaded, ctx)?;

        let first = self.groups.touched().len();
        self.groups.touch(&slots, batch.diffs.as_ref().map(|diffs| &diffs.values()[..]));
        if !self.on_close {
            let touched = self.groups.touched()[first..].iter();
            let (existing, counts): (Vec<u32>, Vec<i64>) = touched
                .filter(|touched| self.groups.exists(touched.before))
                .map(|touched| (touched.slot, touched.before))
                .unzip();
            if !existing.is_empty() {
                let image = self.image(&existing, counts)?;
                self.before.append(image);
            }
        }
        self.update(&batch, &keys, &slots, ctx)?;
        self.slots = slots;
        Ok(())
    }

    fn on_epoch_end(&mut self, end: &EpochEnd, ctx: &mut OperatorContext<'_>) -> Result<Progress> {
        let mut emission = match self.emission.take() {
            Some(emission) => emission,
            None => self.begin_emission(end, ctx)?,
        };
        while !emission.is_done() {
            if !ctx.has_room() {
                self.emission = Some(emission);
                return Ok(Progress::More);
            }
            self.emit(&mut emission, ctx)?;
        }
        self.close_windows(end);
        if end.is_checkpoint {
            self.hand_over(end.epoch, ctx)?;
        }
        let is_short_of_memory = std::mem::take(&mut self.is_short_of_memory);
        self.compact(if is_short_of_memory { WASTEFUL } else { SPARSE });
        Ok(Progress::Done)
    }

    fn output_watermark(&self, end: &EpochEnd) -> Watermark {
        if self.is_windowed { end.watermark.shifted(-self.allowed_lateness) } else { end.watermark }
    }

    fn on_checkpoint_durable(&mut self, epoch: Epoch) {
        self.groups.durable(epoch);
        self.clear_freed();
        self.values.iter_mut().for_each(|values| values.resident().durable(epoch));
    }

    fn memory(&self) -> MemoryUse {
        let bytes = self.bytes_per_group();
        let (pinned, clean) = self.groups.pinned_and_clean();
        let emission = self.emission.as_ref().map_or(0, Emission::bytes);
        let dirty = pinned * bytes + self.before.bytes() + emission;
        let mut memory = MemoryUse { dirty, clean: clean * bytes };
        for values in &self.values {
            let (pinned, clean) = values.pinned_and_clean_bytes();
            memory.dirty += pinned;
            memory.clean += clean;
        }
        memory
    }

    fn release_memory(&mut self, bytes: usize) -> usize {
        // What is about to be emitted must stay.
        if self.emission.is_some() {
            return 0;
        }
        let per_group = self.bytes_per_group();
        let mut released = self.groups.evict(bytes.div_ceil(per_group)) * per_group;
        self.clear_freed();
        for values in &mut self.values {
            if released >= bytes {
                break;
            }
            let per_value = values.resident().bytes_per_key();
            released += values.resident().evict((bytes - released).div_ceil(per_value)) * per_value;
        }
        self.is_short_of_memory = true;
        released
    }
}
