//! The bounds of a tumbling window as functions of a time, for queries in batch.
//!
//! Windows before 1970 are found by rounding down, not towards zero; NULL gives NULL.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::WINDOW_COLUMNS;

/// The three bounds of the window of `time`, under the names of the window columns.
pub(super) fn bounds_of(time: &Expr, size: i64, offset: i64) -> impl Iterator<Item = Expr> {
    [Bound::Start, Bound::End, Bound::Time].into_iter().zip(WINDOW_COLUMNS).map(move |(bound, name)| {
        let function = ScalarUDF::new_from_impl(WindowBound::new(bound, size, offset));
        function.call(vec![time.clone()]).alias(name)
    })
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
    /// Microseconds, positive.
    size: i64,
    offset: i64,
    signature: Signature,
}

impl WindowBound {
    fn new(bound: Bound, size: i64, offset: i64) -> Self {
        Self { bound, size, offset, signature: Signature::any(1, Volatility::Immutable) }
    }

    /// `None` where the bound cannot be represented.
    fn of(&self, time: i64) -> Option<i64> {
        let size = i128::from(self.size);
        let start = i128::from(time) - (i128::from(time) - i128::from(self.offset)).rem_euclid(size);
        let bound = match self.bound {
            Bound::Start => start,
            Bound::End => start + size,
            Bound::Time => start + size - 1,
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
        let [time] = args.args.as_slice() else {
            return internal_err!("the window of one time is asked for");
        };
        let times = time.to_array(args.number_rows)?;
        let bounds = times
            .as_primitive::<TimestampMicrosecondType>()
            .unary_opt::<_, TimestampMicrosecondType>(|time| self.of(time));
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
        let bound = |bound, time, offset| WindowBound::new(bound, 10, offset).of(time);
        assert_eq!(bound(Bound::Start, 0, 0), Some(0));
        assert_eq!(bound(Bound::Start, -1, 0), Some(-10));
        assert_eq!(bound(Bound::End, -1, 0), Some(0));
        assert_eq!(bound(Bound::Time, 9, 0), Some(9));
        assert_eq!(bound(Bound::Start, 2, 3), Some(-7));
        assert_eq!(bound(Bound::Start, 3, -7), Some(3));
        assert_eq!(bound(Bound::End, i64::MAX, 0), None);
    }
}
