//! SHOW: settings, and lists of what exists.

use arrow::datatypes::SchemaRef;
use catalog::{Catalog, Relation, RelationKind};
use sql::statement::{QualifiedName, Show};
use sql::{SqlError, SqlErrorKind};

use crate::settings::canonical_name;
use crate::system::ColumnType::Text;
use crate::system::{JOBS, Row, SystemTable, text_schema};
use crate::{Output, Rows, Session};

const NO_ROWS: fn(&crate::system::SystemContext) -> Vec<Row> = |_| Vec::new();
const ALL: SystemTable = SystemTable {
    name: "settings",
    columns: &[("name", Text), ("setting", Text), ("description", Text)],
    rows: NO_ROWS,
};
const RELATIONS: SystemTable = SystemTable {
    name: "relations",
    columns: &[("schema", Text), ("name", Text), ("owner", Text)],
    rows: NO_ROWS,
};
const SCHEMAS: SystemTable = SystemTable { name: "schemas", columns: &[("name", Text)], rows: NO_ROWS };
const CREATE: SystemTable =
    SystemTable { name: "create", columns: &[("name", Text), ("create_statement", Text)], rows: NO_ROWS };

pub(super) fn schema(show: &Show) -> SchemaRef {
    match show {
        Show::Setting(name) => text_schema(&canonical_name(name)),
        Show::All => ALL.schema(),
        Show::Tables | Show::Views | Show::MaterializedViews | Show::Sources | Show::Sinks => {
            RELATIONS.schema()
        }
        Show::Schemas => SCHEMAS.schema(),
        Show::Jobs => JOBS.schema(),
        Show::Columns(_) => super::describe::schema(),
        Show::Create(..) => CREATE.schema(),
    }
}

pub(super) fn run(session: &Session, show: &Show) -> Result<Output, SqlError> {
    let rows = match show {
        Show::Setting(name) => return setting(session, name),
        Show::All => table(&ALL, settings(session))?,
        Show::Tables => relations(session, |relation| matches!(relation.kind, RelationKind::Table { .. }))?,
        Show::Views => relations(session, |relation| matches!(relation.kind, RelationKind::View))?,
        Show::MaterializedViews => {
            relations(session, |relation| matches!(relation.kind, RelationKind::MaterializedView))?
        }
        Show::Sources => relations(session, |relation| matches!(relation.kind, RelationKind::Source { .. }))?,
        Show::Sinks => relations(session, |relation| matches!(relation.kind, RelationKind::Sink))?,
        Show::Schemas => {
            let live = session.live();
            table(
                &SCHEMAS,
                live.catalog.schemas().into_iter().map(|name| vec![("name", name.into())]).collect(),
            )?
        }
        Show::Jobs => {
            let ctx = session.function_context(session.live());
            table(&JOBS, (JOBS.rows)(&ctx.system))?
        }
        Show::Columns(name) => return super::describe::run(session, name),
        Show::Create(kind, name) => create(session, kind, name)?,
    };
    Ok(Output::rows("SHOW", rows))
}

fn table(table: &SystemTable, rows: Vec<Row>) -> Result<Rows, SqlError> {
    let batch = table.batch(&rows)?;
    Ok(Rows::from_batches(batch.schema(), vec![batch]))
}

fn setting(session: &Session, name: &str) -> Result<Output, SqlError> {
    let value =
        session.settings.get(name).ok_or_else(|| SqlErrorKind::UndefinedSetting { name: name.to_owned() })?;
    let schema = text_schema(&canonical_name(name));
    let batch = crate::system::text_batch(&schema, value)?;
    Ok(Output::rows("SHOW", Rows::from_batches(schema, vec![batch])))
}

fn settings(session: &Session) -> Vec<Row> {
    let all = session.settings.all().into_iter();
    all.map(|(name, value, doc)| {
        vec![("name", name.into()), ("setting", value.into()), ("description", doc.into())]
    })
    .collect()
}

fn relations(session: &Session, is_meant: fn(&Relation) -> bool) -> Result<Rows, SqlError> {
    let live = session.live();
    let mut rows: Vec<Row> = Vec::new();
    let mut relations: Vec<&Relation> =
        live.catalog.relations().into_iter().filter(|relation| is_meant(relation)).collect();
    relations.sort_by(|left, right| (&left.schema, &left.name).cmp(&(&right.schema, &right.name)));
    for relation in relations {
        rows.push(vec![
            ("schema", relation.schema.clone().into()),
            ("name", relation.name.clone().into()),
            ("owner", relation.owner.clone().into()),
        ]);
    }
    table(&RELATIONS, rows)
}

/// `SHOW CREATE …`: the canonical statement.
fn create(session: &Session, kind: &str, name: &QualifiedName) -> Result<Rows, SqlError> {
    let live = session.live();
    let relation = live.find(name.schema.as_deref(), &name.name).map_err(|error| error.at(name.position))?;
    if relation.parent().is_some() {
        return Err(SqlErrorKind::WrongObjectType {
            name: relation.name.clone(),
            expected: "created by a statement",
        }
        .at(name.position));
    }
    if relation.kind.word() != kind {
        let is = relation.kind.word();
        let message = format!("\"{}\" is a {is}, not a {kind}", relation.name);
        let hint = format!("Use SHOW CREATE {}.", is.to_uppercase());
        return Err(SqlErrorKind::Evaluation { sqlstate: "42809", message }.at(name.position).hint(hint));
    }
    let full = if relation.schema == Catalog::PUBLIC {
        relation.name.clone()
    } else {
        format!("{}.{}", relation.schema, relation.name)
    };
    table(
        &CREATE,
        vec![vec![("name", full.into()), ("create_statement", relation.definition.clone().into())]],
    )
}
