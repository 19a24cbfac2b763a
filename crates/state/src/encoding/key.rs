//! Memcomparable keys. The format is described in the parent module.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, BooleanBufferBuilder, NullArray,
    NullBufferBuilder, StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute;
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef, IntervalMonthDayNano, i256};

use crate::encoding::EncodedKeys;
use crate::encoding::column::{
    Kind, Native, bytes_array, damaged, element_field, fixed_array, is_valid, kind_of, list_array,
    list_elements, natives, nulls_of, struct_fields, take, with_bytes, with_native, without_dictionary,
};
use crate::{Result, StateError};

const VALUE: u8 = 0x01;
const NULL: u8 = 0x02;
const LIST_END: u8 = 0x00;
const ESCAPED: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xFF;
const BYTES_END: u8 = 0x01;

/// Encodes key columns; byte order of the result = (NULLS LAST, ascending) order of the values.
pub fn encode_keys(columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
    let columns = columns.iter().map(KeyColumn::new).collect::<Result<Vec<_>>>()?;
    if let [KeyColumn { nulls: None, body: Body::Fixed(native, array) }] = columns.as_slice() {
        return Ok(with_native!(native, N => encode_only_column::<N>(array.as_ref())));
    }
    let mut offsets = vec![0; rows + 1];
    for column in &columns {
        column.add_lengths(&mut offsets[1..]);
    }
    // From lengths to starts. Each column then moves them on behind what it wrote, which in the
    // end makes them the ends.
    let mut total = 0;
    for offset in &mut offsets[1..] {
        total += std::mem::replace(offset, total);
    }
    let mut bytes = vec![0; total];
    for column in &columns {
        column.write(&mut bytes, &mut offsets[1..]);
    }
    Ok(EncodedKeys { bytes, offsets })
}

/// The fast path: one fixed-width column without NULLs.
fn encode_only_column<N: KeyNumber>(array: &dyn Array) -> EncodedKeys {
    let values = natives::<N>(array);
    let width = N::WIDTH + 1;
    let mut bytes = vec![VALUE; values.len() * width];
    for (key, value) in bytes.chunks_exact_mut(width).zip(values.iter()) {
        key[1..].copy_from_slice(value.to_key().as_ref());
    }
    EncodedKeys { bytes, offsets: (0..=values.len()).map(|row| row * width).collect() }
}

/// A key column, prepared for writing.
struct KeyColumn {
    nulls: Option<NullBuffer>,
    body: Body,
}

enum Body {
    Null,
    Boolean(BooleanArray),
    Fixed(Native, ArrayRef),
    Bytes(ArrayRef),
    /// Bodies that are stretches of other encoded keys: elements of a list, fields of a struct.
    Nested {
        items: EncodedKeys,
        ranges: Vec<Range<usize>>,
        is_list: bool,
    },
}

impl KeyColumn {
    fn new(array: &ArrayRef) -> Result<Self> {
        let array = without_dictionary(array)?;
        let nulls = nulls_of(array.as_ref());
        let body = match kind_of(array.data_type())? {
            Kind::Null => Body::Null,
            Kind::Boolean => Body::Boolean(array.as_boolean().clone()),
            Kind::Fixed(native) => Body::Fixed(native, array),
            Kind::Bytes => Body::Bytes(array),
            Kind::List => {
                let (elements, ranges) = list_elements(array.as_ref());
                let count = elements.len();
                Body::Nested { items: encode_keys(&[elements], count)?, ranges, is_list: true }
            }
            Kind::Struct => {
                let items = encode_keys(array.as_struct().columns(), array.len())?;
                let ranges = (0..array.len()).map(|row| row..row + 1).collect();
                Body::Nested { items, ranges, is_list: false }
            }
        };
        Ok(Self { nulls, body })
    }

    fn add_lengths(&self, lengths: &mut [usize]) {
        match &self.body {
            Body::Null => self.add(lengths, |_| 0),
            Body::Boolean(_) => self.add(lengths, |_| 1),
            Body::Fixed(native, _) => {
                let width = with_native!(native, N => N::WIDTH);
                self.add(lengths, |_| width);
            }
            Body::Bytes(array) => with_bytes!(array.as_ref(), value => {
                self.add(lengths, |row| escaped_len(value(row)));
            }),
            Body::Nested { items, ranges, is_list } => self.add(lengths, |row| {
                let Range { start, end } = ranges[row];
                items.offsets[end] - items.offsets[start] + usize::from(*is_list)
            }),
        }
    }

