//! How records are encoded: the formats that connectors carrying bytes share.
//!
//! A format frames records (where one ends, for the reader) and decodes them (what is in one).
//! Both work on whole chunks, and a record that is wrong becomes a `DecodeError` and no more.

mod column;
mod csv;
mod datetime;
mod json;
mod names;
mod rows;
mod value;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dataflow::{Decoder, FormatOptions, OptionError, OptionSpec, Result};

use crate::options::{CheckedOptions, optional};

pub(crate) use csv::Framing as CsvFraming;
pub(crate) use datetime::{parse_date, parse_time, parse_timestamp};
pub(crate) use value::parse_decimal;

/// The longest record that is read; a longer one becomes a `DecodeError`.
pub(crate) const RECORD_BYTES_MAX: usize = 16 << 20;

/// What some programs write at the beginning of a UTF-8 file.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// How much of a bad record is kept.
pub(crate) const RAW_BYTES_MAX: usize = 64 << 10;

pub(crate) const FORMAT: OptionSpec =
    optional("format", &["encode"], "how records are encoded: 'json' (one object a line) or 'csv'");
pub(crate) const TIMESTAMP_UNIT: OptionSpec = optional(
    "timestamp_unit",
    &["timestamp.unit"],
    "what numbers in timestamp columns count: 's', 'ms', 'us' or 'ns'",
);
pub(crate) const HEADER: OptionSpec =
    optional("header", &["csv.header"], "csv: whether the first line of a file names the columns");
pub(crate) const DELIMITER: OptionSpec =
    optional("delimiter", &["csv.delimiter", "csv.field-delimiter"], "csv: between fields, default ','");
pub(crate) const QUOTE: OptionSpec =
    optional("quote", &["csv.quote", "csv.quote-character"], "csv: around fields, default '\"'");
pub(crate) const NULL: OptionSpec = optional(
    "null",
    &["csv.null", "csv.null-literal"],
    "csv: the unquoted text that means NULL, default empty",
);

/// A format with its options, checked.
#[derive(Debug, Clone)]
pub(crate) enum RecordFormat {
    Json(json::JsonFormat),
    Csv(csv::CsvFormat),
}

impl RecordFormat {
    /// Reads the format of a definition. `options` are those of `WITH` and of `ENCODE … (…)`.
    pub(crate) fn new(
        format: &FormatOptions,
        options: &CheckedOptions,
        schema: &SchemaRef,
    ) -> Result<Self, OptionError> {
        if let Some(envelope) =
            format.format.as_deref().filter(|envelope| !envelope.eq_ignore_ascii_case("plain"))
        {
            return Err(OptionError::Value {
                name: "format".to_owned(),
                value: envelope.to_owned(),
                reason: "only FORMAT PLAIN is known".to_owned(),
            });
        }
        let encode = format.encode.as_deref().or(options.text(FORMAT.name));
        let encode =
            encode.ok_or_else(|| OptionError::Missing { name: FORMAT.name, connector: "file".to_owned() })?;
        let timestamp_unit = options.one_of(TIMESTAMP_UNIT.name, datetime::EpochUnit::WORDS)?;
        let format = match encode.to_ascii_lowercase().as_str() {
            "json" => {
                refuse_csv_options(options)?;
                Self::Json(json::JsonFormat { timestamp_unit })
            }
            "csv" => Self::Csv(csv::CsvFormat::new(options, timestamp_unit)?),
            _ => {
                return Err(OptionError::Value {
                    name: FORMAT.name.to_owned(),
                    value: encode.to_owned(),
                    reason: "expected 'json' or 'csv'".to_owned(),
                });
            }
        };
        rows::check_types(schema).map_err(OptionError::Other)?;
        Ok(format)
    }

    /// Makes a decoder for rows of `schema` of which only `columns` are needed.
    pub(crate) fn decoder(&self, schema: &SchemaRef, columns: &[usize]) -> Result<Arc<dyn Decoder>> {
        match self {
            Self::Json(format) => format.decoder(schema, columns),
            Self::Csv(format) => format.decoder(schema, columns),
        }
    }

    /// Whether the beginning of a file can be one of this format and schema.
    pub(crate) fn check_beginning(&self, schema: &SchemaRef, beginning: &[u8]) -> Result<(), String> {
        match self {
            Self::Json(_) => Ok(()),
            Self::Csv(format) => format.check_header(schema, beginning),
        }
    }

    /// How the reader finds the ends of records; `None` if every newline is one.
    pub(crate) fn csv_framing(&self) -> Option<CsvFraming> {
        match self {
            Self::Json(_) => None,
            Self::Csv(format) => Some(format.framing()),
        }
    }
}

fn refuse_csv_options(options: &CheckedOptions) -> Result<(), OptionError> {
    for spec in [HEADER, DELIMITER, QUOTE, NULL] {
        if options.text(spec.name).is_some() {
            return Err(options.refuse(spec.name, "only format 'csv' has this option"));
        }
    }
    Ok(())
}
