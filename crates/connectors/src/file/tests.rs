use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use dataflow::{FormatOptions, ReadOutcome, Split, SplitReader};
use tempfile::TempDir;

use super::*;
use crate::format::RECORD_BYTES_MAX;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn append(&self, name: &str, text: &str) {
        OpenOptions::new()
            .append(true)
            .open(self.0.path().join(name))
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn source(&self, options: &[(&str, &str)]) -> Result<Arc<dyn Source>, OptionError> {
        let definition = SourceDefinition {
            name: "s".to_owned(),
            schema: Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)])),
            options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            format: FormatOptions::default(),
        };
        let ctx = ConnectorContext { allowed_paths: vec![self.0.path().to_owned()] };
        FileConnector.source(&definition, &ctx)
    }
}

/// Numbers that a reader gives until it has no more, and the errors on the way.
fn drain(source: &dyn Source, reader: &mut dyn SplitReader, bytes_max: usize) -> (Vec<i64>, Vec<String>) {
    let decoder = source.decoder(&[0]).unwrap();
    let (mut numbers, mut errors) = (Vec::new(), Vec::new());
    while let ReadOutcome::Chunk(chunk) = reader.read(bytes_max).unwrap() {
        let decoded = decoder.decode(&chunk).unwrap();
        numbers.extend(decoded.rows.column(0).as_primitive::<Int64Type>().iter().flatten());
        errors
            .extend(decoded.errors.into_iter().map(|error| format!("{}: {}", error.position, error.message)));
    }
    (numbers, errors)
}

fn drain_all(source: &dyn Source, bytes_max: usize) -> (Vec<i64>, Vec<String>) {
    let (mut numbers, mut errors) = (Vec::new(), Vec::new());
    for split in source.splits().unwrap() {
        let (more_numbers, more_errors) =
            drain(source, &mut *source.open(&split, split.start).unwrap(), bytes_max);
        numbers.extend(more_numbers);
        errors.extend(more_errors);
    }
    (numbers, errors)
}

fn json_lines(numbers: std::ops::Range<i64>) -> String {
    numbers.map(|number| format!("{{\"n\":{number}}}\n")).collect()
}

#[test]
fn a_bounded_file_is_read_to_the_length_it_had_when_it_was_listed() {
    let folder = Folder::new();
    folder.write("a.json", "{\"n\":1}\n{\"n\":2}");
    let source = folder.source(&[("path", "a.json"), ("format", "json")]).unwrap();
    assert!(source.is_bounded());
    let split = source.splits().unwrap().remove(0);
    folder.append("a.json", "\n{\"n\":3}\n");
    let mut reader = source.open(&split, 0).unwrap();
    assert_eq!(drain(&*source, &mut *reader, 1 << 20).0, [1, 2]);
    assert!(matches!(reader.read(1 << 20).unwrap(), ReadOutcome::End));
}

#[test]
fn reading_goes_on_at_the_end_of_any_chunk() {
    let folder = Folder::new();
    folder.write("a.json", &json_lines(0..3000));
    folder
        .write("a.csv", &format!("x,n\n{}", (0..3000).map(|n| format!("\"a\n\",{n}\n")).collect::<String>()));
    for options in [
        &[("path", "a.json"), ("format", "json")][..],
        &[("path", "a.csv"), ("format", "csv"), ("header", "true")],
    ] {
        let source = folder.source(options).unwrap();
        let split = source.splits().unwrap().remove(0);
        let mut reader = source.open(&split, 0).unwrap();
        let mut done = 0;
        while let ReadOutcome::Chunk(chunk) = reader.read(5000).unwrap() {
            assert_eq!(chunk.start, done);
            done = chunk.end;
            let rows = source.decoder(&[0]).unwrap().decode(&chunk).unwrap().rows;
            let last = rows.column(0).as_primitive::<Int64Type>().values().last().copied().unwrap();
            let (rest, errors) = drain(&*source, &mut *source.open(&split, done).unwrap(), 1 << 20);
            assert_eq!(rest, (last + 1..3000).collect::<Vec<_>>());
            assert!(errors.is_empty());
        }
        assert_eq!(Some(done), split.end);
    }
}

