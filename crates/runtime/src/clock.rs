//! Time: the only place below `server` and `connectors` that looks at a clock.
//!
//! Wall time (what rows and barriers see) comes from a [`Clock`] so that a test decides it. How
//! long to wait between two barriers is measured with the machine's monotonic clock, which no
//! result depends on.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall time. The only clock below `server` and `connectors`.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970-01-01 UTC.
    fn now(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock that everything else is given")]
    fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

/// Monotonic time, for pacing and for measuring work.
#[allow(clippy::disallowed_methods, reason = "pacing only: no result depends on it")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}