    fn add(&self, lengths: &mut [usize], body: impl Fn(usize) -> usize) {
        for (row, length) in lengths.iter_mut().enumerate() {
            *length += if is_valid(self.nulls.as_ref(), row) { 1 + body(row) } else { 1 };
        }
    }

    fn write(&self, bytes: &mut [u8], ends: &mut [usize]) {
        match &self.body {
            Body::Null => self.put(bytes, ends, |_, _| 0),
            Body::Boolean(values) => self.put(bytes, ends, |row, to| {
                to[0] = u8::from(values.value(row));
                1
            }),
            Body::Fixed(native, array) => with_native!(native, N => {
                let values = natives::<N>(array.as_ref());
                self.put(bytes, ends, |row, to| {
                    to[..N::WIDTH].copy_from_slice(values[row].to_key().as_ref());
                    N::WIDTH
                });
            }),
            Body::Bytes(array) => with_bytes!(array.as_ref(), value => {
                self.put(bytes, ends, |row, to| write_escaped(value(row), to));
            }),
            Body::Nested { items, ranges, is_list } => self.put(bytes, ends, |row, to| {
                let Range { start, end } = ranges[row];
                let inner = &items.bytes[items.offsets[start]..items.offsets[end]];
                to[..inner.len()].copy_from_slice(inner);
                if *is_list {
                    to[inner.len()] = LIST_END;
                }
                inner.len() + usize::from(*is_list)
            }),
        }
    }

    /// Writes the tag of each row and, behind it, its body with `body`, which says how long it is.
    fn put(&self, bytes: &mut [u8], ends: &mut [usize], body: impl Fn(usize, &mut [u8]) -> usize) {
        for (row, end) in ends.iter_mut().enumerate() {
            let is_valid = is_valid(self.nulls.as_ref(), row);
            bytes[*end] = if is_valid { VALUE } else { NULL };
            *end += 1;
            if is_valid {
                *end += body(row, &mut bytes[*end..]);
            }
        }
    }
}

fn escaped_len(value: &[u8]) -> usize {
    value.len() + value.iter().filter(|byte| **byte == ESCAPED).count() + 2
}

fn write_escaped(value: &[u8], to: &mut [u8]) -> usize {
    let mut at = 0;
    if value.contains(&ESCAPED) {
        for byte in value {
            to[at] = *byte;
            at += 1;
            if *byte == ESCAPED {
                to[at] = ESCAPED_ZERO;
                at += 1;
            }
        }
    } else {
        to[..value.len()].copy_from_slice(value);
        at += value.len();
    }
    to[at..at + 2].copy_from_slice(&[ESCAPED, BYTES_END]);
    at + 2
}

/// The least byte string greater than every one that starts with `prefix`: the exclusive end of a
/// range of keys. `None`: there is no such end.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// The inverse of [`encode_keys`]. Values that are equal as keys come back as the one that stands
/// for them all: −0 as 0, an interval of 36 hours as 1 day 12 hours.
pub fn decode_keys<'a>(fields: &[FieldRef], keys: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
    let mut rest: Vec<&[u8]> = keys.collect();
    let columns =
        fields.iter().map(|field| decode_column(field.data_type(), &mut rest)).collect::<Result<Vec<_>>>()?;
    if rest.iter().all(|rest| rest.is_empty()) { Ok(columns) } else { Err(damaged("key is too long")) }
}

/// Decodes one column and moves `rest`, what is left of each row, behind it.
fn decode_column(data_type: &DataType, rest: &mut [&[u8]]) -> Result<ArrayRef> {
    if let DataType::Dictionary(_, value_type) = data_type {
        return Ok(compute::cast(&decode_column(value_type, rest)?, data_type)?);
    }
    match kind_of(data_type)? {
        Kind::Null => {
            for row in &mut *rest {
                if take_tag(row)? {
                    return Err(damaged("value of type null"));
                }
            }
            Ok(Arc::new(NullArray::new(rest.len())))
        }
        Kind::Boolean => decode_booleans(rest),
        Kind::Fixed(native) => with_native!(native, N => decode_fixed::<N>(data_type, rest)),
        Kind::Bytes => decode_bytes(data_type, rest),
        Kind::List => decode_lists(data_type, rest),
        Kind::Struct => decode_structs(data_type, rest),
    }
}

fn take_tag(rest: &mut &[u8]) -> Result<bool> {
    match take(rest, 1)?[0] {
        VALUE => Ok(true),
        NULL => Ok(false),
        tag => Err(damaged(&format!("tag {tag:#04x}"))),
    }
}

