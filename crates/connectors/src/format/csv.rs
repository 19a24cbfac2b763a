//! CSV by RFC 4180, as PostgreSQL's COPY reads it.
//!
//! | field | becomes |
//! |---|---|
//! | the `null` text without quotes (default: nothing) | NULL |
//! | `"…"`, quotes inside doubled | its text, newlines and delimiters included, never NULL |
//! | any other | its text, read in the column's type |
//!
//! A quote opens a quoted field only as the first byte of a field; elsewhere it is text. Without
//! `header`, fields belong to columns by position; with it, by name, file by file. To let chunks be
//! decoded independently, every chunk of such a file begins with the file's header.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dataflow::{Chunk, Decoded, Decoder, OptionError, Result};
use memchr::{memchr, memchr_iter, memchr2, memrchr};

use crate::format::column::TextKind;
use crate::format::datetime::EpochUnit;
use crate::format::json::append_json_text;
use crate::format::names::{Names, Target};
use crate::format::rows::{
    ChunkText, RowPlan, Rows, base_position, is_oversized, oversized_error, utf8, without_mark,
};
use crate::format::value::ValueError;
use crate::format::{DELIMITER, HEADER, NULL, QUOTE};
use crate::options::CheckedOptions;

/// Options of the format.
#[derive(Debug, Clone)]
pub(crate) struct CsvFormat {
    framing: Framing,
    null: String,
    timestamp_unit: Option<EpochUnit>,
}

impl CsvFormat {
    pub(crate) fn new(
        options: &CheckedOptions,
        timestamp_unit: Option<EpochUnit>,
    ) -> Result<Self, OptionError> {
        let framing = Framing {
            header: options.boolean(HEADER.name)?.unwrap_or(false),
            delimiter: options.single_byte(DELIMITER.name)?.unwrap_or(b','),
            quote: options.single_byte(QUOTE.name)?.unwrap_or(b'"'),
        };
        if framing.delimiter == framing.quote {
            let given = if options.text(QUOTE.name).is_some() { QUOTE } else { DELIMITER };
            return Err(options.refuse(given.name, "the delimiter and the quote must be different"));
        }
        Ok(Self { framing, null: options.text(NULL.name).unwrap_or("").to_owned(), timestamp_unit })
    }

    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Says which declared column the header at the beginning of a file does not have: in every row
    /// it would be NULL, and what is meant is hardly that.
    pub(crate) fn check_header(&self, schema: &SchemaRef, beginning: &[u8]) -> Result<(), String> {
        let bytes = without_mark(beginning);
        let Some(end) = self.framing.record_end(bytes, 0).filter(|_| self.framing.header) else {
            return Ok(());
        };
        let mut names = Vec::new();
        let header = utf8(&bytes[..end]).map_err(|error| error.message)?;
        let read = self.framing.fields(header.trim_end_matches('\r'), &mut String::new(), |_, name, _| {
            names.push(name.trim().to_lowercase());
            Ok(())
        });
        read.map_err(|error| format!("in the header: {}", error.message))?;
        let is_missing = |name: &&String| !names.contains(&name.to_lowercase());
        match schema.fields().iter().map(|field| field.name()).find(is_missing) {
            Some(name) => Err(format!("the header has no column \"{name}\"")),
            None => Ok(()),
        }
    }

    pub(crate) fn decoder(&self, schema: &SchemaRef, columns: &[usize]) -> Result<Arc<dyn Decoder>> {
        let plan = RowPlan::new(schema, columns, self.timestamp_unit)?;
        let names = Names::new(&plan);
        Ok(Arc::new(CsvDecoder { format: self.clone(), plan, names }))
    }
}

/// Where records and fields end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Framing {
    pub(crate) header: bool,
    delimiter: u8,
    quote: u8,
}

