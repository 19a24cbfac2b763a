//! `to_char(timestamp, template)` with PostgreSQL's templates.
//!
//! DataFusion's function of this name takes `strftime` templates. A constant template is read once
//! a batch; a value whose text cannot differ from its predecessor's (the same day for `YYYY-MM-DD`)
//! takes that text over.

mod format;
mod template;

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, AsArray, StringViewArray, StringViewBuilder};
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use self::format::{Moment, Zone};
use self::template::Template;
use super::arithmetic::scalar;
use super::refuse;
use crate::error::SqlErrorKind;
use crate::evaluation::EvaluationError;
use crate::types::type_name;

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar {
    signature: Signature,
}

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(ToChar { signature: Signature::user_defined(Volatility::Immutable) })
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &'static str {
        "to_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, template] = arg_types else {
            return Err(undefined(arg_types));
        };
        let is_text =
            matches!(template, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null);
        let value = match value {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
            other if is_text && (other.is_numeric() || matches!(other, DataType::Interval(_))) => {
                let feature = format!("to_char({}, text)", type_name(other));
                return Err(refuse(SqlErrorKind::unsupported(feature)));
            }
            _ => return Err(undefined(arg_types)),
        };
        if is_text { Ok(vec![value, DataType::Utf8View]) } else { Err(undefined(arg_types)) }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values, templates] = args.args.as_slice() else {
            return internal_err!("to_char takes two arguments");
        };
        let is_scalar = matches!((values, templates), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let values = values.to_array(rows)?;
        let texts = match templates {
            ColumnarValue::Scalar(template) => {
                let template = template.try_as_str().flatten().map(Template::parse);
                with_templates(&values, |_| template.as_ref())?
            }
            ColumnarValue::Array(templates) => {
                let templates: Vec<_> =
                    templates.as_string_view().iter().map(|template| template.map(Template::parse)).collect();
                with_templates(&values, |row| templates[row].as_ref())?
            }
        };
        if is_scalar { scalar(&texts) } else { Ok(ColumnarValue::Array(Arc::new(texts))) }
    }
}

fn undefined(arg_types: &[DataType]) -> datafusion::error::DataFusionError {
    let types: Vec<String> = arg_types.iter().map(type_name).collect();
    refuse(SqlErrorKind::UndefinedFunction { signature: format!("to_char({})", types.join(", ")) })
}

fn with_templates<'a>(
    values: &dyn Array,
    template_of: impl Fn(usize) -> Option<&'a Template>,
) -> Result<StringViewArray> {
    let zone = zone_of(values.data_type())?;
    let values = values.as_primitive::<TimestampMicrosecondType>();
    let mut texts = StringViewBuilder::with_capacity(values.len());
    let mut text = String::new();
    // The template and the granule of local time that `text` is the text of.
    let mut current: Option<(*const Template, i64, i64)> = None;
    for (row, value) in values.iter().enumerate() {
        let (Some(micros), Some(template)) = (value, template_of(row)) else {
            texts.append_null();
            continue;
        };
        let offset = zone.offset(micros);
        let local = micros.saturating_add(offset * 1_000_000);
        let key = Some((std::ptr::from_ref(template), local.div_euclid(template.granule), offset));
        if key != current {
            text.clear();
            let moment = Moment::new(local, offset, zone)
                .ok_or_else(|| EvaluationError::new("22008", "timestamp out of range"))?;
            // Writing to a string does not fail.
            let _ = moment.write(template, &mut text);
            current = key;
        }
        texts.append_value(&text);
    }
    Ok(texts.finish())
}

fn zone_of(data_type: &DataType) -> Result<Zone> {
    let DataType::Timestamp(_, zone) = data_type else {
        return internal_err!("to_char of {data_type}");
    };
    Ok(match zone.as_deref() {
        None => Zone::None,
        Some("UTC" | "+00:00" | "Z") => Zone::Utc,
        Some(zone) => Zone::Named(zone.parse::<Tz>()?),
    })
}
