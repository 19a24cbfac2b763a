//! One planning call: the DataFusion state it binds with, and the relations it has looked into.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use arrow::datatypes::SchemaRef;
use catalog::{Relation, RelationId, RelationKind};
use dataflow::{ChangelogKind, JobId, ViewTableSpec};
use datafusion::execution::SessionState;
use sql::statement::{CreateSource, CreateTable};
use sql::{SqlError, SqlErrorKind, Statement};

use crate::api::PlanContext;
use crate::columns::relation_schema;
use crate::properties::Stream;
use crate::relation::{self, TableLayout};
use crate::state::{Mode, session_state};

/// What one planning call works with.
pub(crate) struct PlanSession<'a> {
    pub(crate) ctx: &'a PlanContext,
    pub(crate) state: SessionState,
    upstreams: RefCell<BTreeMap<RelationId, Rc<Upstream>>>,
}

/// What a relation sends its followers.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) job: JobId,
    /// Columns of the rows: the relation's visible columns.
    pub(crate) schema: SchemaRef,
    /// How a new follower gets what was there before it.
    pub(crate) stored: Option<ViewTableSpec>,
    pub(crate) stream: Stream,
    /// Whether it only passes rows of sources on, under the key they came with. A view over such
    /// a view reads the sources itself: their rows still know their place and watermark.
    pub(crate) passes_sources_on: bool,
}

impl<'a> PlanSession<'a> {
    pub(crate) fn new(ctx: &'a PlanContext, mode: Mode) -> Self {
        Self { ctx, state: session_state(mode), upstreams: RefCell::default() }
    }

    /// What a relation that has a job sends. Its plan is made anew from its definition, which
    /// gives what it gave when it was created.
    pub(crate) fn upstream(&self, relation: &Relation) -> Result<Rc<Upstream>, SqlError> {
        if let Some(known) = self.upstreams.borrow().get(&relation.id) {
            return Ok(Rc::clone(known));
        }
        let upstream = Rc::new(self.plan_upstream(relation)?);
        self.upstreams.borrow_mut().insert(relation.id, Rc::clone(&upstream));
        Ok(upstream)
    }

    fn plan_upstream(&self, relation: &Relation) -> Result<Upstream, SqlError> {
        let job = JobId(relation.id.0);
        let schema = relation_schema(&relation.columns);
        match definition(relation)? {
            Statement::CreateSource(source) => Ok(Upstream {
                job,
                schema,
                stored: None,
                stream: source_stream(relation, &source),
                passes_sources_on: false,
            }),
            Statement::CreateTable(table) => {
                let layout = TableLayout::of(relation)?;
                Ok(Upstream {
                    job,
                    schema,
                    stored: Some(layout.view_table(relation.first_table)),
                    stream: table_stream(relation, &table, &layout),
                    passes_sources_on: false,
                })
            }
            Statement::CreateMaterializedView(view) => {
                let planned = relation::plan_view_graph(self, &view, relation.first_table)?;
                Ok(Upstream {
                    job,
                    schema,
                    stored: planned.graph.view_table(),
                    // Rows that have been stored no longer know where they came from.
                    stream: Stream { has_origin: false, ..planned.stream.clone() },
                    passes_sources_on: planned.passes_sources_on,
                })
            }
            other => Err(SqlErrorKind::internal(format!("{} has no job: {other:?}", relation.name)).into()),
        }
    }
}

/// A stored definition as a statement.
pub(crate) fn definition(relation: &Relation) -> Result<Statement, SqlError> {
    let damaged = |reason: &str| {
        let message = format!("the definition of relation \"{}\" cannot be read: {reason}", relation.name);
        SqlError::from(SqlErrorKind::DataCorrupted { message })
    };
    let mut parsed = sql::parse(&relation.definition).map_err(|error| damaged(&error.to_string()))?;
    match (parsed.pop(), parsed.is_empty()) {
        (Some(parsed), true) => Ok(parsed.statement),
        _ => Err(damaged("it is not one statement")),
    }
}

fn source_stream(relation: &Relation, source: &CreateSource) -> Stream {
    let watermark = source
        .watermark
        .as_ref()
        .and_then(|watermark| relation.columns.iter().position(|column| column.name == watermark.column));
    let without = || format!("source \"{}\" declares no WATERMARK", relation.name);
    Stream {
        has_origin: true,
        event_time: watermark.into_iter().collect(),
        no_watermark: watermark.is_none().then(without),
        ..Stream::unknown(ChangelogKind::Append, String::new())
    }
}

fn table_stream(relation: &Relation, _table: &CreateTable, layout: &TableLayout) -> Stream {
    let reason = format!("table \"{}\" can change, so it has no watermark", relation.name);
    Stream { key: layout.visible_key(), ..Stream::unknown(ChangelogKind::Retract, reason) }
}

/// What a relation is called where it cannot be read.
pub(crate) fn refuse_reading(relation: &Relation) -> Option<SqlErrorKind> {
    match relation.kind {
        RelationKind::Sink => {
            Some(SqlErrorKind::WrongObjectType { name: relation.name.clone(), expected: "a table or view" })
        }
        RelationKind::Source { .. }
        | RelationKind::Table { .. }
        | RelationKind::View
        | RelationKind::MaterializedView
        | RelationKind::Side { .. } => None,
    }
}
