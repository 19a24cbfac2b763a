//! DESCRIBE: the columns of a relation.

use arrow::datatypes::SchemaRef;
use sql::SqlError;
use sql::statement::QualifiedName;

use crate::pg_catalog::objects::primary_key;
use crate::pg_catalog::types::{column_type, format_type, type_modifier};
use crate::system::ColumnType::{Bool, Text};
use crate::system::{Row, SystemTable};
use crate::{Output, Rows, Session};

const COLUMNS: SystemTable = SystemTable {
    name: "columns",
    columns: &[("name", Text), ("type", Text), ("nullable", Bool), ("default", Text), ("key", Text)],
    rows: |_| Vec::new(),
};

pub(super) fn schema() -> SchemaRef {
    COLUMNS.schema()
}

pub(super) fn run(session: &Session, name: &QualifiedName) -> Result<Output, SqlError> {
    let live = session.live();
    let relation = live.find(name.schema.as_deref(), &name.name).map_err(|error| error.at(name.position))?;
    let key = primary_key(relation);
    let rows: Vec<Row> = relation
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let data_type = format_type(i64::from(column_type(column).oid), Some(type_modifier(column)));
            let key = key.contains(&at).then(|| "primary key".to_owned());
            vec![
                ("name", column.name.clone().into()),
                ("type", data_type.into()),
                ("nullable", column.nullable.into()),
                ("default", column.default.clone().into()),
                ("key", key.into()),
            ]
        })
        .collect();
    let batch = COLUMNS.batch(&rows)?;
    Ok(Output::rows("DESCRIBE", Rows::from_batches(batch.schema(), vec![batch])))
}
