//! One column under construction: rows are appended as text and can be taken back.
//!
//! Arrow's builders cannot forget a row. A record that turns out to be bad in its last field has
//! already filled the fields before it, so columns here are plain vectors that can be cut back to
//! an earlier length, and become arrays in one step at the end of a chunk.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, StringViewArray,
    StructArray, Time64MicrosecondArray, TimestampMicrosecondArray, make_view,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use arrow::error::ArrowError;
use dataflow::Result;

use crate::format::datetime::{EpochUnit, parse_date, parse_epoch, parse_time, parse_timestamp};
use crate::format::value::{
    ValueError, parse_boolean, parse_bytes, parse_decimal, parse_double, parse_integer, parse_real, shorten,
};

/// What a text field looked like to its format; only some types care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// Quoted, or in a format without types.
    Text,
    /// A JSON number.
    Number,
    /// Any other JSON value, as its JSON text.
    Json,
}

/// A column that rows are appended to.
#[derive(Debug)]
pub(crate) struct Column {
    values: Values,
    /// Rows so far.
    len: usize,
    /// Rows that are NULL, ascending: most columns have few or none.
    nulls: Vec<usize>,
    is_nullable: bool,
}

#[derive(Debug)]
enum Values {
    Boolean(Vec<bool>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal { values: Vec<i128>, precision: u8, scale: i8 },
    Text { kind: TextKind, views: Vec<u128>, bytes: TextBytes },
    Binary { ends: Vec<i32>, bytes: Vec<u8> },
    Date(Vec<i32>),
    Time(Vec<i64>),
    Timestamp { values: Vec<i64>, unit: Option<EpochUnit> },
    Interval(Vec<IntervalMonthDayNano>),
    List { ends: Vec<i32>, item: Box<Column> },
    Struct { fields: Fields, children: Vec<Column> },
}

/// What a text column holds, from its `pg_type` metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Plain,
    /// Canonical JSON text.
    Jsonb,
    Uuid,
}

/// The nested columns that formats with structure descend into.
pub(crate) enum Nested<'a> {
    List(&'a mut Column),
    Struct { fields: &'a Fields, children: &'a mut [Column] },
}

impl Column {
    /// An empty column, or `None` if no text format can fill the type.
    #[expect(clippy::wildcard_enum_match_arm, reason = "few of the Arrow types have a SQL type")]
    pub(crate) fn new(field: &Field, capacity: usize, unit: Option<EpochUnit>) -> Option<Self> {
        let values = match field.data_type() {
            DataType::Boolean => Values::Boolean(Vec::with_capacity(capacity)),
            DataType::Int16 => Values::Int16(Vec::with_capacity(capacity)),
            DataType::Int32 => Values::Int32(Vec::with_capacity(capacity)),
            DataType::Int64 => Values::Int64(Vec::with_capacity(capacity)),
            DataType::Float32 => Values::Float32(Vec::with_capacity(capacity)),
            DataType::Float64 => Values::Float64(Vec::with_capacity(capacity)),
            DataType::Decimal128(precision, scale) => {
                Values::Decimal { values: Vec::with_capacity(capacity), precision: *precision, scale: *scale }
            }
            DataType::Utf8View => Values::Text {
                kind: text_kind(field),
                views: Vec::with_capacity(capacity),
                bytes: TextBytes::default(),
            },
            DataType::Binary => Values::Binary { ends: Vec::with_capacity(capacity), bytes: Vec::new() },
            DataType::Date32 => Values::Date(Vec::with_capacity(capacity)),
            DataType::Time64(TimeUnit::Microsecond) => Values::Time(Vec::with_capacity(capacity)),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Values::Timestamp { values: Vec::with_capacity(capacity), unit }
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => Values::Interval(Vec::with_capacity(capacity)),
            DataType::List(item) => Values::List {
                ends: Vec::with_capacity(capacity),
                item: Box::new(Self::new(item, capacity, unit)?),
            },
            DataType::Struct(fields) => {
                let children =
                    fields.iter().map(|field| Self::new(field, capacity, unit)).collect::<Option<_>>()?;
                Values::Struct { fields: fields.clone(), children }
            }
            _ => return None,
        };
        Some(Self { values, len: 0, nulls: Vec::new(), is_nullable: field.is_nullable() })
    }

