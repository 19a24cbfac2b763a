//! How the catalog is stored: one JSON value a `meta` entry.
//!
//! | key | value |
//! |---|---|
//! | `catalog/relation/<id>`  | `{"version":1,"body":<relation>}` |
//! | `catalog/schema/<name>`  | `{"version":1,"body":null}` |
//! | `catalog/next`           | `{"version":1,"body":{"relation":<id>,"table":<id>}}` |
//!
//! An unknown version is refused: a newer server wrote it and may mean something else by it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{CatalogError, Relation, RelationId};

/// The version written, and the only one read.
const VERSION: u32 = 1;
const RELATION: &str = "catalog/relation/";
const SCHEMA: &str = "catalog/schema/";
const NEXT: &str = "catalog/next";

/// `meta` entries that turn the stored catalog into the new one; `None` deletes.
pub type MetaWrites = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The next free ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Next {
    pub(crate) relation: u32,
    pub(crate) table: u32,
}

/// One entry as read.
#[derive(Debug)]
pub(crate) enum Entry {
    Relation(Box<Relation>),
    Schema(String),
    Next(Next),
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    body: T,
}

impl Entry {
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Result<Self, CatalogError> {
        let damaged =
            |reason: String| CatalogError::Damaged { key: String::from_utf8_lossy(key).into_owned(), reason };
        let name = std::str::from_utf8(key).map_err(|error| damaged(error.to_string()))?;
        if let Some(id) = name.strip_prefix(RELATION) {
            let relation: Relation = decode(value).map_err(damaged)?;
            if relation.id.0.to_string() != id {
                return Err(damaged(format!("it holds relation {}", relation.id.0)));
            }
            return Ok(Self::Relation(Box::new(relation)));
        }
        if let Some(schema) = name.strip_prefix(SCHEMA) {
            decode::<()>(value).map_err(damaged)?;
            return Ok(Self::Schema(schema.to_owned()));
        }
        if name == NEXT {
            return Ok(Self::Next(decode(value).map_err(damaged)?));
        }
        Err(damaged("unknown kind of entry".to_owned()))
    }
}

fn decode<T: DeserializeOwned>(value: &[u8]) -> Result<T, String> {
    let version: Versioned<serde_json::Value> =
        serde_json::from_slice(value).map_err(|error| error.to_string())?;
    if version.version != VERSION {
        return Err(format!("version {} is not known", version.version));
    }
    serde_json::from_value(version.body).map_err(|error| error.to_string())
}

fn encode<T: Serialize>(key: &str, body: T) -> Result<Vec<u8>, CatalogError> {
    serde_json::to_vec(&Versioned { version: VERSION, body })
        .map_err(|error| CatalogError::Damaged { key: key.to_owned(), reason: error.to_string() })
}

/// Collects the writes of one change.
#[derive(Debug, Default)]
pub(crate) struct Writes(MetaWrites);

impl Writes {
    fn put<T: Serialize>(&mut self, key: String, body: T) -> Result<(), CatalogError> {
        let value = encode(&key, body)?;
        self.0.push((key.into_bytes(), Some(value)));
        Ok(())
    }

    pub(crate) fn put_relation(&mut self, relation: &Relation) -> Result<(), CatalogError> {
        self.put(format!("{RELATION}{}", relation.id.0), relation)
    }

    pub(crate) fn put_schema(&mut self, name: &str) -> Result<(), CatalogError> {
        self.put(format!("{SCHEMA}{name}"), ())
    }

    pub(crate) fn delete_relation(&mut self, id: RelationId) {
        self.0.push((format!("{RELATION}{}", id.0).into_bytes(), None));
    }

    pub(crate) fn delete_schema(&mut self, name: &str) {
        self.0.push((format!("{SCHEMA}{name}").into_bytes(), None));
    }

    /// Every change stores the next free ids, so that none is given twice.
    pub(crate) fn finish(mut self, next: Next) -> Result<MetaWrites, CatalogError> {
        self.put(NEXT.to_owned(), next)?;
        Ok(self.0)
    }
}
