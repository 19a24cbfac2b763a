//! Functions about the session and the catalog: `current_setting`, `pg_get_viewdef`, `now` …
//!
//! They are made for one statement and hold what it sees. All but the clock ones work row by row,
//! because they are called on catalog rows only.

mod catalog;
mod session;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Int64Array, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use parking_lot::Mutex;

use crate::system::{Datum, SystemContext};

/// What the functions of one statement know.
pub(crate) struct FunctionContext {
    pub(crate) system: SystemContext,
    pub(crate) process: i32,
    /// When the transaction began, microseconds.
    pub(crate) now: i64,
    /// `set_config` calls, for the session to carry out.
    pub(crate) assignments: Arc<Mutex<Vec<SettingAssignment>>>,
}

/// A call of `set_config`.
pub(crate) struct SettingAssignment {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) local: bool,
}

/// Types the functions return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Returns {
    Text,
    Bool,
    Int8,
    Timestamptz,
    Timestamp,
    Date,
    Time,
}

/// One function: SQL names, result, and what a row gives.
struct Definition {
    names: &'static [&'static str],
    returns: Returns,
    call: fn(&FunctionContext, &[Datum]) -> Result<Datum>,
}

/// All functions, bound to a statement.
pub(crate) fn all(ctx: &Arc<FunctionContext>) -> Vec<Arc<ScalarUDF>> {
    session::FUNCTIONS
        .iter()
        .chain(catalog::FUNCTIONS)
        .map(|definition| {
            let function = SessionFunction {
                definition,
                aliases: definition.names.iter().skip(1).map(|name| (*name).to_owned()).collect(),
                signature: Signature::one_of(
                    vec![
                        datafusion::logical_expr::TypeSignature::VariadicAny,
                        datafusion::logical_expr::TypeSignature::Nullary,
                    ],
                    Volatility::Stable,
                ),
                ctx: Arc::clone(ctx),
            };
            Arc::new(ScalarUDF::new_from_impl(function))
        })
        .collect()
}

struct SessionFunction {
    definition: &'static Definition,
    aliases: Vec<String>,
    signature: Signature,
    ctx: Arc<FunctionContext>,
}

impl fmt::Debug for SessionFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.definition.names[0])
    }
}

impl PartialEq for SessionFunction {
    fn eq(&self, other: &Self) -> bool {
        self.definition.names == other.definition.names && Arc::ptr_eq(&self.ctx, &other.ctx)
    }
}

impl Eq for SessionFunction {}

impl Hash for SessionFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.names.hash(state);
    }
}

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.definition.names[0]
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.definition.returns.data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let count = if constant { 1 } else { rows };
        let columns: Vec<Column> =
            args.args.into_iter().map(|arg| Column::new(&arg.into_array(count)?)).collect::<Result<_>>()?;
        let mut results = Vec::with_capacity(count);
        for row in 0..count {
            let values: Vec<Datum> = columns.iter().map(|column| column.get(row)).collect();
            results.push((self.definition.call)(&self.ctx, &values)?);
        }
        let results = self.definition.returns.array(&results);
        if constant {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&results, 0)?));
        }
        Ok(ColumnarValue::Array(results))
    }
}

impl Returns {
    fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8View,
            Self::Bool => DataType::Boolean,
            Self::Int8 => DataType::Int64,
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
        }
    }

    fn array(self, data: &[Datum]) -> ArrayRef {
        let integers = data.iter().map(|datum| match datum {
            Datum::Int(value) => Some(*value),
            Datum::Null | Datum::Bool(_) | Datum::Text(_) => None,
        });
        match self {
            Self::Text => {
                let text: StringViewArray = data
                    .iter()
                    .map(|datum| match datum {
                        Datum::Text(text) => Some(text.as_str()),
                        Datum::Null | Datum::Bool(_) | Datum::Int(_) => None,
                    })
                    .collect();
                Arc::new(text)
            }
            Self::Bool => {
                let values: BooleanArray = data
                    .iter()
                    .map(|datum| match datum {
                        Datum::Bool(value) => Some(*value),
                        Datum::Null | Datum::Int(_) | Datum::Text(_) => None,
                    })
                    .collect();
                Arc::new(values)
            }
            Self::Int8 => Arc::new(integers.collect::<Int64Array>()),
            Self::Timestamptz => {
                Arc::new(integers.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
            }
            Self::Timestamp => Arc::new(integers.collect::<TimestampMicrosecondArray>()),
            Self::Date => {
                let days: Date32Array =
                    integers.map(|days| days.and_then(|days| i32::try_from(days).ok())).collect();
                Arc::new(days)
            }
            Self::Time => Arc::new(integers.collect::<Time64MicrosecondArray>()),
        }
    }
}

/// An argument: whole numbers as such, booleans as such, anything else as text.
enum Column {
    Integers(Int64Array),
    Booleans(BooleanArray),
    Text(StringViewArray),
}

impl Column {
    fn new(values: &ArrayRef) -> Result<Self> {
        if values.data_type().is_integer() {
            return Ok(Self::Integers(cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone()));
        }
        if let Some(booleans) = values.as_boolean_opt() {
            return Ok(Self::Booleans(booleans.clone()));
        }
        Ok(Self::Text(cast(values, &DataType::Utf8View)?.as_string_view().clone()))
    }

    fn get(&self, row: usize) -> Datum {
        match self {
            Self::Integers(values) if values.is_valid(row) => Datum::Int(values.value(row)),
            Self::Booleans(values) if values.is_valid(row) => Datum::Bool(values.value(row)),
            Self::Text(values) if values.is_valid(row) => Datum::Text(values.value(row).to_owned()),
            Self::Integers(_) | Self::Booleans(_) | Self::Text(_) => Datum::Null,
        }
    }
}

/// The number in an argument, also as text (`'16384'::oid`).
fn number(arguments: &[Datum], at: usize) -> Option<i64> {
    match arguments.get(at)? {
        Datum::Int(value) => Some(*value),
        Datum::Text(text) => text.trim().parse().ok(),
        Datum::Null | Datum::Bool(_) => None,
    }
}

/// The text in an argument.
fn text(arguments: &[Datum], at: usize) -> Option<&str> {
    match arguments.get(at)? {
        Datum::Text(text) => Some(text),
        Datum::Null | Datum::Bool(_) | Datum::Int(_) => None,
    }
}