    /// Rows so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the last row is NULL though the column is NOT NULL.
    #[inline]
    pub(crate) fn ends_with_forbidden_null(&self) -> bool {
        !self.is_nullable && self.nulls.last().is_some_and(|row| row + 1 == self.len)
    }

    /// Takes back all rows from `rows` on.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.len = self.len.min(rows);
        while self.nulls.pop_if(|row| *row >= rows).is_some() {}
        match &mut self.values {
            Values::Boolean(values) => values.truncate(rows),
            Values::Int16(values) => values.truncate(rows),
            Values::Int32(values) | Values::Date(values) => values.truncate(rows),
            Values::Int64(values) | Values::Time(values) | Values::Timestamp { values, .. } => {
                values.truncate(rows)
            }
            Values::Float32(values) => values.truncate(rows),
            Values::Float64(values) => values.truncate(rows),
            Values::Decimal { values, .. } => values.truncate(rows),
            // Bytes of forgotten views stay behind until the end of the chunk: bad rows are rare.
            Values::Text { views, .. } => views.truncate(rows),
            Values::Binary { ends, bytes } => {
                ends.truncate(rows);
                bytes.truncate(last_end(ends));
            }
            Values::Interval(values) => values.truncate(rows),
            Values::List { ends, item } => {
                ends.truncate(rows);
                item.truncate(last_end(ends));
            }
            Values::Struct { children, .. } => {
                children.iter_mut().for_each(|child| child.truncate(rows));
            }
        }
    }

    /// Appends NULL.
    pub(crate) fn push_null(&mut self) {
        self.nulls.push(self.len);
        self.len += 1;
        match &mut self.values {
            Values::Boolean(values) => values.push(false),
            Values::Int16(values) => values.push(0),
            Values::Int32(values) | Values::Date(values) => values.push(0),
            Values::Int64(values) | Values::Time(values) | Values::Timestamp { values, .. } => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::Text { views, .. } => views.push(0),
            Values::Binary { ends, .. } | Values::List { ends, .. } => {
                ends.push(ends.last().copied().unwrap_or(0))
            }
            Values::Interval(values) => values.push(IntervalMonthDayNano::ZERO),
            Values::Struct { children, .. } => children.iter_mut().for_each(Self::push_null),
        }
    }

    /// Appends what a text means in the column's type; on an error the column is unchanged.
    #[inline]
    pub(crate) fn push_text(&mut self, text: &str, token: Token) -> Result<(), ValueError> {
        match &mut self.values {
            Values::Boolean(values) => values.push(parse_boolean(text)?),
            Values::Int16(values) => values.push(parse_integer(text, "smallint")?),
            Values::Int32(values) => values.push(parse_integer(text, "integer")?),
            Values::Int64(values) => values.push(parse_integer(text, "bigint")?),
            Values::Float32(values) => values.push(parse_real(text)?),
            Values::Float64(values) => values.push(parse_double(text)?),
            Values::Decimal { values, precision, scale } => {
                values.push(parse_decimal(text, *precision, *scale)?)
            }
            Values::Text { kind, views, bytes } => {
                match kind {
                    TextKind::Plain | TextKind::Jsonb => views.push(bytes.append(text)),
                    TextKind::Uuid => views.push(bytes.append(&canonical_uuid(text)?)),
                };
            }
            Values::Binary { ends, bytes } => {
                parse_bytes(text, bytes)?;
                ends.push(end_of(bytes.len())?);
            }
            Values::Date(values) => values.push(parse_date(text)?),
            Values::Time(values) => values.push(parse_time(text)?),
            Values::Timestamp { values, unit } => values.push(push_timestamp(text, token, *unit)?),
            Values::Interval(values) => {
                let interval = parse_interval_month_day_nano(text);
                values.push(interval.map_err(|_| {
                    ValueError::new(
                        "22007",
                        format!("invalid input syntax for type interval: \"{}\"", shorten(text)),
                    )
                })?);
            }
            Values::List { .. } => return Err(ValueError::syntax("array", text)),
            Values::Struct { .. } => return Err(ValueError::syntax("struct", text)),
        }
        self.len += 1;
        Ok(())
    }

    /// The kind of text in a text column.
    pub(crate) fn text_kind(&self) -> Option<TextKind> {
        if let Values::Text { kind, .. } = &self.values { Some(*kind) } else { None }
    }

    /// The columns inside of a list or struct column.
    pub(crate) fn nested(&mut self) -> Option<Nested<'_>> {
        match &mut self.values {
            Values::List { item, .. } => Some(Nested::List(item)),
            Values::Struct { fields, children } => Some(Nested::Struct { fields, children }),
            Values::Boolean(_)
            | Values::Int16(_)
            | Values::Int32(_)
            | Values::Int64(_)
            | Values::Float32(_)
            | Values::Float64(_)
            | Values::Decimal { .. }
            | Values::Text { .. }
            | Values::Binary { .. }
            | Values::Date(_)
            | Values::Time(_)
            | Values::Timestamp { .. }
            | Values::Interval(_) => None,
        }
    }

    /// Ends the row of a list or struct whose inner columns have been filled.
    pub(crate) fn close_nested(&mut self) -> Result<(), ValueError> {
        if let Values::List { ends, item } = &mut self.values {
            ends.push(end_of(item.len())?);
        }
        self.len += 1;
        Ok(())
    }

    /// The array of all rows.
    pub(crate) fn finish(self, data_type: &DataType) -> Result<ArrayRef> {
        let nulls = null_buffer(&self.nulls, self.len);
        Ok(match self.values {
            Values::Boolean(values) => Arc::new(BooleanArray::new(values.into(), nulls)),
            Values::Int16(values) => Arc::new(Int16Array::new(values.into(), nulls)),
            Values::Int32(values) => Arc::new(Int32Array::new(values.into(), nulls)),
            Values::Int64(values) => Arc::new(Int64Array::new(values.into(), nulls)),
            Values::Float32(values) => Arc::new(Float32Array::new(values.into(), nulls)),
            Values::Float64(values) => Arc::new(Float64Array::new(values.into(), nulls)),
            Values::Decimal { values, .. } => {
                Arc::new(Decimal128Array::new(values.into(), nulls).with_data_type(data_type.clone()))
            }
            Values::Text { views, bytes, .. } => Arc::new(text_array(views, bytes, nulls)),
            Values::Binary { ends, bytes } => {
                Arc::new(BinaryArray::try_new(offsets(&ends), Buffer::from_vec(bytes), nulls)?)
            }
            Values::Date(values) => Arc::new(Date32Array::new(values.into(), nulls)),
            Values::Time(values) => Arc::new(Time64MicrosecondArray::new(values.into(), nulls)),
            Values::Timestamp { values, .. } => Arc::new(
                TimestampMicrosecondArray::new(values.into(), nulls).with_data_type(data_type.clone()),
            ),
            Values::Interval(values) => Arc::new(IntervalMonthDayNanoArray::new(values.into(), nulls)),
            Values::List { ends, item } => {
                let field = list_item(data_type)?;
                let items = item.finish(field.data_type())?;
                Arc::new(ListArray::try_new(field, offsets(&ends), items, nulls)?)
            }
            Values::Struct { fields, children } => {
                let arrays = children
                    .into_iter()
                    .zip(&fields)
                    .map(|(child, field)| child.finish(field.data_type()))
                    .collect::<Result<Vec<_>>>()?;
                Arc::new(StructArray::try_new_with_length(fields, arrays, nulls, self.len)?)
            }
        })
    }
}

