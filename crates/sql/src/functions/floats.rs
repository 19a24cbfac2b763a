//! Where floats meet other numbers, with the types PostgreSQL gives them.
//!
//! | | common type |
//! |---|---|
//! | comparisons, `BETWEEN`, `IN`, `ANY`, arithmetic | `double precision`, also for `real` with any other number |
//! | `CASE`, `coalesce`, `greatest`, `least`, `UNION`, `VALUES` | `double precision` if one is, else `real` |
//!
//! DataFusion takes a NUMERIC where one meets a float, which has neither NaN nor 1e300, and compares
//! `real` with the other number rounded to `real`: `0.1::real = 0.1` would be true.
//!
//! Source: PostgreSQL, "Type Conversion", <https://www.postgresql.org/docs/15/typeconv.html>.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    Between, BinaryExpr, Case, InList, InSubquery, ScalarFunction, SetComparison,
};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery, Union, Values, cast,
};

/// Functions that return one of their arguments.
const CHOOSING: [&str; 4] = ["coalesce", "nvl", "greatest", "least"];

/// Gives the operands of one expression their common type.
pub(super) fn common_types(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let common = if op.is_numerical_operators() {
                // What a chain of operators has is what its first operand has: below it, everything
                // has one type already.
                let (left, right) = (first_operand(&left), first_operand(&right));
                let is_real = type_of(left, schema) == Some(DataType::Float32)
                    || type_of(right, schema) == Some(DataType::Float32);
                // DataFusion has `double precision` where one side is.
                if is_real { compared(&[type_of(left, schema), type_of(right, schema)]) } else { None }
            } else if op.supports_propagation() {
                // A comparison.
                compared(&[type_of(&left, schema), type_of(&right, schema)])
            } else {
                None
            };
            let Some(common) = common else {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            };
            let [left, right] = [*left, *right].map(|side| cast(side, common.clone()));
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let mut operands = [*expr, *low, *high];
            let changed = together(&mut operands, schema, compared);
            let [expr, low, high] = operands.map(Box::new);
            Ok(Transformed::new_transformed(Expr::Between(Between { expr, negated, low, high }), changed))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let mut operands: Vec<Expr> = std::iter::once(*expr).chain(list).collect();
            let changed = together(&mut operands, schema, compared);
            let expr = Box::new(operands.remove(0));
            Ok(Transformed::new_transformed(Expr::InList(InList { expr, list: operands, negated }), changed))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let (expr, subquery, changed) = member(expr, subquery, schema)?;
            let set = Expr::InSubquery(InSubquery { expr, subquery, negated });
            Ok(Transformed::new_transformed(set, changed))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let (expr, subquery, changed) = member(expr, subquery, schema)?;
            let set = Expr::SetComparison(SetComparison { expr, subquery, op, quantifier });
            Ok(Transformed::new_transformed(set, changed))
        }
        Expr::Case(case) => Ok(choose_one(case, schema)),
        Expr::ScalarFunction(function) => call(function, schema),
        expr => Ok(Transformed::no(expr)),
    }
}

fn call(function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, mut args } = function;
    let types: Vec<Option<DataType>> = match func.name() {
        name if CHOOSING.contains(&name) => {
            let changed = together(&mut args, schema, chosen);
            let function = Expr::ScalarFunction(ScalarFunction { func, args });
            return Ok(Transformed::new_transformed(function, changed));
        }
        "nullif" | "array_has" => args.iter().map(|argument| type_of(argument, schema)).collect(),
        _ => Vec::new(),
    };
    let call = |args| Expr::ScalarFunction(ScalarFunction { func, args });
    Ok(match types.as_slice() {
        // `x = ANY (array)`
        [Some(DataType::List(item)), of_value] => {
            let Some(common) = compared(&[Some(item.data_type().clone()), of_value.clone()]) else {
                return Ok(Transformed::no(call(args)));
            };
            let item = Arc::new(item.as_ref().clone().with_data_type(common.clone()));
            let value = args.pop().map(|value| cast(value, common));
            let array = args.pop().map(|array| cast(array, DataType::List(item)));
            Transformed::yes(call(array.into_iter().chain(value).collect()))
        }
        // The result of nullif has the type of the first value, whatever it is compared with.
        [first, second] if compared(&[first.clone(), second.clone()]).is_some() => {
            let (other, value) = (args.pop().unwrap_or_default(), args.pop().unwrap_or_default());
            let equal = common_types(value.clone().eq(other), schema)?.data;
            let null = Expr::Literal(ScalarValue::Null, None);
            Transformed::yes(Expr::Case(Case {
                expr: None,
                when_then_expr: vec![(Box::new(equal), Box::new(null))],
                else_expr: Some(Box::new(value)),
            }))
        }
        _ => Transformed::no(call(args)),
    })
}

/// A value and a set it is compared with.
fn member(expr: Box<Expr>, subquery: Subquery, schema: &DFSchema) -> Result<(Box<Expr>, Subquery, bool)> {
    let of_set = subquery.subquery.schema().field(0).data_type().clone();
    match compared(&[type_of(&expr, schema), Some(of_set)]) {
        Some(common) => Ok((Box::new(cast(*expr, common.clone())), subquery_as(subquery, common)?, true)),
        None => Ok((expr, subquery, false)),
    }
}

