//! What key and row encoding have in common: how Arrow types map to the few shapes on disk.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryViewArray, LargeListArray, ListArray, OffsetSizeTrait,
    make_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute;
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef, Fields, IntervalUnit};

use crate::{Result, StateError};

/// The shape of a type on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Fixed(Native),
    Bytes,
    List,
    Struct,
}

/// The number behind a fixed-width type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Native {
    I8,
    I16,
    I32,
    I64,
    I128,
    I256,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Interval,
}

/// Runs `$body` with `$native` naming the Rust type of a [`Native`].
macro_rules! with_native {
    ($value:expr, $native:ident => $body:expr) => {{
        use crate::encoding::column::Native;
        macro_rules! arm {
            ($type:ty) => {{
                type $native = $type;
                $body
            }};
        }
        match $value {
            Native::I8 => arm!(i8),
            Native::I16 => arm!(i16),
            Native::I32 => arm!(i32),
            Native::I64 => arm!(i64),
            Native::I128 => arm!(i128),
            Native::I256 => arm!(arrow::datatypes::i256),
            Native::U8 => arm!(u8),
            Native::U16 => arm!(u16),
            Native::U32 => arm!(u32),
            Native::U64 => arm!(u64),
            Native::F32 => arm!(f32),
            Native::F64 => arm!(f64),
            Native::Interval => arm!(arrow::datatypes::IntervalMonthDayNano),
        }
    }};
}
pub(super) use with_native;

/// Runs `$body` with `$value` being a function from row to bytes, for each text and binary type.
macro_rules! with_bytes {
    ($array:expr, $value:ident => $body:expr) => {{
        use arrow::array::AsArray;
        use arrow::datatypes::DataType;
        let array = $array;
        if let Some(strings) = array.as_string_view_opt() {
            let $value = |row: usize| strings.value(row).as_bytes();
            $body
        } else if let Some(strings) = array.as_string_opt::<i32>() {
            let $value = |row: usize| strings.value(row).as_bytes();
            $body
        } else if let Some(strings) = array.as_string_opt::<i64>() {
            let $value = |row: usize| strings.value(row).as_bytes();
            $body
        } else if let Some(bytes) = array.as_binary_view_opt() {
            let $value = |row: usize| bytes.value(row);
            $body
        } else if let Some(bytes) = array.as_binary_opt::<i32>() {
            let $value = |row: usize| bytes.value(row);
            $body
        } else {
            assert_eq!(array.data_type(), &DataType::LargeBinary);
            let bytes = array.as_binary::<i64>();
            let $value = |row: usize| bytes.value(row);
            $body
        }
    }};
}
pub(super) use with_bytes;

/// The shape of `data_type`, or an error for a type that no table can have.
pub(super) fn kind_of(data_type: &DataType) -> Result<Kind> {
    Ok(match data_type {
        DataType::Null => Kind::Null,
        DataType::Boolean => Kind::Boolean,
        DataType::Int8 => Kind::Fixed(Native::I8),
        DataType::Int16 => Kind::Fixed(Native::I16),
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) => Kind::Fixed(Native::I32),
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(_, _)
        | DataType::Duration(_) => Kind::Fixed(Native::I64),
        DataType::UInt8 => Kind::Fixed(Native::U8),
        DataType::UInt16 => Kind::Fixed(Native::U16),
        DataType::UInt32 => Kind::Fixed(Native::U32),
        DataType::UInt64 => Kind::Fixed(Native::U64),
        DataType::Float32 => Kind::Fixed(Native::F32),
        DataType::Float64 => Kind::Fixed(Native::F64),
        DataType::Decimal128(_, _) => Kind::Fixed(Native::I128),
        DataType::Decimal256(_, _) => Kind::Fixed(Native::I256),
        DataType::Interval(IntervalUnit::MonthDayNano) => Kind::Fixed(Native::Interval),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => Kind::Bytes,
        DataType::List(_) | DataType::LargeList(_) => Kind::List,
        DataType::Struct(_) => Kind::Struct,
        DataType::Float16
        | DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime)
        | DataType::FixedSizeBinary(_)
        | DataType::FixedSizeList(_, _)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(_, _)
        | DataType::Dictionary(_, _)
        | DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Map(_, _)
        | DataType::RunEndEncoded(_, _) => {
            return Err(StateError::Encoding(format!("no table can have a column of type {data_type}")));
        }
    })
}

