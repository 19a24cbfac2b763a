//! PLACEHOLDER. The set of all schemas and relations.

use crate::{Relation, RelationId};

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum CatalogError {
    /// 42P07
    #[error("relation \"{0}\" already exists")]
    DuplicateRelation(String),
    /// 42P06
    #[error("schema \"{0}\" already exists")]
    DuplicateSchema(String),
    /// 42P01
    #[error("relation \"{0}\" does not exist")]
    UndefinedRelation(String),
    /// 3F000
    #[error("schema \"{0}\" does not exist")]
    UndefinedSchema(String),
    /// 2BP01; the dependents are listed in DETAIL.
    #[error("cannot drop {name} because other objects depend on it")]
    Dependents { name: String, dependents: Vec<String> },
    /// XX001
    #[error("catalog entry {key} is damaged: {reason}")]
    Damaged { key: String, reason: String },
}

/// Everything that exists. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Catalog {}

/// `meta` entries that turn the stored catalog into the new one.
pub type MetaWrites = Vec<(Vec<u8>, Option<Vec<u8>>)>;

impl Catalog {
    /// The schema unqualified names are created in.
    pub const PUBLIC: &'static str = "public";

    /// An empty catalog with the schema `public`.
    #[must_use]
    pub fn new() -> Self {
        unimplemented!()
    }

    /// Reads the catalog from its `meta` entries (prefix `catalog/`).
    pub fn load(entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Self, CatalogError> {
        let _ = entries;
        unimplemented!()
    }

    /// Finds a relation; `schema` = None looks along `public` (and case-insensitively if unique,
    /// dialect.md 6).
    #[must_use]
    pub fn relation(&self, schema: Option<&str>, name: &str) -> Option<&Relation> {
        let _ = (schema, name);
        unimplemented!()
    }

    #[must_use]
    pub fn relation_by_id(&self, id: RelationId) -> Option<&Relation> {
        let _ = id;
        unimplemented!()
    }

    /// All relations in dependency order (every relation behind those it reads).
    pub fn relations(&self) -> Vec<&Relation> {
        unimplemented!()
    }

    pub fn schemas(&self) -> Vec<&str> {
        unimplemented!()
    }

    /// Reserves a relation id.
    pub fn allocate_relation(&mut self) -> RelationId {
        unimplemented!()
    }

    /// Reserves a block of table ids.
    pub fn allocate_tables(&mut self, count: u32) -> u32 {
        let _ = count;
        unimplemented!()
    }

    /// Adds a relation and its side relations; returns what to store.
    pub fn create(&mut self, relations: Vec<Relation>) -> Result<MetaWrites, CatalogError> {
        let _ = relations;
        unimplemented!()
    }

    pub fn create_schema(&mut self, name: &str) -> Result<MetaWrites, CatalogError> {
        let _ = name;
        unimplemented!()
    }

    /// Removes relations with all that depends on them (when `cascade`); returns the removed
    /// relations, dependents first, and what to store.
    pub fn drop_relations(&mut self, ids: &[RelationId], cascade: bool) -> Result<(Vec<Relation>, MetaWrites), CatalogError> {
        let _ = (ids, cascade);
        unimplemented!()
    }

    pub fn drop_schema(&mut self, name: &str, cascade: bool) -> Result<(Vec<Relation>, MetaWrites), CatalogError> {
        let _ = (name, cascade);
        unimplemented!()
    }

    /// Relations that read this one, directly.
    #[must_use]
    pub fn dependents(&self, id: RelationId) -> Vec<&Relation> {
        let _ = id;
        unimplemented!()
    }
}
