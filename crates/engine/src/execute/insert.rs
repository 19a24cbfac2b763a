//! INSERT: rows from VALUES, a query, or defaults alone.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use catalog::Column;
use sql::{SqlError, SqlErrorKind, folded};
use sqlparser::ast::{Expr, Insert, Parens, Query, SetExpr, TableObject, Value};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Span;

use super::Signature;
use super::dml::{
    ATTEMPTS, Change, Outcome, carry_out, column_name, returning, returning_schema, table_name, template,
};
use super::query::{fixed_live, plan, read_view, statement_tables};
use crate::batch::CHANGED;
use crate::dml::{Cell, TableColumns, assign, literal_rows};
use crate::live::Live;
use crate::parameters::{placeholder, typed, values_rows};
use crate::transaction::ReadView;
use crate::{Output, Session};

pub(super) async fn run(session: &mut Session, insert: &Insert) -> Result<Output, SqlError> {
    super::refuse_read_only(session, "INSERT")?;
    let live = fixed_live(session).await?;
    let plan = InsertPlan::new(&live, insert)?;
    let mut newest = false;
    for _ in 0..ATTEMPTS {
        let (visible, view) = plan.rows(session, &live).await?;
        let view = if newest { plan.newest_view(session).await? } else { view };
        let sequence = view.sequence;
        let attempt = plan.attempt(session, &live, visible, view).await;
        match attempt {
            Ok(Outcome::Done(output)) => return Ok(output),
            Ok(Outcome::Again) => newest = true,
            // The row in the way may have been deleted by a transaction not published yet.
            Err(error) if error.sqlstate() == "23505" && plan.is_stale(session, sequence) => newest = true,
            Err(error) => return Err(error),
        }
    }
    Err(SqlErrorKind::SerializationFailure.into())
}

pub(super) async fn describe(session: &mut Session, insert: &Insert) -> Result<Signature, SqlError> {
    let live = fixed_live(session).await?;
    let plan = InsertPlan::new(&live, insert)?;
    let mut signature = Signature::default();
    if let Some(rows) = insert.source.as_deref().and_then(values_rows) {
        for row in rows {
            for (expression, &column) in row.iter().zip(&plan.columns) {
                if let Some(number) = placeholder(expression) {
                    signature.infer(number, plan.target.columns()[column].data_type.clone());
                }
            }
        }
    }
    if let Some(source) = plan.source()? {
        let tables = statement_tables(session, &live);
        super::query::plan(session, &live, &source, tables).await?.infer(&mut signature)?;
    }
    let items = insert.returning.as_deref();
    signature.schema = returning_schema(session, &live, &plan.target, &plan.alias, items).await?;
    Ok(signature)
}

struct InsertPlan<'a> {
    insert: &'a Insert,
    target: TableColumns,
    /// Positions of the columns that the source gives.
    columns: Vec<usize>,
    alias: String,
}

