//! What the operator chose for a time-out, checked.

use std::time::Duration;

use crate::units::share::{WHOLE, millionths};
use crate::units::{Invalid, LONGEST, Ratio};

/// Everything that can be chosen for a time-out that learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeoutTerms {
    /// Which share of attempts may be cut off although an answer would have come.
    pub false_ratio: Ratio,
    /// Never shorter than this.
    pub floor: Duration,
    /// Never longer than this, and exactly this while too little is known.
    pub ceiling: Duration,
    /// How many samples are enough to believe a quantile.
    pub min_samples: u32,
    /// At least this many times the median.
    pub padding: u32,
    /// How often it is computed anew; samples are held back for as long.
    pub interval: Duration,
    /// A span of this many intervals counts, and the one before it.
    pub intervals: u32,
}

impl Default for TimeoutTerms {
    fn default() -> Self {
        Self {
            false_ratio: Ratio::new(0.001).unwrap_or(Ratio::ZERO),
            // Below, a pause of the scheduler looks like a dead dependency.
            floor: Duration::from_millis(10),
            ceiling: Duration::from_secs(5),
            // One sample beyond the 99.9th percentile.
            min_samples: 1_000,
            padding: 2,
            interval: Duration::from_secs(5),
            // A minute, and the minute before.
            intervals: 12,
        }
    }
}

/// The terms of a time-out, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeoutRule {
    terms: TimeoutTerms,
    false_ratio: u64,
}

impl TimeoutRule {
    /// The rule with these terms.
    ///
    /// # Errors
    /// When a term is out of its range, the ceiling is below the floor, or there are too few samples for
    /// one of them to lie beyond the quantile.
    pub fn new(terms: TimeoutTerms) -> Result<Self, Invalid> {
        let false_ratio = millionths(terms.false_ratio);
        if false_ratio == 0 || false_ratio > WHOLE / 2 {
            let value = terms.false_ratio.value();
            return Err(Invalid::new("false_ratio", value, "from a millionth to a half"));
        }
        let least = WHOLE.div_ceil(false_ratio);
        if u64::from(terms.min_samples) < least {
            return Err(Invalid::new("min_samples", terms.min_samples, "at least 1 / false_ratio"));
        }
        length("floor", terms.floor)?;
        length("ceiling", terms.ceiling)?;
        length("interval", terms.interval)?;
        if terms.ceiling < terms.floor {
            return Err(Invalid::new("ceiling", format!("{:?}", terms.ceiling), "at least the floor"));
        }
        if !(1..=100).contains(&terms.padding) {
            return Err(Invalid::new("padding", terms.padding, "from 1 to 100"));
        }
        if terms.intervals == 0 {
            return Err(Invalid::new("intervals", terms.intervals, "at least 1"));
        }
        Ok(Self { terms, false_ratio })
    }

    /// What it was made of.
    #[must_use]
    pub const fn terms(&self) -> &TimeoutTerms {
        &self.terms
    }

    /// The place, counted from 1, of the quantile among so many samples in order: all but the false share
    /// lie up to it.
    pub(super) fn rank(&self, count: u64) -> u64 {
        let beyond = u128::from(count) * u128::from(self.false_ratio) / u128::from(WHOLE);
        count - u64::try_from(beyond).unwrap_or(count)
    }

    pub(super) fn padded(&self, median: Duration) -> Duration {
        median.saturating_mul(self.terms.padding)
    }

    pub(super) fn within(&self, timeout: Duration) -> Duration {
        timeout.clamp(self.terms.floor, self.terms.ceiling)
    }
}

impl Default for TimeoutRule {
    fn default() -> Self {
        Self::new(TimeoutTerms::default()).expect("the defaults are in their ranges; a test makes them")
    }
}

pub(super) fn length(field: &'static str, length: Duration) -> Result<(), Invalid> {
    if length < Duration::from_micros(1) || length > LONGEST {
        return Err(Invalid::new(field, format!("{length:?}"), "from 1 microsecond to 400 days"));
    }
    Ok(())
}
