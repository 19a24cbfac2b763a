//! What a view cannot have yet, and where in its text it is.
//!
//! The plan decides what is refused: views inlined into it count too. The syntax tree is only
//! searched for the place to point at.

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{self, Expr, LogicalPlan, Volatility};
use sql::{SqlError, SqlErrorKind};
use sqlparser::ast::{
    self, Distinct, GroupByExpr, LimitClause, ObjectName, Query, Select, SetExpr, SetOperator, Spanned,
    TableFactor, Visit, Visitor,
};
use sqlparser::tokenizer::Span;

/// Something a query can contain that has no operator yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Construct {
    Join,
    Over,
    OrderBy,
    Limit,
    DistinctOn,
    Subquery,
    Values,
    NoFrom,
    Unnest,
    Recursive,
    GroupingSets,
    /// An aggregate function without an operator of ours.
    Aggregate(String),
    /// A function whose result is not decided by its arguments.
    Unstable(String),
    /// A plan node, by its name.
    Other(String),
}

impl Construct {
    fn feature(&self) -> String {
        match self {
            Self::Join => "JOIN".to_owned(),
            Self::Over => "OVER".to_owned(),
            Self::OrderBy => "ORDER BY".to_owned(),
            Self::Limit => "LIMIT".to_owned(),
            Self::DistinctOn => "DISTINCT ON".to_owned(),
            Self::Subquery => "a subquery in an expression".to_owned(),
            Self::Values => "VALUES".to_owned(),
            Self::NoFrom => "SELECT without FROM".to_owned(),
            Self::Unnest => "UNNEST".to_owned(),
            Self::Recursive => "WITH RECURSIVE".to_owned(),
            Self::GroupingSets => "GROUPING SETS".to_owned(),
            Self::Aggregate(name) => format!("aggregate function {name}()"),
            Self::Unstable(name) => format!("function {name}()"),
            Self::Other(name) => name.clone(),
        }
    }

    /// The error, pointing at the construct if it is in the text of this query.
    pub(crate) fn refuse(&self, query: &Query) -> SqlError {
        let error: SqlError = SqlErrorKind::UnsupportedInView { feature: self.feature() }.into();
        let error = match find(self, query).and_then(crate::error::position) {
            Some(position) => error.at(position),
            None => error,
        };
        match self {
            Self::Unstable(_) => error.detail(
                "Its result depends on more than its arguments, so a view could not take a row back.",
            ),
            Self::Join
            | Self::Over
            | Self::OrderBy
            | Self::Limit
            | Self::DistinctOn
            | Self::Subquery
            | Self::Unnest
            | Self::Recursive
            | Self::GroupingSets
            | Self::Aggregate(_) => error.hint("Queries can have it: use it in a SELECT over the view."),
            Self::Values | Self::NoFrom | Self::Other(_) => error,
        }
    }
}

/// Refuses what cannot be in any expression of a view: subqueries, and functions that are not
/// immutable (a row must be retracted with the values it was inserted with). And DISTINCT ON, which
/// the optimizer would turn into an aggregate that we do not have.
pub(crate) fn check_expressions(plan: &LogicalPlan) -> Result<Option<Construct>> {
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::Distinct(logical_expr::Distinct::On(_)) = node {
            found = Some(Construct::DistinctOn);
            return Ok(TreeNodeRecursion::Stop);
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                found = refused(expr);
                Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}

fn refused(expr: &Expr) -> Option<Construct> {
    match expr {
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_) => {
            Some(Construct::Subquery)
        }
        // DataFusion's `version` says that it is immutable.
        Expr::ScalarFunction(function)
            if function.func.signature().volatility != Volatility::Immutable
                || function.func.name() == "version" =>
        {
            Some(Construct::Unstable(function.func.name().to_owned()))
        }
        Expr::WindowFunction(_) => Some(Construct::Over),
        Expr::Unnest(_) => Some(Construct::Unnest),
        _ => None,
    }
}

