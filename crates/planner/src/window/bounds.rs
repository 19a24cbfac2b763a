//! The bounds of a tumbling window as functions of a time, for queries in batch.
//!
//! `window_start(time, size, offset)` with size and offset in microseconds. Windows before 1970
//! are found by rounding down, not towards zero; NULL gives NULL.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::WINDOW_COLUMNS;

/// The three bounds of the window of `time`, under the names of the window columns.
pub(super) fn bounds_of(time: &Expr, size: i64, offset: i64) -> impl Iterator<Item = Expr> {
    static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
        [Bound::Start, Bound::End, Bound::Time]
            .map(|bound| Arc::new(ScalarUDF::new_from_impl(WindowBound::new(bound))))
    });
    FUNCTIONS
        .iter()
        .zip(WINDOW_COLUMNS)
        .map(move |(function, name)| function.call(vec![time.clone(), lit(size), lit(offset)]).alias(name))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bound {
    Start,
    End,
    /// The last microsecond of the window.
    Time,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WindowBound {
    bound: Bound,
    signature: Signature,
}

impl WindowBound {
    fn new(bound: Bound) -> Self {
        Self { bound, signature: Signature::any(3, Volatility::Immutable) }
    }

    /// `None` where the bound cannot be represented.
    fn of(&self, time: i64, size: i64, offset: i64) -> Option<i64> {
        let into = (i128::from(time) - i128::from(offset)).rem_euclid(i128::from(size));
        let start = i128::from(time) - into;
        let bound = match self.bound {
            Bound::Start => start,
            Bound::End => start + i128::from(size),
            Bound::Time => start + i128::from(size) - 1,
        };
        i64::try_from(bound).ok()
    }
}

impl ScalarUDFImpl for WindowBound {
    fn name(&self) -> &str {
        match self.bound {
            Bound::Start => WINDOW_COLUMNS[0],
            Bound::End => WINDOW_COLUMNS[1],
            Bound::Time => WINDOW_COLUMNS[2],
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [
            time,
            ColumnarValue::Scalar(ScalarValue::Int64(Some(size))),
            ColumnarValue::Scalar(ScalarValue::Int64(Some(offset))),
        ] = args.args.as_slice()
        else {
            return internal_err!("the size and offset of a window are not constant");
        };
        let times = time.to_array(args.number_rows)?;
        let bounds = times
            .as_primitive::<TimestampMicrosecondType>()
            .unary_opt::<_, TimestampMicrosecondType>(|time| self.of(time, *size, *offset));
        let bounds: ArrayRef = Arc::new(bounds.with_data_type(times.data_type().clone()));
        match time {
            ColumnarValue::Scalar(_) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&bounds, 0)?)),
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(bounds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_before_1970_are_found_by_rounding_down() {
        let bound = |bound, time, offset| WindowBound::new(bound).of(time, 10, offset);
        assert_eq!(bound(Bound::Start, 0, 0), Some(0));
        assert_eq!(bound(Bound::Start, -1, 0), Some(-10));
        assert_eq!(bound(Bound::End, -1, 0), Some(0));
        assert_eq!(bound(Bound::Time, 9, 0), Some(9));
        assert_eq!(bound(Bound::Start, 2, 3), Some(-7));
        assert_eq!(bound(Bound::Start, 3, -7), Some(3));
        assert_eq!(bound(Bound::End, i64::MAX, 0), None);
    }
}
