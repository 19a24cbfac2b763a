//! How an aggregate's spec is laid out in accumulators and state tables.
//!
//! Calls that need the same intermediate results share one accumulator: `sum(x)` and `avg(x)`, or
//! `min` and `max` of the same values. `count(*)` needs none: every group counts its rows.
//!
//! | table | key | value |
//! |---|---|---|
//! | `groups` | group columns, `window_end` first | `$rows`, then the accumulators' columns |
//! | `values`, one for each distinct argument and filter | the same, then the value | `$count` |

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use dataflow::{ChangelogKind, DataflowError, Result};
use state::TableSchema;

use super::Aggregate;
use super::accumulator::Accumulator;
use super::call::{AggregateCall, AggregateFunction};
use super::count::{Booleans, Count};
use super::extreme::extreme;
use super::ordered::OrderedValues;
use super::sum_exact::{exact_sum, no_sum};
use super::sum_float::{FloatSum, Moments};

/// A kind of accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Count,
    Booleans,
    Sum,
    Moments,
    Min,
    Max,
    Ordered,
}

/// One accumulator and what it is fed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measure {
    kind: Kind,
    /// The input column; `None` for `count(*)`.
    pub(crate) argument: Option<usize>,
    /// A boolean input column.
    pub(crate) filter: Option<usize>,
    /// The value table whose distinct values it is fed with, instead of rows.
    pub(crate) values: Option<usize>,
}

/// Where the result of a call is read.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// `None`: the number of rows of the group.
    pub(crate) measure: Option<usize>,
    pub(crate) function: AggregateFunction,
    pub(crate) output: DataType,
}

/// A table of the distinct values of an argument in each group.
#[derive(Debug, Clone)]
pub(crate) struct ValueSet {
    pub(crate) argument: usize,
    pub(crate) filter: Option<usize>,
    pub(crate) schema: Arc<TableSchema>,
}

/// Everything about an aggregate that does not change while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// The input columns of the group key, in the order of the state tables.
    pub(crate) key_columns: Vec<usize>,
    /// For each group column of the output, which key column it is.
    pub(crate) output_keys: Vec<usize>,
    pub(crate) measures: Vec<Measure>,
    /// The columns of the table of groups that each measure owns.
    pub(crate) measure_columns: Vec<Range<usize>>,
    pub(crate) readings: Vec<Reading>,
    pub(crate) value_sets: Vec<ValueSet>,
    pub(crate) groups: Arc<TableSchema>,
    input: SchemaRef,
}

impl Layout {
    pub(crate) fn new(spec: &Aggregate) -> Result<Self> {
        let groups = spec.group_columns.len();
        // The end of the window first, so that closing a window is one range of keys.
        let mut order: Vec<usize> = (0..groups).collect();
        if let Some(end) = spec.window_end {
            order.remove(end);
            order.insert(0, end);
        }
        let mut output_keys = vec![0; groups];
        order.iter().enumerate().for_each(|(place, &group)| output_keys[group] = place);
        let key_columns: Vec<usize> = order.iter().map(|&group| spec.group_columns[group]).collect();
        let mut layout = Self {
            key_columns,
            output_keys,
            measures: Vec::new(),
            measure_columns: Vec::new(),
            readings: Vec::new(),
            value_sets: Vec::new(),
            groups: Arc::new(TableSchema { columns: Arc::new(Schema::empty()), key_len: 0 }),
            input: Arc::clone(&spec.input),
        };
        for call in &spec.aggregates {
            let measure = layout.measure_for(call, spec.input_kind)?;
            let output = call.output.data_type().clone();
            layout.readings.push(Reading { measure, function: call.function, output });
        }
        layout.lay_out_groups()?;
        Ok(layout)
    }

    /// The accumulators, empty.
    pub(crate) fn accumulators(&self) -> Result<Vec<Box<dyn Accumulator>>> {
        self.measures.iter().map(|measure| self.accumulator(measure)).collect()
    }

