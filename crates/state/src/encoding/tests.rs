use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, DictionaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int32Builder, Int64Array, IntervalMonthDayNanoArray, LargeBinaryArray, LargeListArray, LargeStringArray,
    ListArray, ListBuilder, NullArray, StringArray, StringViewArray, StringViewBuilder, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
    make_comparator,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int32Type, IntervalMonthDayNano, i256};
use expect_test::expect;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Arbitrary, BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};

use crate::encoding::column::without_dictionary;
use crate::{EncodedKeys, StateError, decode_keys, decode_rows, encode_keys, encode_rows, prefix_end};

const ROWS: usize = 12;

fn column_of<T: Arbitrary + Clone + 'static, A: Array + From<Vec<Option<T>>> + 'static>()
-> BoxedStrategy<ArrayRef> {
    column_from(any::<T>(), |values| Arc::new(A::from(values)))
}

fn column_from<T: std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + 'static,
    build: impl Fn(Vec<Option<T>>) -> ArrayRef + 'static,
) -> BoxedStrategy<ArrayRef> {
    vec(option::of(value), ROWS).prop_map(build).boxed()
}

/// Few characters, so that equal texts, prefixes and zero bytes come often; some texts are too
/// long to be inlined in a view.
fn text() -> impl Strategy<Value = String> {
    let character =
        prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('b'), Just('ÿ'), Just('\u{10FFFF}')];
    vec(character, 0..20).prop_map(|characters| characters.into_iter().collect())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0_u8), Just(1), Just(0xFF), any::<u8>()], 0..20)
}

fn float64() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(-f64::NAN), Just(f64::INFINITY)],
    ]
}

fn float32() -> impl Strategy<Value = f32> {
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits),
        prop_oneof![Just(0.0), Just(-0.0), Just(f32::NAN), Just(-f32::NAN), Just(f32::NEG_INFINITY)],
    ]
}

fn interval() -> impl Strategy<Value = IntervalMonthDayNano> {
    let day = 86_400_000_000_000_i64;
    prop_oneof![
        any::<(i32, i32, i64)>(),
        (-2..3, -70..70, prop_oneof![Just(0), Just(day), Just(-day), Just(36 * day / 24)]),
    ]
    .prop_map(|(months, days, nanoseconds)| IntervalMonthDayNano { months, days, nanoseconds })
}

fn numbers() -> BoxedStrategy<ArrayRef> {
    prop_oneof![
        column_of::<i8, Int8Array>(),
        column_of::<i16, Int16Array>(),
        column_of::<i32, Int32Array>(),
        column_of::<i64, Int64Array>(),
        column_of::<u8, UInt8Array>(),
        column_of::<u16, UInt16Array>(),
        column_of::<u32, UInt32Array>(),
        column_of::<u64, UInt64Array>(),
        column_of::<i32, Date32Array>(),
        column_of::<i64, Time64MicrosecondArray>(),
        column_of::<i64, TimestampMicrosecondArray>(),
        column_from(any::<i64>(), |v| Arc::new(TimestampMicrosecondArray::from(v).with_timezone("UTC"))),
        column_from(any::<i128>(), |v| Arc::new(
            Decimal128Array::from(v).with_data_type(DataType::Decimal128(38, 10))
        )),
        column_from(any::<(i128, u128)>(), |v| Arc::new(Decimal256Array::from_iter(
            v.into_iter().map(|v| v.map(|(high, low)| i256::from_parts(low, high)))
        ))),
        column_of::<bool, BooleanArray>(),
    ]
    .boxed()
}

fn texts() -> BoxedStrategy<ArrayRef> {
    fn as_bytes(values: &[Option<Vec<u8>>]) -> Vec<Option<&[u8]>> {
        values.iter().map(Option::as_deref).collect()
    }
    prop_oneof![
        column_from(text(), |v| Arc::new(StringViewArray::from_iter(v))),
        column_from(text(), |v| Arc::new(StringArray::from(v))),
        column_from(text(), |v| Arc::new(LargeStringArray::from(v))),
        column_from(bytes(), |v| Arc::new(BinaryViewArray::from(as_bytes(&v)))),
        column_from(bytes(), |v| Arc::new(BinaryArray::from(as_bytes(&v)))),
        column_from(bytes(), |v| Arc::new(LargeBinaryArray::from(as_bytes(&v)))),
    ]
    .boxed()
}

fn forms() -> BoxedStrategy<ArrayRef> {
    prop_oneof![
        column_from(float32(), |v| Arc::new(Float32Array::from(v))),
        column_from(float64(), |v| Arc::new(Float64Array::from(v))),
        column_from(interval(), |v| Arc::new(IntervalMonthDayNanoArray::from(v))),
    ]
    .boxed()
}