fn text_kind(field: &Field) -> TextKind {
    match field.metadata().get("pg_type").map(String::as_str) {
        Some("jsonb") => TextKind::Jsonb,
        Some("uuid") => TextKind::Uuid,
        _ => TextKind::Plain,
    }
}

/// The bytes of texts that are too long for their views, in blocks that never move.
///
/// Texts are copied, not pointed at in the chunk: what a batch holds is then what it says it holds,
/// and a column nobody reads costs nothing.
#[derive(Debug, Default)]
struct TextBytes {
    full: Vec<Buffer>,
    block: Vec<u8>,
}

impl TextBytes {
    /// Keeps a text and returns its view.
    #[inline]
    fn append(&mut self, text: &str) -> u128 {
        const INLINE_BYTES_MAX: usize = 12;
        let offset = self.block.len();
        if text.len() <= INLINE_BYTES_MAX {
            return make_view(text.as_bytes(), 0, 0);
        }
        if offset + text.len() > self.block.capacity() {
            self.next_block(text.len());
            return self.append(text);
        }
        self.block.extend_from_slice(text.as_bytes());
        make_view(text.as_bytes(), self.full.len() as u32, offset as u32)
    }

    #[cold]
    fn next_block(&mut self, bytes: usize) {
        const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 16 << 10..=256 << 10;
        let size = (self.block.capacity() * 2).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
        let full = std::mem::replace(&mut self.block, Vec::with_capacity(size.max(bytes)));
        if !full.is_empty() {
            self.full.push(Buffer::from_vec(full));
        }
    }

