//! A view, table or side relation as a table of batch queries.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use async_trait::async_trait;
use catalog::RelationId;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use sql::{SqlError, SqlErrorKind};
use state::Published;

use super::pushdown::{KeyRange, is_useful};
use super::scan::{Batches, Scan, ScanExec};
use crate::dml::TableWrites;
use crate::error::{from_arrow, from_state};
use crate::live::Stored;
use crate::transaction::ReadView;

/// Rows in a batch read from a view table.
const BATCH_ROWS: usize = 8192;

/// The instant a statement reads, known only after the statement has been planned: what to wait
/// for depends on the tables the plan reads.
pub(crate) type ViewSlot = Arc<OnceLock<ReadView>>;

/// The rows of a relation.
#[derive(Debug)]
pub(crate) struct StoredTable {
    id: RelationId,
    name: String,
    stored: Arc<Stored>,
    /// Hidden columns too: what UPDATE and DELETE read.
    all_columns: bool,
    view: Slot,
}

struct Slot(ViewSlot);

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("instant")
    }
}

impl StoredTable {
    /// The visible columns.
    pub(crate) fn new(id: RelationId, name: &str, stored: Arc<Stored>, view: ViewSlot) -> Self {
        Self { id, name: name.to_owned(), stored, all_columns: false, view: Slot(view) }
    }

    /// All columns of the view table, in its order.
    pub(crate) fn with_hidden_columns(mut self) -> Self {
        self.all_columns = true;
        self
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        if self.all_columns {
            Arc::clone(&self.stored.schema.columns)
        } else {
            Arc::clone(&self.stored.visible)
        }
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| {
                if is_useful(filter, &self.stored) {
                    TableProviderFilterPushDown::Inexact
                } else {
                    TableProviderFilterPushDown::Unsupported
                }
            })
            .collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let view = self.view.0.get().ok_or_else(|| {
            external(SqlErrorKind::internal("a scan was planned before its instant was known").into())
        })?;
        let schema = self.schema();
        let visible: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
        let columns = if self.all_columns {
            visible.clone()
        } else {
            visible.iter().map(|&column| self.stored.output[column]).collect()
        };
        let schema = Arc::new(schema.project(&visible)?);
        let scan = StoredScan {
            name: self.name.clone(),
            stored: Arc::clone(&self.stored),
            range: KeyRange::of(filters, &self.stored),
            columns,
            schema: Arc::clone(&schema),
            published: Arc::clone(&view.published),
            writes: view.writes.table(self.id).cloned(),
        };
        let order = scan.order();
        Ok(Arc::new(ScanExec::new(Arc::new(scan), schema, 1, &order)))
    }
}

struct StoredScan {
    name: String,
    stored: Arc<Stored>,
    range: KeyRange,
    /// Columns of the view table to give, in order.
    columns: Vec<usize>,
    schema: SchemaRef,
    published: Arc<Published>,
    /// The transaction's own rows.
    writes: Option<Arc<TableWrites>>,
}

impl fmt::Debug for StoredScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl Scan for StoredScan {
    fn batches(&self, _: usize) -> Result<Batches> {
        let shape = Shape {
            columns: self.columns.clone(),
            count: self.stored.multiset.then(|| self.stored.schema.columns.fields().len() - 1),
            schema: Arc::clone(&self.schema),
        };
        let own = match &self.writes {
            Some(writes) => writes.rows().map_err(external)?,
            None => None,
        };
        let writes = self.writes.clone();
        let read = self.read().map_err(external)?;
        let read = read.map(move |batch| match &writes {
            Some(writes) => writes.untouched(&batch?),
            None => batch,
        });
        let batches = read.chain(own.map(Ok)).map(move |batch| shape.apply(&batch?));
        Ok(Box::new(batches.map(|batch| batch.map_err(external))))
    }

    fn describe(&self) -> String {
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let mut text = format!("StoredScan: {} columns=[{}]", self.name, columns.join(", "));
        if !self.range.is_unbounded() {
            text.push_str(&format!(" key=[{}]", self.range.to_string().trim()));
        }
        text
    }
}

impl StoredScan {
    /// Columns of the scan that its rows are sorted by: the first key columns, as far as they are
    /// given and keys sort like values. The transaction's own rows come behind, in no order.
    fn order(&self) -> Vec<usize> {
        if self.writes.is_some() {
            return Vec::new();
        }
        let key = 0..self.stored.schema.key_len;
        key.map_while(|place| {
            let sorts_alike = sorts_like_its_key(self.stored.schema.columns.field(place).data_type());
            self.columns.iter().position(|&column| sorts_alike && column == place)
        })
        .collect()
    }

    /// Rows of the view table in the key range.
    fn read(&self) -> Result<Box<dyn Iterator<Item = Result<RecordBatch, SqlError>> + Send>, SqlError> {
        let Stored { table, schema, .. } = self.stored.as_ref();
        if self.range.is_point(&self.stored) {
            let (rows, _) = self.published.get(*table, schema, &self.range.key()?).map_err(from_state)?;
            return Ok(Box::new(std::iter::once(Ok(rows))));
        }
        let batches = self.published.scan(*table, schema, self.range.encode()?, BATCH_ROWS);
        Ok(Box::new(batches.map(|batch| batch.map_err(from_state))))
    }
}

/// Whether Arrow orders values of a type as their key encoding does. Floats differ in -0 and NaN,
/// intervals in what they count as equal.
fn sorts_like_its_key(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::Utf8View
                | DataType::Date32
                | DataType::Time64(_)
                | DataType::Timestamp(..)
                | DataType::Decimal128(..)
        )
}

/// From rows of the view table to rows of the scan.
struct Shape {
    columns: Vec<usize>,
    /// The multiplicity column of a multiset.
    count: Option<usize>,
    schema: SchemaRef,
}

impl Shape {
    fn apply(&self, rows: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let mut columns: Vec<ArrayRef> =
            self.columns.iter().map(|&column| Arc::clone(rows.column(column))).collect();
        let mut row_count = rows.num_rows();
        if let Some(count) = self.count
            && let Some(repeated) = repeated(rows, count)?
        {
            row_count = repeated.len();
            for column in &mut columns {
                *column = take(column, &repeated, None).map_err(from_arrow)?;
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(row_count));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(from_arrow)
    }
}

/// Each row as often as its multiplicity says; `None`: each once.
fn repeated(rows: &RecordBatch, count: usize) -> Result<Option<UInt32Array>, SqlError> {
    let counts = rows
        .column(count)
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| SqlErrorKind::internal("a multiplicity that is no bigint"))?
        .values();
    if counts.iter().all(|&count| count == 1) {
        return Ok(None);
    }
    let mut indices = Vec::with_capacity(counts.len());
    for (row, &count) in (0_u32..).zip(counts.iter()) {
        indices.extend(std::iter::repeat_n(row, usize::try_from(count).unwrap_or(0)));
    }
    Ok(Some(UInt32Array::from(indices)))
}

pub(crate) fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