/// A dictionary as its values; every other array as it is.
pub(super) fn without_dictionary(array: &ArrayRef) -> Result<ArrayRef> {
    if let DataType::Dictionary(_, value_type) = array.data_type() {
        Ok(compute::cast(array, value_type)?)
    } else {
        Ok(ArrayRef::clone(array))
    }
}

/// The field of a list type's elements.
pub(super) fn element_field(data_type: &DataType) -> Result<&FieldRef> {
    if let DataType::List(element) | DataType::LargeList(element) = data_type {
        Ok(element)
    } else {
        Err(StateError::Encoding(format!("{data_type} is not a list")))
    }
}

/// The fields of a struct type.
pub(super) fn struct_fields(data_type: &DataType) -> Result<&Fields> {
    if let DataType::Struct(fields) = data_type {
        Ok(fields)
    } else {
        Err(StateError::Encoding(format!("{data_type} is not a struct")))
    }
}

/// The nulls of an array, if it has any.
pub(super) fn nulls_of(array: &dyn Array) -> Option<NullBuffer> {
    array.logical_nulls().filter(|nulls| nulls.null_count() > 0)
}

/// Whether a row is not NULL.
pub(super) fn is_valid(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_none_or(|nulls| nulls.is_valid(row))
}

/// The numbers of a fixed-width array.
pub(super) fn natives<N: ArrowNativeType>(array: &dyn Array) -> ScalarBuffer<N> {
    let data = array.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

/// A fixed-width array of exactly `data_type` from its numbers.
pub(super) fn fixed_array<N: ArrowNativeType>(
    data_type: &DataType,
    values: Vec<N>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone())
        .len(values.len())
        .add_buffer(Buffer::from_vec(values))
        .nulls(nulls)
        .build()?;
    Ok(make_array(data))
}

/// A text or binary array of exactly `data_type` from its bytes.
pub(super) fn bytes_array(data_type: &DataType, values: BinaryViewArray) -> Result<ArrayRef> {
    let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let views: ArrayRef = if is_text { Arc::new(values.to_string_view()?) } else { Arc::new(values) };
    if views.data_type() == data_type { Ok(views) } else { Ok(compute::cast(&views, data_type)?) }
}

/// The elements of all lists of an array, and which of them each row has.
pub(super) fn list_elements(array: &dyn Array) -> (ArrayRef, Vec<Range<usize>>) {
    fn relative<O: OffsetSizeTrait>(offsets: &[O]) -> (usize, usize, Vec<Range<usize>>) {
        let first = offsets.first().map_or(0, |offset| offset.as_usize());
        let last = offsets.last().map_or(0, |offset| offset.as_usize());
        let ranges =
            offsets.windows(2).map(|pair| pair[0].as_usize() - first..pair[1].as_usize() - first).collect();
        (first, last, ranges)
    }
    let (values, (first, last, ranges)) = match array.as_list_opt::<i32>() {
        Some(lists) => (lists.values(), relative(lists.value_offsets())),
        None => {
            let lists = array.as_list::<i64>();
            (lists.values(), relative(lists.value_offsets()))
        }
    };
    (values.slice(first, last - first), ranges)
}

/// A list array of exactly `data_type` from its elements and the number of them in each row.
pub(super) fn list_array(
    data_type: &DataType,
    lengths: Vec<usize>,
    elements: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let element = FieldRef::clone(element_field(data_type)?);
    if matches!(data_type, DataType::LargeList(_)) {
        Ok(Arc::new(LargeListArray::try_new(element, OffsetBuffer::from_lengths(lengths), elements, nulls)?))
    } else {
        Ok(Arc::new(ListArray::try_new(element, OffsetBuffer::from_lengths(lengths), elements, nulls)?))
    }
}

/// The error for bytes that the encoders do not write.
pub(super) fn damaged(what: &str) -> StateError {
    StateError::Encoding(format!("damaged bytes: {what}"))
}

/// Cuts `len` bytes off the front.
pub(super) fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(len).ok_or_else(|| damaged("too short"))?;
    *rest = behind;
    Ok(taken)
}
