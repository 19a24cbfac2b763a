use arrow::array::Array;
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use arrow::util::pretty::pretty_format_batches;
use bytes::Bytes;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn nullable(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn decode(fields: Vec<Field>, text: &[u8]) -> Decoded {
    let schema = Arc::new(Schema::new(fields));
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let decoder = JsonFormat { timestamp_unit: None }.decoder(&schema, &columns).unwrap();
    let chunk = Chunk { start: 1000, end: 1000 + text.len() as i64, bytes: Bytes::copy_from_slice(text) };
    let decoded = decoder.decode(&chunk).unwrap();
    decoded.rows.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    decoded
}

fn check(fields: Vec<Field>, text: &str, expected: Expect) {
    let decoded = decode(fields, text.as_bytes());
    let mut actual = pretty_format_batches(&[decoded.rows]).unwrap().to_string();
    actual.push_str(&format!("\npositions {:?}\n", decoded.positions.values()));
    for error in decoded.errors {
        actual.push_str(&format!(
            "{} {} {} <- {}\n",
            error.position,
            error.sqlstate,
            error.message,
            String::from_utf8_lossy(&error.raw)
        ));
    }
    expected.assert_eq(&actual);
}

#[test]
fn values_are_found_by_name_in_any_order() {
    check(
        vec![nullable("a", DataType::Int32), nullable("b", DataType::Utf8View)],
        "{\"a\":1,\"b\":\"x\"}\n{\"b\":\"y\",\"a\":2}\r\n\n  \n{\"c\":[{}],\"b\":\"z\"}\n{}\n{\"a\":4,\"a\":\"5\",\"b\":null}",
        expect![[r#"
            +---+---+
            | a | b |
            +---+---+
            | 1 | x |
            | 2 | y |
            |   | z |
            |   |   |
            | 5 |   |
            +---+---+
            positions ScalarBuffer([1000, 1016, 1037, 1056, 1059])
        "#]],
    );
}

#[test]
fn a_bad_record_leaves_nothing_but_an_error() {
    check(
        vec![nullable("t", DataType::Utf8View), Field::new("n", DataType::Int16, false)],
        "{\"t\":\"good\",\"n\":1}\n{\"t\":\"a\",\"n\":70000}\n{\"t\":\"b\",\"n\":\"x\"}\n{\"t\":\"c\"}\n{\"n\":2,\"t\":\"d\"\n[1]\n{\"n\":2} x\n{\"t\":\"\\u0000\",\"n\":3}\n{\"t\":\"also good\",\"n\":2}\n",
        expect![[r#"
            +-----------+---+
            | t         | n |
            +-----------+---+
            | good      | 1 |
            | also good | 2 |
            +-----------+---+
            positions ScalarBuffer([1000, 1117])
            1019 22003 column "n": value "70000" is out of range for type smallint <- {"t":"a","n":70000}
            1039 22P02 column "n": invalid input syntax for type smallint: "x" <- {"t":"b","n":"x"}
            1057 23502 null value in column "n" violates not-null constraint <- {"t":"c"}
            1067 22P02 invalid input syntax for type json: expected "," or "}" at byte 15 <- {"n":2,"t":"d"
            1082 22P02 invalid input syntax for type json: expected an object at byte 1 <- [1]
            1086 22P02 invalid input syntax for type json: expected the end of the record at byte 9 <- {"n":2} x
            1096 22P05 column "t": \u0000 cannot be converted to text <- {"t":"\u0000","n":3}
        "#]],
    );
}

#[test]
fn an_exact_key_wins_over_one_in_another_case() {
    check(
        vec![nullable("userid", DataType::Int64)],
        "{\"userId\":1}\n{\"userId\":1,\"userid\":2}\n{\"userid\":2,\"userId\":1}\n",
        expect![[r#"
            +--------+
            | userid |
            +--------+
            | 1      |
            | 2      |
            | 2      |
            +--------+
            positions ScalarBuffer([1000, 1013, 1037])
        "#]],
    );
}

#[test]
fn every_type_is_read_from_its_usual_spellings() {
    check(
        vec![
            nullable("bool", DataType::Boolean),
            nullable("double", DataType::Float64),
            nullable("dec", DataType::Decimal128(10, 2)),
            nullable("ts", DataType::Timestamp(TimeUnit::Microsecond, None)),
            nullable("tz", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            nullable("date", DataType::Date32),
            nullable("time", DataType::Time64(TimeUnit::Microsecond)),
            nullable("bin", DataType::Binary),
            nullable("text", DataType::Utf8View),
        ],
        concat!(
            r#"{"bool":true,"double":1e3,"dec":12.345,"ts":"2024-06-01 07:59:00.5","tz":"2024-06-01T07:59:00+02:00","date":"2024-06-01","time":"07:59","bin":"\\x00ff","text":"a\tb \ud83d\ude00"}"#,
            "\n",
            r#"{"bool":"f","double":"-Infinity","dec":"1e2","text":{"a": [1, 2]},"bin":"AAE="}"#,
            "\n",
            r#"{"text":12.50}"#,
            "\n",
            r#"{"ts":12}"#,
        ),
        expect![[r#"
            +-------+--------+--------+-------------------------+----------------------+------------+----------+------+---------------+
            | bool  | double | dec    | ts                      | tz                   | date       | time     | bin  | text          |
            +-------+--------+--------+-------------------------+----------------------+------------+----------+------+---------------+
            | true  | 1000.0 | 12.35  | 2024-06-01T07:59:00.500 | 2024-06-01T05:59:00Z | 2024-06-01 | 07:59:00 | 00ff | a	b 😀        |
            | false | -inf   | 100.00 |                         |                      |            |          | 0001 | {"a": [1, 2]} |
            |       |        |        |                         |                      |            |          |      | 12.50         |
            +-------+--------+--------+-------------------------+----------------------+------------+----------+------+---------------+
            positions ScalarBuffer([1000, 1180, 1260])
            1275 22007 column "ts": a timestamp cannot be read from the number 12 without the option timestamp_unit <- {"ts":12}
        "#]],
    );
}

#[test]
fn lists_and_structs_nest() {
    let inner = DataType::Struct(Fields::from(vec![
        nullable("x", DataType::Int64),
        nullable("y", DataType::Utf8View),
    ]));
    check(
        vec![
            nullable("l", DataType::List(Arc::new(nullable("item", DataType::Int64)))),
            nullable("s", inner.clone()),
            nullable("ls", DataType::List(Arc::new(nullable("item", inner)))),
        ],
        concat!(
            r#"{"l":[1,null,3],"s":{"x":1,"y":"a"},"ls":[{"x":1},{"Y":"b","z":0},null]}"#,
            "\n",
            r#"{"l":[1,2,"x"],"s":{"x":2}}"#,
            "\n",
            r#"{"s":{"x":3,"y":[4]},"ls":[{"x":"bad"}]}"#,
            "\n",
            r#"{"l":[],"s":{"x":3,"y":[4]},"ls":null}"#,
            "\n",
            r#"{"l":7}"#,
        ),
        expect![[r#"
            +----------+----------------+------------------------------+
            | l        | s              | ls                           |
            +----------+----------------+------------------------------+
            | [1, , 3] | {x: 1, y: a}   | [{x: 1, y: }, {x: , y: b}, ] |
            | []       | {x: 3, y: [4]} |                              |
            +----------+----------------+------------------------------+
            positions ScalarBuffer([1000, 1142])
            1073 22P02 column "l": invalid input syntax for type bigint: "x" <- {"l":[1,2,"x"],"s":{"x":2}}
            1101 22P02 column "ls": invalid input syntax for type bigint: "bad" <- {"s":{"x":3,"y":[4]},"ls":[{"x":"bad"}]}
            1181 22P02 column "l": invalid input syntax for type array: "7" <- {"l":7}
        "#]],
    );
}

#[test]
fn jsonb_is_stored_in_canonical_form() {
    let metadata = [("pg_type".to_owned(), "jsonb".to_owned())].into();
    check(
        vec![nullable("j", DataType::Utf8View).with_metadata(metadata)],
        "{\"j\": {\"b\": 1, \"a\": \"x\"}}\n{\"j\": \"text\"}\n{\"j\": null}\n",
        expect![[r#"
            +-----------------+
            | j               |
            +-----------------+
            | {"a":"x","b":1} |
            | "text"          |
            |                 |
            +-----------------+
            positions ScalarBuffer([1000, 1026, 1040])
        "#]],
    );
}

#[test]
fn bytes_that_are_not_utf8_are_an_error_of_their_record() {
    let decoded =
        decode(vec![nullable("t", DataType::Utf8View)], b"{\"t\":\"a\"}\n{\"t\":\"\xff\"}\n{\"t\":\"b\"}\n");
    assert_eq!(decoded.rows.num_rows(), 2);
    assert_eq!(decoded.errors[0].sqlstate, "22021");
    assert_eq!(decoded.errors[0].message, "invalid byte sequence for encoding \"UTF8\": 0xff");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_record() {
    let schema = Arc::new(Schema::new(vec![nullable("a", DataType::Int64)]));
    let decoder = JsonFormat { timestamp_unit: None }.decoder(&schema, &[0]).unwrap();
    let bytes = Bytes::from_static(b"\xEF\xBB\xBF{\"a\":1}\n");
    let decoded = decoder.decode(&Chunk { start: 0, end: bytes.len() as i64, bytes }).unwrap();
    assert_eq!((decoded.rows.num_rows(), decoded.positions.value(0)), (1, 0));
}

#[test]
fn columns_nobody_asked_for_are_null_if_they_cannot_fail() {
    let schema = Arc::new(Schema::new(vec![
        nullable("a", DataType::Utf8View),
        nullable("b", DataType::Int64),
        Field::new("c", DataType::Int64, false),
    ]));
    let decoder = JsonFormat { timestamp_unit: None }.decoder(&schema, &[1]).unwrap();
    let bytes = Bytes::from_static(b"{\"a\":\"x\",\"b\":2,\"c\":3}\n");
    let decoded = decoder.decode(&Chunk { start: 0, end: bytes.len() as i64, bytes }).unwrap();
    let nulls: Vec<usize> = decoded.rows.columns().iter().map(|column| column.null_count()).collect();
    assert_eq!(nulls, [1, 0, 0]);
    assert_eq!(decoded.rows.schema(), schema);
}

proptest! {
    #[test]
    fn records_agree_with_serde_json(
        records in prop::collection::vec((any::<Option<i64>>(), any::<Option<String>>(), any::<bool>(), "[a-c]"), 0..20)
    ) {
        let mut text = String::new();
        let mut expected = Vec::new();
        for (number, string, number_first, extra) in &records {
            let string = string.as_ref().map(|string| string.replace('\0', ""));
            let (number_json, string_json) = (serde_json::to_string(number).unwrap(), serde_json::to_string(&string).unwrap());
            text.push_str(&if *number_first {
                format!("{{\"n\":{number_json},\"{extra}\":{string_json},\"s\":{string_json}}}\n")
            } else {
                format!("{{\"s\":{string_json},\"n\":{number_json}}}\n")
            });
            expected.push((*number, string));
        }
        let decoded = decode(vec![nullable("n", DataType::Int64), nullable("s", DataType::Utf8View)], text.as_bytes());
        prop_assert!(decoded.errors.is_empty());
        let numbers = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(decoded.rows.column(0));
        let strings = arrow::array::AsArray::as_string_view(decoded.rows.column(1));
        let actual: Vec<_> = numbers.iter().zip(strings.iter().map(|string| string.map(str::to_owned))).collect();
        prop_assert_eq!(actual, expected);
    }
}