fn decode_booleans(rest: &mut [&[u8]]) -> Result<ArrayRef> {
    let mut values = BooleanBufferBuilder::new(rest.len());
    let mut nulls = NullBufferBuilder::new(rest.len());
    for row in rest {
        let is_valid = take_tag(row)?;
        values.append(is_valid && take(row, 1)?[0] == 1);
        nulls.append(is_valid);
    }
    Ok(Arc::new(BooleanArray::new(values.finish(), nulls.finish())))
}

fn decode_fixed<N: KeyNumber>(data_type: &DataType, rest: &mut [&[u8]]) -> Result<ArrayRef> {
    let mut values = Vec::with_capacity(rest.len());
    let mut nulls = NullBufferBuilder::new(rest.len());
    for row in rest {
        let is_valid = take_tag(row)?;
        values.push(if is_valid { N::from_key(take(row, N::WIDTH)?)? } else { N::default() });
        nulls.append(is_valid);
    }
    fixed_array(data_type, values, nulls.finish())
}

fn decode_bytes(data_type: &DataType, rest: &mut [&[u8]]) -> Result<ArrayRef> {
    let mut values = BinaryViewBuilder::with_capacity(rest.len());
    let mut unescaped = Vec::new();
    for row in rest {
        if !take_tag(row)? {
            values.append_null();
            continue;
        }
        let escaped = take_escaped(row)?;
        if escaped.contains(&ESCAPED) {
            unescaped.clear();
            let mut bytes = escaped.iter();
            while let Some(byte) = bytes.next() {
                unescaped.push(*byte);
                if *byte == ESCAPED {
                    bytes.next();
                }
            }
            values.append_value(&unescaped);
        } else {
            values.append_value(escaped);
        }
    }
    bytes_array(data_type, values.finish())
}

/// Cuts off an escaped text and its end; returns it without the end.
fn take_escaped<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    let whole = *rest;
    let mut from = 0;
    loop {
        let zero = whole[from..].iter().position(|byte| *byte == ESCAPED);
        let at = from + zero.ok_or_else(|| damaged("text without end"))?;
        match whole.get(at + 1) {
            Some(&BYTES_END) => {
                *rest = &whole[at + 2..];
                return Ok(&whole[..at]);
            }
            Some(&ESCAPED_ZERO) => from = at + 2,
            Some(_) | None => return Err(damaged("text with a bare zero byte")),
        }
    }
}

fn decode_lists(data_type: &DataType, rest: &mut [&[u8]]) -> Result<ArrayRef> {
    let element_type = element_field(data_type)?.data_type();
    let mut elements: Vec<&[u8]> = Vec::new();
    let mut lengths = Vec::with_capacity(rest.len());
    let mut nulls = NullBufferBuilder::new(rest.len());
    for row in rest {
        let is_valid = take_tag(row)?;
        nulls.append(is_valid);
        let before = elements.len();
        while is_valid && *row.first().ok_or_else(|| damaged("list without end"))? != LIST_END {
            let element = *row;
            skip(element_type, row)?;
            elements.push(&element[..element.len() - row.len()]);
        }
        if is_valid {
            take(row, 1)?;
        }
        lengths.push(elements.len() - before);
    }
    list_array(data_type, lengths, decode_column(element_type, &mut elements)?, nulls.finish())
}

fn decode_structs(data_type: &DataType, rest: &mut [&[u8]]) -> Result<ArrayRef> {
    let fields = struct_fields(data_type)?;
    let mut nulls = NullBufferBuilder::new(rest.len());
    let mut inner: Vec<&[u8]> = Vec::with_capacity(rest.len());
    for row in &mut *rest {
        nulls.append(take_tag(row)?);
        inner.push(row);
    }
    let nulls = nulls.finish();
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        // A NULL struct has no fields on disk: its rows read NULL from here.
        for (row, rest) in inner.iter_mut().enumerate() {
            if !is_valid(nulls.as_ref(), row) {
                *rest = &[NULL];
            }
        }
        columns.push(decode_column(field.data_type(), &mut inner)?);
    }
    for (row, (rest, inner)) in rest.iter_mut().zip(inner).enumerate() {
        if is_valid(nulls.as_ref(), row) {
            *rest = inner;
        }
    }
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rest.len())?))
}

