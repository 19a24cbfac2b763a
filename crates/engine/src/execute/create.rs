//! CREATE SOURCE, TABLE, VIEW, MATERIALIZED VIEW and SINK: planned, then applied at a barrier.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use catalog::{Catalog, Column, Relation, RelationId, RelationKind, SideKind};
use dataflow::{JobKind, SideTables};
use planner::{PlanContext, PlannedRelation, plan_relation};
use runtime::Change;
use sql::statement::QualifiedName;
use sql::{SqlError, SqlErrorKind, Statement};

use crate::engine::Shared;
use crate::error::from_catalog;
use crate::live::Live;
use crate::{Output, Session};

pub(super) async fn run(session: &mut Session, statement: &Statement) -> Result<Output, SqlError> {
    let Some(heading) = Heading::of(statement) else {
        return Err(SqlErrorKind::internal("not a CREATE statement").into());
    };
    super::refuse_in_block(session, heading.tag)?;
    let tag = heading.tag;
    let creation = Creation {
        shared: Arc::clone(&session.shared),
        statement: statement.clone(),
        ctx: session.plan_context(&session.live()),
        owner: session.user.clone(),
    };
    // Once it has begun, a change is carried out whether or not the client waits for it: what the
    // runtime runs and what the catalog says must not part.
    let notices = session.shared.workers.finish(creation.run()).await?;
    Ok(notices.into_iter().fold(Output::tag(tag), Output::notice))
}

struct Creation {
    shared: Arc<Shared>,
    statement: Statement,
    ctx: PlanContext,
    owner: String,
}

impl Creation {
    /// Returns what to tell the user.
    async fn run(mut self) -> Result<Vec<String>, SqlError> {
        let shared = Arc::clone(&self.shared);
        let _turn = shared.ddl.lock().await;
        let live = shared.live();
        self.ctx.catalog = Arc::clone(&live.catalog);
        let Some(heading) = Heading::of(&self.statement) else { return Ok(Vec::new()) };
        let schema = heading.name.schema.clone().unwrap_or_else(|| Catalog::PUBLIC.to_owned());
        if let Some(notice) = heading.exists(&live, &schema)? {
            return Ok(vec![notice]);
        }
        let mut catalog = (*live.catalog).clone();
        let id = catalog.allocate_relation();
        let first_table = catalog.allocate_tables(0);
        let planned = plan_relation(&self.statement, id, first_table, &self.ctx)?;
        catalog.allocate_tables(planned.table_count);
        let relation = self.relation(id, schema, heading.name.name.clone(), first_table, &planned);
        let sides = side_relations(&relation, &planned, &mut catalog);
        let notices = planned.notices.clone();

        let mut relations = vec![relation.clone()];
        relations.extend(sides.iter().cloned());
        let meta = catalog.create(relations).map_err(from_catalog)?;
        let mut next = (*live).clone();
        next.catalog = Arc::new(catalog);
        next.insert(id, &self.statement, planned);
        for side in &sides {
            if let RelationKind::Side { parent, kind } = side.kind {
                next.insert_side(side.id, parent, kind);
            }
        }
        let change = Change { add: next.job(&relation).into_iter().collect(), meta, ..Change::default() };
        if let Err(error) = shared.apply(change, next.clone()).await {
            undo(&shared, next, &relation).await;
            return Err(error);
        }
        tracing::info!(relation = %relation.description(), id = id.0, "created");
        Ok(notices)
    }

    fn relation(
        &self,
        id: RelationId,
        schema: String,
        name: String,
        first_table: u32,
        planned: &PlannedRelation,
    ) -> Relation {
        Relation {
            id,
            schema,
            name,
            kind: planned.kind.clone(),
            columns: planned.columns.clone(),
            definition: planned.definition.clone(),
            settings: self.ctx.settings.clone(),
            dependencies: planned.dependencies.clone(),
            first_table,
            table_count: planned.table_count,
            graph_hash: planned.graph_hash,
            owner: self.owner.clone(),
        }
    }
}