impl<'a> InsertPlan<'a> {
    fn new(live: &Live, insert: &'a Insert) -> Result<Self, SqlError> {
        if insert.on.is_some() {
            return Err(SqlErrorKind::unsupported("INSERT ... ON CONFLICT").into());
        }
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlErrorKind::unsupported("INSERT into anything but a table").into());
        };
        let (schema, table) = table_name(name)?;
        let target = TableColumns::find(live, schema.as_deref(), &table, "insert into")?;
        let mut columns = Vec::with_capacity(insert.columns.len());
        for name in &insert.columns {
            let column = column_name(name)?;
            let position = target.position(&column)?;
            if columns.contains(&position) {
                return Err(SqlErrorKind::DuplicateColumn { name: column }.into());
            }
            columns.push(position);
        }
        if columns.is_empty() {
            columns = (0..target.columns().len()).collect();
        }
        let alias = insert.table_alias.as_ref().map_or(table, |alias| folded(&alias.alias));
        Ok(Self { insert, target, columns, alias })
    }

    /// The rows to add, one array a visible column, and the instant they were read at.
    async fn rows(&self, session: &Session, live: &Arc<Live>) -> Result<(Vec<ArrayRef>, ReadView), SqlError> {
        let Some(source) = self.insert.source.as_deref() else {
            let visible = self.with_defaults(session, live, &[], 1).await?;
            return Ok((visible, Self::own_view(session)));
        };
        if let Some(rows) = values_rows(source) {
            self.check_width(rows.iter().map(|row| row.len()).max().unwrap_or(0))?;
            let defaults = self.default_expressions()?;
            let cells: Vec<Vec<Cell<'_>>> = rows.iter().map(|row| self.cells(row, &defaults)).collect();
            let width = cells.first().map_or(0, Vec::len);
            let targets: Vec<&Column> =
                self.columns[..width].iter().map(|&column| &self.target.columns()[column]).collect();
            if cells.iter().any(|row| row.len() != width) {
                return Err(SqlErrorKind::Syntax {
                    message: "VALUES lists must all be the same length".to_owned(),
                }
                .into());
            }
            if let Some(given) = literal_rows(&cells, &targets)? {
                let visible = self.with_defaults(session, live, &given, rows.len()).await?;
                return Ok((visible, Self::own_view(session)));
            }
        }
        let source = self.source()?.ok_or_else(|| SqlErrorKind::internal("an INSERT without a source"))?;
        let tables = statement_tables(session, live);
        let planned = plan(session, live, &source, tables).await?;
        self.check_width(planned.schema.fields().len())?;
        let view = read_view(session, live, &planned.plan.dependencies).await?;
        let batch = planned.collect(session, view.clone()).await?;
        let given: Vec<ArrayRef> = batch
            .columns()
            .iter()
            .zip(&self.columns)
            .map(|(values, &column)| assign(values, &self.target.columns()[column]))
            .collect::<Result<_, _>>()?;
        let visible = self.with_defaults(session, live, &given, batch.num_rows()).await?;
        Ok((visible, view))
    }

    async fn attempt(
        &self,
        session: &mut Session,
        live: &Arc<Live>,
        visible: Vec<ArrayRef>,
        view: ReadView,
    ) -> Result<Outcome, SqlError> {
        self.target.check_not_null(&visible)?;
        let count = visible.first().map_or(0, |values| values.len());
        let row_ids = if self.target.stored.has_hidden_key() && count > 0 {
            let shared = &session.shared;
            let first = shared
                .writes
                .row_ids
                .allocate(shared, self.target.relation.id, &self.target.stored, count)
                .await?;
            Some(TableColumns::row_ids(first, count))
        } else {
            self.target.stored.has_hidden_key().then(|| TableColumns::row_ids(0, 0))
        };
        let rows: RecordBatch = self.target.stored_rows(&visible, row_ids)?;
        let change = Change::Insert(rows);
        let items = self.insert.returning.as_deref();
        let returned = returning(session, live, &self.target, &self.alias, items, &change).await?;
        carry_out(session, &self.target, view, change, "INSERT", returned).await
    }

    /// VALUES read nothing: there is nothing to wait for.
    fn own_view(session: &Session) -> ReadView {
        let snapshot = session.transaction.as_ref().and_then(|transaction| transaction.snapshot.as_ref());
        snapshot.map_or_else(|| ReadView::now(&session.shared), |(_, view)| view.clone())
    }

    /// An instant that contains everything acknowledged of the table.
    async fn newest_view(&self, session: &Session) -> Result<ReadView, SqlError> {
        let shared = &session.shared;
        let table = [self.target.relation.id].into();
        ReadView::after(shared, shared.writes.acknowledged(&table)).await
    }

    /// Whether more of the table is acknowledged than an instant at `sequence` need show.
    fn is_stale(&self, session: &Session, sequence: u64) -> bool {
        let table = [self.target.relation.id].into();
        session.transaction.is_none() && session.shared.writes.acknowledged(&table) > sequence
    }

    fn check_width(&self, given: usize) -> Result<(), SqlError> {
        let more = match given.cmp(&self.columns.len()) {
            std::cmp::Ordering::Greater => "INSERT has more expressions than target columns",
            // Without a column list, the rest gets its defaults.
            std::cmp::Ordering::Less if !self.insert.columns.is_empty() => {
                "INSERT has more target columns than expressions"
            }
            std::cmp::Ordering::Less | std::cmp::Ordering::Equal => return Ok(()),
        };
        Err(SqlErrorKind::Syntax { message: more.to_owned() }.into())
    }

    /// The default of each column that has one.
    fn default_expressions(&self) -> Result<Vec<Option<Expr>>, SqlError> {
        self.target
            .columns()
            .iter()
            .map(|column| column.default.as_deref().map(parse_expression).transpose())
            .collect()
    }

    fn cells<'b>(&self, row: &'b [Expr], defaults: &'b [Option<Expr>]) -> Vec<Cell<'b>> {
        row.iter()
            .zip(&self.columns)
            .map(|(expression, &column)| match (is_default(expression), &defaults[column]) {
                (true, Some(default)) => Cell::Expression(default),
                (true, None) => Cell::Null,
                (false, _) => Cell::Expression(expression),
            })
            .collect()
    }

    /// The source as a query: DEFAULT spelled out, parameters with the types of their columns.
    fn source(&self) -> Result<Option<Query>, SqlError> {
        let Some(source) = self.insert.source.as_deref() else { return Ok(None) };
        let mut source = source.clone();
        if values_rows(&source).is_some()
            && let SetExpr::Values(values) = source.body.as_mut()
        {
            let defaults = self.default_expressions()?;
            for Parens { content, .. } in &mut values.rows {
                for (expression, &column) in content.iter_mut().zip(&self.columns) {
                    if is_default(expression) {
                        *expression = defaults[column].clone().unwrap_or_else(null);
                    } else if placeholder(expression).is_some() {
                        *expression = typed(expression.clone(), &self.target.columns()[column].data_type)?;
                    }
                }
            }
        }
        Ok(Some(source))
    }

    /// One array a visible column: those given, and the defaults of the others.
    async fn with_defaults(
        &self,
        session: &Session,
        live: &Arc<Live>,
        given: &[ArrayRef],
        count: usize,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        let mut visible: Vec<Option<ArrayRef>> = vec![None; self.target.columns().len()];
        for (values, &column) in given.iter().zip(&self.columns) {
            visible[column] = Some(Arc::clone(values));
        }
        let mut filled = Vec::with_capacity(visible.len());
        for (values, column) in visible.into_iter().zip(self.target.columns()) {
            filled.push(match (values, &column.default) {
                (Some(values), _) => values,
                (None, None) => arrow::array::new_null_array(&column.data_type, count),
                (None, Some(default)) => {
                    let value = default_value(session, live, default, column).await?;
                    let zeros = UInt32Array::from(vec![0; count]);
                    take(&value, &zeros, None).map_err(crate::error::from_arrow)?
                }
            });
        }
        Ok(filled)
    }
}

