//! Rows: compact and versioned, only ever read back whole. The format is described in the parent
//! module.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, BooleanBufferBuilder, NullArray,
    NullBufferBuilder, StructArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute;
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef, IntervalMonthDayNano, i256};

use crate::encoding::EncodedKeys;
use crate::encoding::column::{
    Kind, Native, bytes_array, damaged, element_field, fixed_array, is_valid, kind_of, list_array,
    list_elements, natives, nulls_of, struct_fields, take, with_bytes, with_native, without_dictionary,
};
use crate::{Result, StateError};

const VERSION: u8 = 1;

/// Encodes value columns row by row: compact, versioned.
pub fn encode_rows(columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
    encode_tuples(Some(VERSION), columns, rows)
}

/// For each row: the version byte (of whole rows), the NULL bitmap, the bodies.
fn encode_tuples(version: Option<u8>, columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
    let columns = columns.iter().map(ValueColumn::new).collect::<Result<Vec<_>>>()?;
    let bitmap_at = usize::from(version.is_some());
    let header = bitmap_at + columns.len().div_ceil(8);
    let mut encoded = allocate(&columns, header, rows);
    let ends = &mut encoded.offsets[1..];
    if let Some(version) = version {
        ends.iter().for_each(|start| encoded.bytes[*start] = version);
    }
    for (idx, column) in columns.iter().enumerate() {
        if let Some(nulls) = &column.nulls {
            for row in (0..rows).filter(|row| nulls.is_null(*row)) {
                encoded.bytes[ends[row] + bitmap_at + idx / 8] |= 1 << (idx % 8);
            }
        }
    }
    ends.iter_mut().for_each(|end| *end += header);
    for column in &columns {
        column.write(&mut encoded.bytes, ends);
    }
    Ok(encoded)
}

/// The bodies of one column and nothing else; a NULL has none.
fn encode_bodies(column: &ValueColumn, rows: usize) -> EncodedKeys {
    let mut encoded = allocate(std::slice::from_ref(column), 0, rows);
    column.write(&mut encoded.bytes, &mut encoded.offsets[1..]);
    encoded
}

/// Zeroed room for rows with a header of that length. `offsets[row + 1]` is where the row starts:
/// whoever writes moves it on, which in the end makes it the row's end.
fn allocate(columns: &[ValueColumn], header: usize, rows: usize) -> EncodedKeys {
    let mut offsets = vec![header; rows + 1];
    offsets[0] = 0;
    for column in columns {
        column.add_lengths(&mut offsets[1..]);
    }
    let mut total = 0;
    for offset in &mut offsets[1..] {
        total += std::mem::replace(offset, total);
    }
    EncodedKeys { bytes: vec![0; total], offsets }
}

/// A value column, prepared for writing.
struct ValueColumn {
    nulls: Option<NullBuffer>,
    body: Body,
}

enum Body {
    Null,
    Boolean(BooleanArray),
    Fixed(Native, ArrayRef),
    Bytes(ArrayRef),
    List { elements: EncodedKeys, nulls: Option<NullBuffer>, ranges: Vec<Range<usize>> },
    Struct(EncodedKeys),
}

