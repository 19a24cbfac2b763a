//! Errors a user can cause with SQL text.
//!
//! Every variant names its SQLSTATE, because drivers and BI tools branch on the code and people
//! read the text. Wording follows PostgreSQL: one lower-case clause, no full stop, identifiers in
//! double quotes. Advice goes into the hint, what was found into the detail.
//!
//! Anything that is not in this list is a bug and is reported as [`SqlErrorKind::Internal`].

/// What is wrong. Variants are added as needed; every one has a SQLSTATE.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlErrorKind {
    // Text that is not a statement, and statements we do not have.
    /// `message` is a whole clause, e.g. `syntax error at or near "x"`.
    #[error("{message}")]
    Syntax { message: String },
    #[error("{feature} is not supported")]
    Unsupported { feature: String },
    #[error("{feature} is not supported in a materialized view")]
    UnsupportedInView { feature: String },
    #[error("stack depth limit exceeded")]
    StackDepthExceeded,
    #[error("{message}")]
    ProgramLimitExceeded { message: String },

    // Names.
    #[error("relation \"{name}\" does not exist")]
    UndefinedTable { name: String },
    /// `name` as PostgreSQL prints it: see [`SqlErrorKind::undefined_column`].
    #[error("column {name} does not exist")]
    UndefinedColumn { name: String },
    #[error("column \"{column}\" of relation \"{relation}\" does not exist")]
    UndefinedColumnOf { column: String, relation: String },
    #[error("column \"{name}\" named in key does not exist")]
    UndefinedKeyColumn { name: String },
    /// `signature` with argument types, e.g. `foo(integer, text)`.
    #[error("function {signature} does not exist")]
    UndefinedFunction { signature: String },
    /// `signature` with operand types, e.g. `text + integer`.
    #[error("operator does not exist: {signature}")]
    UndefinedOperator { signature: String },
    #[error("type \"{name}\" does not exist")]
    UndefinedType { name: String },
    #[error("schema \"{name}\" does not exist")]
    UndefinedSchema { name: String },
    #[error("database \"{name}\" does not exist")]
    UndefinedDatabase { name: String },
    #[error("unrecognized configuration parameter \"{name}\"")]
    UndefinedSetting { name: String },
    #[error("there is no parameter ${number}")]
    UndefinedParameter { number: usize },
    #[error("could not determine data type of parameter ${number}")]
    IndeterminateParameter { number: usize },
    #[error("prepared statement \"{name}\" does not exist")]
    UndefinedPreparedStatement { name: String },
    /// `object` is `cursor` or `portal`.
    #[error("{object} \"{name}\" does not exist")]
    UndefinedCursor { object: &'static str, name: String },
    #[error("missing FROM-clause entry for table \"{name}\"")]
    MissingFromEntry { name: String },
    #[error("column reference \"{name}\" is ambiguous")]
    AmbiguousColumn { name: String },
    #[error("function {signature} is not unique")]
    AmbiguousFunction { signature: String },
    #[error("relation \"{name}\" already exists")]
    DuplicateRelation { name: String },
    #[error("schema \"{name}\" already exists")]
    DuplicateSchema { name: String },
    #[error("column \"{name}\" specified more than once")]
    DuplicateColumn { name: String },
    #[error("table name \"{name}\" specified more than once")]
    DuplicateAlias { name: String },
    #[error("prepared statement \"{name}\" already exists")]
    DuplicatePreparedStatement { name: String },
    #[error("{message}")]
    InvalidName { message: String },
    /// `name` with article-free kind, e.g. `expected: "a table"`.
    #[error("\"{name}\" is not {expected}")]
    WrongObjectType { name: String, expected: &'static str },

    // Types and the shape of queries.
    #[error("{message}")]
    DatatypeMismatch { message: String },
    #[error("column \"{column}\" of type {actual} cannot carry a watermark")]
    WatermarkType { column: String, actual: String },
    #[error("cannot cast type {from} to {to}")]
    CannotCoerce { from: String, to: String },
    #[error("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function")]
    Grouping { column: String },
    /// A grouping error with other words, e.g. `aggregate functions are not allowed in WHERE`.
    #[error("{message}")]
    GroupingMessage { message: String },
    #[error("{message}")]
    Windowing { message: String },
    #[error("{message}")]
    InvalidColumnReference { message: String },
    #[error("{message}")]
    InvalidTableDefinition { message: String },
    #[error("{message}")]
    InvalidObjectDefinition { message: String },

    // Values.
    #[error("invalid input syntax for type {type_name}: \"{value}\"")]
    InvalidText { type_name: String, value: String },
    #[error("{type_name} out of range")]
    NumericOutOfRange { type_name: &'static str },
    #[error("value \"{value}\" is out of range for type {type_name}")]
    ValueOutOfRange { value: String, type_name: String },
    #[error("division by zero")]
    DivisionByZero,
    #[error("invalid input syntax for type {type_name}: \"{value}\"")]
    InvalidDatetime { type_name: String, value: String },
    #[error("date/time field value out of range: \"{value}\"")]
    DatetimeOverflow { value: String },
    #[error("value too long for type {type_name}")]
    StringTooLong { type_name: String },
    #[error("{message}")]
    InvalidArgument { message: String },
    #[error("more than one row returned by a subquery used as an expression")]
    CardinalityViolation,

    // Settings and options.
    #[error("invalid value for parameter \"{name}\": \"{value}\"")]
    InvalidSetting { name: String, value: String },
    #[error("parameter \"{name}\" cannot be changed")]
    FixedSetting { name: String },
    /// An option in `WITH (…)` or `ENCODE … (…)` that its owner does not know.
    #[error("invalid option \"{name}\"")]
    InvalidOptionName { name: String },
    /// A known option with a wrong value, or one that is missing; `message` is a whole clause.
    #[error("{message}")]
    InvalidOption { message: String },

    // Constraints and dependencies.
    #[error("null value in column \"{column}\" of relation \"{relation}\" violates not-null constraint")]
    NotNullViolation { column: String, relation: String },
    #[error("duplicate key value violates unique constraint \"{constraint}\"")]
    UniqueViolation { constraint: String },
    #[error("new row for relation \"{relation}\" violates check constraint \"{constraint}\"")]
    CheckViolation { relation: String, constraint: String },
    /// `object` with its kind, e.g. `table t`; the dependents belong into the detail.
    #[error("cannot drop {object} because other objects depend on it")]
    DependentObjects { object: String },

    // Transactions and states.
    #[error("current transaction is aborted, commands ignored until end of transaction block")]
    InFailedTransaction,
    /// A warning in PostgreSQL: COMMIT or ROLLBACK outside of a transaction.
    #[error("there is no transaction in progress")]
    NoActiveTransaction,
    /// A warning in PostgreSQL: BEGIN inside of a transaction.
    #[error("there is already a transaction in progress")]
    ActiveTransaction,
    #[error("{statement} cannot run inside a transaction block")]
    InTransactionBlock { statement: String },
    #[error("cannot execute {statement} in a read-only transaction")]
    ReadOnlyTransaction { statement: String },
    #[error("could not serialize access due to concurrent update")]
    SerializationFailure,
    #[error("{message}")]
    NotInPrerequisiteState { message: String },

    // The world around a statement.
    /// `reason`, e.g. `user request` or `statement timeout`.
    #[error("canceling statement due to {reason}")]
    QueryCancelled { reason: &'static str },
    #[error("terminating connection due to administrator command")]
    AdminShutdown,
    #[error("the database system is starting up")]
    CannotConnectNow,
    #[error("sorry, too many clients already")]
    TooManyConnections,
    #[error("{message}")]
    ProtocolViolation { message: String },
    #[error("out of memory")]
    OutOfMemory,
    #[error("{message}")]
    Io { message: String },
    #[error("{message}")]
    InsufficientPrivilege { message: String },
    #[error("{message}")]
    DataCorrupted { message: String },

    /// An expression failed on a row: see [`crate::EvaluationError`].
    #[error("{message}")]
    Evaluation { sqlstate: &'static str, message: String },
    /// A bug.
    #[error("internal error: {message}")]
    Internal { message: String },
}

impl SqlErrorKind {
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "42601",
            Self::Unsupported { .. } | Self::UnsupportedInView { .. } => "0A000",
            Self::StackDepthExceeded => "54001",
            Self::ProgramLimitExceeded { .. } => "54000",
            Self::UndefinedTable { .. } | Self::MissingFromEntry { .. } => "42P01",
            Self::UndefinedColumn { .. }
            | Self::UndefinedColumnOf { .. }
            | Self::UndefinedKeyColumn { .. } => "42703",
            Self::UndefinedFunction { .. } | Self::UndefinedOperator { .. } => "42883",
            Self::UndefinedType { .. } | Self::UndefinedSetting { .. } => "42704",
            Self::UndefinedSchema { .. } => "3F000",
            Self::UndefinedDatabase { .. } => "3D000",
            Self::UndefinedParameter { .. } => "42P02",
            Self::IndeterminateParameter { .. } => "42P18",
            Self::UndefinedPreparedStatement { .. } => "26000",
            Self::UndefinedCursor { .. } => "34000",
            Self::AmbiguousColumn { .. } => "42702",
            Self::AmbiguousFunction { .. } => "42725",
            Self::DuplicateRelation { .. } => "42P07",
            Self::DuplicateSchema { .. } => "42P06",
            Self::DuplicateColumn { .. } => "42701",
            Self::DuplicateAlias { .. } => "42712",
            Self::DuplicatePreparedStatement { .. } => "42P05",
            Self::InvalidName { .. } => "42602",
            Self::WrongObjectType { .. } => "42809",
            Self::DatatypeMismatch { .. } | Self::WatermarkType { .. } => "42804",
            Self::CannotCoerce { .. } => "42846",
            Self::Grouping { .. } | Self::GroupingMessage { .. } => "42803",
            Self::Windowing { .. } => "42P20",
            Self::InvalidColumnReference { .. } => "42P10",
            Self::InvalidTableDefinition { .. } => "42P16",
            Self::InvalidObjectDefinition { .. } => "42P17",
            Self::InvalidText { .. } => "22P02",
            Self::NumericOutOfRange { .. } | Self::ValueOutOfRange { .. } => "22003",
            Self::DivisionByZero => "22012",
            Self::InvalidDatetime { .. } => "22007",
            Self::DatetimeOverflow { .. } => "22008",
            Self::StringTooLong { .. } => "22001",
            Self::InvalidArgument { .. } | Self::InvalidSetting { .. } | Self::InvalidOption { .. } => {
                "22023"
            }
            Self::CardinalityViolation => "21000",
            Self::FixedSetting { .. } => "55P02",
            Self::InvalidOptionName { .. } => "HV00D",
            Self::NotNullViolation { .. } => "23502",
            Self::UniqueViolation { .. } => "23505",
            Self::CheckViolation { .. } => "23514",
            Self::DependentObjects { .. } => "2BP01",
            Self::InFailedTransaction => "25P02",
            Self::NoActiveTransaction => "25P01",
            Self::ActiveTransaction | Self::InTransactionBlock { .. } => "25001",
            Self::ReadOnlyTransaction { .. } => "25006",
            Self::SerializationFailure => "40001",
            Self::NotInPrerequisiteState { .. } => "55000",
            Self::QueryCancelled { .. } => "57014",
            Self::AdminShutdown => "57P01",
            Self::CannotConnectNow => "57P03",
            Self::TooManyConnections => "53300",
            Self::ProtocolViolation { .. } => "08P01",
            Self::OutOfMemory => "53200",
            Self::Io { .. } => "58030",
            Self::InsufficientPrivilege { .. } => "42501",
            Self::DataCorrupted { .. } => "XX001",
            Self::Evaluation { sqlstate, .. } => sqlstate,
            Self::Internal { .. } => "XX000",
        }
    }

    /// `column "c" does not exist`, or `column r.c does not exist` as PostgreSQL says it of
    /// qualified names.
    #[must_use]
    pub fn undefined_column(qualifier: Option<&str>, column: &str) -> Self {
        let name = match qualifier {
            Some(qualifier) => format!("{qualifier}.{column}"),
            None => format!("\"{column}\""),
        };
        Self::UndefinedColumn { name }
    }

    /// `feature is not supported`.
    #[must_use]
    pub fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported { feature: feature.into() }
    }

    /// A broken promise inside Highwater.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal { message: message.into() }
    }

    /// Attaches the 1-based character position of the token the error is about.
    #[must_use]
    pub fn at(self, position: u32) -> SqlError {
        SqlError::from(self).at(position)
    }

    /// Attaches advice.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> SqlError {
        SqlError::from(self).hint(hint)
    }

    /// Attaches what was found.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> SqlError {
        SqlError::from(self).detail(detail)
    }
}

/// A SQL error with the place in the statement it points at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct SqlError {
    pub kind: Box<SqlErrorKind>,
    /// 1-based character position. Errors of [`crate::parse`] count in the whole text given to
    /// it; errors about a parsed statement count in [`crate::Parsed::text`] and are moved by
    /// [`SqlError::shift`] before a client sees them.
    pub position: Option<u32>,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

impl SqlError {
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        self.kind.sqlstate()
    }

    #[must_use]
    pub fn at(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Moves the position from a statement's own text into the whole text
    /// ([`crate::Parsed::offset`]).
    #[must_use]
    pub fn shift(mut self, offset: u32) -> Self {
        self.position = self.position.map(|position| position.saturating_add(offset));
        self
    }
}

impl From<SqlErrorKind> for SqlError {
    fn from(kind: SqlErrorKind) -> Self {
        Self { kind: Box::new(kind), position: None, detail: None, hint: None }
    }
}
