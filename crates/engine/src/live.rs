//! The catalog together with what planning made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use catalog::{Catalog, Relation, RelationId, RelationKind, SideKind};
use dataflow::{JobGraph, JobId, JobKind, SideTables, SourceSpec, VertexInput, ViewTableSpec};
use planner::PlannedRelation;
use runtime::JobDefinition;
use sql::{SqlError, SqlErrorKind, Statement};
use state::{TableId, TableSchema};

/// Name of the multiplicity column of a multiset table.
const COUNT_COLUMN: &str = "$count";

/// What exists now, as an immutable value: a DDL statement makes a new one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    pub(crate) catalog: Arc<Catalog>,
    relations: BTreeMap<RelationId, Arc<LiveRelation>>,
}

/// What is known of a relation beyond its catalog entry.
#[derive(Debug)]
pub(crate) struct LiveRelation {
    /// The plan it runs by; `None` for a plain view.
    pub(crate) graph: Option<JobGraph>,
    /// Where its rows are, if they are kept.
    pub(crate) stored: Option<Arc<Stored>>,
    /// What it reads, if it is a source.
    pub(crate) source: Option<Arc<SourceSpec>>,
    /// Whether its rows may never change, because a watermark promises so.
    pub(crate) append_only: bool,
    /// Relations whose jobs its content depends on, itself included.
    pub(crate) reads: BTreeSet<RelationId>,
}

/// A table of rows that queries can read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) table: TableId,
    /// Key columns first; hidden columns included.
    pub(crate) schema: Arc<TableSchema>,
    /// For each visible column, which column of the table holds it.
    pub(crate) output: Vec<usize>,
    /// Whether the last column is a multiplicity.
    pub(crate) multiset: bool,
    /// The visible columns.
    pub(crate) visible: SchemaRef,
}

impl Stored {
    fn new(spec: ViewTableSpec, names: impl Iterator<Item = String>) -> Self {
        let columns = spec.schema.columns.fields();
        let multiset = columns.last().is_some_and(|field| field.name() == COUNT_COLUMN);
        let fields: Vec<_> = spec
            .output
            .iter()
            .zip(names)
            .map(|(&column, name)| Arc::new(columns[column].as_ref().clone().with_name(name)))
            .collect();
        let visible = Arc::new(Schema::new(fields));
        Self { table: spec.table, schema: spec.schema, output: spec.output, multiset, visible }
    }

    /// `$late` or `$errors`.
    fn side(table: TableId, schema: Arc<TableSchema>) -> Self {
        let columns = schema.columns.fields();
        let visible =
            columns.len() - usize::from(columns.last().is_some_and(|field| field.name() == COUNT_COLUMN));
        let names: Vec<String> = columns.iter().take(visible).map(|field| field.name().clone()).collect();
        Self::new(ViewTableSpec { table, schema, output: (0..visible).collect() }, names.into_iter())
    }

    /// Whether users never see the key, so that it is ours and unique by construction.
    pub(crate) fn has_hidden_key(&self) -> bool {
        (0..self.schema.key_len).any(|column| !self.output.contains(&column))
    }
}

impl Live {
    /// The empty database.
    pub(crate) fn new(catalog: Catalog) -> Self {
        Self { catalog: Arc::new(catalog), relations: BTreeMap::new() }
    }

    pub(crate) fn relation(&self, id: RelationId) -> Option<&Arc<LiveRelation>> {
        self.relations.get(&id)
    }

    /// Adds what was planned for a relation; what it reads must be there already.
    pub(crate) fn insert(&mut self, id: RelationId, statement: &Statement, planned: PlannedRelation) {
        let append_only = matches!(statement, Statement::CreateTable(table) if table.watermark.is_some());
        let mut reads = BTreeSet::from([id]);
        for dependency in &planned.dependencies {
            if let Some(relation) = self.relations.get(dependency) {
                reads.extend(relation.reads.iter().copied());
            }
        }
        let names = planned.columns.into_iter().map(|column| column.name);
        let stored = planned
            .graph
            .as_ref()
            .and_then(JobGraph::view_table)
            .map(|spec| Arc::new(Stored::new(spec, names)));
        let source = planned.graph.as_ref().and_then(source_of);
        self.relations
            .insert(id, Arc::new(LiveRelation { graph: planned.graph, stored, source, append_only, reads }));
    }