#[test]
fn a_followed_file_gives_a_line_once_it_is_whole() {
    let folder = Folder::new();
    folder.write("a.json", "{\"n\":1}\n{\"n\"");
    let source = folder.source(&[("path", "*.json"), ("format", "json"), ("follow", "true")]).unwrap();
    assert!(!source.is_bounded());
    let split = source.splits().unwrap().remove(0);
    // How far it reaches now, for FLUSH; nothing that a reader of the live file stops at.
    assert_eq!(split.end, Some(12));
    let split = Split { end: None, ..split };
    let mut reader = source.open(&split, 0).unwrap();
    assert_eq!(drain(&*source, &mut *reader, 1 << 20).0, [1]);
    assert!(matches!(reader.read(1 << 20).unwrap(), ReadOutcome::Pending));
    folder.append("a.json", ":2}\n{");
    assert_eq!(drain(&*source, &mut *reader, 1 << 20).0, [2]);
    folder.write("b.json", "");
    assert_eq!(source.splits().unwrap().len(), 2);
    // A backfill reads up to where the shared reader is.
    let mut reader = source.open(&Split { end: Some(8), ..split }, 0).unwrap();
    assert_eq!(drain(&*source, &mut *reader, 1 << 20).0, [1]);
    assert!(matches!(reader.read(1 << 20).unwrap(), ReadOutcome::End));
}

#[test]
fn a_followed_file_may_not_shrink_be_replaced_or_vanish() {
    let folder = Folder::new();
    folder.write("a.json", "{\"n\":1}\n");
    let source = folder.source(&[("path", "a.json"), ("format", "json"), ("follow", "true")]).unwrap();
    let split = Split { end: None, ..source.splits().unwrap().remove(0) };
    let message = |reader: &mut dyn SplitReader| {
        let error = reader.read(1 << 20).unwrap_err().to_string();
        error.rsplit(": ").next().unwrap().to_owned()
    };
    let mut reader = source.open(&split, 0).unwrap();
    drain(&*source, &mut *reader, 1 << 20);
    folder.write("b.json", "{\"n\":1}\n{\"n\":2}\n");
    fs::rename(folder.0.path().join("b.json"), folder.0.path().join("a.json")).unwrap();
    assert_eq!(message(&mut *reader), "the file has been replaced while it is read");
    let mut reader = source.open(&split, 16).unwrap();
    folder.write("a.json", "{}\n");
    assert_eq!(message(&mut *reader), "the file has become shorter while it is read");
    let mut reader = source.open(&split, 3).unwrap();
    fs::remove_file(folder.0.path().join("a.json")).unwrap();
    assert_eq!(message(&mut *reader), "the file has been removed while it is read");
}

#[test]
fn a_record_longer_than_the_limit_is_one_error() {
    let folder = Folder::new();
    let long = "x".repeat(RECORD_BYTES_MAX + 5_000_000);
    folder.write("a.json", &format!("{{\"n\":1}}\n{{\"n\":\"{long}\"}}\n{{\"n\":2}}\n{long}"));
    let source = folder.source(&[("path", "a.json"), ("format", "json")]).unwrap();
    let (numbers, errors) = drain_all(&*source, 1 << 20);
    assert_eq!(numbers, [1, 2]);
    let second = 8 + (6 + long.len() + 3) + 8;
    assert_eq!(
        errors,
        ["8: record is longer than 16 MiB".to_owned(), format!("{second}: record is longer than 16 MiB")]
    );
}

