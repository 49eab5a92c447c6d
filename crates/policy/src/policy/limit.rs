use std::time::Duration;

use tidegate_core::rate::{
    Calendar, FixedWindow, LeakyBucket, SlidingLog, SlidingWindow, Smooth, TokenBucket, WarmUp,
};
use tidegate_core::{Cost, Quota};

use super::{Reserve, Shed};

/// What a rule allows.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// So much in a length of time.
    Rate(Box<Rate>),
    /// So many in flight.
    Concurrency(u32),
    /// A share of the places in flight only to what matters.
    Reserve(Reserve),
    /// Less and less while signals are above their targets.
    Shed(Shed),
}

/// A quota and how it is counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// As the operator wrote it: `10/s`.
    pub written: String,
    /// The amount and its window. The burst is what can be taken at once.
    pub quota: Quota,
    /// How it is counted.
    pub shape: Shape,
}

/// The algorithms, ready to be enrolled.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// `token_bucket`.
    TokenBucket(TokenBucket),
    /// `leaky_bucket`.
    LeakyBucket(LeakyBucket),
    /// `smooth`.
    Smooth(Smooth),
    /// `warm_up`.
    WarmUp(WarmUp),
    /// `fixed_window` over a length of time.
    FixedWindow(FixedWindow),
    /// `fixed_window` over days or months of the calendar.
    Calendar(Calendar),
    /// `sliding_window`.
    SlidingWindow(SlidingWindow),
    /// `sliding_log`.
    SlidingLog(SlidingLog),
}

impl Rate {
    /// The most that can be taken at once: what callers are told as their quota.
    #[must_use]
    pub fn most(&self) -> Cost {
        self.quota.burst()
    }

    /// The time in which that much comes back: what callers are told as the window.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.quota.lead()
    }
}