fn integer_lists() -> BoxedStrategy<ArrayRef> {
    column_from(vec(option::of(-2..3), 0..4), |lists| {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))
    })
}

fn nested() -> BoxedStrategy<ArrayRef> {
    prop_oneof![
        integer_lists(),
        column_from(vec(option::of(any::<i32>()), 0..12), |lists| {
            Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>(lists))
        }),
        column_from(vec(option::of(text()), 0..4), |lists| {
            let mut builder = ListBuilder::new(StringViewBuilder::new());
            lists.into_iter().for_each(|list| builder.append_option(list));
            Arc::new(builder.finish())
        }),
        column_from(vec(option::of(vec(option::of(0..3), 0..3)), 0..3), |lists| {
            let mut builder = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
            lists.into_iter().for_each(|list| builder.append_option(list));
            Arc::new(builder.finish())
        }),
        structs(),
        structs().prop_map(|structs| {
            let element = Arc::new(Field::new("item", structs.data_type().clone(), true));
            let offsets =
                arrow::buffer::OffsetBuffer::from_lengths((0..ROWS).map(|row| usize::from(row % 2 == 1)));
            let count = offsets[ROWS] as usize;
            Arc::new(ListArray::new(element, offsets, structs.slice(2, count), None)) as ArrayRef
        }),
    ]
    .boxed()
}

fn structs() -> BoxedStrategy<ArrayRef> {
    (numbers(), texts(), integer_lists(), vec(any::<bool>(), ROWS))
        .prop_map(|(number, text, list, valid)| {
            let columns = vec![number, text, list];
            let fields: Fields = columns
                .iter()
                .enumerate()
                .map(|(i, c)| Field::new(format!("f{i}"), c.data_type().clone(), true))
                .collect();
            Arc::new(StructArray::new(fields, columns, Some(valid.into()))) as ArrayRef
        })
        .boxed()
}

/// Types whose values have one form each.
fn plain() -> BoxedStrategy<ArrayRef> {
    let dictionary = column_from(text(), |values| {
        let values: DictionaryArray<Int32Type> = values.iter().map(Option::as_deref).collect();
        Arc::new(values)
    });
    prop_oneof![
        4 => numbers(),
        2 => texts(),
        2 => nested(),
        1 => dictionary,
        1 => Just(Arc::new(NullArray::new(ROWS)) as ArrayRef),
    ]
    // A slice: nothing may depend on a buffer's start.
    .prop_map(|column| column.slice(3, ROWS - 3))
    .boxed()
}

fn fields_of(columns: &[ArrayRef]) -> Vec<FieldRef> {
    columns.iter().map(|column| Arc::new(Field::new("", column.data_type().clone(), true))).collect()
}

fn key_round_trip(columns: &[ArrayRef]) -> Vec<ArrayRef> {
    let keys = encode_keys(columns, columns[0].len()).unwrap();
    decode_keys(&fields_of(columns), keys.iter()).unwrap()
}

