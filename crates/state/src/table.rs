//! State tables: keyed rows, described by an Arrow schema whose first columns are the key.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, SchemaRef};

/// Names a state or view table. Never reused, not even after a drop or a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// The columns of a table; the first `key_len` are its key, in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// All columns, key first.
    pub columns: SchemaRef,
    /// How many of them form the key. 0: the table has at most one row.
    pub key_len: usize,
}

impl TableSchema {
    /// Fields of the key.
    #[must_use]
    pub fn key_fields(&self) -> &[FieldRef] {
        &self.columns.fields()[..self.key_len]
    }

    /// Fields behind the key.
    #[must_use]
    pub fn value_fields(&self) -> &[FieldRef] {
        &self.columns.fields()[self.key_len..]
    }
}

/// Changes of one table since the last hand-over, still as columns: encoding and sorting happen on
/// the commit thread.
///
/// **Invariant.** A key occurs at most once over `puts` and `deletes` together; `delete_up_to`
/// applies before both.
#[derive(Debug, Clone)]
pub struct TableChanges {
    /// The table's columns.
    pub schema: Arc<TableSchema>,
    /// Rows that replace whatever their key had.
    pub puts: Vec<RecordBatch>,
    /// Keys (the key columns only) that are gone.
    pub deletes: Vec<Vec<ArrayRef>>,
    /// A one-element array: rows whose first key column is at most this, in the task's key
    /// groups, are gone (a closed window).
    pub delete_up_to: Option<ArrayRef>,
}
