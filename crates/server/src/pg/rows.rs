//! Record batches to DataRow messages.
//!
//! A batch is encoded row by row into one buffer that is then split: no allocation per row or
//! value. What each column is gets decided once per batch ([`Column`]), so the inner loop is a
//! match over plain variants.

use std::sync::Arc;

use arrow::array::cast::AsArray;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes as types;
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use arrow::error::ArrowError;
use bytes::{Buf, BufMut, BytesMut};
use pgwire::api::Type;
use pgwire::messages::data::DataRow;

use super::types::{element_type, pg_type};
use super::{binary, text};

/// Where text that is not Arrow text comes from.
#[derive(Debug, Clone, Copy)]
enum Text<'a> {
    Utf8(&'a arrow::array::StringArray),
    Large(&'a arrow::array::LargeStringArray),
    View(&'a arrow::array::StringViewArray),
}

/// One column, cast to what it is.
enum Column<'a> {
    Null,
    Bool(&'a arrow::array::BooleanArray),
    /// All integers: width in bytes on the wire and the value as i64.
    Int8(&'a arrow::array::Int8Array),
    Int16(&'a arrow::array::Int16Array),
    Int32(&'a arrow::array::Int32Array),
    Int64(&'a arrow::array::Int64Array),
    UInt8(&'a arrow::array::UInt8Array),
    UInt16(&'a arrow::array::UInt16Array),
    UInt32(&'a arrow::array::UInt32Array),
    UInt64(&'a arrow::array::UInt64Array),
    Float32(&'a arrow::array::Float32Array),
    Float64(&'a arrow::array::Float64Array),
    Decimal(&'a arrow::array::Decimal128Array, i8),
    /// Literals and products of more than 38 digits.
    LongDecimal(&'a arrow::array::Decimal256Array, i8),
    Text(Text<'a>),
    Bytes(&'a arrow::array::BinaryArray),
    Date(&'a arrow::array::Date32Array),
    Time(&'a arrow::array::Time64MicrosecondArray),
    /// Microseconds; `true` with time zone.
    Timestamp(&'a arrow::array::TimestampMicrosecondArray, bool),
    Interval(&'a arrow::array::IntervalMonthDayNanoArray),
    /// Element field; one array per row.
    List(&'a arrow::array::ListArray, &'a Field),
    Struct(Vec<(Type, Column<'a>)>, &'a arrow::array::StructArray),
}

/// Encodes batches of one result.
#[derive(Debug, Clone)]
pub(crate) struct RowEncoder {
    columns: Vec<(Type, bool)>,
    buffer: BytesMut,
}

impl RowEncoder {
    /// An encoder for columns of these fields, binary where `is_binary` says so.
    #[must_use]
    pub(crate) fn new(fields: &[types::FieldRef], is_binary: impl Fn(usize) -> bool) -> Self {
        let columns = fields.iter().enumerate().map(|(at, field)| (pg_type(field), is_binary(at))).collect();
        Self { columns, buffer: BytesMut::new() }
    }

    /// The rows of a batch as messages.
    pub(crate) fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<DataRow>, ArrowError> {
        let normalized: Vec<ArrayRef> = batch.columns().iter().map(normalize).collect::<Result<_, _>>()?;
        let schema = batch.schema();
        let columns: Vec<(&Type, bool, Column<'_>)> = self
            .columns
            .iter()
            .zip(&normalized)
            .zip(schema.fields())
            .map(|(((pg, is_binary), array), field)| Ok((pg, *is_binary, column(array, field)?)))
            .collect::<Result<_, ArrowError>>()?;
        let count = columns.len() as i16;
        let mut rows = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            for (pg, is_binary, column) in &columns {
                put_value(&mut self.buffer, pg, *is_binary, column, row)?;
            }
            rows.push(DataRow::new(self.buffer.split(), count));
        }
        Ok(rows)
    }
}

/// Batches as text, for people and tests: what a client of the simple protocol would get.
pub struct TextRows {
    encoder: RowEncoder,
}

impl TextRows {
    /// The text of rows with this schema.
    #[must_use]
    pub fn new(schema: &types::Schema) -> Self {
        Self { encoder: RowEncoder::new(schema.fields(), |_| false) }
    }

    /// The values of each row; `None` is NULL.
    pub fn rows(&mut self, batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>, ArrowError> {
        Ok(self.encoder.encode(batch)?.into_iter().map(|row| values(row.data.freeze())).collect())
    }
}

/// The values of one encoded row.
fn values(mut data: bytes::Bytes) -> Vec<Option<String>> {
    let mut values = Vec::new();
    while data.has_remaining() {
        let length = usize::try_from(data.get_i32()).ok();
        values.push(length.map(|length| String::from_utf8_lossy(&data.split_to(length)).into_owned()));
    }
    values
}

/// Casts the rarer Arrow types to the ones encoded directly.
fn normalize(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let target = match array.data_type() {
        DataType::Dictionary(_, value) => (**value).clone(),
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => {
            DataType::Time64(TimeUnit::Microsecond)
        }
        DataType::Timestamp(unit, zone) if *unit != TimeUnit::Microsecond => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        DataType::Interval(unit) if *unit != IntervalUnit::MonthDayNano => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::Duration(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Float16 => DataType::Float32,
        DataType::LargeList(field) | DataType::FixedSizeList(field, _) => DataType::List(Arc::clone(field)),
        _ => return Ok(Arc::clone(array)),
    };
    // Not NULL in the place of what does not fit.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, &target, &options)
}

fn column<'a>(array: &'a ArrayRef, field: &'a Field) -> Result<Column<'a>, ArrowError> {
    Ok(match array.data_type() {
        DataType::Null => Column::Null,
        DataType::Boolean => Column::Bool(array.as_boolean()),
        DataType::Int8 => Column::Int8(array.as_primitive()),
        DataType::Int16 => Column::Int16(array.as_primitive()),
        DataType::Int32 => Column::Int32(array.as_primitive()),
        DataType::Int64 => Column::Int64(array.as_primitive()),
        DataType::UInt8 => Column::UInt8(array.as_primitive()),
        DataType::UInt16 => Column::UInt16(array.as_primitive()),
        DataType::UInt32 => Column::UInt32(array.as_primitive()),
        DataType::UInt64 => Column::UInt64(array.as_primitive()),
        DataType::Float32 => Column::Float32(array.as_primitive()),
        DataType::Float64 => Column::Float64(array.as_primitive()),
        DataType::Decimal128(_, scale) => Column::Decimal(array.as_primitive(), *scale),
        DataType::Decimal256(_, scale) => Column::LongDecimal(array.as_primitive(), *scale),
        DataType::Utf8 => Column::Text(Text::Utf8(array.as_string())),
        DataType::LargeUtf8 => Column::Text(Text::Large(array.as_string())),
        DataType::Utf8View => Column::Text(Text::View(array.as_string_view())),
        DataType::Binary => Column::Bytes(array.as_binary()),
        DataType::Date32 => Column::Date(array.as_primitive()),
        DataType::Time64(_) => Column::Time(array.as_primitive()),
        DataType::Timestamp(_, zone) => Column::Timestamp(array.as_primitive(), zone.is_some()),
        DataType::Interval(_) => Column::Interval(array.as_primitive()),
        DataType::List(element) => Column::List(array.as_list(), element),
        DataType::Struct(fields) => {
            let inner = array.as_struct();
            let columns = fields
                .iter()
                .zip(inner.columns())
                .map(|(field, array)| Ok((pg_type(field), column(array, field)?)))
                .collect::<Result<_, ArrowError>>()?;
            Column::Struct(columns, inner)
        }
        // Maps, unions, run-end encoding …
        other => {
            let message =
                format!("column \"{}\" of type {other}, which clients have no type for,", field.name());
            return Err(ArrowError::NotYetImplemented(message));
        }
    })
}

impl Text<'_> {
    fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Utf8(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

impl Column<'_> {
    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(array) => array.is_null(row),
            Self::Int8(array) => array.is_null(row),
            Self::Int16(array) => array.is_null(row),
            Self::Int32(array) => array.is_null(row),
            Self::Int64(array) => array.is_null(row),
            Self::UInt8(array) => array.is_null(row),
            Self::UInt16(array) => array.is_null(row),
            Self::UInt32(array) => array.is_null(row),
            Self::UInt64(array) => array.is_null(row),
            Self::Float32(array) => array.is_null(row),
            Self::Float64(array) => array.is_null(row),
            Self::Decimal(array, _) => array.is_null(row),
            Self::LongDecimal(array, _) => array.is_null(row),
            Self::Text(array) => array.get(row).is_none(),
            Self::Bytes(array) => array.is_null(row),
            Self::Date(array) => array.is_null(row),
            Self::Time(array) => array.is_null(row),
            Self::Timestamp(array, _) => array.is_null(row),
            Self::Interval(array) => array.is_null(row),
            Self::List(array, _) => array.is_null(row),
            Self::Struct(_, array) => array.is_null(row),
        }
    }

    /// The value of an integer column.
    fn integer(&self, row: usize) -> Option<i64> {
        Some(match self {
            Self::Int8(array) => i64::from(array.value(row)),
            Self::Int16(array) => i64::from(array.value(row)),
            Self::Int32(array) => i64::from(array.value(row)),
            Self::Int64(array) => array.value(row),
            Self::UInt8(array) => i64::from(array.value(row)),
            Self::UInt16(array) => i64::from(array.value(row)),
            Self::UInt32(array) => i64::from(array.value(row)),
            _ => return None,
        })
    }
}

/// A length-prefixed value.
fn put_value(
    out: &mut BytesMut,
    pg: &Type,
    is_binary: bool,
    column: &Column<'_>,
    row: usize,
) -> Result<(), ArrowError> {
    if column.is_null(row) {
        out.put_i32(-1);
        return Ok(());
    }
    let length_at = out.len();
    out.put_i32(0);
    if is_binary {
        put_binary(out, pg, column, row)?;
    } else {
        put_text(out, pg, column, row)?;
    }
    let length = (out.len() - length_at - 4) as i32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn put_text(out: &mut BytesMut, pg: &Type, column: &Column<'_>, row: usize) -> Result<(), ArrowError> {
    if let Some(value) = column.integer(row) {
        text::put_integer(out, value);
        return Ok(());
    }
    match column {
        Column::Bool(array) => out.put_u8(if array.value(row) { b't' } else { b'f' }),
        Column::UInt64(array) => text::put_decimal(out, &array.value(row), 0),
        Column::Float32(array) => text::put_float4(out, array.value(row)),
        Column::Float64(array) => text::put_float8(out, array.value(row)),
        Column::Decimal(array, scale) => text::put_decimal(out, &array.value(row), *scale),
        Column::LongDecimal(array, scale) => text::put_decimal(out, &array.value(row), *scale),
        Column::Text(array) => out.extend_from_slice(array.get(row).unwrap_or_default().as_bytes()),
        Column::Bytes(array) => text::put_bytea(out, array.value(row)),
        Column::Date(array) => text::put_date(out, i64::from(array.value(row))),
        Column::Time(array) => text::put_time(out, array.value(row)),
        Column::Timestamp(array, with_zone) => text::put_timestamp(out, array.value(row), *with_zone),
        Column::Interval(array) => {
            let value = array.value(row);
            text::put_interval(out, value.months, value.days, value.nanoseconds);
        }
        Column::List(array, element) => put_text_list(out, pg, &array.value(row), element)?,
        Column::Struct(fields, _) => put_text_record(out, fields, row)?,
        _ => {}
    }
    Ok(())
}

fn put_text_list(
    out: &mut BytesMut,
    pg: &Type,
    values: &ArrayRef,
    element: &Field,
) -> Result<(), ArrowError> {
    // int2vector and oidvector are lists without braces.
    let is_vector = matches!(*pg, Type::INT2_VECTOR | Type::OID_VECTOR);
    let values = normalize(values)?;
    let inner = column(&values, element)?;
    let inner_type = pg_type(element);
    let is_nested = element_type(values.data_type()).is_some();
    let mut scratch = BytesMut::new();
    if !is_vector {
        out.put_u8(b'{');
    }
    for row in 0..values.len() {
        if row > 0 {
            out.put_u8(if is_vector { b' ' } else { b',' });
        }
        if inner.is_null(row) {
            out.extend_from_slice(b"NULL");
            continue;
        }
        if is_nested {
            put_text(out, &inner_type, &inner, row)?;
            continue;
        }
        scratch.clear();
        put_text(&mut scratch, &inner_type, &inner, row)?;
        text::put_quoted(out, &scratch, b",{}", true);
    }
    if !is_vector {
        out.put_u8(b'}');
    }
    Ok(())
}

fn put_text_record(out: &mut BytesMut, fields: &[(Type, Column<'_>)], row: usize) -> Result<(), ArrowError> {
    let mut scratch = BytesMut::new();
    out.put_u8(b'(');
    for (number, (pg, inner)) in fields.iter().enumerate() {
        if number > 0 {
            out.put_u8(b',');
        }
        if inner.is_null(row) {
            continue;
        }
        scratch.clear();
        put_text(&mut scratch, pg, inner, row)?;
        text::put_quoted(out, &scratch, b",()", false);
    }
    out.put_u8(b')');
    Ok(())
}

fn put_binary(out: &mut BytesMut, pg: &Type, column: &Column<'_>, row: usize) -> Result<(), ArrowError> {
    if let Some(value) = column.integer(row) {
        match *pg {
            Type::INT2 => out.put_i16(value as i16),
            Type::INT4 => out.put_i32(value as i32),
            // An oid is unsigned on the wire; the truncation is the two's complement it wants.
            Type::OID | Type::REGCLASS | Type::REGPROC | Type::REGTYPE => out.put_u32(value as u32),
            _ => out.put_i64(value),
        }
        return Ok(());
    }
    match column {
        Column::Bool(array) => out.put_u8(u8::from(array.value(row))),
        Column::UInt64(array) => binary::put_decimal(out, &array.value(row), 0),
        Column::Float32(array) => out.put_f32(array.value(row)),
        Column::Float64(array) => out.put_f64(array.value(row)),
        Column::Decimal(array, scale) => binary::put_decimal(out, &array.value(row), *scale),
        Column::LongDecimal(array, scale) => binary::put_decimal(out, &array.value(row), *scale),
        Column::Text(array) => put_binary_text(out, pg, array.get(row).unwrap_or_default())?,
        Column::Bytes(array) => out.extend_from_slice(array.value(row)),
        Column::Date(array) => {
            out.put_i32(
                array.value(row).checked_sub(binary::EPOCH_DAYS).ok_or_else(|| out_of_range("date"))?,
            );
        }
        Column::Time(array) => out.put_i64(array.value(row)),
        Column::Timestamp(array, _) => {
            let value = array.value(row).checked_sub(binary::EPOCH_MICROS);
            out.put_i64(value.ok_or_else(|| out_of_range("timestamp"))?);
        }
        Column::Interval(array) => {
            let value = array.value(row);
            binary::put_interval(out, value.months, value.days, value.nanoseconds);
        }
        Column::List(array, element) => put_binary_list(out, &array.value(row), element)?,
        Column::Struct(fields, _) => {
            out.put_i32(fields.len() as i32);
            for (pg, inner) in fields {
                out.put_u32(pg.oid());
                put_value(out, pg, true, inner, row)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn out_of_range(type_name: &str) -> ArrowError {
    ArrowError::ArithmeticOverflow(format!("{type_name} out of range"))
}

fn put_binary_text(out: &mut BytesMut, pg: &Type, value: &str) -> Result<(), ArrowError> {
    match *pg {
        Type::JSONB => {
            out.put_u8(1);
            out.extend_from_slice(value.as_bytes());
        }
        Type::UUID => match binary::uuid_bytes(value) {
            Some(bytes) => out.extend_from_slice(&bytes),
            None => {
                let message = format!("invalid input syntax for type uuid: \"{value}\"");
                return Err(ArrowError::ParseError(message));
            }
        },
        _ => out.extend_from_slice(value.as_bytes()),
    }
    Ok(())
}

/// One-dimensional arrays as `array_send` writes them; nested lists only exist as text.
fn put_binary_list(out: &mut BytesMut, values: &ArrayRef, element: &Field) -> Result<(), ArrowError> {
    let values = normalize(values)?;
    let inner = column(&values, element)?;
    let inner_type = pg_type(element);
    if element_type(values.data_type()).is_some() {
        let message = "array of more than one dimension in binary format".to_owned();
        return Err(ArrowError::NotYetImplemented(message));
    }
    out.put_i32(i32::from(!values.is_empty()));
    out.put_i32(i32::from(values.null_count() > 0));
    out.put_u32(inner_type.oid());
    if values.is_empty() {
        return Ok(());
    }
    out.put_i32(values.len() as i32);
    out.put_i32(1);
    for row in 0..values.len() {
        put_value(out, &inner_type, true, &inner, row)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray, StringViewArray};
    use arrow::datatypes::{Int32Type, Schema};

    use super::*;

    fn encode(batch: &RecordBatch, is_binary: bool) -> Vec<Vec<u8>> {
        let mut encoder = RowEncoder::new(batch.schema().fields(), |_| is_binary);
        encoder.encode(batch).unwrap().into_iter().map(|row| row.data.to_vec()).collect()
    }

    #[test]
    fn a_row_is_its_values_with_their_lengths_and_null_is_minus_one() {
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("t", DataType::Utf8View, true),
        ]);
        let batch = RecordBatch::try_new(
            Arc::new(schema),
            vec![
                Arc::new(Int64Array::from(vec![Some(7), None])),
                Arc::new(StringViewArray::from(vec![Some("é"), Some("")])),
            ],
        )
        .unwrap();
        assert_eq!(
            encode(&batch, false),
            [b"\0\0\0\x017\0\0\0\x02\xc3\xa9".to_vec(), b"\xff\xff\xff\xff\0\0\0\0".to_vec()],
        );
        assert_eq!(encode(&batch, true)[0], b"\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x02\xc3\xa9".to_vec());
    }

    #[test]
    fn a_list_is_an_array_literal() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
        let schema = Schema::new(vec![Field::new("l", list.data_type().clone(), true)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)]).unwrap();
        assert_eq!(encode(&batch, false)[0], b"\0\0\0\x08{1,NULL}".to_vec());
    }
}
