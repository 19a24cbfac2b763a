//! GROUP BY and SELECT DISTINCT.
//!
//! ```text
//!  project: keys, arguments, filters ── hash(keys) ──► aggregate
//! ```
//!
//! A window among the keys whose end the watermark will pass lets the operator free its groups.
//! Then the end of the window is the first key, derived from `window_start` or `window_time`
//! where only those are grouped by.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, IntervalMonthDayNano, Schema};
use dataflow::{ChangelogKind, OperatorSpec};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction as AggregateExpr, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, Cast, Expr, lit};
use datafusion::physical_expr::PhysicalExpr;
use operators::{Aggregate as AggregateSpec, AggregateCall, AggregateFunction};
use sql::{SqlError, SqlErrorKind};

use super::project::{Computed, computed_field, renamed};
use super::{Flow, LowerError, Lowering, Result, plain_column, unaliased};
use crate::properties::{Stream, WindowColumn};
use crate::refuse::Construct;
use crate::window::WINDOW_COLUMNS;

const MICROS_PER_DAY: i64 = 86_400_000_000;

impl Lowering<'_> {
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Flow> {
        if aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return Err(LowerError::Refused(Construct::GroupingSets));
        }
        let flow = self.query(&aggregate.input)?;
        let groups = Groups::of(aggregate, &flow.stream);
        if let Some(reason) = &groups.never_closes {
            self.groups_stay(aggregate, reason)?;
        }
        let lateness = if groups.never_closes.is_none() { self.pending_lateness(&flow) } else { 0 };
        let mut columns = Columns::new(&flow, aggregate.input.schema());
        for key in groups.keys() {
            columns.key(key)?;
        }
        let mut calls = Vec::with_capacity(aggregate.aggr_expr.len());
        let outputs = &aggregate.schema.fields()[aggregate.group_expr.len()..];
        for (expr, output) in aggregate.aggr_expr.iter().zip(outputs) {
            calls.push(columns.call(expr, output)?);
        }
        let keys: Vec<usize> = (0..groups.key_count()).collect();
        let kind = flow.stream.kind;
        let computed = columns.computed;
        let flow = self.compute(flow, computed);
        let mut flow = self.hash(flow, &keys);
        let spec = AggregateSpec {
            input: Arc::clone(&flow.rows),
            input_kind: kind,
            group_columns: keys,
            aggregates: calls,
            window_end: groups.never_closes.is_none().then_some(0),
            allowed_lateness: lateness,
            emit_on_window_close: self.emit.on_window_close,
        };
        flow.rows = spec.output_schema();
        flow.stream = groups.output(spec.output_kind());
        flow.columns = groups.places();
        flow.columns.extend((0..aggregate.aggr_expr.len()).map(|call| groups.key_count() + call));
        let vertex = self.vertex(&mut flow);
        self.graph.push(vertex, spec);
        Ok(flow)
    }

    /// Groups that no watermark closes: EMIT ON WINDOW CLOSE would never show them.
    fn groups_stay(&mut self, aggregate: &Aggregate, reason: &str) -> Result<()> {
        let names: Vec<String> = aggregate.schema.fields()[..aggregate.group_expr.len()]
            .iter()
            .map(|f| f.name().clone())
            .collect();
        let what = if aggregate.aggr_expr.is_empty() { "DISTINCT" } else { "GROUP BY" };
        let what = format!("{what} ({})", names.join(", "));
        if self.emit.on_window_close {
            return Err(SqlErrorKind::unsupported(format!("EMIT ON WINDOW CLOSE over {what}"))
                .detail(format!("Its groups never close: {reason}."))
                .hint("Group by the window of TUMBLE over a relation with a WATERMARK, or leave EMIT out.")
                .into());
        }
        if !names.is_empty() {
            self.notices.push(format!("{what} keeps every group for ever: {reason}"));
        }
        Ok(())
    }
}

/// A column to group by.
enum Key<'a> {
    Group(&'a Expr, &'a FieldRef),
    /// The end of the window that another key, a plain column, is a fixed time before.
    DerivedEnd(&'a Expr, i64),
}

/// What the rows are grouped by.
struct Groups<'a> {
    exprs: &'a [Expr],
    fields: &'a [FieldRef],
    /// Which groups name a window that closes.
    windows: Vec<WindowColumn>,
    /// Why no group ever closes; `None`: the watermark closes them.
    never_closes: Option<String>,
    /// Why the input has no watermark.
    no_watermark: Option<String>,
}

