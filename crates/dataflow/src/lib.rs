//! The vocabulary of a running job: rows in motion, watermarks, operators, job graphs, connectors.
//!
//! Nothing here runs anything. `operators` and `connectors` implement these traits, `planner`
//! builds [`JobGraph`] values out of them, and `runtime` executes the graphs without being able
//! to name a single operator.

#![warn(missing_docs)]

mod batch;
mod connector;
mod error;
mod graph;
mod operator;
mod watermark;

pub use batch::{ChangeBatch, ChangelogKind, RowOrigin, row_bytes};
pub use connector::{
    Chunk, Connector, ConnectorContext, ConnectorRegistry, DecodeError, Decoded, Decoder, FormatOptions,
    OptionError, OptionSpec, Options, ReadOutcome, Sink, SinkDefinition, SinkWriter, Source,
    SourceDefinition, Split, SplitReader,
};
pub use error::{DataflowError, Result, RowError};
pub use graph::{
    Exchange, JobGraph, JobId, JobKind, JobVertex, OperatorId, OperatorNode, SideTables, SourceSpec,
    StateTable, VertexId, VertexInput, WatermarkSpec,
};
pub use operator::{
    BuildContext, EpochEnd, Found, LateRows, MemoryUse, Operator, OperatorContext, OperatorSpec, Progress,
    SideOutput, Start, StateAccess, StateTableSpec, ViewTableSpec,
};
pub use watermark::Watermark;

/// Sinks name it in `prepare` and `commit`.
pub use state::Epoch;
/// Graphs name tables; whoever builds graphs needs no other word of `state`.
pub use state::{TableId, TableSchema};