/// Whether the value of an expression is decided by the columns it reads.
pub(crate) fn is_immutable(expr: &Expr) -> bool {
    !expr.exists(|expr| Ok(refused(expr).is_some())).unwrap_or(true)
}

/// The first place of a construct in a query.
fn find(construct: &Construct, query: &Query) -> Option<Span> {
    match query.visit(&mut Search { construct }) {
        ControlFlow::Break(span) => Some(span),
        ControlFlow::Continue(()) => None,
    }
}

struct Search<'a> {
    construct: &'a Construct,
}

impl Visitor for Search<'_> {
    type Break = Span;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Span> {
        let found = match self.construct {
            Construct::OrderBy => query.order_by.as_ref().map(Spanned::span),
            Construct::Limit => limit(query),
            Construct::Recursive => query.with.as_ref().filter(|with| with.recursive).map(Spanned::span),
            _ => in_body(self.construct, &query.body),
        };
        found.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Span> {
        match (self.construct, factor) {
            (Construct::Unnest, TableFactor::UNNEST { .. }) => ControlFlow::Break(factor.span()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<Span> {
        let is_it = match (self.construct, expr) {
            (
                Construct::Subquery,
                ast::Expr::Subquery(_) | ast::Expr::InSubquery { .. } | ast::Expr::Exists { .. },
            ) => true,
            (Construct::Over, ast::Expr::Function(function)) => function.over.is_some(),
            (
                Construct::Unstable(name) | Construct::Aggregate(name) | Construct::Other(name),
                ast::Expr::Function(function),
            ) => is_named(&function.name, name),
            (Construct::Unnest, ast::Expr::Function(function)) => is_named(&function.name, "unnest"),
            _ => false,
        };
        if is_it { ControlFlow::Break(expr.span()) } else { ControlFlow::Continue(()) }
    }
}

/// `current_timestamp` is `now` in a plan, and so on: an alias is not found, which costs no more
/// than the position.
fn is_named(name: &ObjectName, function: &str) -> bool {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .is_some_and(|ident| ident.value.eq_ignore_ascii_case(function))
}

fn limit(query: &Query) -> Option<Span> {
    match query.limit_clause.as_ref()? {
        LimitClause::LimitOffset { limit: Some(limit), .. } => Some(limit.span()),
        LimitClause::LimitOffset { offset: Some(offset), .. } => Some(offset.value.span()),
        LimitClause::LimitOffset { .. } => None,
        LimitClause::OffsetCommaLimit { limit, .. } => Some(limit.span()),
    }
}

fn in_body(construct: &Construct, body: &SetExpr) -> Option<Span> {
    match body {
        SetExpr::Select(select) => in_select(construct, select),
        SetExpr::SetOperation { op, left, right, .. } => {
            let is_join = *construct == Construct::Join && *op != SetOperator::Union;
            if is_join {
                return Some(right.span());
            }
            in_body(construct, left).or_else(|| in_body(construct, right))
        }
        SetExpr::Values(values) if *construct == Construct::Values => Some(values.span()),
        _ => None,
    }
}

fn in_select(construct: &Construct, select: &Select) -> Option<Span> {
    match construct {
        Construct::Join => {
            let joined = select.from.iter().flat_map(|from| &from.joins).next();
            joined.map(|join| join.relation.span()).or_else(|| select.from.get(1).map(Spanned::span))
        }
        Construct::DistinctOn => match &select.distinct {
            Some(Distinct::On(exprs)) => exprs.first().map(Spanned::span),
            _ => None,
        },
        Construct::GroupingSets => match &select.group_by {
            GroupByExpr::Expressions(exprs, _) => exprs.first().map(Spanned::span),
            GroupByExpr::All(_) => None,
        },
        Construct::NoFrom if select.from.is_empty() => Some(select.span()),
        _ => None,
    }
}
