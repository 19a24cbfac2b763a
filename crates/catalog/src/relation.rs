//! Relations: sources, tables, views, materialized views, sinks, and their side relations.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

/// Names a relation for ever; also its OID in `pg_class` (from 16384) and its job's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RelationId(pub u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    /// Arrow type (stored as its `Display` text, parsed by `FromStr`).
    #[serde(with = "crate::relation::data_type_text")]
    pub data_type: DataType,
    pub nullable: bool,
    /// PostgreSQL name of the type where the Arrow type does not say it, e.g. `varchar(10)`.
    pub type_name: Option<String>,
    /// DEFAULT expression as SQL.
    pub default: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SideKind {
    Late,
    Errors,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RelationKind {
    Source {
        connector: String,
        bounded: bool,
    },
    /// `primary_key`: column indices; empty: rows are keyed by a hidden `$rowid`.
    Table {
        primary_key: Vec<usize>,
    },
    View,
    MaterializedView,
    Sink,
    /// `"<parent>$late"` and `"<parent>$errors"`; dropped with the parent, no job of its own.
    Side {
        parent: RelationId,
        kind: SideKind,
    },
}

impl RelationKind {
    /// The word for it in messages.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Source { .. } => "source",
            Self::Table { .. } => "table",
            Self::View => "view",
            Self::MaterializedView => "materialized view",
            Self::Sink => "sink",
            Self::Side { .. } => "relation",
        }
    }
}

/// One relation as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    pub id: RelationId,
    pub schema: String,
    pub name: String,
    pub kind: RelationKind,
    /// Visible columns.
    pub columns: Vec<Column>,
    /// The canonical CREATE statement; planned again at every start.
    pub definition: String,
    /// Settings that planning depends on, as they were at CREATE.
    pub settings: BTreeMap<String, String>,
    /// Relations it reads.
    pub dependencies: Vec<RelationId>,
    /// First table id of the block reserved for its view table and operator state.
    pub first_table: u32,
    /// How many table ids the block has (allotted in plan order, view table first).
    pub table_count: u32,
    /// Hash of the printed job graph the state on disk belongs to.
    pub graph_hash: u64,
    pub owner: String,
}

/// Arrow data types as text.
mod data_type_text {
    use arrow::datatypes::DataType;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(data_type: &DataType, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&data_type.to_string())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DataType, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