fn compare_rows(columns: &[ArrayRef], left: usize, right: usize) -> Ordering {
    let options = SortOptions { descending: false, nulls_first: false };
    columns
        .iter()
        .filter(|column| column.data_type() != &DataType::Null)
        .map(|column| make_comparator(column, column, options).unwrap()(left, right))
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn assert_ordered_like_values(columns: &[ArrayRef]) {
    let rows = columns[0].len();
    let keys = encode_keys(columns, rows).unwrap();
    let comparable: Vec<ArrayRef> =
        key_round_trip(columns).into_iter().map(|column| without_dictionary(&column).unwrap()).collect();
    for left in 0..rows {
        for right in 0..rows {
            let (left_key, right_key) = (keys.get(left), keys.get(right));
            assert_eq!(left_key.cmp(right_key), compare_rows(&comparable, left, right), "{columns:?}");
            assert!(left_key == right_key || !right_key.starts_with(left_key));
        }
    }
}

proptest! {
    #[test]
    fn keys_come_back_as_they_were(columns in vec(plain(), 1..4)) {
        prop_assert_eq!(key_round_trip(&columns), columns);
    }

    #[test]
    fn keys_of_many_forms_come_back_as_one(column in forms()) {
        let once = key_round_trip(std::slice::from_ref(&column));
        prop_assert_eq!(&key_round_trip(&once), &once);
        prop_assert_eq!(encode_keys(&once, ROWS).unwrap().bytes, encode_keys(&[column], ROWS).unwrap().bytes);
    }

    #[test]
    fn keys_order_like_their_values(columns in vec(plain(), 1..3)) {
        assert_ordered_like_values(&columns);
    }

    #[test]
    fn keys_of_many_forms_order_like_their_values(column in forms()) {
        assert_ordered_like_values(&[column]);
    }

    #[test]
    fn rows_come_back_bit_by_bit(columns in vec(prop_oneof![plain(), forms().prop_map(|c| c.slice(3, ROWS - 3))], 0..12)) {
        let rows = encode_rows(&columns, ROWS - 3).unwrap();
        prop_assert_eq!(decode_rows(&fields_of(&columns), rows.iter()).unwrap(), columns);
    }

    #[test]
    fn damaged_bytes_are_an_error_or_a_value_but_no_panic(
        column in prop_oneof![plain(), forms()],
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let fields = fields_of(std::slice::from_ref(&column));
        let rows = column.len();
        let mut encoded = encode_keys(std::slice::from_ref(&column), rows).unwrap();
        let position = at.index(encoded.bytes.len());
        encoded.bytes[position] = byte;
        let _ = decode_keys(&fields, encoded.iter());
        let _ = decode_keys(&fields, encoded.iter().map(|key| &key[..key.len() / 2]));
        let mut encoded = encode_rows(&[column], rows).unwrap();
        let position = at.index(encoded.bytes.len());
        encoded.bytes[position] = byte;
        let _ = decode_rows(&fields, encoded.iter());
        let _ = decode_rows(&fields, encoded.iter().map(|row| &row[..row.len() / 2]));
    }

    #[test]
    fn the_end_of_a_prefix_is_behind_all_that_start_with_it_and_nothing_else(
        prefix in vec(prop_oneof![Just(0_u8), Just(0xFE), Just(0xFF)], 0..4),
        key in vec(prop_oneof![Just(0_u8), Just(0xFE), Just(0xFF)], 0..6),
    ) {
        match prefix_end(&prefix) {
            Some(end) => prop_assert_eq!(key.starts_with(&prefix), key >= prefix && key < end),
            None => prop_assert!(prefix.iter().all(|byte| *byte == 0xFF)),
        }
    }
}

fn hex(encoded: &EncodedKeys) -> String {
    let lines = encoded.iter().map(|key| {
        let bytes: Vec<String> = key.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ") + "\n"
    });
    lines.collect()
}

/// One value and one NULL of every kind.
fn samples() -> Vec<ArrayRef> {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
    let fields =
        Fields::from(vec![Field::new("a", DataType::Int16, true), Field::new("b", DataType::Utf8View, true)]);
    let structs = StructArray::new(
        fields,
        vec![
            Arc::new(Int16Array::from(vec![None, Some(1)])),
            Arc::new(StringViewArray::from(vec![Some("x"), None])),
        ],
        Some(vec![true, false].into()),
    );
    let interval = IntervalMonthDayNano { months: 1, days: 2, nanoseconds: 3 };
    vec![
        Arc::new(BooleanArray::from(vec![Some(true), None])),
        Arc::new(Int8Array::from(vec![Some(-1), None])),
        Arc::new(Int16Array::from(vec![Some(1), None])),
        Arc::new(Int32Array::from(vec![Some(-2), None])),
        Arc::new(Int64Array::from(vec![Some(258), None])),
        Arc::new(UInt32Array::from(vec![Some(258), None])),
        Arc::new(Float32Array::from(vec![Some(-1.5), None])),
        Arc::new(Float64Array::from(vec![Some(1.5), None])),
        Arc::new(Decimal128Array::from(vec![Some(-3), None])),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None])),
        Arc::new(Date32Array::from(vec![Some(1), None])),
        Arc::new(IntervalMonthDayNanoArray::from(vec![Some(interval), None])),
        Arc::new(StringViewArray::from(vec![Some("a\0b"), None])),
        Arc::new(BinaryArray::from(vec![Some(&b"\xff"[..]), None])),
        Arc::new(list),
        Arc::new(structs),
    ]
}

