//! Names to things: a query's syntax tree to a logical plan over the relations of the catalog.
//!
//! | relation | in a view's job | in a batch query |
//! |---|---|---|
//! | source, table, materialized view | [`RelationSource`], lowered to the output of its job | the engine's table |
//! | view                             | its query, planned in place | its query, planned in place |
//! | system table                     | refused | the engine's table |

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, SchemaRef};
use catalog::{Column, Relation, RelationId, RelationKind};
use datafusion::catalog::TableFunctionArgs;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, Result, TableReference};
use datafusion::datasource::{TableType, provider_as_source};
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableSource, WindowUDF,
    cast,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use sql::{SqlError, SqlErrorKind, Statement};
use sqlparser::ast;

use crate::api::BatchTables;
use crate::columns::column_of;
use crate::error::user_error;
use crate::names;
use crate::session::{PlanSession, definition, refuse_reading};
use crate::storage_type::storage_type;
use crate::{text_length, wrong};

/// A relation whose job is followed.
pub(crate) struct RelationSource {
    pub(crate) relation: Relation,
    schema: SchemaRef,
}

impl TableSource for RelationSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A view: its query, which takes its place.
struct ViewSource {
    plan: LogicalPlan,
}

impl TableSource for ViewSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.plan.schema().inner())
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}

/// Where the rows of relations come from.
#[derive(Clone, Copy)]
pub(crate) enum Tables<'a> {
    /// The outputs of jobs.
    Followed,
    /// What the engine gives.
    Batch(&'a Arc<dyn BatchTables>),
}

/// A query as a plan.
#[derive(Debug)]
pub(crate) struct BoundQuery {
    /// Analyzed: names, types and functions are resolved.
    pub(crate) plan: LogicalPlan,
    /// Output names as PostgreSQL gives them; one per column of the plan.
    pub(crate) names: Vec<String>,
    /// Relations it reads, in the order they are first named.
    pub(crate) reads: Vec<RelationId>,
}

/// Binds one query.
pub(crate) struct Binder<'a> {
    session: &'a PlanSession<'a>,
    tables: Tables<'a>,
    reads: RefCell<Reads>,
}

#[derive(Default)]
struct Reads {
    relations: Vec<RelationId>,
    /// How many views deep the name being resolved is.
    depth: usize,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(session: &'a PlanSession<'a>, tables: Tables<'a>) -> Self {
        Self { session, tables, reads: RefCell::default() }
    }

    /// Binds and analyzes a query; `parameters` are the types of `$1 …`, where known.
    pub(crate) fn bind(
        self,
        query: &ast::Query,
        parameters: &[Option<DataType>],
    ) -> Result<BoundQuery, SqlError> {
        let (plan, names) = self.plan(query, parameters).map_err(sql::from_datafusion)?;
        let plan = self.analyze(plan).map_err(sql::from_datafusion)?;
        Ok(BoundQuery { plan, names, reads: self.reads.into_inner().relations })
    }

    fn plan(
        &self,
        query: &ast::Query,
        parameters: &[Option<DataType>],
    ) -> Result<(LogicalPlan, Vec<String>)> {
        wrong::refuse(query).map_err(user_error)?;
        let mut unique = names::with_unique_items(query);
        text_length::cut(&mut unique);
        let options = ParserOptions::from(&self.options().sql_parser);
        let planner = SqlToRel::new_with_options(self, options);
        let parameters = parameters.iter().enumerate().map(|(index, data_type)| {
            let field = |data_type: &DataType| Field::new(format!("${}", index + 1), data_type.clone(), true);
            data_type.as_ref().map(field).map(Arc::new)
        });
        let mut context = PlannerContext::new().with_prepare_param_data_types(parameters.collect());
        let statement = ast::Statement::Query(Box::new(unique));
        let plan = planner.sql_statement_to_plan_with_context(statement, &mut context)?;
        let names = sql::output_names(query, plan.schema());
        Ok((plan, names))
    }

    fn analyze(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        self.session.state.analyzer().execute_and_check(plan, self.options(), |_, _| {})
    }

    /// The expression of a WATERMARK over the columns of its relation.
    pub(crate) fn expression(&self, expr: &ast::Expr, schema: &DFSchema) -> Result<Expr> {
        let options = ParserOptions::from(&self.options().sql_parser);
        let planner = SqlToRel::new_with_options(self, options);
        planner.sql_to_expr(expr.clone(), schema, &mut PlannerContext::new())
    }

    fn relation_source(&self, relation: &Relation) -> Result<Arc<dyn TableSource>, SqlError> {
        if let Some(refused) = refuse_reading(relation) {
            return Err(refused.into());
        }
        self.note(relation.id);
        match (&relation.kind, self.tables) {
            (RelationKind::View, _) => self.view_source(relation),
            (_, Tables::Batch(tables)) => Ok(provider_as_source(tables.table(relation)?)),
            (RelationKind::Side { .. }, Tables::Followed) => {
                let feature = format!("reading \"{}\"", relation.name);
                Err(SqlErrorKind::UnsupportedInView { feature }.into())
            }
            (_, Tables::Followed) => {
                let upstream = self.session.upstream(relation)?;
                if upstream.passes_sources_on {
                    return self.view_source(relation);
                }
                let schema = Arc::clone(&upstream.schema);
                Ok(Arc::new(RelationSource { relation: relation.clone(), schema }))
            }
        }
    }

