//! Where the time comes from.
//!
//! The gate is told the time. A layer owns one clock, reads it once a decision and passes the reading to
//! everything that decides: a limiter with a clock of its own would disagree with its neighbour about who
//! came first.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tidegate_core::{Moment, WallTime};
use tidegate_policy::Now;

/// Something that tells the time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time at this moment.
    fn now(&self) -> Now;

    /// The same without the date, where lengths of time are measured.
    fn moment(&self) -> Moment {
        self.now().moment
    }
}

/// The computer's own clocks.
///
/// Moments come from the monotonic clock, so that setting the date grants nobody a quota; they are counted
/// from 1970, so that the windows of two processes begin together. The wall time follows the date.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
    started_at: Duration,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now(), started_at: since_1970() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let wall = WallTime::from_unix_nanos(Moment::ORIGIN.plus(since_1970()).nanos());
        Now { moment: self.moment(), wall }
    }

    fn moment(&self) -> Moment {
        Moment::ORIGIN.plus(self.started_at.saturating_add(self.started.elapsed()))
    }
}

/// Zero on a computer that believes it is earlier.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// A clock that says what it was told, for tests. Clones show the same time.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::Moment;
/// use tidegate_tower::clock::{Clock, ToldClock};
///
/// let clock = ToldClock::default();
/// clock.advance(Duration::from_millis(250));
/// assert_eq!(clock.now().moment.since(Moment::ORIGIN), Duration::from_millis(250));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToldClock(Arc<AtomicU64>);

impl ToldClock {
    /// Moves both the moment and the wall time on.
    pub fn advance(&self, by: Duration) {
        let nanos = Moment::ORIGIN.plus(by).nanos();
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for ToldClock {
    fn now(&self) -> Now {
        let nanos = self.0.load(Ordering::Relaxed);
        Now { moment: Moment::from_nanos(nanos), wall: WallTime::from_unix_nanos(nanos) }
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Now {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_only_go_forward_and_are_counted_from_1970() {
        let clock = SystemClock::new();
        let (first, second) = (clock.now(), clock.now());
        assert!(first.moment <= second.moment);
        let apart = first.moment.nanos().abs_diff(first.wall.unix_nanos());
        assert!(Duration::from_nanos(apart) < Duration::from_secs(60));
    }
}