#[test]
fn a_long_record_below_the_limit_is_read_whole() {
    let folder = Folder::new();
    let blanks = " ".repeat(3_000_000);
    folder.write("a.json", &format!("{{\"n\":1}}\n{{{blanks}\"n\":2}}\n{{\"n\":3}}\n"));
    let source = folder.source(&[("path", "a.json"), ("format", "json")]).unwrap();
    assert_eq!(drain_all(&*source, 1000), (vec![1, 2, 3], vec![]));
}

#[test]
fn folders_and_patterns_are_read_in_the_order_of_names() {
    let folder = Folder::new();
    fs::create_dir(folder.0.path().join("d")).unwrap();
    folder.write("d/2.json", "{\"n\":2}\n");
    folder.write("d/1.json", "{\"n\":1}\n");
    folder.write("d/.hidden", "{\"n\":9}\n");
    folder.write("3.txt", "{\"n\":3}\n");
    for (path, expected) in [
        ("d", &[1, 2][..]),
        ("d/", &[1, 2]),
        ("d/[12].json", &[1, 2]),
        ("**/*.json", &[1, 2]),
        ("*/2*", &[2]),
        ("?.txt", &[3]),
    ] {
        let source = folder.source(&[("path", path), ("format", "json")]).unwrap();
        assert_eq!(drain_all(&*source, 1 << 20).0, expected, "{path}");
    }
}

#[test]
fn a_match_that_leads_outside_is_refused() {
    let outside = Folder::new();
    outside.write("secret.json", "{}\n");
    let folder = Folder::new();
    folder.write("a.json", "{}\n");
    let followed = folder.source(&[("path", "*.json"), ("format", "json"), ("follow", "true")]).unwrap();
    symlink(outside.0.path().join("secret.json"), folder.0.path().join("b.json")).unwrap();
    assert!(folder.source(&[("path", "*.json"), ("format", "json")]).unwrap().splits().is_err());
    assert!(followed.splits().unwrap_err().to_string().ends_with("b.json: outside of the allowed folders"));
    let split = Split { name: folder.0.path().join("b.json").display().to_string(), start: 0, end: None };
    assert!(followed.open(&split, 0).is_err());
}

#[test]
fn a_definition_that_can_never_work_is_refused() {
    let folder = Folder::new();
    folder.write("a.json", "");
    for (options, message) in [
        (&[("path", "a.json")][..], "connector \"file\" needs the option \"format\""),
        (
            &[("path", "a.json"), ("format", "xml")],
            "invalid value \"xml\" of option \"format\": expected 'json' or 'csv'",
        ),
        (
            &[("path", "a.json"), ("format", "json"), ("header", "true")],
            "invalid value \"true\" of option \"header\": only format 'csv' has this option",
        ),
        (
            &[("path", "a.json"), ("format", "json"), ("pth", "x")],
            "unknown option \"pth\" of connector \"file\"",
        ),
        (
            &[("path", "../a.json"), ("format", "json")],
            "path \"../a.json\" is outside of the allowed folders",
        ),
        (&[("path", "../*.json"), ("format", "json")], "path \"..\" is outside of the allowed folders"),
        (
            &[("path", "a.json"), ("format", "csv"), ("quote", ",")],
            "invalid value \",\" of option \"quote\": the delimiter and the quote must be different",
        ),
    ] {
        assert_eq!(folder.source(options).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_bounded_source_does_not_start_without_its_files_or_columns() {
    let folder = Folder::new();
    folder.write("a.csv", "m,o\n");
    let csv = [("format", "csv"), ("header", "true")];
    for (path, message) in
        [("b.csv", "no such file"), ("b*.csv", "no such file"), ("a.csv", "the header has no column \"n\"")]
    {
        let source = folder.source(&[&csv[..], &[("path", path)]].concat()).unwrap();
        assert_eq!(source.splits().unwrap_err().to_string().rsplit(": ").next(), Some(message));
    }
    let followed = folder.source(&[&csv[..], &[("path", "b.csv"), ("follow", "true")]].concat()).unwrap();
    assert_eq!(followed.splits().unwrap(), []);
}
