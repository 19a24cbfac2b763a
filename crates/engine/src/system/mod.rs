//! Tables the engine makes itself: `pg_catalog`, `information_schema` and `highwater`.
//!
//! A table is a list of columns and a function that gives the rows; columns a row does not name
//! have the neutral value of their type (0, false, NULL). They are small and made per statement.

mod jobs;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{MemTable, TableProvider};
use runtime::JobStatus;
use sql::{SqlError, SqlErrorKind};

use crate::error::{from_arrow, from_datafusion};
use crate::live::Live;
use crate::{information_schema, pg_catalog};

pub(crate) use jobs::JOBS;

/// The type of a system column. The variants that Arrow does not have are told to the server by
/// the field metadata `pg_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Oid,
    Name,
    Char,
    Text,
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Timestamp,
    Timestamptz,
}

/// One value of a system table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Datum {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
}

impl From<&str> for Datum {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Datum {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Option<String>> for Datum {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl From<bool> for Datum {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Datum {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Datum {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<usize> for Datum {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u64> for Datum {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

/// One row: the columns that have something to say.
pub(crate) type Row = Vec<(&'static str, Datum)>;

/// A column's name and type.
pub(crate) type ColumnList = &'static [(&'static str, ColumnType)];

/// A system table.
#[derive(Clone, Copy)]
pub(crate) struct SystemTable {
    pub(crate) name: &'static str,
    pub(crate) columns: ColumnList,
    pub(crate) rows: fn(&SystemContext) -> Vec<Row>,
}

/// What the rows are made of.
pub(crate) struct SystemContext {
    pub(crate) live: Arc<Live>,
    pub(crate) user: String,
    pub(crate) database: String,
    /// Name, value and description of every setting.
    pub(crate) settings: Vec<(String, String, String)>,
    pub(crate) jobs: Vec<JobStatus>,
}

/// Name of the one database.
pub(crate) const DATABASE: &str = "highwater";

/// Finds a system table. Without a schema, `pg_catalog` is searched, as PostgreSQL does.
pub(crate) fn find(schema: Option<&str>, name: &str) -> Option<SystemTable> {
    match schema {
        None | Some("pg_catalog") => pg_catalog::find(name),
        Some("information_schema") => information_schema::find(name),
        Some(DATABASE) => (name == JOBS.name).then_some(JOBS),
        Some(_) => None,
    }
}

/// Whether a system table never has a row, so that what is joined to it need not be planned.
pub(crate) fn is_always_empty(schema: Option<&str>, name: &str) -> bool {
    matches!(schema, None | Some("pg_catalog")) && pg_catalog::is_always_empty(name)
}

impl SystemTable {
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(
            self.columns.iter().map(|(name, column)| field(name, *column)).collect::<Vec<_>>(),
        ))
    }

    /// The table as it is now.
    pub(crate) fn provider(&self, ctx: &SystemContext) -> Result<Arc<dyn TableProvider>, SqlError> {
        let batch = self.batch(&(self.rows)(ctx))?;
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).map_err(from_datafusion)?;
        Ok(Arc::new(table))
    }