impl ValueColumn {
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
                let column = Self::new(&elements)?;
                let elements = encode_bodies(&column, elements.len());
                Body::List { elements, nulls: column.nulls, ranges }
            }
            Kind::Struct => Body::Struct(encode_tuples(None, array.as_struct().columns(), array.len())?),
        };
        Ok(Self { nulls, body })
    }

    fn add_lengths(&self, lengths: &mut [usize]) {
        match &self.body {
            Body::Null => {}
            Body::Boolean(_) => self.add(lengths, |_| 1),
            Body::Fixed(native, _) => {
                let width = with_native!(native, N => N::WIDTH);
                self.add(lengths, |_| width);
            }
            Body::Bytes(array) => with_bytes!(array.as_ref(), value => {
                self.add(lengths, |row| {
                    let len = value(row).len();
                    varint_len(len) + len
                });
            }),
            Body::List { elements, ranges, .. } => self.add(lengths, |row| {
                let Range { start, end } = ranges[row];
                let count = end - start;
                varint_len(count) + count.div_ceil(8) + elements.offsets[end] - elements.offsets[start]
            }),
            Body::Struct(tuples) => self.add(lengths, |row| tuples.get(row).len()),
        }
    }

    fn add(&self, lengths: &mut [usize], body: impl Fn(usize) -> usize) {
        for (row, length) in lengths.iter_mut().enumerate() {
            if is_valid(self.nulls.as_ref(), row) {
                *length += body(row);
            }
        }
    }

    fn write(&self, bytes: &mut [u8], ends: &mut [usize]) {
        match &self.body {
            Body::Null => {}
            Body::Boolean(values) => self.put(bytes, ends, |row, to| {
                to[0] = u8::from(values.value(row));
                1
            }),
            Body::Fixed(native, array) => with_native!(native, N => {
                let values = natives::<N>(array.as_ref());
                self.put(bytes, ends, |row, to| {
                    to[..N::WIDTH].copy_from_slice(values[row].to_row().as_ref());
                    N::WIDTH
                });
            }),
            Body::Bytes(array) => with_bytes!(array.as_ref(), value => {
                self.put(bytes, ends, |row, to| {
                    let value = value(row);
                    let at = write_varint(value.len(), to);
                    to[at..at + value.len()].copy_from_slice(value);
                    at + value.len()
                });
            }),
            Body::List { elements, nulls, ranges } => self.put(bytes, ends, |row, to| {
                let Range { start, end } = ranges[row];
                let bitmap_at = write_varint(end - start, to);
                for element in (start..end).filter(|element| !is_valid(nulls.as_ref(), *element)) {
                    to[bitmap_at + (element - start) / 8] |= 1 << ((element - start) % 8);
                }
                let at = bitmap_at + (end - start).div_ceil(8);
                let bodies = &elements.bytes[elements.offsets[start]..elements.offsets[end]];
                to[at..at + bodies.len()].copy_from_slice(bodies);
                at + bodies.len()
            }),
            Body::Struct(tuples) => self.put(bytes, ends, |row, to| {
                let tuple = tuples.get(row);
                to[..tuple.len()].copy_from_slice(tuple);
                tuple.len()
            }),
        }
    }

    /// Writes the body of each row that is not NULL with `body`, which says how long it is.
    fn put(&self, bytes: &mut [u8], ends: &mut [usize], body: impl Fn(usize, &mut [u8]) -> usize) {
        for (row, end) in ends.iter_mut().enumerate() {
            if is_valid(self.nulls.as_ref(), row) {
                *end += body(row, &mut bytes[*end..]);
            }
        }
    }
}

fn varint_len(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

fn write_varint(mut value: usize, to: &mut [u8]) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        to[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    to[at] = value as u8;
    at + 1
}

fn take_varint(rest: &mut &[u8]) -> Result<usize> {
    let mut value = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(damaged("length out of range"))
}

/// The inverse of [`encode_rows`].
pub fn decode_rows<'a>(fields: &[FieldRef], rows: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
    let mut rest: Vec<&[u8]> = rows.collect();
    for row in &mut rest {
        let version = take(row, 1)?[0];
        if version != VERSION {
            let (found, known) = (version.into(), VERSION.into());
            return Err(StateError::Version { what: "a row", found, known });
        }
    }
    let columns = decode_tuples(fields, &mut rest, None)?;
    if rest.iter().all(|rest| rest.is_empty()) { Ok(columns) } else { Err(damaged("row is too long")) }
}

/// Decodes the bitmaps and bodies of the rows that are `present`, and moves `rest`, what is left
/// of each, behind them.
fn decode_tuples(
    fields: &[FieldRef],
    rest: &mut [&[u8]],
    present: Option<&NullBuffer>,
) -> Result<Vec<ArrayRef>> {
    let mut bitmaps: Vec<&[u8]> = Vec::with_capacity(rest.len());
    for (row, rest) in rest.iter_mut().enumerate() {
        let is_present = is_valid(present, row);
        bitmaps.push(if is_present { take(rest, fields.len().div_ceil(8))? } else { &[] });
    }
    let mut columns = Vec::with_capacity(fields.len());
    for (idx, field) in fields.iter().enumerate() {
        let has_value = |row: usize| {
            let bitmap: &[u8] = bitmaps[row];
            bitmap.get(idx / 8).is_some_and(|byte| byte & (1 << (idx % 8)) == 0)
        };
        let valid = NullBuffer::new(BooleanBuffer::collect_bool(rest.len(), has_value));
        let nulls = (valid.null_count() > 0).then_some(valid);
        columns.push(decode_bodies(field.data_type(), rest, nulls)?);
    }
    Ok(columns)
}

/// Decodes one column and moves `rest` behind it.
fn decode_bodies(data_type: &DataType, rest: &mut [&[u8]], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    if let DataType::Dictionary(_, value_type) = data_type {
        return Ok(compute::cast(&decode_bodies(value_type, rest, nulls)?, data_type)?);
    }
    match kind_of(data_type)? {
        Kind::Null => Ok(Arc::new(NullArray::new(rest.len()))),
        Kind::Boolean => {
            let mut values = BooleanBufferBuilder::new(rest.len());
            for (row, rest) in rest.iter_mut().enumerate() {
                values.append(is_valid(nulls.as_ref(), row) && take(rest, 1)?[0] == 1);
            }
            Ok(Arc::new(BooleanArray::new(values.finish(), nulls)))
        }
        Kind::Fixed(native) => with_native!(native, N => decode_fixed::<N>(data_type, rest, nulls)),
        Kind::Bytes => decode_bytes(data_type, rest, nulls.as_ref()),
        Kind::List => decode_lists(data_type, rest, nulls),
        Kind::Struct => {
            let fields = struct_fields(data_type)?;
            let columns = decode_tuples(fields, rest, nulls.as_ref())?;
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rest.len())?))
        }
    }
}

