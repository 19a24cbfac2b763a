//! The plan node that assigns each row of a view's input to its window.
//!
//! The optimizer may prune columns through it and push predicates below it, except those about
//! the window: lateness is decided for every row that reaches the node, so a predicate on
//! `window_end` below it would hide late rows from `$late`.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};

use super::WINDOW_COLUMNS;

/// Appends the bounds of the tumbling window of each row.
#[derive(Debug, Clone)]
pub(crate) struct WindowAssign {
    pub(crate) input: LogicalPlan,
    /// A column of the input, kept as an expression so that the optimizer sees its use.
    pub(crate) time: Expr,
    /// Length in microseconds, positive.
    pub(crate) size: i64,
    /// Start of one of the windows, in microseconds since 1970.
    pub(crate) offset: i64,
    schema: DFSchemaRef,
}

impl WindowAssign {
    pub(crate) fn new(input: LogicalPlan, time: Expr, size: i64, offset: i64) -> Result<Self> {
        let schema = Arc::new(output_schema(input.schema(), &time)?);
        Ok(Self { input, time, size, offset, schema })
    }

    /// Which column of the input has the time.
    pub(crate) fn time_column(&self) -> Result<usize> {
        let Expr::Column(column) = &self.time else {
            return internal_err!("the time of a window is not a column");
        };
        self.input.schema().index_of_column(column)
    }
}

/// The columns of the input and those of the window, which are qualified as the time column is.
fn output_schema(input: &DFSchema, time: &Expr) -> Result<DFSchema> {
    let Expr::Column(column) = time else {
        return internal_err!("the time of a window is not a column");
    };
    let (qualifier, time) = input.qualified_field_from_column(column)?;
    let window = WINDOW_COLUMNS
        .map(|name| (qualifier.cloned(), Arc::new(Field::new(name, time.data_type().clone(), true))));
    let fields = input.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).chain(window);
    DFSchema::new_with_metadata(fields.collect(), input.metadata().clone())
}

impl PartialEq for WindowAssign {
    fn eq(&self, other: &Self) -> bool {
        (&self.input, &self.time, self.size, self.offset)
            == (&other.input, &other.time, other.size, other.offset)
    }
}

impl Eq for WindowAssign {}

impl PartialOrd for WindowAssign {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (&self.input, &self.time, self.size, self.offset).partial_cmp(&(
            &other.input,
            &other.time,
            other.size,
            other.offset,
        ))
    }
}

impl Hash for WindowAssign {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.input, &self.time, self.size, self.offset).hash(state);
    }
}

impl UserDefinedLogicalNodeCore for WindowAssign {
    fn name(&self) -> &str {
        "WindowAssign"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.time.clone()]
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        WINDOW_COLUMNS.map(str::to_owned).into()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowAssign: tumble {} size {}us", self.time, self.size)?;
        if self.offset != 0 {
            write!(f, " offset {}us", self.offset)?;
        }
        Ok(())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let ([time], [input]) = (exprs.as_slice(), inputs.as_slice()) else {
            return internal_err!("a window has one time and one input");
        };
        Self::new(input.clone(), time.clone(), self.size, self.offset)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        let mut needed: Vec<usize> =
            output_columns.iter().copied().filter(|column| *column < width).collect();
        needed.push(self.time_column().ok()?);
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

impl WindowAssign {
    /// The node, if that is what a plan's extension is.
    pub(crate) fn downcast(node: &dyn UserDefinedLogicalNode) -> Option<&Self> {
        node.as_any().downcast_ref()
    }
}