    /// Adds a side relation, whose parent must be there already.
    pub(crate) fn insert_side(&mut self, id: RelationId, parent: RelationId, kind: SideKind) {
        let Some(graph) = self.relations.get(&parent).and_then(|relation| relation.graph.as_ref()) else {
            return;
        };
        let stored = match kind {
            SideKind::Late => {
                graph.side_tables.late.map(|table| Stored::side(table, SideTables::late_schema()))
            }
            SideKind::Errors => Some(Stored::side(graph.side_tables.errors, SideTables::errors_schema())),
        };
        let mut reads = BTreeSet::from([id]);
        reads.extend(self.relations[&parent].reads.iter().copied());
        let side = LiveRelation {
            graph: None,
            stored: stored.map(Arc::new),
            source: None,
            append_only: true,
            reads,
        };
        self.relations.insert(id, Arc::new(side));
    }

    pub(crate) fn remove(&mut self, id: RelationId) {
        self.relations.remove(&id);
    }

    /// Finds a relation a statement names.
    pub(crate) fn find(&self, schema: Option<&str>, name: &str) -> Result<&Relation, SqlError> {
        match self.catalog.relation(schema, name) {
            Some(relation) => Ok(relation),
            None => {
                let name = match schema {
                    Some(schema) => format!("{schema}.{name}"),
                    None => name.to_owned(),
                };
                Err(SqlErrorKind::UndefinedTable { name }.into())
            }
        }
    }

    /// The tables whose rows the given relations depend on, through any number of views.
    pub(crate) fn tables_below(&self, relations: &[RelationId]) -> BTreeSet<RelationId> {
        self.jobs_below(relations)
            .into_iter()
            .filter(|id| {
                self.catalog
                    .relation_by_id(*id)
                    .is_some_and(|relation| matches!(relation.kind, RelationKind::Table { .. }))
            })
            .collect()
    }

    /// Every relation the given ones depend on, themselves included.
    pub(crate) fn jobs_below(&self, relations: &[RelationId]) -> BTreeSet<RelationId> {
        let mut below = BTreeSet::new();
        for id in relations {
            if let Some(relation) = self.relations.get(id) {
                below.extend(relation.reads.iter().copied());
            }
        }
        below
    }

    /// The jobs of all relations, in dependency order.
    pub(crate) fn jobs(&self) -> Vec<JobDefinition> {
        self.catalog.relations().into_iter().filter_map(|relation| self.job(relation)).collect()
    }

    /// The job of a relation; plain views and side relations have none.
    pub(crate) fn job(&self, relation: &Relation) -> Option<JobDefinition> {
        let kind = match relation.kind {
            RelationKind::Source { .. } => JobKind::Source,
            RelationKind::Table { .. } => JobKind::Table,
            RelationKind::MaterializedView => JobKind::View,
            RelationKind::Sink => JobKind::Sink,
            RelationKind::View | RelationKind::Side { .. } => return None,
        };
        let graph = self.relations.get(&relation.id)?.graph.clone()?;
        Some(JobDefinition { id: JobId(relation.id.0), name: relation.name.clone(), kind, graph })
    }
}

fn source_of(graph: &JobGraph) -> Option<Arc<SourceSpec>> {
    graph.vertices.iter().flat_map(|vertex| &vertex.inputs).find_map(|input| match input {
        VertexInput::Source(spec) => Some(Arc::clone(spec)),
        VertexInput::Exchange { .. } | VertexInput::Relation { .. } | VertexInput::Inbox { .. } => None,
    })
}
