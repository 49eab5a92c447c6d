//! What the operator says: between which values a limit moves, and what is slow.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::units::{Invalid, Ratio};

/// The most places there can be: a limiter counts each level of criticality in 16 bits.
pub const MOST_PLACES: u32 = 65_535;

/// Between which values a limit may move, and where it starts.
///
/// ```
/// use tidegate_core::concurrency::Bounds;
///
/// let bounds = Bounds::new(2..=200)?.starting_at(20)?;
/// assert_eq!((bounds.min(), bounds.initial(), bounds.max()), (2, 20, 200));
/// assert_eq!(Bounds::new(200..=2).unwrap_err().field, "min");
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    min: u32,
    max: u32,
    initial: u32,
}

impl Bounds {
    /// Bounds that start at 20 places, or the nearest allowed: what Netflix, failsafe-go and others start
    /// with; enough for a small service, few enough for a slow one.
    ///
    /// # Errors
    /// When the lower bound is zero or above the upper one, or the upper one above [`MOST_PLACES`].
    pub fn new(range: RangeInclusive<u32>) -> Result<Self, Invalid> {
        let (min, max) = range.into_inner();
        if max > MOST_PLACES {
            return Err(Invalid::new("max", max, "at most 65535"));
        }
        if min == 0 || min > max {
            return Err(Invalid::new("min", min, "at least 1 and at most max"));
        }
        Ok(Self { min, max, initial: 20.clamp(min, max) })
    }

    /// A limit that cannot move.
    ///
    /// # Errors
    /// When the limit is zero or above [`MOST_PLACES`].
    pub fn exactly(limit: u32) -> Result<Self, Invalid> {
        Self::new(limit..=limit).map_err(|_| Invalid::new("limit", limit, "from 1 to 65535"))
    }

    /// The same bounds with another start.
    ///
    /// # Errors
    /// When the start is outside the bounds.
    pub fn starting_at(self, initial: u32) -> Result<Self, Invalid> {
        if !(self.min..=self.max).contains(&initial) {
            return Err(Invalid::new("initial", initial, "from min to max"));
        }
        Ok(Self { initial, ..self })
    }

    /// The lowest limit.
    #[must_use]
    pub const fn min(&self) -> u32 {
        self.min
    }

    /// The highest limit.
    #[must_use]
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// The limit before anything is known.
    #[must_use]
    pub const fn initial(&self) -> u32 {
        self.initial
    }
}

/// What the median request may take before the limit stops growing: an absolute statement.
///
/// Algorithms that only compare latency with earlier latency take any steady state for a good one. When
/// every response comes at the caller's timeout, nothing is slower than before, and they grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objective(Duration);

impl Objective {
    /// The target that the operator set.
    ///
    /// # Errors
    /// When it is zero.
    pub fn latency(target: Duration) -> Result<Self, Invalid> {
        if target.is_zero() {
            return Err(Invalid::new("target", "0s", "more than 0s"));
        }
        Ok(Self(target))
    }

    /// A target derived from the timeout after which callers give up: half of it. When the median takes
    /// longer, a part of the requests does not make it, since slow ones take twice the median and more.
    ///
    /// # Errors
    /// When the timeout is shorter than two nanoseconds.
    pub fn half_of(timeout: Duration) -> Result<Self, Invalid> {
        Self::latency(timeout / 2)
            .map_err(|_| Invalid::new("timeout", format!("{timeout:?}"), "at least 2ns"))
    }

    /// The target.
    #[must_use]
    pub const fn target(self) -> Duration {
        self.0
    }
}

/// What is known about where the time goes, apart from the requests themselves.
///
/// Tell the utilisation only when the limit guards the very process that was measured. A proxy is idle
/// whenever its upstream is slow; its own processor says nothing about the limit of the upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// How busy the guarded process is, if it was measured.
    pub utilisation: Option<Ratio>,
    /// Whether something the guarded process calls is known to be slow.
    pub is_dependency_slow: bool,
}

/// Below this a process has time to spare, so waiting is done elsewhere. Kratos begins to look for
/// overload at 80 %; half of a machine leaves room for a measurement that averages over bursts.
const IDLE: f64 = 0.5;
/// From here on a process is busy enough to be its own bottleneck, whatever else is slow (Kratos: 80 %).
const BUSY: f64 = 0.8;

impl Surroundings {
    /// Whether latency should be put down to something else than our own places.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        let is_busy = self.utilisation.is_some_and(|busy| busy.value() >= BUSY);
        self.is_idle() || (self.is_dependency_slow && !is_busy)
    }

    /// Whether the guarded process was measured and has time to spare.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.utilisation.is_some_and(|busy| busy.value() < IDLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_contradict_themselves_are_refused_by_field() {
        for (range, field) in [(0..=9, "min"), (RangeInclusive::new(10, 9), "min"), (1..=65_536, "max")] {
            assert_eq!(Bounds::new(range).unwrap_err().field, field);
        }
        assert_eq!(Bounds::new(5..=9).unwrap().starting_at(10).unwrap_err().field, "initial");
        assert_eq!(Bounds::new(5..=9).unwrap().starting_at(4).unwrap_err().field, "initial");
        assert_eq!(Bounds::exactly(0).unwrap_err().field, "limit");
        assert_eq!(Bounds::new(5..=9).unwrap().initial(), 9);
        assert_eq!(Bounds::new(50..=90).unwrap().initial(), 50);
    }

    #[test]
    fn an_objective_of_no_time_is_refused() {
        assert_eq!(Objective::latency(Duration::ZERO).unwrap_err().field, "target");
        assert_eq!(Objective::half_of(Duration::from_nanos(1)).unwrap_err().field, "timeout");
        let five_seconds = Objective::half_of(Duration::from_secs(5)).unwrap();
        assert_eq!(five_seconds.target(), Duration::from_millis(2_500));
    }

    #[test]
    fn a_busy_process_is_its_own_bottleneck_even_when_a_dependency_is_slow() {
        let told = |busy: Option<f64>, is_dependency_slow| Surroundings {
            utilisation: busy.map(|busy| Ratio::new(busy).unwrap()),
            is_dependency_slow,
        };
        assert!(!told(None, false).is_elsewhere());
        assert!(told(None, true).is_elsewhere());
        assert!(told(Some(0.1), false).is_elsewhere());
        assert!(!told(Some(0.6), false).is_elsewhere());
        assert!(told(Some(0.6), true).is_elsewhere());
        assert!(!told(Some(0.9), true).is_elsewhere());
    }
}
