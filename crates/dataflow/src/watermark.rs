//! Watermarks: how far event time has come.

use std::fmt;

/// A promise that no change at or before this event time still comes.
///
/// Microseconds since 1970-01-01 UTC; `MIN` is "nothing promised yet" (−∞) and `MAX` is "no more
/// input" (+∞), so that the minimum over inputs is the plain integer minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watermark(pub i64);

impl Watermark {
    /// Nothing promised yet.
    pub const MIN: Self = Self(i64::MIN);
    /// The input has ended: every window may close.
    pub const MAX: Self = Self(i64::MAX);

    /// This watermark moved by `micros`; the infinities stay where they are.
    #[must_use]
    pub fn shifted(self, micros: i64) -> Self {
        match self {
            Self::MIN | Self::MAX => self,
            Self(at) => Self(at.saturating_add(micros)),
        }
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MIN => f.write_str("-infinity"),
            Self::MAX => f.write_str("infinity"),
            Self(at) => write!(f, "{at}us"),
        }
    }
}
