//! State tables: keyed rows, described by an Arrow schema whose first columns are the key.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};

use crate::{Result, key_groups};

/// Where a schema's metadata says which key columns decide the key group.
const GROUP_COLUMNS: &str = "group_columns";

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

    /// The same table with only these of its key columns, in this order, deciding the key group
    /// of a row. They must be the columns by which the exchange before the operator distributes,
    /// or a restore at another parallelism hands a row to a task that never asks for it.
    #[must_use]
    pub fn with_group_columns(&self, columns: &[usize]) -> Self {
        assert!(columns.iter().all(|column| *column < self.key_len));
        let listed: Vec<String> = columns.iter().map(usize::to_string).collect();
        let mut metadata = self.columns.metadata().clone();
        metadata.insert(GROUP_COLUMNS.to_owned(), listed.join(","));
        let schema = Schema::new_with_metadata(self.columns.fields().clone(), metadata);
        Self { columns: Arc::new(schema), key_len: self.key_len }
    }

    /// The key columns that decide the key group of a row, in order: the whole key unless
    /// [`Self::with_group_columns`] said otherwise.
    #[must_use]
    pub fn group_columns(&self) -> Vec<usize> {
        match self.columns.metadata().get(GROUP_COLUMNS) {
            Some(listed) => listed.split(',').filter_map(|column| column.parse().ok()).collect(),
            None => (0..self.key_len).collect(),
        }
    }

    /// The key group of each key of this table.
    pub fn key_groups(&self, keys: &[ArrayRef], rows: usize) -> Result<Vec<u8>> {
        let columns: Vec<ArrayRef> =
            self.group_columns().into_iter().map(|column| ArrayRef::clone(&keys[column])).collect();
        key_groups(&columns, rows)
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

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn the_group_columns_decide_the_key_group() {
        let field = |name| Field::new(name, DataType::Int64, false);
        let columns = Arc::new(Schema::new(vec![field("a"), field("b"), field("v")]));
        let whole = TableSchema { columns, key_len: 2 };
        let column = |value| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
        let (a, b) = (column(1), column(2));
        let keys = [Arc::clone(&a), Arc::clone(&b)];
        assert_eq!(whole.key_groups(&keys, 1).unwrap(), key_groups(&keys, 1).unwrap());
        let of_b = whole.with_group_columns(&[1]);
        assert_eq!(of_b.key_groups(&keys, 1).unwrap(), key_groups(std::slice::from_ref(&b), 1).unwrap());
        let turned = whole.with_group_columns(&[1, 0]);
        assert_eq!(turned.key_groups(&keys, 1).unwrap(), key_groups(&[b, a], 1).unwrap());
        let none = whole.with_group_columns(&[]);
        assert_eq!(none.key_groups(&keys, 1).unwrap(), key_groups(&[], 1).unwrap());
    }
}