    fn finish(mut self) -> Arc<[Buffer]> {
        if !self.block.is_empty() {
            self.full.push(Buffer::from_vec(self.block));
        }
        self.full.into()
    }
}

fn text_array(views: Vec<u128>, bytes: TextBytes, nulls: Option<NullBuffer>) -> StringViewArray {
    // SAFETY: `TextBytes` makes every view from a `&str`, which is UTF-8; longer ones point at the
    // copy it has just appended to its last block, and blocks never shrink, move or change their
    // order; NULL rows have the empty view.
    unsafe { StringViewArray::new_unchecked(ScalarBuffer::from(views), bytes.finish(), nulls) }
}

fn push_timestamp(text: &str, token: Token, unit: Option<EpochUnit>) -> Result<i64, ValueError> {
    let is_number = token == Token::Number || (unit.is_some() && text.parse::<f64>().is_ok());
    match unit {
        Some(unit) if is_number => parse_epoch(text, unit),
        None if is_number => Err(ValueError::new(
            "22007",
            format!(
                "a timestamp cannot be read from the number {} without the option timestamp_unit",
                shorten(text)
            ),
        )),
        _ => parse_timestamp(text),
    }
}

/// PostgreSQL's forms of a UUID: braces and hyphens are optional, the output is lower case 8-4-4-4-12.
fn canonical_uuid(text: &str) -> Result<String, ValueError> {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(trimmed);
    let digits: Vec<u8> = inner.bytes().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(ValueError::syntax("uuid", text));
    }
    let mut uuid = String::with_capacity(36);
    for (idx, digit) in digits.iter().enumerate() {
        if matches!(idx, 8 | 12 | 16 | 20) {
            uuid.push('-');
        }
        uuid.push(char::from(digit.to_ascii_lowercase()));
    }
    Ok(uuid)
}

fn null_buffer(nulls: &[usize], len: usize) -> Option<NullBuffer> {
    if nulls.is_empty() {
        return None;
    }
    let mut valid = BooleanBufferBuilder::new(len);
    valid.append_n(len, true);
    nulls.iter().for_each(|row| valid.set_bit(*row, false));
    Some(NullBuffer::new(valid.finish()))
}

