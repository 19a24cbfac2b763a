//! Logical plans to job graphs: one file per operator.
//!
//! Lowering goes from the bottom up. A [`Flow`] is the end of a chain in the making; operators
//! are added to it until one needs its rows elsewhere (a hash exchange) or several inputs.
//!
//! Plain column references cost nothing: a flow remembers in which column of its rows each
//! logical column is, and a projection is added only where something is computed, sent or kept.

mod aggregate;
mod filter;
mod materialize;
mod project;
mod scan;
mod sink;
mod union;
mod window_assign;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use dataflow::{Exchange, VertexId, VertexInput};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use sql::statement::Emit;
use sql::{SqlError, SqlErrorKind};

use crate::graph::GraphBuilder;
use crate::properties::Stream;
use crate::refuse::Construct;
use crate::session::PlanSession;
use crate::window::WindowAssign;

/// Lowers one query.
pub(crate) struct Lowering<'a> {
    pub(crate) session: &'a PlanSession<'a>,
    pub(crate) graph: GraphBuilder,
    pub(crate) emit: Emit,
    /// What to tell the user.
    pub(crate) notices: Vec<String>,
}

/// Where a flow is: the input of a vertex that is not made yet, or the end of a chain.
#[derive(Debug)]
enum Head {
    Input(VertexInput),
    Vertex(VertexId),
}

/// The end of a chain in the making.
#[derive(Debug)]
pub(crate) struct Flow {
    head: Head,
    /// Columns of its rows.
    rows: SchemaRef,
    /// For each logical column, where it is in the rows.
    columns: Vec<usize>,
    pub(crate) stream: Stream,
}

/// Why a plan was not lowered.
#[derive(Debug)]
pub(crate) enum LowerError {
    /// It has no operator; its place is looked up in the text.
    Refused(Construct),
    Other(SqlError),
}

impl From<SqlError> for LowerError {
    fn from(error: SqlError) -> Self {
        Self::Other(error)
    }
}

impl From<SqlErrorKind> for LowerError {
    fn from(kind: SqlErrorKind) -> Self {
        Self::Other(kind.into())
    }
}

impl From<DataFusionError> for LowerError {
    fn from(error: DataFusionError) -> Self {
        Self::Other(sql::from_datafusion(error))
    }
}

type Result<T> = std::result::Result<T, LowerError>;

impl Lowering<'_> {
    /// Lowers a plan whose root is the output of the query.
    pub(crate) fn query(&mut self, plan: &LogicalPlan) -> Result<Flow> {
        let refused = |construct| Err(LowerError::Refused(construct));
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::SubqueryAlias(alias) => self.query(&alias.input),
            LogicalPlan::Extension(extension) => match WindowAssign::downcast(extension.node.as_ref()) {
                Some(assign) => self.window_assign(assign),
                None => refused(Construct::Other(extension.node.name().to_owned())),
            },
            LogicalPlan::Join(_) => refused(Construct::Join),
            LogicalPlan::Window(_) => refused(Construct::Over),
            LogicalPlan::Sort(_) => refused(Construct::OrderBy),
            LogicalPlan::Limit(_) => refused(Construct::Limit),
            LogicalPlan::Distinct(_) => refused(Construct::DistinctOn),
            LogicalPlan::Subquery(_) => refused(Construct::Subquery),
            LogicalPlan::Values(_) => refused(Construct::Values),
            LogicalPlan::EmptyRelation(_) => refused(Construct::NoFrom),
            LogicalPlan::Unnest(_) => refused(Construct::Unnest),
            LogicalPlan::RecursiveQuery(_) => refused(Construct::Recursive),
            LogicalPlan::Repartition(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::DescribeTable(_) => {
                let name = plan.display().to_string();
                refused(Construct::Other(name.split(':').next().unwrap_or_default().to_owned()))
            }
        }
    }

    /// The vertex a flow is in, made if it is not there yet.
    fn vertex(&mut self, flow: &mut Flow) -> VertexId {
        match &flow.head {
            Head::Vertex(vertex) => *vertex,
            Head::Input(input) => {
                let vertex = self.graph.vertex(vec![input.clone()]);
                flow.head = Head::Vertex(vertex);
                vertex
            }
        }
    }

    /// A flow as the input of another vertex.
    fn as_input(&mut self, mut flow: Flow, exchange: Exchange) -> VertexInput {
        if exchange == Exchange::Forward
            && let Head::Input(input) = flow.head
        {
            return input;
        }
        VertexInput::Exchange { from: self.vertex(&mut flow), exchange }
    }

    /// Sends the rows of a flow to the subtasks that own the key groups of these logical columns.
    fn hash(&mut self, flow: Flow, keys: &[usize]) -> Flow {
        let hashed = keys.iter().map(|key| flow.columns[*key]).collect();
        let rows = Arc::clone(&flow.rows);
        let columns = flow.columns.clone();
        let mut stream = flow.stream.clone();
        stream.distribution = Some(keys.to_vec());
        let input = self.as_input(flow, Exchange::Hash(hashed));
        Flow { head: Head::Input(input), rows, columns, stream }
    }
}

impl Flow {
    /// An expression over a logical schema as one over the rows of this flow.
    fn physical(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        let props = ExecutionProps::new();
        let physical = create_physical_expr(expr, schema, &props, &PhysicalPlanningContext::default())?;
        let moved = physical.transform(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            Ok(Transformed::yes(self.column(column.index())))
        })?;
        Ok(moved.data)
    }

    /// A logical column of this flow as an expression over its rows.
    fn column(&self, logical: usize) -> Arc<dyn PhysicalExpr> {
        let at = self.columns[logical];
        Arc::new(Column::new(self.rows.field(at).name(), at))
    }
}

/// An expression without its aliases.
fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

/// The logical column an expression is, if it is just that.
fn plain_column(expr: &Expr, schema: &DFSchema) -> Option<usize> {
    match unaliased(expr) {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    }
}
