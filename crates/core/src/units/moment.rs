use std::time::Duration;

/// A point in time, told by a driver: nanoseconds since an origin that the driver chose once.
///
/// Drivers read a monotonic clock and add the Unix time at which they started, so that windows of
/// different processes begin together. Arithmetic saturates, since moments reach a limiter out of
/// order: two threads can read the clock in one order and arrive in the other.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::Moment;
///
/// let start = Moment::ORIGIN;
/// let later = start.plus(Duration::from_millis(250));
/// assert_eq!(later.since(start), Duration::from_millis(250));
/// assert_eq!(start.since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The driver's origin.
    pub const ORIGIN: Self = Self(0);

    /// The moment this many nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin; 584 years fit.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// This moment moved on by `duration`, or the last moment there is.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos_of(duration)))
    }

    /// Time since `earlier`, or zero when `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in whole nanoseconds, saturating at 584 years.
pub(crate) fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
