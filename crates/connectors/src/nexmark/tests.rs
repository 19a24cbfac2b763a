use arrow::array::Array;
use arrow::compute::concat_batches;
use arrow::datatypes::Schema;
use arrow::json::LineDelimitedWriter;
use dataflow::{FormatOptions, ReadOutcome};
use expect_test::{Expect, expect};

use super::*;

fn schema(table: Table) -> SchemaRef {
    let field = |spec: &ColumnSpec| {
        let data_type = match spec.make {
            Make::BigInt(_) => DataType::Int64,
            Make::Text(_) => DataType::Utf8View,
            Make::Timestamp(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
        };
        Field::new(spec.name, data_type, true)
    };
    Arc::new(Schema::new(table.columns().iter().map(field).collect::<Vec<_>>()))
}

fn source(schema: SchemaRef, options: &[(&str, &str)]) -> Result<Arc<dyn Source>, OptionError> {
    let definition = SourceDefinition {
        name: "s".to_owned(),
        schema,
        options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        format: FormatOptions::default(),
    };
    NexmarkConnector.source(&definition, &ConnectorContext::default())
}

fn read_all(source: &dyn Source, schema: &SchemaRef, bytes_max: usize) -> (RecordBatch, Vec<i64>) {
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let decoder = source.decoder(&columns).unwrap();
    let split = source.splits().unwrap().remove(0);
    let mut reader = source.open(&split, 0).unwrap();
    let (mut batches, mut positions) = (Vec::new(), Vec::new());
    while let ReadOutcome::Chunk(chunk) = reader.read(bytes_max).unwrap() {
        let decoded = decoder.decode(&chunk).unwrap();
        positions.extend(decoded.positions.values().iter().copied());
        batches.push(decoded.rows);
    }
    (concat_batches(schema, &batches).unwrap(), positions)
}

/// The first records as JSON lines, and a checksum over all of them.
fn check(table: Table, options: &[(&str, &str)], expected: Expect) {
    let mut options = options.to_vec();
    options.push(("table", table.name()));
    let source = source(schema(table), &options).unwrap();
    let (batch, positions) = read_all(&*source, &schema(table), 1 << 20);
    assert!(positions.is_sorted_by(|a, b| a < b));
    let mut lines = LineDelimitedWriter::new(Vec::new());
    lines.write(&batch.slice(0, 2)).unwrap();
    let first = String::from_utf8(lines.into_inner()).unwrap();
    let mut lines = LineDelimitedWriter::new(Vec::new());
    lines.write(&batch).unwrap();
    let all = lines.into_inner();
    // FNV-1a: any fixed function of all bytes does.
    let checksum = all
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    expected.assert_eq(&format!("{first}{} records, {checksum:016x}\n", batch.num_rows()));
}

const SMALL: &[(&str, &str)] =
    &[("seed", "7"), ("events", "2000"), ("start", "2024-06-01 07:59:00"), ("gap_ms", "50")];

#[test]
fn people_are_the_same_for_ever() {
    check(
        Table::Person,
        SMALL,
        expect![[r#"
        {"id":1000,"name":"Farah Bauer","email_address":"d8bm0@p3f1i.test","credit_card":"8748 6780 1821 1960","city":"Bend","state":"OR","date_time":"2024-06-01T07:59:00.099","extra":"i2uv5"}
        {"id":1001,"name":"Farah Gruber","email_address":"7qg6f@8ets9.test","credit_card":"9416 4193 1437 8123","city":"Bend","state":"OR","date_time":"2024-06-01T07:59:02.448","extra":"hwncv7qg6f8ets9bhyd7m2ddz2jxik"}
        40 records, 415bdad22105bfc0
    "#]],
    );
}

#[test]
fn auctions_are_the_same_for_ever() {
    check(
        Table::Auction,
        SMALL,
        expect![[r#"
        {"id":1000,"item_name":"l1thm920d8","description":"7oc9a 9yw1j","initial_bid":278352,"reserve":279508,"date_time":"2024-06-01T07:59:00.099","expires":"2024-06-01T08:00:33.613","seller":1000,"category":14,"extra":"djig0"}
        {"id":1002,"item_name":"n3byvn3ws2","description":"rsjkp w9tqd","initial_bid":987,"reserve":7091,"date_time":"2024-06-01T07:59:00.217","expires":"2024-06-01T07:59:22.421","seller":1000,"category":14,"extra":"y84yfn3byv"}
        120 records, e63564f2b9a26c9b
    "#]],
    );
}

#[test]
fn bids_are_the_same_for_ever() {
    check(
        Table::Bid,
        SMALL,
        expect![[r#"
        {"auction":1000,"bidder":1001,"price":430,"channel":"channel-49","url":"https://www.nexmark.test/fohs8/460rg/g3mfl/item.htm?query=1","date_time":"2024-06-01T07:59:00.227","extra":"0ttcspxruo"}
        {"auction":1000,"bidder":1001,"price":2610,"channel":"Google","url":"https://www.nexmark.test/136np/8caqo/209nk/item.htm?query=1&channel_id=157069569","date_time":"2024-06-01T07:59:00.259","extra":"b2s0izi9ft1ygwqxhjlp"}
        1840 records, a39dd97b01955c2a
    "#]],
    );
}

#[test]
fn late_bids_are_the_same_for_ever() {
    check(
        Table::Bid,
        &[("events", "30000"), ("late_permille", "10")],
        expect![[r#"
        {"auction":1000,"bidder":1000,"price":17766294,"channel":"facebook","url":"https://www.nexmark.test/n5hl2/zm79t/i7zbl/item.htm?query=1&channel_id=246545127&ref=x","date_time":"2024-02-28T23:55:00.026","extra":"3guijpbgwkdck51ld6xd0t5kmt6ewj"}
        {"auction":1010,"bidder":1001,"price":758713,"channel":"Baidu","url":"https://www.nexmark.test/do91c/fr87c/lx36w/item.htm?query=1&channel_id=1697451080","date_time":"2024-02-28T23:55:00.025","extra":"f71u0b43jgz1tm7"}
        27600 records, a74838580e506f7c
    "#]],
    );
}

#[test]
fn small_chunks_hold_the_same_records() {
    let source = source(schema(Table::Bid), &[("table", "bid"), ("events", "9000")]).unwrap();
    let large = read_all(&*source, &schema(Table::Bid), 1 << 20);
    assert_eq!(read_all(&*source, &schema(Table::Bid), 10_000), large);
}

#[test]
fn a_column_nobody_reads_is_not_made() {
    let source = source(schema(Table::Bid), &[("table", "bid")]).unwrap();
    assert!(!source.is_bounded());
    let chunk = Chunk { start: 100_000_000, end: 100_000_100, bytes: bytes::Bytes::new() };
    let decoded = source.decoder(&[2]).unwrap().decode(&chunk).unwrap();
    let count = decoded.rows.num_rows();
    assert!(count > 50, "{count}");
    let nulls: Vec<usize> = decoded.rows.columns().iter().map(|column| column.null_count()).collect();
    assert_eq!(nulls, [count, count, 0, count, count, count, count]);
}

#[test]
fn a_schema_that_does_not_fit_is_refused() {
    let message = |name: &str, data_type: DataType| {
        let schema = Arc::new(Schema::new(vec![Field::new(name, data_type, true)]));
        source(schema, &[("table", "bid")]).unwrap_err().to_string()
    };
    assert_eq!(
        message("datetime", DataType::Utf8View),
        "the nexmark stream \"bid\" has no column \"datetime\"; perhaps \"date_time\" is meant"
    );
    assert_eq!(
        message("price", DataType::Int32),
        "column \"price\" of connector \"nexmark\" has the type bigint"
    );
    assert_eq!(
        source(schema(Table::Bid), &[("table", "bids")]).unwrap_err().to_string(),
        "invalid value \"bids\" of option \"table\": expected 'person' or 'auction' or 'bid'"
    );
    assert_eq!(
        source(schema(Table::Bid), &[]).unwrap_err().to_string(),
        "connector \"nexmark\" needs the option \"table\""
    );
}
