//! Columns of relations: from their definitions, from plans, and as Arrow fields.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use catalog::Column;
use sql::statement::ColumnDefinition;
use sql::types::{PG_TYPE, column_type, field_type_name};
use sql::{SqlError, SqlErrorKind};

/// The columns of a CREATE SOURCE or CREATE TABLE with their Arrow types.
pub(crate) fn columns_of_definitions(definitions: &[ColumnDefinition]) -> Result<Vec<Column>, SqlError> {
    let mut columns: Vec<Column> = Vec::with_capacity(definitions.len());
    for definition in definitions {
        if columns.iter().any(|column| column.name == definition.name) {
            let name = definition.name.clone();
            return Err(SqlErrorKind::DuplicateColumn { name }.at(definition.position));
        }
        let place = |error: SqlError| match error.position {
            Some(_) => error,
            None => error.at(definition.position),
        };
        let found = column_type(&definition.data_type).map_err(place)?;
        columns.push(Column {
            name: definition.name.clone(),
            data_type: found.data_type,
            nullable: !definition.not_null,
            type_name: found.type_name,
            default: definition.default.as_ref().map(ToString::to_string),
        });
    }
    Ok(columns)
}

/// A field of a plan as a column of a relation.
pub(crate) fn column_of(field: &Field, name: &str) -> Column {
    Column {
        name: name.to_owned(),
        data_type: field.data_type().clone(),
        nullable: field.is_nullable(),
        type_name: field.metadata().contains_key(PG_TYPE).then(|| field_type_name(field)),
        default: None,
    }
}

/// The visible columns of a relation as Arrow fields. PostgreSQL types that Arrow does not have
/// are named in the metadata (`sql::types::PG_TYPE`).
#[must_use]
pub fn relation_schema(columns: &[Column]) -> SchemaRef {
    let field = |column: &Column| {
        let field = Field::new(&column.name, column.data_type.clone(), column.nullable);
        match &column.type_name {
            Some(name) => field.with_metadata([(PG_TYPE.to_owned(), pg_type(name))].into()),
            None => field,
        }
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// `character varying(10)` is `varchar` in `pg_type`; other names are the same there.
fn pg_type(type_name: &str) -> String {
    let bare = type_name.split('(').next().unwrap_or(type_name);
    match bare {
        "character varying" => "varchar".to_owned(),
        "character" => "bpchar".to_owned(),
        other => other.to_owned(),
    }
}
