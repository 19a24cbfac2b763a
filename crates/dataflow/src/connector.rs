//! What a connector implements: sources that can be read again from a position, and sinks.
//!
//! A source is divided into *splits* (a file, a partition, a generator stream), each one ordered
//! sequence of records addressed by an `i64` position. Reading is cut in two so that one large
//! split can keep all cores busy: a [`SplitReader`] cuts the split into [`Chunk`]s in order
//! (cheap: I/O and looking for record ends), and a [`Decoder`] turns a chunk into rows (expensive,
//! runs on any thread, several at a time).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;

use crate::{ChangeBatch, ChangelogKind, Result};

/// The `WITH (…)` options of one statement: lower-case names to text values.
pub type Options = BTreeMap<String, String>;

/// One option a connector or format knows.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Canonical name, lower case, e.g. `path`.
    pub name: &'static str,
    /// Other spellings that mean the same (Flink, RisingWave, Arroyo).
    pub aliases: &'static [&'static str],
    /// One line for `SHOW` and the docs.
    pub doc: &'static str,
    /// Whether it must be given.
    pub required: bool,
}

/// Why the options of a statement were refused; `sql` gives these their SQLSTATE.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// No such option; the hint names the nearest known one.
    #[error("unknown option \"{name}\" of connector \"{connector}\"")]
    Unknown {
        /// As the user wrote it.
        name: String,
        /// The connector or format.
        connector: String,
        /// The nearest known name, if one is near.
        nearest: Option<String>,
    },
    /// A required option is missing.
    #[error("connector \"{connector}\" needs the option \"{name}\"")]
    Missing {
        /// The option.
        name: &'static str,
        /// The connector.
        connector: String,
    },
    /// An option has a value that cannot be used.
    #[error("invalid value \"{value}\" of option \"{name}\": {reason}")]
    Value {
        /// The option.
        name: String,
        /// As the user wrote it.
        value: String,
        /// What would be right.
        reason: String,
    },
    /// A path outside of the allowed folders.
    #[error("path \"{path}\" is outside of the allowed folders")]
    PathNotAllowed {
        /// As the user wrote it.
        path: String,
    },
    /// The connector cannot be used in this role.
    #[error("connector \"{connector}\" cannot be used as a {role}")]
    Role {
        /// The connector.
        connector: String,
        /// `source` or `sink`.
        role: &'static str,
    },
    /// Something else about the definition, in the user's words.
    #[error("{0}")]
    Other(String),
}

/// How records are encoded: `FORMAT PLAIN ENCODE JSON` or `format = 'json'`, with its options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormatOptions {
    /// `plain` (the default), later `upsert`, `debezium`.
    pub format: Option<String>,
    /// `json`, `csv`.
    pub encode: Option<String>,
    /// Options in the parentheses behind ENCODE.
    pub options: Options,
}

/// What the server allows connectors to reach.
#[derive(Debug, Clone, Default)]
pub struct ConnectorContext {
    /// Folders that `path` options may point into; the first resolves relative paths.
    pub allowed_paths: Vec<PathBuf>,
}

/// A source as the user defined it.
#[derive(Debug, Clone)]
pub struct SourceDefinition {
    /// Name of the relation.
    pub name: String,
    /// Declared columns.
    pub schema: SchemaRef,
    /// `WITH` options without `connector` and without those the engine takes itself
    /// (`idle_timeout`, `idle_close`, `late`).
    pub options: Options,
    /// The record format.
    pub format: FormatOptions,
}

/// A sink as the user defined it.
#[derive(Debug, Clone)]
pub struct SinkDefinition {
    /// Name of the sink.
    pub name: String,
    /// Columns it gets.
    pub schema: SchemaRef,
    /// Kind of changes it gets.
    pub kind: ChangelogKind,
    /// `WITH` options without `connector`.
    pub options: Options,
    /// The record format.
    pub format: FormatOptions,
}

/// One kind of outside system.
pub trait Connector: Send + Sync {
    /// The name in `WITH (connector = '…')`.
    fn name(&self) -> &'static str;

    /// Every option it knows, for both roles.
    fn options(&self) -> &'static [OptionSpec];

    /// Checks a source definition and prepares it. Touches the outside only as far as needed to
    /// refuse what can never work.
    fn source(
        &self,
        definition: &SourceDefinition,
        ctx: &ConnectorContext,
    ) -> Result<Arc<dyn Source>, OptionError> {
        let _ = (definition, ctx);
        Err(OptionError::Role { connector: self.name().to_owned(), role: "source" })
    }

    /// Checks a sink definition and prepares it.
    fn sink(
        &self,
        definition: &SinkDefinition,
        ctx: &ConnectorContext,
    ) -> Result<Arc<dyn Sink>, OptionError> {
        let _ = (definition, ctx);
        Err(OptionError::Role { connector: self.name().to_owned(), role: "sink" })
    }
}

