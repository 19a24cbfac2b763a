//! SELECT, VALUES, TABLE: planned as a batch query, read at one instant.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema, SchemaRef};
use catalog::RelationId;
use dataflow::row_bytes;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use futures::TryStreamExt;
use planner::{BatchTables, QueryPlan, plan_query};
use sql::{SqlError, SqlErrorKind};
use sqlparser::ast;
use state::Published;

use super::Signature;
use crate::batch::{StatementTables, ViewSlot};
use crate::dml::HeldRows;
use crate::error::{from_arrow, from_datafusion};
use crate::live::Live;
use crate::point_read::PointRead;
use crate::rewrite::rewrite;
use crate::transaction::ReadView;
use crate::{Output, Rows, Session};

/// Of the memory of queries, one in so many bytes is what a sort keeps back for merging: with
/// DataFusion's 10 MiB no sort at all would run in a small budget.
const SORT_SHARE: usize = 16;

pub(super) async fn run(session: &mut Session, query: &ast::Query) -> Result<Output, SqlError> {
    let live = fixed_live(session).await?;
    if let Some(point) = PointRead::of(query, &live) {
        let view = read_view(session, &live, &[point.relation()]).await?;
        let rows = session.shared.workers.run(async move { point.read(&view) }).await?;
        return Ok(Output::rows("SELECT", rows));
    }
    let tables = statement_tables(session, &live);
    let planned = plan(session, &live, query, tables).await?;
    let view = read_view(session, &live, &planned.plan.dependencies).await?;
    let rows = planned.stream(session, view).await?;
    Ok(Output::rows("SELECT", rows))
}

pub(super) async fn describe(session: &mut Session, query: &ast::Query) -> Result<Signature, SqlError> {
    let live = fixed_live(session).await?;
    let tables = statement_tables(session, &live);
    plan(session, &live, query, tables).await?.signature()
}

/// What exists for this statement; in a transaction, its snapshot is taken now.
pub(super) async fn fixed_live(session: &mut Session) -> Result<Arc<Live>, SqlError> {
    if let Some(transaction) = &mut session.transaction {
        transaction.snapshot(&session.shared).await?;
    }
    Ok(session.live())
}

pub(super) fn statement_tables(session: &Session, live: &Arc<Live>) -> StatementTables {
    let functions = session.function_context(Arc::clone(live));
    StatementTables::new(Arc::clone(live), Arc::clone(&session.shared), functions)
}

/// A planned query, to be executed once.
pub(super) struct PlannedQuery {
    pub(super) plan: QueryPlan,
    pub(super) schema: SchemaRef,
    view: ViewSlot,
}

pub(super) async fn plan(
    session: &Session,
    live: &Live,
    query: &ast::Query,
    tables: StatementTables,
) -> Result<PlannedQuery, SqlError> {
    let mut query = query.clone();
    let ctx = session.plan_context(live);
    let view = tables.view();
    let partitions = session.shared.parallelism;
    let pool = session.shared.query_env.memory_pool.memory_limit();
    let plan = session
        .shared
        .workers
        .run(async move {
            rewrite(&mut query);
            let tables: Arc<dyn BatchTables> = Arc::new(tables);
            let mut plan = plan_query(&query, &ctx, &tables)?;
            let execution = &mut plan.state.config_mut().options_mut().execution;
            execution.target_partitions = partitions;
            if let MemoryLimit::Finite(bytes) = pool {
                let most = bytes / SORT_SHARE;
                execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(most);
            }
            Ok(plan)
        })
        .await?;
    let schema = named(&plan.logical, &plan.names)?;
    Ok(PlannedQuery { plan, schema, view })
}

