//! The set of all schemas and relations.
//!
//! **Invariant.** A relation's id is greater than the id of every relation it reads and, for a
//! side relation, than its parent's. So ascending ids are dependency order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::entry::{Entry, Next, Writes};
use crate::{CatalogError, MetaWrites, Relation, RelationId, RelationKind};

/// PostgreSQL gives user objects OIDs from here on.
const FIRST_RELATION: u32 = 16384;
const FIRST_TABLE: u32 = 1;

/// Everything that exists. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalog {
    content: Arc<Content>,
}

#[derive(Debug, Clone)]
struct Content {
    schemas: BTreeSet<String>,
    relations: BTreeMap<RelationId, Relation>,
    /// By schema, then name.
    names: BTreeMap<String, BTreeMap<String, RelationId>>,
    next: Next,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalog {
    /// The schema unqualified names are created in. It always exists.
    pub const PUBLIC: &'static str = "public";

    /// An empty catalog with the schema `public`.
    #[must_use]
    pub fn new() -> Self {
        let content = Content {
            schemas: BTreeSet::from([Self::PUBLIC.to_owned()]),
            relations: BTreeMap::new(),
            names: BTreeMap::new(),
            next: Next { relation: FIRST_RELATION, table: FIRST_TABLE },
        };
        Self { content: Arc::new(content) }
    }

    /// Reads the catalog from its `meta` entries (prefix `catalog/`).
    pub fn load(entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Self, CatalogError> {
        let mut catalog = Self::new();
        let content = catalog.content_mut();
        for (key, value) in entries {
            match Entry::read(key, value)? {
                Entry::Relation(relation) => content.insert(*relation),
                Entry::Schema(name) => {
                    content.schemas.insert(name);
                }
                Entry::Next(next) => content.next = next,
            }
        }
        content.check()?;
        Ok(catalog)
    }

    /// Finds a relation; `schema` = None looks along `public` (and case-insensitively if unique,
    /// because Flink's names keep their case and PostgreSQL's fold).
    #[must_use]
    pub fn relation(&self, schema: Option<&str>, name: &str) -> Option<&Relation> {
        let names = self.content.names.get(schema.unwrap_or(Self::PUBLIC))?;
        let id = match names.get(name) {
            Some(id) => *id,
            None => {
                let mut alike = names.iter().filter(|(other, _)| other.to_lowercase() == name.to_lowercase());
                match (alike.next(), alike.next()) {
                    (Some((_, id)), None) => *id,
                    _ => return None,
                }
            }
        };
        self.relation_by_id(id)
    }

    #[must_use]
    pub fn relation_by_id(&self, id: RelationId) -> Option<&Relation> {
        self.content.relations.get(&id)
    }

    /// All relations in dependency order (every relation behind those it reads).
    #[must_use]
    pub fn relations(&self) -> Vec<&Relation> {
        self.content.relations.values().collect()
    }

    #[must_use]
    pub fn schemas(&self) -> Vec<&str> {
        self.content.schemas.iter().map(String::as_str).collect()
    }

    /// Relations that read this one, directly.
    #[must_use]
    pub fn dependents(&self, id: RelationId) -> Vec<&Relation> {
        self.content.relations.values().filter(|relation| relation.dependencies.contains(&id)).collect()
    }

    /// The `$late` and `$errors` relations of a relation.
    #[must_use]
    pub fn side_relations(&self, parent: RelationId) -> Vec<&Relation> {
        self.content.relations.values().filter(|relation| relation.parent() == Some(parent)).collect()
    }

    /// Reserves a relation id.
    pub fn allocate_relation(&mut self) -> RelationId {
        let next = &mut self.content_mut().next;
        next.relation += 1;
        RelationId(next.relation - 1)
    }

    /// Reserves a block of table ids; returns the first.
    pub fn allocate_tables(&mut self, count: u32) -> u32 {
        let next = &mut self.content_mut().next;
        next.table += count;
        next.table - count
    }

    /// Adds a relation and its side relations; returns what to store.
    pub fn create(&mut self, relations: Vec<Relation>) -> Result<MetaWrites, CatalogError> {
        let mut new = self.clone();
        let content = new.content_mut();
        let mut writes = Writes::default();
        for relation in relations {
            if !content.schemas.contains(&relation.schema) {
                return Err(CatalogError::UndefinedSchema(relation.schema));
            }
            if content.names.get(&relation.schema).is_some_and(|names| names.contains_key(&relation.name)) {
                return Err(CatalogError::DuplicateRelation(relation.name));
            }
            writes.put_relation(&relation)?;
            content.insert(relation);
        }
        content.check()?;
        let writes = writes.finish(content.next)?;
        *self = new;
        Ok(writes)
    }

    /// Stores a relation anew under its id, e.g. with another block of tables after a rebuild.
    pub fn replace(&mut self, relation: Relation) -> Result<MetaWrites, CatalogError> {
        let content = self.content_mut();
        let Some(stored) = content.relations.get_mut(&relation.id) else {
            return Err(CatalogError::UndefinedRelation(relation.name));
        };
        let mut writes = Writes::default();
        writes.put_relation(&relation)?;
        *stored = relation;
        writes.finish(content.next)
    }

    pub fn create_schema(&mut self, name: &str) -> Result<MetaWrites, CatalogError> {
        if name.starts_with("pg_") {
            return Err(CatalogError::ReservedSchema(name.to_owned()));
        }
        let content = self.content_mut();
        if name == "information_schema" || !content.schemas.insert(name.to_owned()) {
            return Err(CatalogError::DuplicateSchema(name.to_owned()));
        }
        let mut writes = Writes::default();
        writes.put_schema(name)?;
        writes.finish(content.next)
    }

    /// Removes relations with their side relations and (when `cascade`) all that depends on them;
    /// returns the removed relations, dependents first, and what to store.
    pub fn drop_relations(
        &mut self,
        ids: &[RelationId],
        cascade: bool,
    ) -> Result<(Vec<Relation>, MetaWrites), CatalogError> {
        let mut new = self.clone();
        let mut writes = Writes::default();
        let dropped = new.content_mut().remove(ids, cascade, &mut writes)?;
        let writes = writes.finish(new.content.next)?;
        *self = new;
        Ok((dropped, writes))
    }

    /// Removes a schema and (when `cascade`) the relations in it.
    pub fn drop_schema(
        &mut self,
        name: &str,
        cascade: bool,
    ) -> Result<(Vec<Relation>, MetaWrites), CatalogError> {
        if !self.content.schemas.contains(name) {
            return Err(CatalogError::UndefinedSchema(name.to_owned()));
        }
        let schema = format!("schema {name}");
        if name == Self::PUBLIC {
            return Err(CatalogError::Required { name: schema, owner: "the database system".to_owned() });
        }
        let inside: Vec<&Relation> =
            self.content.relations.values().filter(|relation| relation.schema == name).collect();
        let own: Vec<&&Relation> = inside.iter().filter(|relation| relation.parent().is_none()).collect();
        if !cascade && !own.is_empty() {
            let dependents = own
                .iter()
                .map(|relation| format!("{} depends on {schema}", relation.description()))
                .collect();
            return Err(CatalogError::Dependents { name: schema, dependents });
        }
        let ids: Vec<RelationId> = inside.iter().map(|relation| relation.id).collect();
        let mut new = self.clone();
        let mut writes = Writes::default();
        let dropped = new.content_mut().remove(&ids, cascade, &mut writes)?;
        new.content_mut().schemas.remove(name);
        writes.delete_schema(name);
        let writes = writes.finish(new.content.next)?;
        *self = new;
        Ok((dropped, writes))
    }

    fn content_mut(&mut self) -> &mut Content {
        Arc::make_mut(&mut self.content)
    }
}

impl Content {
    fn insert(&mut self, relation: Relation) {
        self.names.entry(relation.schema.clone()).or_default().insert(relation.name.clone(), relation.id);
        self.next.relation = self.next.relation.max(relation.id.0 + 1);
        self.next.table = self.next.table.max(relation.first_table + relation.table_count);
        self.relations.insert(relation.id, relation);
    }

    /// Everything a relation needs is there and older than it.
    fn check(&self) -> Result<(), CatalogError> {
        for relation in self.relations.values() {
            for needed in relation.dependencies.iter().copied().chain(relation.parent()) {
                if needed >= relation.id || !self.relations.contains_key(&needed) {
                    return Err(CatalogError::Damaged {
                        key: format!("catalog/relation/{}", relation.id.0),
                        reason: format!("it needs relation {}, which is not there before it", needed.0),
                    });
                }
            }
        }
        Ok(())
    }

    fn remove(
        &mut self,
        ids: &[RelationId],
        cascade: bool,
        writes: &mut Writes,
    ) -> Result<Vec<Relation>, CatalogError> {
        let mut doomed: BTreeSet<RelationId> = BTreeSet::new();
        for id in ids {
            if !self.relations.contains_key(id) {
                return Err(CatalogError::UndefinedRelation(id.0.to_string()));
            }
            doomed.insert(*id);
        }
        self.check_sides(&doomed)?;
        let mut dependents = Vec::new();
        // Ascending ids are dependency order: one pass finds everything that hangs on the doomed.
        for relation in self.relations.values() {
            if doomed.contains(&relation.id) {
                continue;
            }
            if relation.parent().is_some_and(|parent| doomed.contains(&parent)) {
                doomed.insert(relation.id);
                continue;
            }
            if let Some(needed) = relation.dependencies.iter().find(|needed| doomed.contains(needed)) {
                let on = self.relations[needed].description();
                dependents.push(format!("{} depends on {on}", relation.description()));
                doomed.insert(relation.id);
            }
        }
        if !cascade && !dependents.is_empty() {
            let name = self.relations[&ids[0]].description();
            return Err(CatalogError::Dependents { name, dependents });
        }
        let dropped: Vec<Relation> = doomed.iter().rev().filter_map(|id| self.relations.remove(id)).collect();
        for relation in &dropped {
            writes.delete_relation(relation.id);
            if let Some(names) = self.names.get_mut(&relation.schema) {
                names.remove(&relation.name);
            }
        }
        Ok(dropped)
    }

    /// Side relations go with their parent, never alone.
    fn check_sides(&self, doomed: &BTreeSet<RelationId>) -> Result<(), CatalogError> {
        for relation in doomed.iter().map(|id| &self.relations[id]) {
            if let Some(parent) = relation.parent()
                && !doomed.contains(&parent)
            {
                return Err(CatalogError::Required {
                    name: relation.description(),
                    owner: self.relations[&parent].description(),
                });
            }
        }
        Ok(())
    }
}

impl Relation {
    /// The relation this one is a side relation of.
    #[must_use]
    pub fn parent(&self) -> Option<RelationId> {
        match self.kind {
            RelationKind::Side { parent, .. } => Some(parent),
            RelationKind::Source { .. }
            | RelationKind::Table { .. }
            | RelationKind::View
            | RelationKind::MaterializedView
            | RelationKind::Sink => None,
        }
    }

    /// As PostgreSQL names it in messages about dependencies, e.g. `materialized view v`.
    #[must_use]
    pub fn description(&self) -> String {
        if self.schema == Catalog::PUBLIC {
            format!("{} {}", self.kind.word(), self.name)
        } else {
            format!("{} {}.{}", self.kind.word(), self.schema, self.name)
        }
    }
}

#[cfg(test)]
mod tests;
