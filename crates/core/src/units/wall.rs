use std::time::Duration;

/// A date and time of day, as nanoseconds since 1970-01-01 00:00 UTC.
///
/// A type of its own, because wall clocks are set back and forth: only what follows the calendar (a
/// quota per day or month) may depend on one, and a [`Moment`](super::Moment) cannot be passed by mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// The wall time this many nanoseconds after the start of 1970 in UTC.
    #[must_use]
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The wall time this many seconds after the start of 1970 in UTC; saturates in the year 2554.
    #[must_use]
    pub const fn from_unix_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the start of 1970 in UTC.
    #[must_use]
    pub const fn unix_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to this, or zero when `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
