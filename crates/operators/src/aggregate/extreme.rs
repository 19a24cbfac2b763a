//! `min` and `max` over rows that are only added: one value for each group.
//!
//! The order is that of keys: NaN is greater than every number, texts are ordered by their bytes.
//! Of −0 and 0, which are equal, `min` keeps the first and `max` the second, whatever came first.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, new_null_array};
use arrow::datatypes::{
    ArrowNativeType, DataType, Date32Type, Decimal128Type, Field, FieldRef, Float32Type, Float64Type,
    Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use dataflow::{DataflowError, Result};
use state::{decode_keys, encode_keys};

use super::accumulator::{Accumulator, Failures, Input, Moves, nulls_where_not, wrong_column};
use super::call::AggregateFunction;

/// The accumulator for an argument of this type.
#[expect(clippy::wildcard_enum_match_arm, reason = "a few of the many types of Arrow")]
pub(crate) fn extreme(argument: &DataType, is_max: bool) -> Result<Box<dyn Accumulator>> {
    fn new<T: Extremal>(argument: &DataType, is_max: bool) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Extreme::<T> { entries: Vec::new(), argument: argument.clone(), is_max }))
    }
    match argument {
        DataType::Int16 => new::<Int16Type>(argument, is_max),
        DataType::Int32 => new::<Int32Type>(argument, is_max),
        DataType::Int64 => new::<Int64Type>(argument, is_max),
        DataType::Float32 => new::<Float32Type>(argument, is_max),
        DataType::Float64 => new::<Float64Type>(argument, is_max),
        DataType::Decimal128(_, _) => new::<Decimal128Type>(argument, is_max),
        DataType::Date32 => new::<Date32Type>(argument, is_max),
        DataType::Time64(TimeUnit::Microsecond) => new::<Time64MicrosecondType>(argument, is_max),
        DataType::Timestamp(TimeUnit::Microsecond, _) => new::<TimestampMicrosecondType>(argument, is_max),
        _ => Ok(Box::new(EncodedExtreme::new(argument, is_max)?)),
    }
}

/// A fixed-width type and the order of its values.
trait Extremal: ArrowPrimitiveType {
    fn order(left: Self::Native, right: Self::Native) -> Ordering;

    /// One value for all that are equal and look alike.
    fn canonical(value: Self::Native) -> Self::Native {
        value
    }
}

macro_rules! by_ord {
    ($($type:ty),*) => { $(
        impl Extremal for $type {
            #[inline]
            fn order(left: Self::Native, right: Self::Native) -> Ordering {
                left.cmp(&right)
            }
        }
    )* };
}
by_ord!(
    Int16Type,
    Int32Type,
    Int64Type,
    Decimal128Type,
    Date32Type,
    Time64MicrosecondType,
    TimestampMicrosecondType
);

macro_rules! by_total_order {
    ($($type:ty: $native:ty),*) => { $(
        impl Extremal for $type {
            #[inline]
            fn order(left: $native, right: $native) -> Ordering {
                left.total_cmp(&right)
            }

            fn canonical(value: $native) -> $native {
                if value.is_nan() { <$native>::NAN.copysign(1.0) } else { value }
            }
        }
    )* };
}
by_total_order!(Float32Type: f32, Float64Type: f64);

struct Extreme<T: ArrowPrimitiveType> {
    entries: Vec<Entry<T::Native>>,
    argument: DataType,
    is_max: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry<N> {
    best: N,
    is_set: bool,
}

impl<T: Extremal> Extreme<T> {
    fn column(column: &ArrayRef) -> Result<&PrimitiveArray<T>> {
        column.as_primitive_opt::<T>().ok_or_else(|| wrong_column("min or max", column.data_type()))
    }

    fn values(&self, slots: &[u32]) -> ArrayRef {
        let entries = slots.iter().map(|&slot| self.entries[slot as usize]);
        let nulls = nulls_where_not(slots.len(), |place| self.entries[slots[place] as usize].is_set);
        let values = entries.map(|entry| entry.best).collect();
        Arc::new(PrimitiveArray::<T>::new(values, nulls).with_data_type(self.argument.clone()))
    }
}

impl<T: Extremal> Accumulator for Extreme<T> {
    fn resize(&mut self, slots: usize) {
        let empty = Entry { best: T::Native::usize_as(0), is_set: false };
        self.entries.resize(slots, empty);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let column = input.values.ok_or_else(|| wrong_column("min or max", &DataType::Null))?;
        let values = &Self::column(column)?.values()[..input.slots.len()];
        let entries = self.entries.as_mut_slice();
        let better = if self.is_max { Ordering::Greater } else { Ordering::Less };
        input.for_each(|row, slot, _| {
            let entry = &mut entries[slot];
            let value = T::canonical(values[row]);
            if !entry.is_set || T::order(value, entry.best) == better {
                *entry = Entry { best: value, is_set: true };
            }
        });
        Ok(())
    }

