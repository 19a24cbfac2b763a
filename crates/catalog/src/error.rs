//! Why a change of the catalog was refused, in PostgreSQL's words.

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum CatalogError {
    /// 42P07
    #[error("relation \"{0}\" already exists")]
    DuplicateRelation(String),
    /// 42P06
    #[error("schema \"{0}\" already exists")]
    DuplicateSchema(String),
    /// 42939
    #[error("unacceptable schema name \"{0}\"")]
    ReservedSchema(String),
    /// 42P01
    #[error("relation \"{0}\" does not exist")]
    UndefinedRelation(String),
    /// 3F000
    #[error("schema \"{0}\" does not exist")]
    UndefinedSchema(String),
    /// 2BP01; the dependents are listed in DETAIL, one line each.
    #[error("cannot drop {name} because other objects depend on it")]
    Dependents { name: String, dependents: Vec<String> },
    /// 2BP01
    #[error("cannot drop {name} because {owner} requires it")]
    Required { name: String, owner: String },
    /// XX001
    #[error("catalog entry {key} is damaged: {reason}")]
    Damaged { key: String, reason: String },
}