/// Moves behind one encoded value.
fn skip(data_type: &DataType, rest: &mut &[u8]) -> Result<()> {
    if let DataType::Dictionary(_, value_type) = data_type {
        return skip(value_type, rest);
    }
    if !take_tag(rest)? {
        return Ok(());
    }
    match kind_of(data_type)? {
        Kind::Null => return Err(damaged("value of type null")),
        Kind::Boolean => {
            take(rest, 1)?;
        }
        Kind::Fixed(native) => {
            take(rest, with_native!(native, N => N::WIDTH))?;
        }
        Kind::Bytes => {
            take_escaped(rest)?;
        }
        Kind::List => {
            let element_type = element_field(data_type)?.data_type();
            while *rest.first().ok_or_else(|| damaged("list without end"))? != LIST_END {
                skip(element_type, rest)?;
            }
            take(rest, 1)?;
        }
        Kind::Struct => {
            for field in struct_fields(data_type)? {
                skip(field.data_type(), rest)?;
            }
        }
    }
    Ok(())
}

/// A number with a memcomparable form.
trait KeyNumber: ArrowNativeType {
    const WIDTH: usize;
    type Bytes: AsRef<[u8]>;
    fn to_key(self) -> Self::Bytes;
    fn from_key(bytes: &[u8]) -> Result<Self>;
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| StateError::Internal("number of another width".to_owned()))
}

macro_rules! key_integer {
    ($native:ty, flip $flip:literal) => {
        impl KeyNumber for $native {
            const WIDTH: usize = size_of::<$native>();
            type Bytes = [u8; size_of::<$native>()];

            fn to_key(self) -> Self::Bytes {
                let mut bytes = self.to_be_bytes();
                bytes[0] ^= $flip;
                bytes
            }

            fn from_key(bytes: &[u8]) -> Result<Self> {
                let mut bytes = exactly(bytes)?;
                bytes[0] ^= $flip;
                Ok(<$native>::from_be_bytes(bytes))
            }
        }
    };
}
key_integer!(i8, flip 0x80);
key_integer!(i16, flip 0x80);
key_integer!(i32, flip 0x80);
key_integer!(i64, flip 0x80);
key_integer!(i128, flip 0x80);
key_integer!(i256, flip 0x80);
key_integer!(u8, flip 0x00);
key_integer!(u16, flip 0x00);
key_integer!(u32, flip 0x00);
key_integer!(u64, flip 0x00);

macro_rules! key_float {
    ($native:ty, $bits:ty, quiet $quiet:literal) => {
        impl KeyNumber for $native {
            const WIDTH: usize = size_of::<$native>();
            type Bytes = [u8; size_of::<$native>()];

            fn to_key(self) -> Self::Bytes {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits: $bits = if self.is_nan() {
                    $quiet
                } else if self == 0.0 {
                    0
                } else {
                    self.to_bits()
                };
                let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
                ordered.to_be_bytes()
            }

            fn from_key(bytes: &[u8]) -> Result<Self> {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let ordered = <$bits>::from_be_bytes(exactly(bytes)?);
                let bits = if ordered & SIGN == 0 { !ordered } else { ordered & !SIGN };
                Ok(<$native>::from_bits(bits))
            }
        }
    };
}
key_float!(f32, u32, quiet 0x7FC0_0000);
key_float!(f64, u64, quiet 0x7FF8_0000_0000_0000);

const NANOS_PER_DAY: i128 = 86_400_000_000_000;
const NANOS_PER_MONTH: i128 = 30 * NANOS_PER_DAY;

impl KeyNumber for IntervalMonthDayNano {
    const WIDTH: usize = 16;
    type Bytes = [u8; 16];

    fn to_key(self) -> Self::Bytes {
        let months = i128::from(self.months) * NANOS_PER_MONTH;
        let days = i128::from(self.days) * NANOS_PER_DAY;
        (months + days + i128::from(self.nanoseconds)).to_key()
    }

    fn from_key(bytes: &[u8]) -> Result<Self> {
        // Near the ends of its range the months do not fit; the days and hours take the rest.
        let total = i128::from_key(bytes)?;
        let clamped = |value: i128| value.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        let months = clamped(total / NANOS_PER_MONTH);
        let rest = total - i128::from(months) * NANOS_PER_MONTH;
        let days = clamped(rest / NANOS_PER_DAY);
        let nanoseconds = i64::try_from(rest - i128::from(days) * NANOS_PER_DAY)
            .map_err(|_| damaged("interval out of range"))?;
        Ok(Self { months, days, nanoseconds })
    }
}
