//! `TUMBLE(relation, column, size[, offset])` in FROM.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{ExprSchema, Result, TableReference};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder};
use sql::SqlErrorKind;
use sql::literals::interval_micros;
use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Spanned, TableAlias, TableFactor,
};
use sqlparser::tokenizer::Span;

use super::bounds::bounds_of;
use super::{WINDOW_COLUMNS, WindowAssign};
use crate::error::{error_at, position, user_error};

/// Plans window table functions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowRelations {
    /// Whether the plan is for a view: then windows stay a node of their own.
    pub(crate) streaming: bool,
}

impl RelationPlanner for WindowRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some(call) = WindowCall::of(&relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let plan = self.plan_call(&call, context)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, call.alias))))
    }
}

/// `NAME(argument, …) [AS alias]` where the name is one of the window functions.
struct WindowCall {
    function: String,
    arguments: Vec<ast::Expr>,
    alias: Option<TableAlias>,
    span: Span,
}

impl WindowCall {
    fn of(relation: &TableFactor) -> Option<Self> {
        let TableFactor::Table { name, alias, args: Some(args), .. } = relation else {
            return None;
        };
        let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
            return None;
        };
        let function = ident.value.to_uppercase();
        if !["TUMBLE", "HOP", "SESSION", "CUMULATE"].contains(&function.as_str()) {
            return None;
        }
        let arguments = args.args.iter().map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            FunctionArg::Unnamed(_) | FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => None,
        });
        // An argument that is no expression leaves a gap, which the count then reports.
        let arguments = arguments.collect::<Option<Vec<_>>>().unwrap_or_default();
        Some(Self { function, arguments, alias: alias.clone(), span: name.span() })
    }
}

impl WindowRelations {
    fn plan_call(self, call: &WindowCall, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        if call.function != "TUMBLE" {
            return Err(fail(SqlErrorKind::Unsupported { feature: call.function.clone() }, call.span));
        }
        let (relation, column, size, offset) = match call.arguments.as_slice() {
            [relation, column, size] => (relation, column, size, None),
            [relation, column, size, offset] => (relation, column, size, Some(offset)),
            _ => {
                let message = "TUMBLE takes a relation, a column, a size and optionally an offset".to_owned();
                return Err(fail(SqlErrorKind::Syntax { message }, call.span));
            }
        };
        let input = context.plan(relation_factor(relation)?)?;
        let time = time_column(column, &input, context)?;
        let size_micros = interval(size)?;
        if size_micros <= 0 {
            let message = "the size of a window must be positive".to_owned();
            return Err(fail(SqlErrorKind::InvalidArgument { message }, size.span()));
        }
        let offset = match offset {
            Some(offset) => interval(offset)?,
            None => 0,
        };
        refuse_window_columns(&input, call.span)?;
        self.assign(input, time, size_micros, offset.rem_euclid(size_micros))
    }

    fn assign(self, input: LogicalPlan, time: Expr, size: i64, offset: i64) -> Result<LogicalPlan> {
        if self.streaming {
            let node = Arc::new(WindowAssign::new(input, time, size, offset)?);
            return Ok(LogicalPlan::Extension(Extension { node }));
        }
        let qualifier = match &time {
            Expr::Column(column) => column.relation.clone(),
            _ => None,
        };
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        let window = bounds_of(&time, size, offset).map(|bound| requalify(bound, qualifier.as_ref()));
        let expressions: Vec<Expr> = columns.chain(window).collect();
        LogicalPlanBuilder::new(input).project(expressions)?.build()
    }
}

/// Gives an aliased expression the qualifier of the time column.
fn requalify(expression: Expr, qualifier: Option<&TableReference>) -> Expr {
    match expression {
        Expr::Alias(alias) => alias.expr.alias_qualified(qualifier.cloned(), alias.name),
        other => other,
    }
}

fn fail(kind: SqlErrorKind, span: Span) -> DataFusionError {
    user_error(error_at(kind, span))
}

/// The first argument as a table factor: a name, or a subquery in parentheses.
fn relation_factor(argument: &ast::Expr) -> Result<TableFactor> {
    let named = |parts: Vec<Ident>| TableFactor::Table {
        name: ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect()),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    match argument {
        ast::Expr::Identifier(ident) => Ok(named(vec![ident.clone()])),
        ast::Expr::CompoundIdentifier(parts) => Ok(named(parts.clone())),
        ast::Expr::Subquery(query) => {
            Ok(TableFactor::Derived { lateral: false, subquery: query.clone(), alias: None, sample: None })
        }
        other => {
            let message = "the first argument of TUMBLE must be a relation".to_owned();
            Err(fail(SqlErrorKind::Syntax { message }, other.span()))
        }
    }
}

fn time_column(
    argument: &ast::Expr,
    input: &LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<Expr> {
    let time = context.sql_to_expr(argument.clone(), input.schema())?;
    let Expr::Column(column) = &time else {
        let message = "the second argument of TUMBLE must be a column".to_owned();
        return Err(fail(SqlErrorKind::Syntax { message }, argument.span()));
    };
    let data_type = input.schema().field_from_column(column)?.data_type();
    if matches!(data_type, DataType::Timestamp(TimeUnit::Microsecond, _)) {
        return Ok(time);
    }
    let message = format!(
        "TUMBLE needs a column of type timestamp or timestamp with time zone, but \"{}\" is of type {}",
        column.name,
        sql::type_name(data_type),
    );
    Err(fail(SqlErrorKind::DatatypeMismatch { message }, argument.span()))
}

fn interval(argument: &ast::Expr) -> Result<i64> {
    interval_micros(argument).map_err(|error| match position(argument.span()) {
        Some(position) => user_error(error.at(position)),
        None => user_error(error),
    })
}

fn refuse_window_columns(input: &LogicalPlan, span: Span) -> Result<()> {
    let taken = |name: &&&str| input.schema().fields().iter().any(|field| field.name() == **name);
    match WINDOW_COLUMNS.iter().find(taken) {
        None => Ok(()),
        Some(name) => {
            let error = error_at(SqlErrorKind::DuplicateColumn { name: (*name).to_owned() }, span);
            Err(user_error(error.hint("Rename the column in a subquery, or select without it.")))
        }
    }
}
