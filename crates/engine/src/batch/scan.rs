//! The leaf of every batch plan: some partitions of record batches, made when they are asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;

/// How long a scan waits before it looks again whether its input goes on.
const PAUSE: Duration = Duration::from_millis(5);

/// Batches of one partition. They are made on the thread that polls for them, one at a time, so
/// a query that is dropped stops after the batch at hand.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Makes the batches of a scan.
pub(crate) trait Scan: fmt::Debug + Send + Sync {
    /// The batches of a partition, with the schema of the scan.
    fn batches(&self, partition: usize) -> Result<Batches>;
    /// Whether a batch without rows means that there is nothing now but will be.
    fn waits(&self) -> bool {
        false
    }
    /// One line for EXPLAIN.
    fn describe(&self) -> String;
}

/// The plan node of a [`Scan`].
#[derive(Debug)]
pub(crate) struct ScanExec {
    scan: Arc<dyn Scan>,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    /// `order`: columns by which each partition is sorted, ascending, NULLs last.
    pub(crate) fn new(scan: Arc<dyn Scan>, schema: SchemaRef, partitions: usize, order: &[usize]) -> Self {
        let options = SortOptions { descending: false, nulls_first: false };
        let order = order.iter().map(|&column| {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(column).name(), column));
            PhysicalSortExpr { expr: column, options }
        });
        let order: Vec<PhysicalSortExpr> = order.collect();
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, [order]),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { scan, properties: Arc::new(properties) }
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scan.describe())
    }
}

#[async_trait]
impl ExecutionPlan for ScanExec {
    fn name(&self) -> &'static str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = self.scan.batches(partition)?;
        let waits = self.scan.waits();
        let stream = futures::stream::iter(batches).then(move |batch| async move {
            if waits && batch.as_ref().is_ok_and(|batch| batch.num_rows() == 0) {
                // Nobody tells when there is more. The time-out is the pause.
                let _ = tokio::time::timeout(PAUSE, std::future::pending::<()>()).await;
            }
            batch
        });
        let stream = Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream));
        Ok(datafusion::physical_plan::coop::make_cooperative(stream))
    }
}