impl<'a> Groups<'a> {
    fn of(aggregate: &'a Aggregate, input: &Stream) -> Self {
        let exprs = aggregate.group_expr.as_slice();
        let fields = &aggregate.schema.fields()[..exprs.len()];
        let window = |(group, expr): (usize, &Expr)| {
            let column = plain_column(expr, aggregate.input.schema())?;
            let window = input.windows.iter().find(|window| window.column == column)?;
            Some(WindowColumn { column: group, to_end: window.to_end })
        };
        let mut windows: Vec<WindowColumn> = exprs.iter().enumerate().filter_map(window).collect();
        windows.sort_by_key(|window| window.to_end != 0);
        let never_closes = if let Some(reason) = &input.no_watermark {
            Some(reason.clone())
        } else if windows.is_empty() {
            Some("it has no window among its keys".to_owned())
        } else if input.kind == ChangelogKind::Retract {
            Some("its input can take rows back".to_owned())
        } else {
            None
        };
        Self { exprs, fields, windows, never_closes, no_watermark: input.no_watermark.clone() }
    }

    /// The group that is the end of the window, where there is one and it closes.
    fn end(&self) -> Option<usize> {
        let window = self.windows.first().filter(|window| window.to_end == 0)?;
        self.never_closes.is_none().then_some(window.column)
    }

    /// The group from which the end of the window is derived.
    fn derived_end(&self) -> Option<WindowColumn> {
        let window = self.windows.first().filter(|window| window.to_end != 0)?;
        self.never_closes.is_none().then_some(*window)
    }

    /// The keys, the end of the window first.
    fn keys(&self) -> Vec<Key<'a>> {
        let group = |group: usize| Key::Group(&self.exprs[group], &self.fields[group]);
        let derived = self.derived_end().map(|end| Key::DerivedEnd(&self.exprs[end.column], end.to_end));
        let first = derived.or_else(|| self.end().map(group));
        let rest = (0..self.exprs.len()).filter(|at| Some(*at) != self.end()).map(group);
        first.into_iter().chain(rest).collect()
    }

    fn key_count(&self) -> usize {
        self.exprs.len() + usize::from(self.derived_end().is_some())
    }

    /// For each group, which key it is.
    fn places(&self) -> Vec<usize> {
        let shift = usize::from(self.derived_end().is_some());
        let end = self.end();
        let place = |group: usize| match end {
            Some(end) if group == end => 0,
            Some(end) if group < end => group + 1,
            _ => group + shift,
        };
        (0..self.exprs.len()).map(place).collect()
    }

    /// The groups, as rows: they are unique, and those that close carry the watermark on.
    fn output(&self, kind: ChangelogKind) -> Stream {
        let all: Vec<usize> = (0..self.exprs.len()).collect();
        let mut stream = Stream::unknown(kind, String::new());
        stream.no_watermark = self.never_closes.as_ref().map(|_| {
            let lost = || "the watermark ends at a GROUP BY whose groups never close".to_owned();
            self.no_watermark.clone().unwrap_or_else(lost)
        });
        if self.never_closes.is_none() {
            stream.windows = self.windows.clone();
            // The start of a window that is still open can be behind the watermark.
            stream.event_time =
                self.windows.iter().filter(|window| window.to_end <= 1).map(|window| window.column).collect();
        }
        stream.key = Some(all.clone());
        stream.distribution = Some(all);
        stream
    }
}

/// The columns an aggregate reads: keys first, then arguments and filters, each one once.
struct Columns<'a> {
    flow: &'a Flow,
    input: &'a DFSchema,
    exprs: Vec<Expr>,
    computed: Computed,
}

impl<'a> Columns<'a> {
    fn new(flow: &'a Flow, input: &'a DFSchema) -> Self {
        Self { flow, input, exprs: Vec::new(), computed: Computed::new() }
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        match key {
            Key::Group(expr, field) => self.push(expr, field.name()),
            Key::DerivedEnd(expr, to_end) => {
                let end = unaliased(expr).clone() + interval(to_end);
                self.push(&end, WINDOW_COLUMNS[1])
            }
        }
    }

    fn push(&mut self, expr: &Expr, name: &str) -> Result<()> {
        let computed = self.compute(expr, name)?;
        self.exprs.push(unaliased(expr).clone());
        self.computed.push(computed);
        Ok(())
    }