fn decode_fixed<N: RowNumber>(
    data_type: &DataType,
    rest: &mut [&[u8]],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let mut values = Vec::with_capacity(rest.len());
    for (row, rest) in rest.iter_mut().enumerate() {
        let is_valid = is_valid(nulls.as_ref(), row);
        values.push(if is_valid { N::from_row(take(rest, N::WIDTH)?)? } else { N::default() });
    }
    fixed_array(data_type, values, nulls)
}

fn decode_bytes(data_type: &DataType, rest: &mut [&[u8]], nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    let mut values = BinaryViewBuilder::with_capacity(rest.len());
    for (row, rest) in rest.iter_mut().enumerate() {
        if is_valid(nulls, row) {
            let len = take_varint(rest)?;
            values.append_value(take(rest, len)?);
        } else {
            values.append_null();
        }
    }
    bytes_array(data_type, values.finish())
}

fn decode_lists(data_type: &DataType, rest: &mut [&[u8]], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let element_type = element_field(data_type)?.data_type();
    let mut elements: Vec<&[u8]> = Vec::new();
    let mut element_nulls = NullBufferBuilder::new(0);
    let mut lengths = Vec::with_capacity(rest.len());
    for (row, rest) in rest.iter_mut().enumerate() {
        if !is_valid(nulls.as_ref(), row) {
            lengths.push(0);
            continue;
        }
        let count = take_varint(rest)?;
        let bitmap = take(rest, count.div_ceil(8))?;
        for element in 0..count {
            let has_value = bitmap[element / 8] & (1 << (element % 8)) == 0;
            element_nulls.append(has_value);
            elements.push(rest);
            if has_value {
                skip(element_type, rest)?;
            }
        }
        lengths.push(count);
    }
    let elements = decode_bodies(element_type, &mut elements, element_nulls.finish())?;
    list_array(data_type, lengths, elements, nulls)
}

/// Moves behind one body.
fn skip(data_type: &DataType, rest: &mut &[u8]) -> Result<()> {
    if let DataType::Dictionary(_, value_type) = data_type {
        return skip(value_type, rest);
    }
    match kind_of(data_type)? {
        Kind::Null => {}
        Kind::Boolean => {
            take(rest, 1)?;
        }
        Kind::Fixed(native) => {
            take(rest, with_native!(native, N => N::WIDTH))?;
        }
        Kind::Bytes => {
            let len = take_varint(rest)?;
            take(rest, len)?;
        }
        Kind::List => {
            let element_type = element_field(data_type)?.data_type();
            let count = take_varint(rest)?;
            let bitmap = take(rest, count.div_ceil(8))?;
            for element in 0..count {
                if bitmap[element / 8] & (1 << (element % 8)) == 0 {
                    skip(element_type, rest)?;
                }
            }
        }
        Kind::Struct => {
            let fields = struct_fields(data_type)?;
            let bitmap = take(rest, fields.len().div_ceil(8))?;
            for (idx, field) in fields.iter().enumerate() {
                if bitmap[idx / 8] & (1 << (idx % 8)) == 0 {
                    skip(field.data_type(), rest)?;
                }
            }
        }
    }
    Ok(())
}

/// A number with a little-endian form.
trait RowNumber: ArrowNativeType {
    const WIDTH: usize;
    type Bytes: AsRef<[u8]>;
    fn to_row(self) -> Self::Bytes;
    fn from_row(bytes: &[u8]) -> Result<Self>;
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| StateError::Internal("number of another width".to_owned()))
}

macro_rules! row_number {
    ($($native:ty),*) => {$(
        impl RowNumber for $native {
            const WIDTH: usize = size_of::<$native>();
            type Bytes = [u8; size_of::<$native>()];

            fn to_row(self) -> Self::Bytes {
                self.to_le_bytes()
            }

            fn from_row(bytes: &[u8]) -> Result<Self> {
                Ok(<$native>::from_le_bytes(exactly(bytes)?))
            }
        }
    )*};
}
row_number!(i8, i16, i32, i64, i128, i256, u8, u16, u32, u64, f32, f64);

impl RowNumber for IntervalMonthDayNano {
    const WIDTH: usize = 16;
    type Bytes = [u8; 16];

    fn to_row(self) -> Self::Bytes {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.months.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.days.to_le_bytes());
        bytes[8..].copy_from_slice(&self.nanoseconds.to_le_bytes());
        bytes
    }

    fn from_row(bytes: &[u8]) -> Result<Self> {
        Ok(Self {
            months: i32::from_le_bytes(exactly(&bytes[..4])?),
            days: i32::from_le_bytes(exactly(&bytes[4..8])?),
            nanoseconds: i64::from_le_bytes(exactly(&bytes[8..])?),
        })
    }
}