fn choose_one(case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let Case { expr, when_then_expr, else_expr } = case;
    let has_operand = expr.is_some();
    let has_else = else_expr.is_some();
    let (whens, thens): (Vec<Expr>, Vec<Expr>) =
        when_then_expr.into_iter().map(|(when, then)| (*when, *then)).unzip();
    let mut compared_with: Vec<Expr> = expr.into_iter().map(|expr| *expr).chain(whens).collect();
    let mut results: Vec<Expr> = thens.into_iter().chain(else_expr.map(|result| *result)).collect();
    let mut changed = has_operand && together(&mut compared_with, schema, compared);
    changed |= together(&mut results, schema, chosen);
    let expr = has_operand.then(|| Box::new(compared_with.remove(0)));
    let else_expr = if has_else { results.pop().map(Box::new) } else { None };
    let when_then_expr =
        compared_with.into_iter().map(Box::new).zip(results.into_iter().map(Box::new)).collect();
    Transformed::new_transformed(Expr::Case(Case { expr, when_then_expr, else_expr }), changed)
}

/// Gives the columns of a UNION and of VALUES their common type.
pub(super) fn common_columns(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Union(union) => union_columns(union),
        LogicalPlan::Values(values) => value_columns(values),
        plan => Ok(Transformed::no(plan)),
    }
}

fn union_columns(union: Union) -> Result<Transformed<LogicalPlan>> {
    let width = union.schema.fields().len();
    let common: Vec<Option<DataType>> = (0..width)
        .map(|column| {
            let fields = union.inputs.iter().map(|input| input.schema().fields().get(column));
            let types: Vec<Option<DataType>> = fields.map(|field| Some(field?.data_type().clone())).collect();
            chosen(&types)
        })
        .collect();
    if common.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.into_iter().map(|input| {
        let columns = input.schema().columns();
        let names: Vec<String> = columns.iter().map(|column| column.name().to_owned()).collect();
        let expressions =
            columns.into_iter().map(Expr::Column).zip(names).zip(&common).map(|((column, name), common)| {
                match common {
                    Some(common) => cast(column, common.clone()).alias(name),
                    None => column,
                }
            });
        let expressions: Vec<Expr> = expressions.collect();
        LogicalPlanBuilder::from(Arc::unwrap_or_clone(input)).project(expressions)?.build().map(Arc::new)
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// The cells of VALUES have been cast to DataFusion's common type already.
fn value_columns(values: Values) -> Result<Transformed<LogicalPlan>> {
    let nothing = DFSchema::empty();
    let mut rows = values.values;
    let mut changed = false;
    for (column, field) in values.schema.fields().iter().enumerate() {
        if !field.data_type().is_decimal() {
            continue;
        }
        let types: Vec<Option<DataType>> =
            rows.iter().map(|row| type_of(written(&row[column]), &nothing)).collect();
        let Some(common) = chosen(&types) else { continue };
        changed = true;
        for row in &mut rows {
            row[column] = cast(written(&row[column]).clone(), common.clone());
        }
    }
    let plan = if changed {
        LogicalPlanBuilder::values(rows)?.build()?
    } else {
        LogicalPlan::Values(Values { schema: values.schema, values: rows })
    };
    Ok(Transformed::new_transformed(plan, changed))
}

/// A cell without the cast to the common type.
fn written(cell: &Expr) -> &Expr {
    match cell {
        Expr::Cast(cast) if cast.field.data_type().is_decimal() => &cast.expr,
        cell => cell,
    }
}

/// Casts operands to their common type, if they need one of ours. Whether they did.
fn together(
    operands: &mut [Expr],
    schema: &DFSchema,
    common: fn(&[Option<DataType>]) -> Option<DataType>,
) -> bool {
    let types: Vec<Option<DataType>> = operands.iter().map(|operand| type_of(operand, schema)).collect();
    let Some(common) = common(&types) else { return false };
    for operand in operands {
        *operand = cast(std::mem::take(operand), common.clone());
    }
    true
}

/// None for what has no type: DataFusion's coercion will say why.
fn type_of(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    expr.get_type(schema).ok()
}

/// The type numbers are compared in, where DataFusion would take another.
fn compared(types: &[Option<DataType>]) -> Option<DataType> {
    let found = Found::of(types)?;
    let is_mixed = (found.double || found.real) && (found.numeric || (found.real && found.integer));
    is_mixed.then_some(DataType::Float64)
}

/// The type of one of several values, where DataFusion would take another.
fn chosen(types: &[Option<DataType>]) -> Option<DataType> {
    let found = Found::of(types)?;
    let is_mixed = (found.double || found.real) && found.numeric;
    let common = if found.double { DataType::Float64 } else { DataType::Float32 };
    is_mixed.then_some(common)
}

#[derive(Default)]
struct Found {
    double: bool,
    real: bool,
    numeric: bool,
    integer: bool,
}

impl Found {
    /// None if there are values that are no numbers.
    fn of(types: &[Option<DataType>]) -> Option<Self> {
        let mut found = Self::default();
        for data_type in types {
            match data_type.as_ref()? {
                DataType::Null => {}
                DataType::Float64 => found.double = true,
                DataType::Float32 => found.real = true,
                other if other.is_decimal() => found.numeric = true,
                other if other.is_integer() => found.integer = true,
                _ => return None,
            }
        }
        Some(found)
    }
}

fn first_operand(expr: &Expr) -> &Expr {
    let mut expr = expr;
    while let Expr::BinaryExpr(BinaryExpr { left, op, .. }) = expr
        && op.is_numerical_operators()
    {
        expr = left;
    }
    expr
}

/// A query of one column, cast.
fn subquery_as(subquery: Subquery, data_type: DataType) -> Result<Subquery> {
    let plan = Arc::unwrap_or_clone(subquery.subquery);
    let (qualifier, field) = plan.schema().qualified_field(0);
    let column = Column::new(qualifier.cloned(), field.name());
    let name = column.name.clone();
    let plan = LogicalPlanBuilder::from(plan)
        .project([cast(Expr::Column(column), data_type).alias(name)])?
        .build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}