    /// Rows as a batch.
    pub(crate) fn batch(&self, rows: &[Row]) -> Result<RecordBatch, SqlError> {
        let rows: Vec<HashMap<&str, &Datum>> =
            rows.iter().map(|row| row.iter().map(|(name, datum)| (*name, datum)).collect()).collect();
        if let Some(unknown) = rows.first().and_then(|row| {
            row.keys().find(|name| !self.columns.iter().any(|(column, _)| column == *name)).copied()
        }) {
            return Err(SqlErrorKind::internal(format!("{} has no column {unknown}", self.name)).into());
        }
        let columns = self
            .columns
            .iter()
            .map(|(name, column)| array(*column, rows.iter().map(|row| row.get(name).copied())))
            .collect();
        RecordBatch::try_new(self.schema(), columns).map_err(from_arrow)
    }
}

fn field(name: &str, column: ColumnType) -> Field {
    let (data_type, pg_type) = match column {
        ColumnType::Oid => (DataType::Int64, Some("oid")),
        ColumnType::Name => (DataType::Utf8View, Some("name")),
        ColumnType::Char => (DataType::Utf8View, Some("char")),
        ColumnType::Text => (DataType::Utf8View, None),
        ColumnType::Bool => (DataType::Boolean, None),
        ColumnType::Int2 => (DataType::Int16, None),
        ColumnType::Int4 => (DataType::Int32, None),
        ColumnType::Int8 => (DataType::Int64, None),
        ColumnType::Float4 => (DataType::Float32, None),
        ColumnType::Timestamp => (DataType::Timestamp(TimeUnit::Microsecond, None), None),
        ColumnType::Timestamptz => (DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), None),
    };
    let field = Field::new(name, data_type, true);
    match pg_type {
        Some(pg_type) => field.with_metadata(HashMap::from([("pg_type".to_owned(), pg_type.to_owned())])),
        None => field,
    }
}

fn array<'a>(column: ColumnType, data: impl Iterator<Item = Option<&'a Datum>> + Clone) -> ArrayRef {
    let text = || -> ArrayRef {
        let values: StringViewArray = data
            .clone()
            .map(|datum| match datum {
                Some(Datum::Text(text)) => Some(text.as_str()),
                None if column == ColumnType::Char => Some(""),
                None | Some(Datum::Null | Datum::Bool(_) | Datum::Int(_)) => None,
            })
            .collect();
        Arc::new(values)
    };
    // Types without a neutral value are NULL where a row is silent.
    let integers = |silent: Option<i64>| -> Vec<Option<i64>> {
        data.clone()
            .map(|datum| match datum {
                Some(Datum::Int(value)) => Some(*value),
                None => silent,
                Some(Datum::Null | Datum::Bool(_) | Datum::Text(_)) => None,
            })
            .collect()
    };
    match column {
        ColumnType::Name | ColumnType::Char | ColumnType::Text => text(),
        ColumnType::Oid | ColumnType::Int8 => Arc::new(Int64Array::from(integers(Some(0)))),
        ColumnType::Int4 => Arc::new(
            integers(Some(0))
                .into_iter()
                .map(|value| value.and_then(|value| i32::try_from(value).ok()))
                .collect::<Int32Array>(),
        ),
        ColumnType::Int2 => Arc::new(
            integers(Some(0))
                .into_iter()
                .map(|value| value.and_then(|value| i16::try_from(value).ok()))
                .collect::<Int16Array>(),
        ),
        ColumnType::Float4 => Arc::new(
            integers(Some(0))
                .into_iter()
                .map(|value| value.map(|value| value as f32))
                .collect::<Float32Array>(),
        ),
        ColumnType::Timestamp => Arc::new(TimestampMicrosecondArray::from(integers(None))),
        ColumnType::Timestamptz => {
            Arc::new(TimestampMicrosecondArray::from(integers(None)).with_timezone("UTC"))
        }
        ColumnType::Bool => {
            let values: BooleanArray = data
                .map(|datum| match datum {
                    Some(Datum::Bool(value)) => Some(*value),
                    None => Some(false),
                    Some(Datum::Null | Datum::Int(_) | Datum::Text(_)) => None,
                })
                .collect();
            Arc::new(values)
        }
    }
}

/// One column of text.
pub(crate) fn text_schema(name: &str) -> SchemaRef {
    Arc::new(Schema::new(vec![field(name, ColumnType::Text)]))
}

/// One row of one text.
pub(crate) fn text_batch(schema: &SchemaRef, text: &str) -> Result<RecordBatch, SqlError> {
    let values: ArrayRef = Arc::new(StringViewArray::from(vec![text]));
    RecordBatch::try_new(Arc::clone(schema), vec![values]).map_err(from_arrow)
}