#[test]
fn the_bytes_of_keys_never_change() {
    let lines: String = samples()
        .iter()
        .map(|c| format!("{}\n{}", c.data_type(), hex(&encode_keys(std::slice::from_ref(c), 2).unwrap())))
        .collect();
    expect![[r#"
        Boolean
        01 01
        02
        Int8
        01 7f
        02
        Int16
        01 80 01
        02
        Int32
        01 7f ff ff fe
        02
        Int64
        01 80 00 00 00 00 00 01 02
        02
        UInt32
        01 00 00 01 02
        02
        Float32
        01 40 3f ff ff
        02
        Float64
        01 bf f8 00 00 00 00 00 00
        02
        Decimal128(38, 10)
        01 7f ff ff ff ff ff ff ff ff ff ff ff ff ff ff fd
        02
        Timestamp(µs)
        01 80 00 00 00 00 00 00 01
        02
        Date32
        01 80 00 00 01
        02
        Interval(MonthDayNano)
        01 80 00 00 00 00 00 00 00 00 09 d2 92 29 e0 00 03
        02
        Utf8View
        01 61 00 ff 62 00 01
        02
        Binary
        01 ff 00 01
        02
        List(Int32)
        01 01 80 00 00 01 02 00
        02
        Struct("a": Int16, "b": Utf8View)
        01 02 01 78 00 01
        02
    "#]]
    .assert_eq(&lines);
}

#[test]
fn the_bytes_of_rows_never_change() {
    let lines: String = samples()
        .iter()
        .map(|c| format!("{}\n{}", c.data_type(), hex(&encode_rows(std::slice::from_ref(c), 2).unwrap())))
        .collect();
    expect![[r#"
        Boolean
        01 00 01
        01 01
        Int8
        01 00 ff
        01 01
        Int16
        01 00 01 00
        01 01
        Int32
        01 00 fe ff ff ff
        01 01
        Int64
        01 00 02 01 00 00 00 00 00 00
        01 01
        UInt32
        01 00 02 01 00 00
        01 01
        Float32
        01 00 00 00 c0 bf
        01 01
        Float64
        01 00 00 00 00 00 00 00 f8 3f
        01 01
        Decimal128(38, 10)
        01 00 fd ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff
        01 01
        Timestamp(µs)
        01 00 01 00 00 00 00 00 00 00
        01 01
        Date32
        01 00 01 00 00 00
        01 01
        Interval(MonthDayNano)
        01 00 01 00 00 00 02 00 00 00 03 00 00 00 00 00 00 00
        01 01
        Utf8View
        01 00 03 61 00 62
        01 01
        Binary
        01 00 01 ff
        01 01
        List(Int32)
        01 00 02 02 01 00 00 00
        01 01
        Struct("a": Int16, "b": Utf8View)
        01 00 01 01 78
        01 01
    "#]]
    .assert_eq(&lines);
    let all = encode_rows(&samples(), 2).unwrap();
    expect![[r#"
        01 00 00 01 ff 01 00 fe ff ff ff 02 01 00 00 00 00 00 00 02 01 00 00 00 00 c0 bf 00 00 00 00 00 00 f8 3f fd ff ff ff ff ff ff ff ff ff ff ff ff ff ff ff 01 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 02 00 00 00 03 00 00 00 00 00 00 00 03 61 00 62 01 ff 02 02 01 00 00 00 01 01 78
        01 ff ff
    "#]].assert_eq(&hex(&all));
}

#[test]
fn equal_numbers_have_equal_keys() {
    let zeros: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0]));
    let nans: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::from_bits(0xFFF8_0000_0000_0001)]));
    let interval = |months, days, hours: i64| IntervalMonthDayNano {
        months,
        days,
        nanoseconds: hours * 3_600_000_000_000,
    };
    let months: ArrayRef =
        Arc::new(IntervalMonthDayNanoArray::from(vec![interval(1, 0, 0), interval(0, 29, 24)]));
    for column in [zeros, nans, months] {
        let keys = encode_keys(&[column], 2).unwrap();
        assert_eq!(keys.get(0), keys.get(1));
    }
}

#[test]
fn without_columns_every_key_is_empty() {
    let keys = encode_keys(&[], 3).unwrap();
    assert_eq!((keys.len(), keys.get(2)), (3, &[][..]));
    assert!(decode_keys(&[], keys.iter()).unwrap().is_empty());
    assert_eq!(encode_rows(&[], 1).unwrap().get(0), [1]);
}

#[test]
fn a_row_of_a_later_version_is_refused() {
    let row: &[u8] = &[2, 0];
    let error = decode_rows(&[], std::iter::once(row)).unwrap_err();
    assert!(matches!(error, StateError::Version { found: 2, known: 1, .. }), "{error}");
}

#[test]
fn a_type_without_encoding_is_refused() {
    let column: ArrayRef = Arc::new(arrow::array::Float16Array::from(vec![None]));
    let error = encode_keys(&[column], 1).unwrap_err();
    assert_eq!(error.to_string(), "encoding: no table can have a column of type Float16");
}