    /// A batch query waits for everything it reads; a view depends on what its text names.
    fn note(&self, relation: RelationId) {
        let mut reads = self.reads.borrow_mut();
        let counts = reads.depth == 0 || matches!(self.tables, Tables::Batch(_));
        if counts && !reads.relations.contains(&relation) {
            reads.relations.push(relation);
        }
    }

    fn view_source(&self, relation: &Relation) -> Result<Arc<dyn TableSource>, SqlError> {
        let query = match definition(relation)? {
            Statement::CreateView(view) => view.query,
            Statement::CreateMaterializedView(view) => view.query,
            other => return Err(SqlErrorKind::internal(format!("a view is defined by {other:?}")).into()),
        };
        self.reads.borrow_mut().depth += 1;
        let planned = self.plan(&query, &[]);
        self.reads.borrow_mut().depth -= 1;
        let columns = relation.columns.iter().map(|column| (column.name.as_str(), &column.data_type));
        // Analyzed here already, so that what is above it is bound with the final types.
        let plan = planned
            .and_then(|(plan, _)| self.analyze(plan))
            .and_then(|plan| with_columns(plan, columns))
            // A place in the text of the view would point into that of the query that reads it.
            .map_err(|error| SqlError { position: None, ..sql::from_datafusion(error) })?;
        Ok(Arc::new(ViewSource { plan }))
    }

    fn source(&self, name: &TableReference) -> Result<Arc<dyn TableSource>, SqlError> {
        let (schema, table) = (name.schema(), name.table());
        let catalog = &self.session.ctx.catalog;
        if let Some(relation) = catalog.relation(schema, table) {
            return self.relation_source(relation);
        }
        if let Tables::Batch(tables) = self.tables
            && let Some(provider) = tables.system_table(schema, table)
        {
            return Ok(provider_as_source(provider));
        }
        let name = match schema {
            Some(schema) => format!("{schema}.{table}"),
            None => table.to_owned(),
        };
        Err(SqlErrorKind::UndefinedTable { name }.into())
    }
}

/// A plan whose columns have these names, and types that can be stored.
pub(crate) fn with_storage_types(plan: LogicalPlan, names: &[String]) -> Result<LogicalPlan> {
    let types: Vec<DataType> =
        plan.schema().fields().iter().map(|field| storage_type(field.data_type())).collect();
    with_columns(plan, names.iter().map(String::as_str).zip(&types))
}

/// A plan with these names and types of columns.
fn with_columns<'a>(
    plan: LogicalPlan,
    columns: impl Iterator<Item = (&'a str, &'a DataType)>,
) -> Result<LogicalPlan> {
    let mut is_done = true;
    let mut expressions = Vec::with_capacity(plan.schema().fields().len());
    for ((qualifier, field), (name, data_type)) in plan.schema().iter().zip(columns) {
        let column = Expr::Column((qualifier, field).into());
        let is_right = field.data_type() == data_type;
        is_done &= is_right && qualifier.is_none() && field.name() == name;
        let column = if is_right { column } else { cast(column, data_type.clone()) };
        expressions.push(column.alias(name));
    }
    if is_done { Ok(plan) } else { LogicalPlanBuilder::from(plan).project(expressions)?.build() }
}

/// The columns of a plan as those of a relation.
pub(crate) fn columns_of(plan: &LogicalPlan, names: &[String]) -> Vec<Column> {
    plan.schema().fields().iter().zip(names).map(|(field, name)| column_of(field, name)).collect()
}

impl ContextProvider for Binder<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        self.source(&name).map_err(user_error)
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let state = &self.session.state;
        let Some(function) = state.table_functions().get(name) else {
            let signature = format!("{name}(…)");
            return Err(user_error(SqlErrorKind::UndefinedFunction { signature }.into()));
        };
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(state.config_options()))
            .with_query_execution_start_time(state.execution_props().query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(context);
        let nothing = DFSchema::empty();
        let constant = |arg| simplifier.coerce(arg, &nothing).and_then(|arg| simplifier.simplify(arg));
        let args: Vec<Expr> = args.into_iter().map(constant).collect::<Result<_>>()?;
        let provider = function.create_table_provider_with_args(TableFunctionArgs::new(&args, state))?;
        Ok(provider_as_source(provider))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        let table = datafusion::datasource::cte_worktable::CteWorkTable::new(name, schema);
        Ok(provider_as_source(Arc::new(table)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.session.state.expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        self.session.state.relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(sql::types::SqlTypes))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.session.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.session.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.session.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.session.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.session.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.session.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.session.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.session.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.session.state.window_functions().keys().cloned().collect()
    }
}