fn end_of(len: usize) -> Result<i32, ValueError> {
    i32::try_from(len).map_err(|_| ValueError::new("54000", "too many values in one chunk"))
}

fn last_end(ends: &[i32]) -> usize {
    ends.last().map_or(0, |end| usize::try_from(*end).unwrap_or(0))
}

fn offsets(ends: &[i32]) -> OffsetBuffer<i32> {
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(0);
    offsets.extend_from_slice(ends);
    OffsetBuffer::new(offsets.into())
}

fn list_item(data_type: &DataType) -> Result<FieldRef> {
    if let DataType::List(field) = data_type {
        return Ok(Arc::clone(field));
    }
    Err(ArrowError::SchemaError(format!("{data_type} is not a list")).into())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn column(data_type: DataType) -> Column {
        Column::new(&Field::new("c", data_type, true), 0, None).unwrap()
    }

    #[test]
    fn truncate_forgets_values_and_nulls() {
        let mut numbers = column(DataType::Int64);
        numbers.push_text("1", Token::Number).unwrap();
        numbers.push_null();
        numbers.push_text("3", Token::Number).unwrap();
        numbers.push_null();
        numbers.truncate(1);
        numbers.push_text("2", Token::Number).unwrap();
        let array = numbers.finish(&DataType::Int64).unwrap();
        assert_eq!(array.null_count(), 0);
        assert_eq!(array.as_primitive::<Int64Type>().values(), &[1, 2]);
    }

    #[test]
    fn text_is_whole_after_a_truncate() {
        let mut texts = column(DataType::Utf8View);
        for text in ["short", "a text that is longer than twelve bytes", "another text that is forgotten"] {
            texts.push_text(text, Token::Text).unwrap();
        }
        texts.truncate(2);
        texts.push_text("and one more that is kept", Token::Text).unwrap();
        let array = texts.finish(&DataType::Utf8View).unwrap();
        let texts: Vec<_> = array.as_string_view().iter().flatten().collect();
        assert_eq!(texts, ["short", "a text that is longer than twelve bytes", "and one more that is kept"]);
        array.as_string_view().to_data().validate_full().unwrap();
    }

    #[test]
    fn a_failed_text_leaves_the_column_as_it_was() {
        for data_type in [
            DataType::Int16,
            DataType::Binary,
            DataType::Date32,
            DataType::Decimal128(5, 2),
            DataType::Boolean,
        ] {
            let mut values = column(data_type);
            assert!(values.push_text("no such value!", Token::Text).is_err());
            assert_eq!(values.len(), 0);
        }
    }

    #[test]
    fn a_number_is_a_timestamp_only_with_a_unit() {
        let field = Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true);
        let mut plain = Column::new(&field, 0, None).unwrap();
        assert_eq!(
            plain.push_text("1717228740", Token::Number).unwrap_err().message,
            "a timestamp cannot be read from the number 1717228740 without the option timestamp_unit"
        );
        let mut millis = Column::new(&field, 0, Some(EpochUnit::Millis)).unwrap();
        millis.push_text("1717228740000", Token::Number).unwrap();
        millis.push_text("1717228740000", Token::Text).unwrap();
        millis.push_text("2024-06-01 07:59:00", Token::Text).unwrap();
        let array = millis.finish(field.data_type()).unwrap();
        assert_eq!(
            array.as_primitive::<arrow::datatypes::TimestampMicrosecondType>().values(),
            &[1_717_228_740_000_000; 3]
        );
    }

    #[test]
    fn uuids_are_stored_in_one_form() {
        let canonical = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}", canonical]
        {
            assert_eq!(canonical_uuid(text).unwrap(), canonical);
        }
        assert!(canonical_uuid("a0eebc99").is_err());
    }
}
