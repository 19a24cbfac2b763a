//! Connector `datagen`: made-up rows of any schema.
//!
//! Row `n` is a function of the seed and `n` alone, whatever else is read. Each column has options
//! of its own, `fields.<column>.<option>`:
//!
//! | option | meaning |
//! |---|---|
//! | `kind` | `random` (the default, but for timestamps) or `sequence` |
//! | `start`, `end`, `step` | of a sequence; one with an end makes the source end |
//! | `min`, `max` | of random numbers, dates and timestamps, both included |
//! | `length` | of random text and bytes, default 16 |
//! | `null_fraction` | how many rows of one are NULL |

mod column;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::SchemaRef;
use dataflow::{
    Chunk, Connector, ConnectorContext, Decoded, Decoder, OptionError, OptionSpec, Options, Result, Source,
    SourceDefinition, Split, SplitReader,
};

use crate::datagen::column::{COLUMN_OPTIONS, Column};
use crate::generate::{GeneratedReader, RATE, SEED, rate};
use crate::options::{CheckedOptions, nearest, optional};

const ROWS: OptionSpec =
    optional("rows", &["number-of-rows", "number_of_rows"], "how many rows; without it, they never end");

const OPTIONS: &[OptionSpec] = &[ROWS, RATE, SEED];

/// In front of the options of a column.
const COLUMN_PREFIX: &str = "fields.";

/// About what a value takes in memory.
const VALUE_BYTES: usize = 16;

/// The connector.
pub(crate) struct DatagenConnector;

impl Connector for DatagenConnector {
    fn name(&self) -> &'static str {
        "datagen"
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn source(
        &self,
        definition: &SourceDefinition,
        _ctx: &ConnectorContext,
    ) -> Result<Arc<dyn Source>, OptionError> {
        let (own, mut of_columns) = split_options(&definition.options)?;
        let options = CheckedOptions::check(self.name(), OPTIONS, &own)?;
        let seed = options.integer(SEED.name, 0)?.unwrap_or(1).cast_unsigned();
        let rate = rate(&options)?;
        let mut columns = Vec::new();
        for (idx, field) in definition.schema.fields().iter().enumerate() {
            let given = of_columns.remove(field.name()).unwrap_or_default();
            let given = CheckedOptions::check(self.name(), COLUMN_OPTIONS, &given)?;
            columns.push(Column::new(field, idx, seed, rate, &given)?);
        }
        if let Some(name) = of_columns.into_keys().next() {
            return Err(OptionError::Unknown {
                nearest: nearest(&name, definition.schema.fields().iter().map(|field| field.name().as_str())),
                name: format!("{COLUMN_PREFIX}{name}"),
                connector: self.name().to_owned(),
            });
        }
        let rows = options.integer(ROWS.name, 0)?;
        let rows = rows.into_iter().chain(columns.iter().filter_map(Column::rows)).min();
        let generator = Generator { schema: Arc::clone(&definition.schema), columns };
        Ok(Arc::new(DatagenSource { generator: Arc::new(generator), rows, rate }))
    }
}

/// The options of the source, and those of each column.
fn split_options(options: &Options) -> Result<(Options, BTreeMap<String, Options>), OptionError> {
    let mut own = Options::new();
    let mut of_columns: BTreeMap<String, Options> = BTreeMap::new();
    for (name, value) in options {
        let Some(rest) = name.strip_prefix(COLUMN_PREFIX) else {
            own.insert(name.clone(), value.clone());
            continue;
        };
        // A column name may contain dots itself.
        let Some((column, option)) = rest.rsplit_once('.') else {
            return Err(OptionError::Other(format!(
                "option \"{name}\" has not the form fields.<column>.<option>"
            )));
        };
        of_columns.entry(column.to_owned()).or_default().insert(option.to_owned(), value.clone());
    }
    Ok((own, of_columns))
}

#[derive(Debug)]
struct Generator {
    schema: SchemaRef,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct DatagenSource {
    generator: Arc<Generator>,
    rows: Option<i64>,
    rate: Option<f64>,
}

impl Source for DatagenSource {
    fn is_bounded(&self) -> bool {
        self.rows.is_some()
    }

    fn splits(&self) -> Result<Vec<Split>> {
        Ok(vec![Split { name: "rows".to_owned(), start: 0, end: self.rows }])
    }

