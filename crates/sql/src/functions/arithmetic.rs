//! Integer arithmetic that fails instead of wrapping.
//!
//! | | on overflow | divisor 0 |
//! |---|---|---|
//! | `+ - * /`, unary `-` | 22003 `bigint out of range` | 22012 `division by zero` |
//! | `%`, `mod(a, b)`     | cannot                      | 22012 |
//!
//! DataFusion's own operators wrap. The rule in `analyze` puts these functions into their place;
//! they print as the operators they are.
//!
//! Sums are first computed wrapping, which the compiler vectorises, and looked over once for a
//! changed sign. Only if there is one, the checked kernel runs and finds out whether it was a row.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, PrimitiveArray};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{ArrowNativeTypeOp, DataType, Field, FieldRef, Int16Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::{DFSchema, Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use crate::evaluation::EvaluationError;
use crate::types::type_name;

/// What a function computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A checked operator on two integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedArithmetic {
    operation: Operation,
    name: &'static str,
    sign: &'static str,
    signature: Signature,
}

fn checked(operation: Operation, name: &'static str, sign: &'static str) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(CheckedArithmetic { operation, name, sign, signature }))
}

/// The function that stands for an operator on integers.
pub(super) fn function_of(operator: Operator) -> Option<Arc<ScalarUDF>> {
    static ADD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| checked(Operation::Add, "checked_add", "+"));
    static SUBTRACT: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| checked(Operation::Subtract, "checked_subtract", "-"));
    static MULTIPLY: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| checked(Operation::Multiply, "checked_multiply", "*"));
    static DIVIDE: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| checked(Operation::Divide, "checked_divide", "/"));
    static REMAINDER: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| checked(Operation::Remainder, "checked_remainder", "%"));
    let function = match operator {
        Operator::Plus => &ADD,
        Operator::Minus => &SUBTRACT,
        Operator::Multiply => &MULTIPLY,
        Operator::Divide => &DIVIDE,
        Operator::Modulo => &REMAINDER,
        _ => return None,
    };
    Some(Arc::clone(function))
}

