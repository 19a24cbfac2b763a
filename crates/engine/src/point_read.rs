//! `SELECT … FROM v WHERE key = value`: read straight from the view, without a plan.
//!
//! The general way gives the same answer; this one is for clients that look up single keys all
//! day. It takes only what is beyond doubt: one stored relation, plain columns, an equality with a
//! literal on every key column, and nothing else.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's trees list what every database knows")]

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringViewArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use catalog::RelationId;
use sql::{SqlError, SqlErrorKind, type_name};
use sqlparser::ast::{
    BinaryOperator, CastKind, Expr, GroupByExpr, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SetExpr, TableFactor, Value,
};

use crate::Rows;
use crate::error::{from_arrow, from_state};
use crate::live::{Live, Stored};
use crate::transaction::ReadView;

/// A read of one key.
pub(crate) struct PointRead {
    relation: RelationId,
    stored: Arc<Stored>,
    key: Vec<ArrayRef>,
    /// Columns of the view table to give.
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl PointRead {
    /// `None`: not this kind of query.
    pub(crate) fn of(query: &Query, live: &Live) -> Option<Self> {
        let select = plain_select(query)?;
        let [table] = select.from.as_slice() else { return None };
        let TableFactor::Table { name, alias: None, args: None, version: None, sample: None, .. } =
            &table.relation
        else {
            return None;
        };
        if !table.joins.is_empty() {
            return None;
        }
        let (schema, name) = table_name(name)?;
        if schema.is_none() && crate::system::find(None, name).is_some() {
            return None;
        }
        let relation = live.catalog.relation(schema, name)?;
        let stored = live.relation(relation.id)?.stored.as_ref()?;
        let key = key_of(select.selection.as_ref()?, stored)?;
        let (columns, fields): (Vec<usize>, Vec<Field>) = select
            .projection
            .iter()
            .map(|item| columns_of(item, stored))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .flatten()
            .unzip();
        let stored = Arc::clone(stored);
        Some(Self { relation: relation.id, stored, key, columns, schema: Arc::new(Schema::new(fields)) })
    }

    pub(crate) fn relation(&self) -> RelationId {
        self.relation
    }

    pub(crate) fn read(&self, view: &ReadView) -> Result<Rows, SqlError> {
        let (mut rows, _) =
            view.published.get(self.stored.table, &self.stored.schema, &self.key).map_err(from_state)?;
        if let Some(writes) = view.writes.table(self.relation) {
            rows = writes.get(&self.key, rows)?;
        }
        let columns = self.columns.iter().map(|&column| Arc::clone(rows.column(column))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(from_arrow)?;
        let copies = self.copies(&rows)?;
        Ok(Rows::from_batches(Arc::clone(&self.schema), vec![batch; copies]))
    }

    /// How often the row is there: once, unless the view is a multiset.
    fn copies(&self, rows: &RecordBatch) -> Result<usize, SqlError> {
        if !self.stored.multiset || rows.num_rows() == 0 {
            return Ok(1);
        }
        let count = rows.column(rows.num_columns() - 1).as_primitive_opt::<Int64Type>();
        let count = count.ok_or_else(|| SqlErrorKind::internal("a multiplicity that is no bigint"))?.value(0);
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

/// The SELECT of a query that has nothing but columns, a table and a condition.
fn plain_select(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let plain_query = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let plain_select = select.distinct.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.named_window.is_empty()
        && matches!(&select.group_by, GroupByExpr::Expressions(expressions, modifiers)
            if expressions.is_empty() && modifiers.is_empty());
    (plain_query && plain_select).then_some(select.as_ref())
}

fn table_name(name: &ObjectName) -> Option<(Option<&str>, &str)> {
    let mut parts = Vec::with_capacity(2);
    for part in &name.0 {
        let ObjectNamePart::Identifier(ident) = part else { return None };
        parts.push(folded(ident)?);
    }
    match parts.as_slice() {
        [name] => Some((None, name)),
        [schema, name] => Some((Some(schema), name)),
        _ => None,
    }
}

/// A name as written, if folding would not change it.
fn folded(ident: &sqlparser::ast::Ident) -> Option<&str> {
    let plain = ident.quote_style.is_some() || !ident.value.chars().any(char::is_uppercase);
    plain.then_some(ident.value.as_str())
}

/// The columns a select item stands for, with their fields.
fn columns_of(item: &SelectItem, stored: &Stored) -> Option<Vec<(usize, Field)>> {
    let one = |name: &str, alias: &str| {
        let at = visible(stored, name)?;
        Some(vec![(stored.output[at], stored.visible.field(at).clone().with_name(alias))])
    };
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => one(folded(ident)?, folded(ident)?),
        SelectItem::ExprWithAlias { expr: Expr::Identifier(ident), alias } => {
            one(folded(ident)?, folded(alias)?)
        }
        SelectItem::Wildcard(options) if options.to_string().is_empty() => {
            let all = stored.output.iter().zip(stored.visible.fields());
            Some(all.map(|(&column, field)| (column, field.as_ref().clone())).collect())
        }
        _ => None,
    }
}

/// Position among the visible columns; `None` also when two have the name.
fn visible(stored: &Stored, name: &str) -> Option<usize> {
    let mut found = stored.visible.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
    let (at, _) = found.next()?;
    found.next().is_none().then_some(at)
}

/// One value for every key column, from a conjunction of equalities.
fn key_of(condition: &Expr, stored: &Stored) -> Option<Vec<ArrayRef>> {
    let mut equalities = Vec::new();
    collect_equalities(condition, &mut equalities)?;
    if equalities.len() != stored.schema.key_len {
        return None;
    }
    let mut key = vec![None; stored.schema.key_len];
    for (name, value) in equalities {
        let column = stored.output[visible(stored, name)?];
        let field = stored.schema.columns.field(column);
        *key.get_mut(column)? = Some(value_of(value, field)?);
    }
    key.into_iter().collect()
}

fn collect_equalities<'a>(condition: &'a Expr, found: &mut Vec<(&'a str, &'a Expr)>) -> Option<()> {
    match condition {
        Expr::Nested(inner) => collect_equalities(inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            collect_equalities(left, found)?;
            collect_equalities(right, found)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let ((Expr::Identifier(ident), value) | (value, Expr::Identifier(ident))) =
                (left.as_ref(), right.as_ref())
            else {
                return None;
            };
            found.push((folded(ident)?, value));
            Some(())
        }
        _ => None,
    }
}

/// A literal as a value of the key's type, where both ways of comparing agree: whole numbers with
/// whole numbers, text with text, and values whose type is that of the key.
fn value_of(value: &Expr, field: &Field) -> Option<ArrayRef> {
    let (text, declared) = match value {
        Expr::Value(value) => (literal_text(&value.value)?, None),
        Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None } => match expr
            .as_ref()
        {
            Expr::Value(value) => (literal_text(&value.value)?, Some(data_type.to_string().to_lowercase())),
            _ => return None,
        },
        _ => return None,
    };
    // `uuid` and `jsonb` are stored as text and compared by their own rules.
    if field.metadata().contains_key("pg_type") {
        return None;
    }
    let target = field.data_type();
    let own_name = type_name(target);
    // A cast to a smaller type fails for what does not fit it.
    let is_whole = |name: &str| {
        let width = match name {
            "bigint" | "int8" => 8,
            "integer" | "int" | "int4" => 4,
            "smallint" | "int2" => 2,
            _ => return false,
        };
        target.primitive_width().is_some_and(|of_key| width >= of_key)
    };
    let agrees = match (&text, declared.as_deref()) {
        (Text::Number(text), None) => target.is_integer() && !text.contains(['.', 'e', 'E']),
        (Text::Quoted(_), None) => target.is_integer() || *target == DataType::Utf8View,
        (Text::Quoted(_), Some(name)) => {
            (target.is_integer() && is_whole(name)) || (name == own_name && !target.is_floating())
        }
        (Text::Number(_), Some(name)) => target.is_integer() && is_whole(name),
    };
    if !agrees {
        return None;
    }
    let text: ArrayRef = Arc::new(StringViewArray::from(vec![text.as_str()]));
    if *target == DataType::Utf8View {
        return Some(text);
    }
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let value = cast_with_options(&text, target, &options).ok()?;
    // What does not fit goes the long way, to its error or its empty answer.
    (value.null_count() == 0).then_some(value)
}

enum Text<'a> {
    Number(&'a str),
    Quoted(&'a str),
}

impl Text<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Number(text) | Self::Quoted(text) => text,
        }
    }
}

fn literal_text(value: &Value) -> Option<Text<'_>> {
    match value {
        Value::Number(text, _) => Some(Text::Number(text)),
        Value::SingleQuotedString(text) => Some(Text::Quoted(text)),
        _ => None,
    }
}