impl Framing {
    /// Where the last whole record of `bytes` ends, behind its newline. A record begins at `start`.
    pub(crate) fn last_record_end(&self, bytes: &[u8], start: usize) -> Option<usize> {
        let mut last = None;
        let mut at = start;
        while let Some(quote) = memchr(self.quote, &bytes[at..]).map(|offset| at + offset) {
            if let Some(newline) = memrchr(b'\n', &bytes[at..quote]) {
                last = Some(at + newline + 1);
            }
            at = quote + 1;
            if quote == start || bytes[quote - 1] == self.delimiter || bytes[quote - 1] == b'\n' {
                let Some(closing) = self.closing_quote(bytes, at) else {
                    return last;
                };
                at = closing + 1;
            }
        }
        memrchr(b'\n', &bytes[at..]).map(|newline| at + newline + 1).or(last)
    }

    /// The newline that ends the record beginning at `start`.
    pub(crate) fn record_end(&self, bytes: &[u8], start: usize) -> Option<usize> {
        let mut at = start;
        loop {
            let found = at + memchr2(self.quote, b'\n', &bytes[at..])?;
            if bytes[found] == b'\n' {
                return Some(found);
            }
            at = found + 1;
            if found == start || bytes[found - 1] == self.delimiter {
                at = self.closing_quote(bytes, at)? + 1;
            }
        }
    }

    /// The quote that ends the field whose text begins at `at`.
    fn closing_quote(&self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let quote = at + memchr(self.quote, &bytes[at..])?;
            if bytes.get(quote + 1) != Some(&self.quote) {
                return Some(quote);
            }
            at = quote + 2;
        }
    }

    /// Calls `take(index, text, is_quoted)` for every field and returns how many there are.
    #[inline]
    fn fields(
        &self,
        record: &str,
        scratch: &mut String,
        mut take: impl FnMut(usize, &str, bool) -> Result<(), ValueError>,
    ) -> Result<usize, ValueError> {
        let bytes = record.as_bytes();
        let (mut at, mut count) = (0, 0);
        loop {
            if bytes.get(at) == Some(&self.quote) {
                let closing = self.closing_quote(bytes, at + 1);
                let closing =
                    closing.ok_or_else(|| ValueError::new("22P04", "unterminated CSV quoted field"))?;
                take(count, self.without_doubled_quotes(&record[at + 1..closing], scratch), true)?;
                at = closing + 1;
                if at < bytes.len() && bytes[at] != self.delimiter {
                    return Err(ValueError::new("22P04", "unexpected text behind a closing quote"));
                }
            } else {
                let end = at + delimiter_offset(&bytes[at..], self.delimiter);
                take(count, &record[at..end], false)?;
                at = end;
            }
            count += 1;
            if at == bytes.len() {
                return Ok(count);
            }
            at += 1;
        }
    }

    fn without_doubled_quotes<'a>(&self, text: &'a str, scratch: &'a mut String) -> &'a str {
        if memchr(self.quote, text.as_bytes()).is_none() {
            return text;
        }
        let mut quote = [0; 4];
        let quote = &*char::from(self.quote).encode_utf8(&mut quote);
        scratch.clear();
        // Quotes inside of a quoted field come in pairs: of the pieces between them, every second
        // is the nothing within a pair.
        for (idx, piece) in text.split(quote).enumerate() {
            scratch.push_str(if idx % 2 == 1 { quote } else { "" });
            scratch.push_str(piece);
        }
        scratch
    }
}

/// Bytes before the first delimiter, eight at a time: fields are short, and a call of `memchr` costs
/// more than it finds.
#[inline]
fn delimiter_offset(bytes: &[u8], delimiter: u8) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGH_BITS: u64 = ONES << 7;
    let pattern = ONES * u64::from(delimiter);
    let (words, rest) = bytes.as_chunks::<8>();
    for (idx, word) in words.iter().enumerate() {
        // A byte that is the delimiter becomes 0, and the lowest 0 is the lowest byte whose high
        // bit the subtraction sets (those above it may be false, which does not matter).
        let differences = u64::from_le_bytes(*word) ^ pattern;
        let zeros = differences.wrapping_sub(ONES) & !differences & HIGH_BITS;
        if zeros != 0 {
            return idx * 8 + zeros.trailing_zeros() as usize / 8;
        }
    }
    let offset = rest.iter().position(|byte| *byte == delimiter);
    words.len() * 8 + offset.unwrap_or(rest.len())
}