    fn compute(&self, expr: &Expr, name: &str) -> Result<(Arc<dyn PhysicalExpr>, FieldRef)> {
        if let Some(column) = plain_column(expr, self.input) {
            return Ok((self.flow.column(column), renamed(self.flow, column, name)));
        }
        let physical = self.flow.physical(unaliased(expr), self.input)?;
        let field = physical.return_field(&Schema::new(self.flow.rows.fields().clone()))?;
        Ok((physical, computed_field(&field.as_ref().clone().with_name(name))))
    }

    /// Which column has an argument or filter; added if none has.
    fn argument(&mut self, expr: &Expr) -> Result<usize> {
        let expr = unaliased(expr);
        if let Some(at) = self.exprs.iter().position(|other| other == expr) {
            return Ok(at);
        }
        let name = match expr {
            Expr::Column(column) => column.name.clone(),
            computed => computed.schema_name().to_string(),
        };
        self.push(expr, &name)?;
        Ok(self.exprs.len() - 1)
    }

    fn call(&mut self, expr: &Expr, output: &FieldRef) -> Result<AggregateCall> {
        let Expr::AggregateFunction(AggregateExpr { func, params }) = unaliased(expr) else {
            return Err(SqlErrorKind::internal(format!("{expr} is not an aggregate")).into());
        };
        let refused = || LowerError::Refused(Construct::Aggregate(func.name().to_owned()));
        let function = function(func.name(), params).ok_or_else(refused)?;
        if params.null_treatment.is_some() {
            return Err(refused());
        }
        // None of these functions depends on the order of its input: ORDER BY is left out.
        let argument = match (function, params.args.as_slice()) {
            (AggregateFunction::CountStar, _) => None,
            (_, [argument]) => Some(self.argument(own_argument(function, argument))?),
            _ => return Err(refused()),
        };
        let filter = params.filter.as_ref().map(|filter| self.argument(filter)).transpose()?;
        let argument_type = argument.map(|at| self.computed[at].1.data_type());
        let result =
            function.result_type(argument_type).ok_or_else(|| wrong_type(function, argument_type))?;
        if result != *output.data_type() {
            let message =
                format!("{expr} is {} in the plan and {result} in the operator", output.data_type());
            return Err(SqlErrorKind::internal(message).into());
        }
        Ok(AggregateCall {
            function,
            argument,
            filter,
            distinct: params.distinct,
            output: computed_field(output),
        })
    }
}

fn wrong_type(function: AggregateFunction, argument: Option<&DataType>) -> SqlError {
    let argument = argument.map(sql::type_name).unwrap_or_default();
    SqlErrorKind::UndefinedFunction { signature: format!("{}({argument})", function.name()) }.into()
}

/// The function of that name, `count(*)` being `count` of a constant.
fn function(name: &str, params: &AggregateFunctionParams) -> Option<AggregateFunction> {
    let is_constant = matches!(params.args.as_slice(), [Expr::Literal(value, _)] if !value.is_null());
    Some(match name {
        "count" if params.args.is_empty() || (is_constant && !params.distinct) => {
            AggregateFunction::CountStar
        }
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "avg" => AggregateFunction::Avg,
        "min" => AggregateFunction::Min,
        "max" => AggregateFunction::Max,
        "bool_and" => AggregateFunction::BoolAnd,
        "bool_or" => AggregateFunction::BoolOr,
        "stddev" | "stddev_samp" => AggregateFunction::StddevSamp,
        "stddev_pop" => AggregateFunction::StddevPop,
        "var" | "var_samp" | "variance" => AggregateFunction::VarSamp,
        "var_pop" => AggregateFunction::VarPop,
        _ => return None,
    })
}

/// The argument as the operator takes it: variances are exact over integers and decimals, so the
/// cast to double precision that DataFusion's need is left out.
fn own_argument(function: AggregateFunction, argument: &Expr) -> &Expr {
    let is_variance = matches!(
        function,
        AggregateFunction::StddevSamp
            | AggregateFunction::StddevPop
            | AggregateFunction::VarSamp
            | AggregateFunction::VarPop
    );
    match argument {
        Expr::Cast(Cast { expr, field }) if is_variance && *field.data_type() == DataType::Float64 => expr,
        other => other,
    }
}

fn interval(micros: i64) -> Expr {
    let days = micros / MICROS_PER_DAY;
    let value = match i32::try_from(days) {
        Ok(days) => IntervalMonthDayNano::new(0, days, micros % MICROS_PER_DAY * 1000),
        // A window of millions of years: never reached, because its end is out of range.
        Err(_) => IntervalMonthDayNano::new(0, i32::MAX, 0),
    };
    lit(ScalarValue::IntervalMonthDayNano(Some(value)))
}