/// The plan's columns under the names PostgreSQL gives them.
fn named(plan: &LogicalPlan, names: &[String]) -> Result<SchemaRef, SqlError> {
    let fields = plan.schema().fields();
    if fields.len() != names.len() {
        return Err(SqlErrorKind::internal("a plan with more columns than names").into());
    }
    let fields: Vec<Field> =
        fields.iter().zip(names).map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// The instant at which a statement reads these relations (semantics 16–18).
pub(super) async fn read_view(
    session: &Session,
    live: &Live,
    relations: &[RelationId],
) -> Result<ReadView, SqlError> {
    let shared = &session.shared;
    let kept: Vec<RelationId> = relations
        .iter()
        .copied()
        .filter(|id| live.relation(*id).is_some_and(|relation| relation.source.is_none()))
        .collect();
    let snapshot = session.transaction.as_ref().and_then(|transaction| transaction.snapshot.as_ref());
    let mut view = match snapshot {
        Some((_, view)) => view.clone(),
        None => ReadView::after(shared, shared.writes.acknowledged(&live.tables_below(&kept))).await?,
    };
    if !session.settings.is_on("allow_stale_reads") {
        view.refuse_unready(&live.jobs_below(&kept))?;
    }
    if session.settings.is_on("read_durable") {
        view.published = Arc::new(Published::of_checkpoint(Arc::clone(&view.published.base)));
    }
    Ok(view)
}

impl PlannedQuery {
    fn signature(&self) -> Result<Signature, SqlError> {
        let mut signature = Signature { parameters: Vec::new(), schema: Some(Arc::clone(&self.schema)) };
        self.infer(&mut signature)?;
        Ok(signature)
    }

    /// Adds the types of the parameters the plan still has.
    pub(super) fn infer(&self, signature: &mut Signature) -> Result<(), SqlError> {
        for (name, data_type) in self.plan.logical.get_parameter_types().map_err(from_datafusion)? {
            let number = name.trim_start_matches('$').parse().unwrap_or(0);
            if let Some(data_type) = data_type {
                signature.infer(number, data_type);
            }
        }
        Ok(())
    }

    /// The plan as it will run.
    pub(super) async fn physical(
        self,
        session: &Session,
        view: ReadView,
    ) -> Result<(Arc<dyn ExecutionPlan>, Self), SqlError> {
        let _ = self.view.set(view);
        session
            .shared
            .workers
            .run(async move {
                let planner = Arc::clone(self.plan.state.query_planner());
                let physical = planner
                    .create_physical_plan(&self.plan.logical, &self.plan.state)
                    .await
                    .and_then(give_way)
                    .map_err(from_datafusion)?;
                Ok((physical, self))
            })
            .await
    }

    /// What its execution shares with that of other queries.
    pub(super) fn task(&self, session: &Session) -> Arc<TaskContext> {
        let env = Arc::clone(&session.shared.query_env);
        Arc::new(TaskContext::from(&self.plan.state).with_runtime(env))
    }

    /// Runs it; rows come as they are made.
    pub(super) async fn stream(self, session: &Session, view: ReadView) -> Result<Rows, SqlError> {
        let failed = match &session.transaction {
            Some(transaction) => Arc::clone(&transaction.failed),
            None => Arc::new(AtomicBool::new(false)),
        };
        let (physical, planned) = self.physical(session, view).await?;
        let task = planned.task(session);
        let schema = executed(&planned.schema, &physical.schema());
        let stream = session.shared.workers.stream(physical, task, Arc::clone(&schema), failed);
        Ok(Rows { schema, stream })
    }

    /// Runs it to its end; all rows in one batch. Refused where they do not fit.
    pub(super) async fn collect(self, session: &Session, view: ReadView) -> Result<RecordBatch, SqlError> {
        let held = HeldRows::new(&session.shared);
        let mut rows = self.stream(session, view).await?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.stream.try_next().await.map_err(from_datafusion)? {
            // Once as it comes, once in the whole.
            held.hold(2 * row_bytes(&batch))?;
            batches.push(batch);
        }
        concat_batches(&rows.schema, &batches).map_err(from_arrow)
    }
}

/// DataFusion's plans give way to other work where rows enter them. A join or an unnest makes any
/// number of batches out of one, so it must give way too: else the statement could not be cancelled
/// and would keep its thread from all other statements.
fn give_way(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let with_pauses = plan.transform_up(|node| {
        let makes_many = node.name().ends_with("JoinExec") || node.name() == "UnnestExec";
        Ok(if makes_many {
            Transformed::yes(Arc::new(CooperativeExec::new(node)) as _)
        } else {
            Transformed::no(node)
        })
    })?;
    Ok(with_pauses.data)
}

/// The announced columns with the types that execution gives: the physical planner may sharpen
/// nullability and metadata.
fn executed(announced: &SchemaRef, physical: &SchemaRef) -> SchemaRef {
    let fields: Vec<Field> = announced
        .fields()
        .iter()
        .zip(physical.fields())
        .map(|(announced, physical)| {
            announced.as_ref().clone().with_data_type(physical.data_type().clone()).with_nullable(true)
        })
        .collect();
    Arc::new(Schema::new(fields))
}