#[derive(Debug)]
struct CsvDecoder {
    format: CsvFormat,
    plan: RowPlan,
    names: Names,
}

impl Decoder for CsvDecoder {
    fn decode(&self, chunk: &Chunk) -> Result<Decoded> {
        let mut rows = self.plan.rows(memchr_iter(b'\n', &chunk.bytes).count() + 1);
        if is_oversized(chunk) {
            rows.end_record(chunk.start, &chunk.bytes, Err(oversized_error()));
            return rows.finish();
        }
        let framing = self.format.framing;
        let base = base_position(chunk);
        let bytes = chunk.bytes.as_ref();
        let mut at = if base == 0 || framing.header { bytes.len() - without_mark(bytes).len() } else { 0 };
        let text = ChunkText::new(bytes);
        let has_zeros = memchr(0, bytes).is_some();
        let mut scratch = String::new();
        let mut slots = if framing.header { None } else { Some(self.slots_by_position(&mut rows)) };
        while at < bytes.len() {
            let end = framing.record_end(bytes, at).unwrap_or(bytes.len());
            let record = &bytes[at..end];
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            let start = at;
            let position = base + start as i64;
            at = end + 1;
            let Some(slots) = &slots else {
                slots = Some(self.slots_by_name(record, &mut scratch, &mut rows));
                continue;
            };
            // An empty line is an empty field where there is only one.
            if record.is_empty() && slots.len() != 1 {
                continue;
            }
            let outcome = text.record(start..start + record.len()).and_then(|text| {
                if has_zeros {
                    refuse_zero(text)?;
                }
                self.read(text, slots, &mut scratch, &mut rows)
            });
            rows.end_record(position, record, outcome);
        }
        rows.finish()
    }
}

/// Where a field goes.
#[derive(Debug, Clone, Copy)]
enum FieldTarget {
    Skip,
    Text(usize),
    /// A list, struct or jsonb column: the field is JSON.
    Json(usize),
}

impl CsvDecoder {
    fn read(
        &self,
        text: &str,
        targets: &[FieldTarget],
        scratch: &mut String,
        rows: &mut Rows<'_>,
    ) -> Result<(), ValueError> {
        let null = self.format.null.as_str();
        let count = self.format.framing.fields(text, scratch, |idx, field, is_quoted| {
            let is_null = !is_quoted && field == null;
            match targets.get(idx) {
                None => Err(ValueError::new("22P04", "extra data after last expected column")),
                Some(FieldTarget::Skip) => Ok(()),
                Some(FieldTarget::Text(slot) | FieldTarget::Json(slot)) if is_null => {
                    rows.column(*slot).push_null();
                    Ok(())
                }
                Some(FieldTarget::Text(slot)) => rows.set_text(*slot, field),
                Some(FieldTarget::Json(slot)) => {
                    append_json_text(rows.column(*slot), field).map_err(|error| rows.in_column(*slot, error))
                }
            }
        })?;
        if count < targets.len() {
            return Err(ValueError::new(
                "22P04",
                format!("missing data: {count} of {} fields", targets.len()),
            ));
        }
        Ok(())
    }

    fn slots_by_position(&self, rows: &mut Rows<'_>) -> Vec<FieldTarget> {
        let columns = 0..self.plan.schema.fields().len();
        columns
            .map(|idx| self.plan.slot(idx).map_or(FieldTarget::Skip, |slot| field_target(slot, rows)))
            .collect()
    }

