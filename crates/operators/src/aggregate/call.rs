//! Aggregate calls: which function over which columns, and of what type the result is.

use arrow::datatypes::{DataType, FieldRef, SchemaRef};

/// An aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// Number of rows; no argument.
    CountStar,
    /// Number of values that are not NULL.
    Count,
    /// Sum; exact for every type.
    Sum,
    /// Mean.
    Avg,
    /// Least value.
    Min,
    /// Greatest value.
    Max,
    /// Whether all are true.
    BoolAnd,
    /// Whether any is true.
    BoolOr,
    /// Standard deviation of a sample.
    StddevSamp,
    /// Standard deviation of a population.
    StddevPop,
    /// Variance of a sample.
    VarSamp,
    /// Variance of a population.
    VarPop,
}

/// One aggregate of a GROUP BY.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// Which function.
    pub function: AggregateFunction,
    /// The input column it aggregates; `None` only for [`AggregateFunction::CountStar`].
    pub argument: Option<usize>,
    /// `FILTER (WHERE …)`: a boolean input column.
    pub filter: Option<usize>,
    /// `DISTINCT`: each value counts once.
    pub distinct: bool,
    /// Name of the result; its type is [`AggregateFunction::result_type`].
    pub output: FieldRef,
}

impl AggregateFunction {
    /// The name in SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CountStar | Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::BoolAnd => "bool_and",
            Self::BoolOr => "bool_or",
            Self::StddevSamp => "stddev_samp",
            Self::StddevPop => "stddev_pop",
            Self::VarSamp => "var_samp",
            Self::VarPop => "var_pop",
        }
    }

    /// The type of the result over an argument of type `argument` (`None` for `count(*)`), or
    /// `None` if the function does not take that type.
    ///
    /// `sum(bigint)` is numeric, so that it cannot overflow; variances are double precision.
    #[must_use]
    pub fn result_type(self, argument: Option<&DataType>) -> Option<DataType> {
        let Some(argument) = argument else {
            return (self == Self::CountStar).then_some(DataType::Int64);
        };
        match self {
            Self::CountStar => None,
            Self::Count => Some(DataType::Int64),
            Self::Min | Self::Max => {
                (*argument != DataType::Boolean && !argument.is_nested()).then(|| argument.clone())
            }
            Self::BoolAnd | Self::BoolOr => (*argument == DataType::Boolean).then_some(DataType::Boolean),
            Self::Sum => sum_type(argument),
            Self::Avg => avg_type(argument),
            Self::StddevSamp | Self::StddevPop | Self::VarSamp | Self::VarPop => {
                is_number(argument).then_some(DataType::Float64)
            }
        }
    }
}

fn is_number(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(_, _)
    )
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a few of the many types of Arrow")]
fn sum_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Int16 | DataType::Int32 => Some(DataType::Int64),
        DataType::Int64 => Some(DataType::Decimal128(38, 0)),
        DataType::Decimal128(_, scale) => Some(DataType::Decimal128(38, *scale)),
        DataType::Float32 => Some(DataType::Float32),
        DataType::Float64 => Some(DataType::Float64),
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a few of the many types of Arrow")]
fn avg_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(DataType::Decimal128(38, 16)),
        DataType::Decimal128(precision, scale) => {
            // A mean has as many digits before the point as its values.
            let before = i16::from(*precision) - i16::from(*scale);
            let room = (38 - before).clamp(i16::from(*scale), 38);
            let wanted = i16::from((*scale).max(16));
            Some(DataType::Decimal128(38, wanted.min(room) as i8))
        }
        DataType::Float32 | DataType::Float64 => Some(DataType::Float64),
        _ => None,
    }
}

impl AggregateCall {
    /// The call in EXPLAIN.
    pub(crate) fn detail(&self, input: &SchemaRef) -> String {
        let argument = self.argument.map_or("*", |column| input.field(column).name());
        let distinct = if self.distinct { "distinct " } else { "" };
        let filter =
            self.filter.map_or_else(String::new, |column| format!(" filter {}", input.field(column).name()));
        format!("{}({distinct}{argument}){filter}", self.function.name())
    }
}