/// The connectors a server knows, by name.
#[derive(Clone, Default)]
pub struct ConnectorRegistry {
    connectors: BTreeMap<&'static str, Arc<dyn Connector>>,
}

impl ConnectorRegistry {
    /// Adds a connector under its name.
    pub fn register(&mut self, connector: Arc<dyn Connector>) {
        self.connectors.insert(connector.name(), connector);
    }

    /// The connector with that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Connector>> {
        self.connectors.get(name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.connectors.keys().copied()
    }
}

impl Debug for ConnectorRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// One ordered sequence of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Its name for ever, e.g. the path of a file.
    pub name: String,
    /// First position to read.
    pub start: i64,
    /// Where it ends, if that is known: pinned when a bounded source starts, so that every later
    /// reader sees the same input. An unbounded source that can say how far a split reaches now
    /// (the length of a growing file) says so in [`Source::splits`], for FLUSH.
    ///
    /// # Contract
    /// A reader opened with an end stops exactly there with [`ReadOutcome::End`], also in an
    /// unbounded source: a backfill reads up to where the shared reader is.
    pub end: Option<i64>,
}

/// A source that a user has defined.
pub trait Source: Debug + Send + Sync {
    /// Whether it ends. The splits of a bounded source are listed once and pinned.
    fn is_bounded(&self) -> bool;

    /// Lists the splits there are now, in a deterministic order. Called at the start and, for an
    /// unbounded source, again and again to find new ones.
    fn splits(&self) -> Result<Vec<Split>>;

    /// Opens a split at a position (`split.start` or the end of an earlier chunk).
    fn open(&self, split: &Split, position: i64) -> Result<Box<dyn SplitReader>>;

    /// Makes a decoder. Columns that are not in `columns` may be left NULL in what it returns.
    fn decoder(&self, columns: &[usize]) -> Result<Arc<dyn Decoder>>;
}

/// Reads one split in order. Used by one thread at a time.
pub trait SplitReader: Send {
    /// The next chunk of about `bytes_max` bytes. Never blocks for new data: a split that has
    /// nothing now says [`ReadOutcome::Pending`].
    fn read(&mut self, bytes_max: usize) -> Result<ReadOutcome>;
}

/// What a read gave.
#[derive(Debug)]
pub enum ReadOutcome {
    /// Whole records.
    Chunk(Chunk),
    /// Nothing now; perhaps later.
    Pending,
    /// Nothing now or ever.
    End,
}

/// Whole records of one split, still encoded.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Position of the first record.
    pub start: i64,
    /// Position behind the last record: where to go on after this chunk.
    pub end: i64,
    /// The encoded records; empty for generators, which make records from the positions.
    pub bytes: Bytes,
}

/// Turns chunks into rows. Used by several threads at once.
pub trait Decoder: Debug + Send + Sync {
    /// Decodes all records of a chunk. A record that cannot be decoded becomes a
    /// [`DecodeError`]; it never fails the chunk.
    fn decode(&self, chunk: &Chunk) -> Result<Decoded>;
}

/// The rows of a chunk.
#[derive(Debug)]
pub struct Decoded {
    /// In the order of the split, with the schema of the source.
    pub rows: RecordBatch,
    /// Position of each row's record, ascending.
    pub positions: Int64Array,
    /// Records that could not be decoded.
    pub errors: Vec<DecodeError>,
}

/// A record that could not be decoded, on its way to `"<source>$errors"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// Position of the record.
    pub position: i64,
    /// SQLSTATE, e.g. `22P02`.
    pub sqlstate: &'static str,
    /// What is wrong, with the column where one is at fault.
    pub message: String,
    /// The record as it came; cut at 64 KiB.
    pub raw: Bytes,
}

/// A sink that a user has defined.
pub trait Sink: Debug + Send + Sync {
    /// Opens a writer for one subtask.
    fn open(&self, subtask: usize) -> Result<Box<dyn SinkWriter>>;
}

/// Writes one subtask's part of a sink.
///
/// `prepare(epoch)` makes everything written so far ready, `commit(epoch)` makes it visible after
/// the checkpoint of that epoch is durable and may be called again after a restart.
pub trait SinkWriter: Send {
    /// Takes rows; visible outside only after `commit`, where the target allows that.
    fn write(&mut self, batch: &ChangeBatch) -> Result<()>;
    /// Makes everything written so far ready to be committed with `epoch`.
    fn prepare(&mut self, epoch: state::Epoch) -> Result<()>;
    /// Makes what was prepared up to `epoch` visible. Idempotent.
    fn commit(&mut self, epoch: state::Epoch) -> Result<()>;
}