    /// A header that cannot be read names no columns, and every record behind it is an error.
    fn slots_by_name(&self, header: &[u8], scratch: &mut String, rows: &mut Rows<'_>) -> Vec<FieldTarget> {
        let mut named = Vec::new();
        let read = utf8(header).and_then(|text| {
            self.format.framing.fields(text, scratch, |_, name, _| {
                named.push(self.names.target(name.trim()));
                Ok(())
            })
        });
        if read.is_err() {
            return Vec::new();
        }
        let target = |target: &Target| match *target {
            Target::Slot { slot, is_exact }
                if is_exact || !named.contains(&Target::Slot { slot, is_exact: true }) =>
            {
                field_target(slot, rows)
            }
            Target::Slot { .. } | Target::Skip => FieldTarget::Skip,
        };
        named.iter().map(target).collect()
    }
}

fn refuse_zero(text: &str) -> Result<(), ValueError> {
    match memchr(0, text.as_bytes()) {
        Some(_) => Err(ValueError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00")),
        None => Ok(()),
    }
}

fn field_target(slot: usize, rows: &mut Rows<'_>) -> FieldTarget {
    let column = rows.column(slot);
    let is_json = column.nested().is_some() || column.text_kind() == Some(TextKind::Jsonb);
    if is_json { FieldTarget::Json(slot) } else { FieldTarget::Text(slot) }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use arrow::util::pretty::pretty_format_batches;
    use bytes::Bytes;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    const FRAMING: Framing = Framing { header: false, delimiter: b',', quote: b'"' };

    fn format(header: bool) -> CsvFormat {
        CsvFormat { framing: Framing { header, ..FRAMING }, null: String::new(), timestamp_unit: None }
    }

    fn decode(format: &CsvFormat, fields: Vec<Field>, start: i64, text: &str, header: &str) -> Decoded {
        let schema = Arc::new(Schema::new(fields));
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let bytes = Bytes::from(format!("{header}{text}"));
        let chunk = Chunk { start, end: start + text.len() as i64, bytes };
        format.decoder(&schema, &columns).unwrap().decode(&chunk).unwrap()
    }

    fn check(decoded: Decoded, expected: Expect) {
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

    fn two_columns() -> Vec<Field> {
        vec![Field::new("n", DataType::Int64, true), Field::new("t", DataType::Utf8View, true)]
    }

    #[test]
    fn quotes_protect_delimiters_newlines_quotes_and_the_null_text() {
        let text = "1,plain\r\n2,\"a, \"\"b\"\"\nc\"\n\n,\n3,\"\"\n4,5\" pipe";
        let decoded = decode(&format(false), two_columns(), 100, text, "");
        // The empty field is NULL, the empty quotes are not.
        assert_eq!(decoded.rows.column(1).null_count(), 1);
        check(
            decoded,
            expect![[r#"
            +---+---------+
            | n | t       |
            +---+---------+
            | 1 | plain   |
            | 2 | a, "b"  |
            |   | c       |
            |   |         |
            | 3 |         |
            | 4 | 5" pipe |
            +---+---------+
            positions ScalarBuffer([100, 109, 125, 127, 132])
        "#]],
        );
    }

    #[test]
    fn a_record_with_another_number_of_fields_is_an_error() {
        let text = "1,a,b\n2\n3,c\nx,d\n4,\"e\"f\n5,\"g";
        check(
            decode(&format(false), two_columns(), 0, text, ""),
            expect![[r#"
            +---+---+
            | n | t |
            +---+---+
            | 3 | c |
            +---+---+
            positions ScalarBuffer([8])
            0 22P04 extra data after last expected column <- 1,a,b
            6 22P04 missing data: 1 of 2 fields <- 2
            12 22P02 column "n": invalid input syntax for type bigint: "x" <- x,d
            16 22P04 unexpected text behind a closing quote <- 4,"e"f
            23 22P04 unterminated CSV quoted field <- 5,"g
        "#]],
        );
    }

    #[test]
    fn a_header_maps_fields_by_name_in_every_chunk() {
        let header = "\u{feff}T,other,\"n\"\n";
        check(
            decode(&format(true), two_columns(), 0, &format!("{header}a,x,1\n"), ""),
            expect![[r#"
            +---+---+
            | n | t |
            +---+---+
            | 1 | a |
            +---+---+
            positions ScalarBuffer([15])
        "#]],
        );
        check(
            decode(&format(true), two_columns(), 50, "b,y,2\nc,3\n", header),
            expect![[r#"
            +---+---+
            | n | t |
            +---+---+
            | 2 | b |
            +---+---+
            positions ScalarBuffer([50])
            56 22P04 missing data: 2 of 3 fields <- c,3
        "#]],
        );
    }

    #[test]
    fn a_single_column_may_be_empty() {
        let fields = vec![Field::new("t", DataType::Utf8View, true)];
        let decoded = decode(&format(false), fields, 0, "a\n\nb\n", "");
        assert_eq!(decoded.rows.num_rows(), 3);
    }

    #[test]
    fn a_newline_in_quotes_is_no_place_to_cut() {
        for (text, end) in [
            ("a,b\nc", Some(4)),
            ("a,\"b\nc\"\nd", Some(8)),
            ("a\n\"b\nc", Some(2)),
            ("\"a\nb", None),
            ("5\" x\ny", Some(5)),
            ("\"a\"\"\nb\"\nc\"d\n", Some(12)),
            ("a,\"\"\nb", Some(5)),
            ("", None),
        ] {
            assert_eq!(FRAMING.last_record_end(text.as_bytes(), 0), end, "{text:?}");
        }
    }

    #[test]
    fn a_zero_byte_is_an_error_of_its_record() {
        let decoded = decode(&format(false), two_columns(), 0, "1,a\n2,b\0c\n3,d\n", "");
        assert_eq!(decoded.rows.num_rows(), 2);
        let errors: Vec<_> = decoded.errors.iter().map(|error| (error.position, error.sqlstate)).collect();
        assert_eq!(errors, [(4, "22021")]);
    }

    proptest! {
        #[test]
        fn the_first_delimiter_is_found(bytes in prop::collection::vec(prop::sample::select(b"+,-l\xac\xff\0a".to_vec()), 0..40)) {
            let expected = bytes.iter().position(|byte| *byte == b',').unwrap_or(bytes.len());
            prop_assert_eq!(delimiter_offset(&bytes, b','), expected);
        }

        #[test]
        fn what_was_written_is_read_back(rows in prop::collection::vec((any::<i64>(), "[a\",\n\r é]{0,30}"), 1..20)) {
            let mut text = String::new();
            for (number, string) in &rows {
                text.push_str(&format!("{number},\"{}\"\n", string.replace('"', "\"\"")));
            }
            let decoded = decode(&format(false), two_columns(), 0, &text, "");
            let numbers = decoded.rows.column(0).as_primitive::<Int64Type>().values();
            let strings = decoded.rows.column(1).as_string_view();
            let actual: Vec<_> = numbers.iter().copied().zip(strings.iter().flatten().map(str::to_owned)).collect();
            prop_assert_eq!(actual, rows);
            prop_assert_eq!(FRAMING.last_record_end(text.as_bytes(), 0), Some(text.len()));
        }

        #[test]
        fn both_ways_to_find_the_end_of_a_record_agree(text in "[a\",\n]{0,40}") {
            let bytes = text.as_bytes();
            let mut last = None;
            let mut at = 0;
            while let Some(end) = FRAMING.record_end(bytes, at) {
                at = end + 1;
                last = Some(at);
            }
            prop_assert_eq!(FRAMING.last_record_end(bytes, 0), last);
        }
    }
}
