//! A relation in FROM: the output of another job.

use std::sync::Arc;

use dataflow::VertexInput;
use datafusion::logical_expr::TableScan;
use sql::SqlErrorKind;

use super::{Flow, Head, Lowering, Result};
use crate::bind::RelationSource;

impl Lowering<'_> {
    pub(super) fn scan(&mut self, scan: &TableScan) -> Result<Flow> {
        let Some(source) = scan.source.downcast_ref::<RelationSource>() else {
            let name = scan.table_name.table();
            let what = format!("the table function {name} in a materialized view");
            return Err(SqlErrorKind::unsupported(what).into());
        };
        let upstream = self.session.upstream(&source.relation)?;
        let all: Vec<usize> = (0..upstream.schema.fields().len()).collect();
        let read = scan.projection.as_ref().unwrap_or(&all);
        let sources: Vec<Option<usize>> = read.iter().copied().map(Some).collect();
        let mut flow = Flow {
            head: Head::Input(VertexInput::Relation {
                job: upstream.job,
                name: source.relation.name.clone(),
                schema: Arc::clone(&upstream.schema),
                columns: read.clone(),
                needs_origin: false,
                stored: upstream.stored.clone(),
            }),
            rows: Arc::clone(&upstream.schema),
            columns: read.clone(),
            stream: upstream.stream.project(&sources),
        };
        // The rows of a relation are on any subtask: a new follower begins with a scan by one.
        flow.stream.distribution = None;
        for predicate in &scan.filters {
            flow = self.filter_by(flow, predicate, &scan.projected_schema)?;
        }
        Ok(flow)
    }
}