/// A default, evaluated once for the statement.
async fn default_value(
    session: &Session,
    live: &Arc<Live>,
    default: &str,
    column: &Column,
) -> Result<ArrayRef, SqlError> {
    let expression = parse_expression(default)?;
    if let Some(mut literal) = literal_rows(&[vec![Cell::Expression(&expression)]], &[column])?
        && let Some(value) = literal.pop()
    {
        return Ok(value);
    }
    let mut query = template(CHANGED, CHANGED)?;
    let select = super::dml::select_mut(&mut query)?;
    select.from.clear();
    select.projection = vec![sqlparser::ast::SelectItem::UnnamedExpr(expression)];
    let planned = plan(session, live, &query, statement_tables(session, live)).await?;
    let view = ReadView::now(&session.shared);
    let batch = planned.collect(session, view).await?;
    assign(batch.column(0), column)
}

fn parse_expression(text: &str) -> Result<Expr, SqlError> {
    Parser::new(&PostgreSqlDialect {})
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_expr())
        .map_err(|error| SqlErrorKind::internal(format!("default {text}: {error}")).into())
}

/// `DEFAULT` is read as a column of that name.
pub(super) fn is_default(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

pub(super) fn null() -> Expr {
    Expr::Value(Value::Null.with_span(Span::empty()))
}