/// Whether values of a type are checked here.
pub(super) fn is_integer(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

impl ScalarUDFImpl for CheckedArithmetic {
    fn name(&self) -> &str {
        self.name
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.written(args, ToString::to_string)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.written(args, |operand| operand.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [left, right] if left == right && is_integer(left) => Ok(arg_types.to_vec()),
            _ => plan_err!("{} takes two integers of one type", self.name),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(strict_field(self.name, args.arg_fields[0].data_type().clone(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("{} takes two arguments", self.name);
        };
        apply(left, right, |left, right| self.operation.evaluate(left, right))
    }
}

impl CheckedArithmetic {
    /// `a + b - c`: a chain of operators is written in one go. DataFusion asks for the name at every
    /// level of a tree; a name made of the names below would cost the square of the chain each time.
    fn written(&self, args: &[Expr], write: impl Fn(&Expr) -> String) -> Result<String> {
        let mut right_to_left = Vec::new();
        let (mut operator, mut operands) = (self, args);
        loop {
            let [left, right] = operands else {
                return internal_err!("{} takes two arguments", operator.name);
            };
            right_to_left.push(write(right));
            right_to_left.push(operator.sign.to_owned());
            match of(left) {
                Some((next, next_operands)) => (operator, operands) = (next, next_operands),
                None => {
                    right_to_left.push(write(left));
                    break;
                }
            }
        }
        right_to_left.reverse();
        Ok(right_to_left.join(" "))
    }
}

/// An expression as an operator of ours, with its operands.
fn of(expr: &Expr) -> Option<(&CheckedArithmetic, &[Expr])> {
    let Expr::ScalarFunction(function) = expr else { return None };
    let operator = function.func.inner().downcast_ref::<CheckedArithmetic>()?;
    Some((operator, &function.args))
}

/// The type of an operand. In a chain of operators it is that of the first one: asking DataFusion at
/// every level would walk down the whole chain each time, naming every field.
pub(super) fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    let mut expr = expr;
    while let Some((_, [left, _])) = of(expr) {
        expr = left;
    }
    expr.get_type(schema)
}

/// The field of a function that is NULL exactly when an argument is.
pub(super) fn strict_field(name: &str, data_type: DataType, args: &ReturnFieldArgs<'_>) -> FieldRef {
    let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
    Arc::new(Field::new(name, data_type, nullable))
}

impl Operation {
    fn evaluate(self, left: &dyn Datum, right: &dyn Datum) -> std::result::Result<ArrayRef, ArrowError> {
        let result = match self {
            Self::Add | Self::Subtract => match left.get().0.data_type() {
                DataType::Int16 => self.sum::<Int16Type>(left, right),
                DataType::Int32 => self.sum::<Int32Type>(left, right),
                _ => self.sum::<Int64Type>(left, right),
            },
            Self::Multiply => numeric::mul(left, right),
            Self::Divide => numeric::div(left, right),
            Self::Remainder => numeric::rem(left, right),
        };
        result.map_err(|error| integer_error(error, left.get().0.data_type()))
    }

    fn sum<T: ArrowPrimitiveType>(
        self,
        left: &dyn Datum,
        right: &dyn Datum,
    ) -> std::result::Result<ArrayRef, ArrowError> {
        let is_add = self == Self::Add;
        let wrapped =
            if is_add { numeric::add_wrapping(left, right)? } else { numeric::sub_wrapping(left, right)? };
        let values = wrapped.as_primitive::<T>();
        if !sign_changed::<T>(Operand::of(left), Operand::of(right), values, is_add) {
            return Ok(wrapped);
        }
        if is_add { numeric::add(left, right) } else { numeric::sub(left, right) }
    }
}

/// One side of an operator.
enum Operand<'a, T: ArrowPrimitiveType> {
    Scalar(T::Native),
    Values(&'a [T::Native]),
}

impl<'a, T: ArrowPrimitiveType> Operand<'a, T> {
    fn of(datum: &'a dyn Datum) -> Self {
        let (array, is_scalar) = datum.get();
        let values: &PrimitiveArray<T> = array.as_primitive();
        match values.values().first() {
            Some(value) if is_scalar => Self::Scalar(*value),
            _ => Self::Values(values.values()),
        }
    }
}

/// Whether any slot overflowed, NULL ones included: in `a + b`, a result on the other side of zero
/// than both; in `a - b`, on the other side than `a` where `b` is, too.
fn sign_changed<T: ArrowPrimitiveType>(
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    result: &PrimitiveArray<T>,
    is_add: bool,
) -> bool {
    let negative = |value: T::Native| value.is_lt(T::Native::ZERO);
    let changed = |a: T::Native, b: T::Native, r: T::Native| {
        let same_side = (negative(a) == negative(b)) == is_add;
        same_side & (negative(a) != negative(r))
    };
    let values = result.values().iter();
    match (left, right) {
        (Operand::Values(left), Operand::Values(right)) => {
            left.iter().zip(right).zip(values).fold(false, |any, ((a, b), r)| any | changed(*a, *b, *r))
        }
        (Operand::Values(left), Operand::Scalar(b)) => {
            left.iter().zip(values).fold(false, |any, (a, r)| any | changed(*a, b, *r))
        }
        (Operand::Scalar(a), Operand::Values(right)) => {
            right.iter().zip(values).fold(false, |any, (b, r)| any | changed(a, *b, *r))
        }
        (Operand::Scalar(a), Operand::Scalar(b)) => values.fold(false, |any, r| any | changed(a, b, *r)),
    }
}

fn integer_error(error: ArrowError, data_type: &DataType) -> ArrowError {
    if let ArrowError::DivideByZero = error {
        EvaluationError::division_by_zero().into()
    } else if let ArrowError::ArithmeticOverflow(_) = error {
        EvaluationError::out_of_range(&type_name(data_type)).into()
    } else {
        error
    }
}

/// Unary minus.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedNegate {
    signature: Signature,
}

/// The function that stands for `-integer`.
pub(super) fn negate() -> Arc<ScalarUDF> {
    static NEGATE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(CheckedNegate { signature }))
    });
    Arc::clone(&NEGATE)
}

impl ScalarUDFImpl for CheckedNegate {
    fn name(&self) -> &'static str {
        "checked_negate"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|argument| format!("(- {argument})")).collect())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|argument| format!("(- {})", argument.schema_name())).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [argument] if is_integer(argument) => Ok(arg_types.to_vec()),
            _ => plan_err!("checked_negate takes an integer"),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(strict_field("checked_negate", args.arg_fields[0].data_type().clone(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return internal_err!("checked_negate takes one argument");
        };
        let is_scalar = matches!(value, ColumnarValue::Scalar(_));
        let array = value.to_array(1)?;
        let negated = numeric::neg(&array).map_err(|error| integer_error(error, array.data_type()))?;
        if is_scalar { scalar(&negated) } else { Ok(ColumnarValue::Array(negated)) }
    }
}

/// The only value of an array.
pub(super) fn scalar(array: &dyn Array) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Scalar(datafusion::scalar::ScalarValue::try_from_array(array, 0)?))
}