/// Takes a relation away whose job has failed before it had caught up: the change that made it may
/// be durable already. Its numbers stay used.
async fn undo(shared: &Shared, mut live: Live, relation: &Relation) {
    let mut catalog = (*live.catalog).clone();
    let undone = match catalog.drop_relations(&[relation.id], false) {
        Ok((dropped, meta)) => {
            let change = super::drop::change(&dropped, &live, meta);
            live.catalog = Arc::new(catalog);
            dropped.iter().for_each(|relation| live.remove(relation.id));
            shared.apply(change, live).await
        }
        Err(error) => Err(from_catalog(error)),
    };
    if let Err(error) = undone {
        tracing::error!(relation = %relation.description(), %error, "a failed CREATE could not be undone");
    }
}

/// What every CREATE statement begins with.
struct Heading<'a> {
    tag: &'static str,
    name: &'a QualifiedName,
    if_not_exists: bool,
}

impl<'a> Heading<'a> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other statement creates nothing")]
    fn of(statement: &'a Statement) -> Option<Self> {
        Some(match statement {
            Statement::CreateSource(create) => {
                Self { tag: "CREATE SOURCE", name: &create.name, if_not_exists: create.if_not_exists }
            }
            Statement::CreateTable(create) => {
                Self { tag: "CREATE TABLE", name: &create.name, if_not_exists: create.if_not_exists }
            }
            Statement::CreateView(create) => {
                Self { tag: "CREATE VIEW", name: &create.name, if_not_exists: create.if_not_exists }
            }
            Statement::CreateMaterializedView(create) => Self {
                tag: "CREATE MATERIALIZED VIEW",
                name: &create.name,
                if_not_exists: create.if_not_exists,
            },
            Statement::CreateSink(create) => {
                Self { tag: "CREATE SINK", name: &create.name, if_not_exists: create.if_not_exists }
            }
            _ => return None,
        })
    }

    /// Whether the name is taken; the notice of IF NOT EXISTS.
    fn exists(&self, live: &Live, schema: &str) -> Result<Option<String>, SqlError> {
        if !live.catalog.schemas().contains(&schema) {
            return Err(SqlErrorKind::UndefinedSchema { name: schema.to_owned() }.at(self.name.position));
        }
        let name = &self.name.name;
        // Names are found without case, but two that differ in case may exist side by side.
        let taken = live.catalog.relation(Some(schema), name).is_some_and(|relation| relation.name == *name);
        match (taken, self.if_not_exists) {
            (false, _) => Ok(None),
            (true, true) => Ok(Some(format!("relation \"{name}\" already exists, skipping"))),
            (true, false) => {
                Err(SqlErrorKind::DuplicateRelation { name: name.clone() }.at(self.name.position))
            }
        }
    }
}

/// `"<name>$late"` and `"<name>$errors"`, where the job has them.
fn side_relations(relation: &Relation, planned: &PlannedRelation, catalog: &mut Catalog) -> Vec<Relation> {
    let Some(graph) = &planned.graph else { return Vec::new() };
    let mut kinds = Vec::new();
    if graph.side_tables.late.is_some() {
        kinds.push((SideKind::Late, "late", Arc::clone(&SideTables::late_schema().columns)));
    }
    // The rows of a table are checked before they get in.
    if planned.job != JobKind::Table {
        kinds.push((SideKind::Errors, "errors", Arc::clone(&SideTables::errors_schema().columns)));
    }
    kinds
        .into_iter()
        .map(|(kind, suffix, columns)| Relation {
            id: catalog.allocate_relation(),
            name: format!("{}${suffix}", relation.name),
            kind: RelationKind::Side { parent: relation.id, kind },
            columns: visible_columns(&columns),
            definition: String::new(),
            dependencies: Vec::new(),
            first_table: 0,
            table_count: 0,
            graph_hash: 0,
            ..relation.clone()
        })
        .collect()
}

fn visible_columns(schema: &SchemaRef) -> Vec<Column> {
    let fields = schema.fields().iter().filter(|field| !field.name().starts_with('$'));
    fields
        .map(|field| Column {
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            nullable: field.is_nullable(),
            type_name: None,
            default: None,
        })
        .collect()
}
