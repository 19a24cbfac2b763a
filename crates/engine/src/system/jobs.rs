//! `highwater.jobs`: what runs, how far it is and what it holds. `SHOW JOBS` is a query over it.

use dataflow::{JobKind, Watermark};
use runtime::{JobState, JobStatus};

use super::ColumnType::{Int8, Text, Timestamp};
use super::{Datum, Row, SystemContext, SystemTable};

pub(crate) const JOBS: SystemTable = SystemTable {
    name: "jobs",
    columns: &[
        ("id", Int8),
        ("name", Text),
        ("kind", Text),
        ("state", Text),
        ("watermark", Timestamp),
        ("rows_in", Int8),
        ("rows_out", Int8),
        ("late_rows", Int8),
        ("error_rows", Int8),
        ("memory_bytes", Int8),
        ("error", Text),
    ],
    rows: |ctx: &SystemContext| ctx.jobs.iter().map(row).collect(),
};

fn row(job: &JobStatus) -> Row {
    let kind = match job.kind {
        JobKind::Source => "source",
        JobKind::Table => "table",
        JobKind::View => "materialized view",
        JobKind::Sink => "sink",
    };
    let state = match job.state {
        JobState::Backfilling => "BACKFILLING",
        JobState::Running => "RUNNING",
        JobState::Failed => "FAILED",
        JobState::Finished => "FINISHED",
    };
    // The infinities are no timestamps.
    let watermark = match job.watermark {
        Watermark::MIN | Watermark::MAX => Datum::Null,
        Watermark(at) => Datum::Int(at),
    };
    vec![
        ("id", job.id.0.into()),
        ("name", job.name.clone().into()),
        ("kind", kind.into()),
        ("state", state.into()),
        ("watermark", watermark),
        ("rows_in", job.rows_in.into()),
        ("rows_out", job.rows_out.into()),
        ("late_rows", job.late_rows.into()),
        ("error_rows", job.error_rows.into()),
        ("memory_bytes", job.memory.into()),
        ("error", job.error.clone().into()),
    ]
}