    fn clear(&mut self, slots: &[u32]) {
        slots.iter().for_each(|&slot| self.entries[slot as usize].is_set = false);
    }

    fn compact(&mut self, moves: &Moves) {
        moves.apply(&mut self.entries);
    }

    fn evaluate(
        &self,
        _function: AggregateFunction,
        _output: &DataType,
        slots: &[u32],
        _failures: &mut Failures,
    ) -> Result<ArrayRef> {
        Ok(self.values(slots))
    }

    fn state_fields(&self, name: &str) -> Vec<Field> {
        vec![Field::new(format!("extreme_{name}"), self.argument.clone(), true)]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.values(slots)])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let column = Self::column(&columns[0])?;
        for (row, &slot) in slots.iter().enumerate() {
            self.entries[slot as usize] = Entry { best: column.value(row), is_set: column.is_valid(row) };
        }
        Ok(())
    }

    fn bytes_per_slot(&self) -> usize {
        size_of::<Entry<T::Native>>()
    }
}

/// Values of any other type, by their key encoding, whose byte order is theirs.
struct EncodedExtreme {
    entries: Vec<Option<Box<[u8]>>>,
    field: FieldRef,
    null: Vec<u8>,
    is_max: bool,
}

impl EncodedExtreme {
    fn new(argument: &DataType, is_max: bool) -> Result<Self> {
        let null = encode_keys(&[new_null_array(argument, 1)], 1)?;
        let field = Arc::new(Field::new("value", argument.clone(), true));
        Ok(Self { entries: Vec::new(), field, null: null.get(0).to_vec(), is_max })
    }

    fn values(&self, slots: &[u32]) -> Result<ArrayRef> {
        let keys = slots.iter().map(|&slot| self.entries[slot as usize].as_deref().unwrap_or(&self.null));
        one_column(&self.field, keys)
    }
}

/// The values behind some encoded ones.
pub(crate) fn one_column<'a>(field: &FieldRef, keys: impl Iterator<Item = &'a [u8]>) -> Result<ArrayRef> {
    let none = || DataflowError::Internal("a key without a column".to_owned());
    decode_keys(std::slice::from_ref(field), keys)?.pop().ok_or_else(none)
}

impl Accumulator for EncodedExtreme {
    fn resize(&mut self, slots: usize) {
        self.entries.resize(slots, None);
    }

    fn update(&mut self, input: &Input<'_>) -> Result<()> {
        let column = input.values.ok_or_else(|| wrong_column("min or max", &DataType::Null))?;
        let encoded = encode_keys(std::slice::from_ref(column), column.len())?;
        let better = if self.is_max { Ordering::Greater } else { Ordering::Less };
        input.for_each(|row, slot, _| {
            let value = encoded.get(row);
            let best = &mut self.entries[slot];
            if best.as_deref().is_none_or(|best| value.cmp(best) == better) {
                *best = Some(value.into());
            }
        });
        Ok(())
    }

    fn clear(&mut self, slots: &[u32]) {
        slots.iter().for_each(|&slot| self.entries[slot as usize] = None);
    }

    fn compact(&mut self, moves: &Moves) {
        moves.apply(&mut self.entries);
    }

    fn evaluate(
        &self,
        _function: AggregateFunction,
        _output: &DataType,
        slots: &[u32],
        _failures: &mut Failures,
    ) -> Result<ArrayRef> {
        self.values(slots)
    }

    fn state_fields(&self, name: &str) -> Vec<Field> {
        vec![Field::new(format!("extreme_{name}"), self.field.data_type().clone(), true)]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.values(slots)?])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let encoded = encode_keys(&columns[..1], slots.len())?;
        for (row, &slot) in slots.iter().enumerate() {
            let is_set = columns[0].is_valid(row);
            self.entries[slot as usize] = is_set.then(|| encoded.get(row).into());
        }
        Ok(())
    }

    fn bytes_per_slot(&self) -> usize {
        size_of::<Option<Box<[u8]>>>() + 32
    }
}
