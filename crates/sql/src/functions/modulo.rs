//! `mod(a, b)`: a name for the operator `%`, which `analyze` puts into its place.

use arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::refuse;
use crate::error::SqlErrorKind;
use crate::types::type_name;

pub(super) const NAME: &str = "mod";

#[derive(Debug, PartialEq, Eq, Hash)]
struct Modulo {
    signature: Signature,
}

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Modulo { signature: Signature::user_defined(Volatility::Immutable) })
}

impl ScalarUDFImpl for Modulo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        if let [left, right] = arg_types
            && let Ok((left, right)) =
                BinaryTypeCoercer::new(left, &Operator::Modulo, right).get_input_types()
        {
            return Ok(vec![left, right]);
        }
        let types: Vec<String> = arg_types.iter().map(type_name).collect();
        Err(refuse(SqlErrorKind::UndefinedFunction { signature: format!("mod({})", types.join(", ")) }))
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [left, right] => BinaryTypeCoercer::new(left, &Operator::Modulo, right).get_result_type(),
            _ => internal_err!("mod takes two arguments"),
        }
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("mod is planned as an operator")
    }
}