    fn open(&self, split: &Split, position: i64) -> Result<Box<dyn SplitReader>> {
        let row_bytes = VALUE_BYTES * (self.generator.columns.len() + 1);
        Ok(Box::new(GeneratedReader::new(position, split.end, self.rate, row_bytes, |_| i64::MAX)))
    }

    fn decoder(&self, columns: &[usize]) -> Result<Arc<dyn Decoder>> {
        let is_made = |idx: usize| columns.contains(&idx) || !self.generator.schema.field(idx).is_nullable();
        let is_made = (0..self.generator.columns.len()).map(is_made).collect();
        Ok(Arc::new(DatagenDecoder { generator: Arc::clone(&self.generator), is_made }))
    }
}

#[derive(Debug)]
struct DatagenDecoder {
    generator: Arc<Generator>,
    /// Columns that are needed.
    is_made: Vec<bool>,
}

impl Decoder for DatagenDecoder {
    fn decode(&self, chunk: &Chunk) -> Result<Decoded> {
        let Generator { schema, columns } = &*self.generator;
        let positions = Int64Array::from_iter_values(chunk.start..chunk.end);
        let count = positions.len();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for ((column, field), is_made) in columns.iter().zip(schema.fields()).zip(&self.is_made) {
            arrays.push(if *is_made {
                column.array(field.data_type(), chunk.start, chunk.end)
            } else {
                new_null_array(field.data_type(), count)
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?;
        Ok(Decoded { rows, positions, errors: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, TimeUnit};
    use arrow::util::pretty::pretty_format_batches;
    use bytes::Bytes;
    use dataflow::FormatOptions;
    use expect_test::{Expect, expect};

    use super::*;

    fn source(fields: &[(&str, DataType)], options: &[(&str, &str)]) -> Result<Arc<dyn Source>, OptionError> {
        let fields: Vec<Field> =
            fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect();
        let definition = SourceDefinition {
            name: "s".to_owned(),
            schema: Arc::new(Schema::new(fields)),
            options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            format: FormatOptions::default(),
        };
        DatagenConnector.source(&definition, &ConnectorContext::default())
    }

    fn rows(source: &dyn Source, start: i64, end: i64) -> RecordBatch {
        let columns: Vec<usize> = (0..20).collect();
        let chunk = Chunk { start, end, bytes: Bytes::new() };
        source.decoder(&columns).unwrap().decode(&chunk).unwrap().rows
    }

    fn check(fields: &[(&str, DataType)], options: &[(&str, &str)], expected: Expect) {
        let source = source(fields, options).unwrap();
        let table = pretty_format_batches(&[rows(&*source, 0, 3)]).unwrap().to_string();
        expected.assert_eq(&(table + "\n"));
    }

    const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

    #[test]
    fn every_type_has_random_values() {
        check(
            &[
                ("bool", DataType::Boolean),
                ("small", DataType::Int16),
                ("big", DataType::Int64),
                ("double", DataType::Float64),
                ("dec", DataType::Decimal128(10, 2)),
                ("text", DataType::Utf8View),
                ("bytes", DataType::Binary),
                ("date", DataType::Date32),
                ("time", DataType::Time64(TimeUnit::Microsecond)),
                ("ts", TIMESTAMP),
            ],
            &[("fields.text.length", "4"), ("fields.bytes.length", "2")],
            expect![[r#"
                +-------+-------+--------+---------------------+-----------+------+-------+------------+-----------------+---------------------+
                | bool  | small | big    | double              | dec       | text | bytes | date       | time            | ts                  |
                +-------+-------+--------+---------------------+-----------+------+-------+------------+-----------------+---------------------+
                | false | 7698  | 391013 | 0.6760709994436771  | 364549.50 | uwuf | 7a8a  | 2024-02-27 | 20:34:08.010077 | 2024-01-01T00:00:00 |
                | true  | 5164  | 525157 | 0.9391731254725892  | 46760.53  | 244f | bb38  | 2024-05-22 | 21:16:01.287036 | 2024-01-01T00:00:01 |
                | true  | 8062  | 223361 | 0.42121621632810713 | 124273.22 | yena | dbb1  | 2024-09-24 | 20:50:26.683724 | 2024-01-01T00:00:02 |
                +-------+-------+--------+---------------------+-----------+------+-------+------------+-----------------+---------------------+
            "#]],
        );
    }

    #[test]
    fn sequences_count_from_their_start() {
        check(
            &[("n", DataType::Int32), ("t", DataType::Utf8View), ("d", DataType::Date32), ("ts", TIMESTAMP)],
            &[
                ("fields.n.kind", "sequence"),
                ("fields.n.start", "10"),
                ("fields.n.step", "-1"),
                ("fields.t.kind", "sequence"),
                ("fields.d.kind", "sequence"),
                ("fields.d.start", "2024-02-28"),
                ("fields.ts.step", "100 ms"),
            ],
            expect![[r#"
                +----+---+------------+-------------------------+
                | n  | t | d          | ts                      |
                +----+---+------------+-------------------------+
                | 10 | 0 | 2024-02-28 | 2024-01-01T00:00:00     |
                | 9  | 1 | 2024-02-29 | 2024-01-01T00:00:00.100 |
                | 8  | 2 | 2024-03-01 | 2024-01-01T00:00:00.200 |
                +----+---+------------+-------------------------+
            "#]],
        );
    }

    #[test]
    fn a_row_is_the_same_in_any_range() {
        let fields = [("n", DataType::Int64), ("t", DataType::Utf8View), ("x", DataType::Float32)];
        let source = source(&fields, &[("seed", "5"), ("fields.t.null_fraction", "0.5")]).unwrap();
        let all = rows(&*source, 0, 1000);
        assert_eq!(rows(&*source, 300, 700), all.slice(300, 400));
        let nulls = all.column(1).null_count();
        assert!((400..600).contains(&nulls), "{nulls}");
    }

    #[test]
    fn random_numbers_fill_their_range_and_no_more() {
        let fields = [("n", DataType::Int32), ("wide", DataType::Int64)];
        let options = [
            ("fields.n.min", "-2"),
            ("fields.n.max", "2"),
            ("fields.wide.min", "-9223372036854775808"),
            ("fields.wide.max", "9223372036854775807"),
        ];
        let all = rows(&*source(&fields, &options).unwrap(), 0, 1000);
        let numbers = all.column(0).as_primitive::<Int32Type>().values();
        assert_eq!((numbers.iter().min(), numbers.iter().max()), (Some(&-2), Some(&2)));
        let wide = all.column(1).as_primitive::<Int64Type>().values();
        assert!(
            wide.iter().any(|number| *number > 1 << 61) && wide.iter().any(|number| *number < -(1 << 61))
        );
    }

    #[test]
    fn a_source_ends_with_its_rows_or_its_shortest_sequence() {
        let fields = [("n", DataType::Int64)];
        let end = |options: &[(&str, &str)]| source(&fields, options).unwrap().splits().unwrap()[0].end;
        assert_eq!(end(&[]), None);
        assert_eq!(end(&[("rows", "1_000")]), Some(1000));
        let sequence = [
            ("rows", "1000"),
            ("fields.n.kind", "sequence"),
            ("fields.n.start", "5"),
            ("fields.n.end", "14"),
        ];
        assert_eq!(end(&sequence), Some(10));
    }

    #[test]
    fn options_of_no_use_are_refused() {
        let message =
            |options: &[(&str, &str)]| source(&[("n", DataType::Int64)], options).unwrap_err().to_string();
        assert_eq!(
            message(&[("fields.m.kind", "random")]),
            "unknown option \"fields.m\" of connector \"datagen\""
        );
        assert_eq!(message(&[("fields.n.knd", "random")]), "unknown option \"knd\" of connector \"datagen\"");
        assert_eq!(
            message(&[("fields.n.min", "5"), ("fields.n.max", "4")]),
            "invalid value \"4\" of option \"max\": expected at least min"
        );
        assert_eq!(message(&[("fields.n.length", "4")]), "column \"n\" has no option \"length\"");
        assert_eq!(message(&[("fields.n.start", "4")]), "column \"n\" has no option \"start\"");
        assert_eq!(
            message(&[("fields.n.null_fraction", "1.5")]),
            "invalid value \"1.5\" of option \"null_fraction\": expected a number from 0 to 1"
        );
        let interval = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);
        assert!(source(&[("i", interval)], &[]).is_err());
    }
}