    fn accumulator(&self, measure: &Measure) -> Result<Box<dyn Accumulator>> {
        let argument =
            measure.argument.map_or(&DataType::Null, |column| self.input.field(column).data_type());
        Ok(match measure.kind {
            Kind::Count => Box::new(Count::default()),
            Kind::Booleans => Box::new(Booleans::default()),
            Kind::Moments => Box::new(Moments::default()),
            Kind::Min => extreme(argument, false)?,
            Kind::Max => extreme(argument, true)?,
            Kind::Ordered => Box::new(OrderedValues::new(argument)?),
            Kind::Sum if argument.is_floating() => Box::new(FloatSum::default()),
            Kind::Sum => exact_sum(argument).ok_or_else(|| no_sum(argument))?,
        })
    }

    fn measure_for(&mut self, call: &AggregateCall, input_kind: ChangelogKind) -> Result<Option<usize>> {
        let filter = call.filter;
        if call.function == AggregateFunction::CountStar {
            return Ok(filter
                .map(|_| self.share(Measure { kind: Kind::Count, argument: None, filter, values: None })));
        }
        let Some(argument) = call.argument else {
            let message = format!("{} without an argument", call.function.name());
            return Err(DataflowError::Internal(message));
        };
        let is_extreme = matches!(call.function, AggregateFunction::Min | AggregateFunction::Max);
        let is_retracted = input_kind == ChangelogKind::Retract;
        let kind = match call.function {
            AggregateFunction::CountStar | AggregateFunction::Count => Kind::Count,
            AggregateFunction::Sum | AggregateFunction::Avg => Kind::Sum,
            AggregateFunction::Min | AggregateFunction::Max if is_retracted => Kind::Ordered,
            AggregateFunction::Min => Kind::Min,
            AggregateFunction::Max => Kind::Max,
            AggregateFunction::BoolAnd | AggregateFunction::BoolOr => Kind::Booleans,
            AggregateFunction::StddevSamp
            | AggregateFunction::StddevPop
            | AggregateFunction::VarSamp
            | AggregateFunction::VarPop => Kind::Moments,
        };
        // DISTINCT makes no difference to these.
        let is_distinct = call.distinct && !is_extreme && kind != Kind::Booleans;
        let values =
            if is_distinct || kind == Kind::Ordered { Some(self.value_set(argument, filter)) } else { None };
        let counts_rows = kind == Kind::Count && values.is_none() && filter.is_none();
        if counts_rows && !self.input.field(argument).is_nullable() {
            return Ok(None);
        }
        Ok(Some(self.share(Measure { kind, argument: Some(argument), filter, values })))
    }

    fn share(&mut self, measure: Measure) -> usize {
        self.measures.iter().position(|other| *other == measure).unwrap_or_else(|| {
            self.measures.push(measure);
            self.measures.len() - 1
        })
    }

    fn value_set(&mut self, argument: usize, filter: Option<usize>) -> usize {
        let is_same = |set: &ValueSet| set.argument == argument && set.filter == filter;
        self.value_sets.iter().position(is_same).unwrap_or_else(|| {
            let mut fields = self.key_fields();
            let of = self.input.field(argument).data_type().clone();
            fields.push(Arc::new(Field::new("$value", of, false)));
            fields.push(Arc::new(Field::new("$count", DataType::Int64, false)));
            let schema = self.table(fields, self.key_columns.len() + 1);
            self.value_sets.push(ValueSet { argument, filter, schema });
            self.value_sets.len() - 1
        })
    }

    fn key_fields(&self) -> Vec<FieldRef> {
        self.key_columns.iter().map(|&column| Arc::clone(&self.input.fields()[column])).collect()
    }

    /// A state table whose rows lie in the key group by which the exchange before the operator
    /// distributes: that of the group columns, in the order of the output.
    fn table(&self, fields: Vec<FieldRef>, key_len: usize) -> Arc<TableSchema> {
        let table = TableSchema { columns: Arc::new(Schema::new(fields)), key_len };
        Arc::new(table.with_group_columns(&self.output_keys))
    }

    fn lay_out_groups(&mut self) -> Result<()> {
        let mut fields = self.key_fields();
        fields.push(Arc::new(Field::new("$rows", DataType::Int64, false)));
        for (number, measure) in self.measures.iter().enumerate() {
            let start = fields.len();
            fields.extend(
                self.accumulator(measure)?.state_fields(&number.to_string()).into_iter().map(Arc::new),
            );
            self.measure_columns.push(start..fields.len());
        }
        self.groups = self.table(fields, self.key_columns.len());
        Ok(())
    }
}
