//! The question that every limit algorithm answers: after this window, which limit?

use std::fmt;
use std::time::Duration;

use super::change::Why;
use super::window::Window;

/// What an algorithm is shown when a window closes.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The limit, with the fraction that gradual algorithms need.
    pub limit: f64,
    /// What the window said.
    pub window: &'a Window,
    /// What a request takes without load, as far as is known.
    pub baseline: Option<Duration>,
    /// Whether nothing has spoken against growing since the limiter was made.
    pub is_starting: bool,
}

impl Reading<'_> {
    /// The limit in whole places.
    #[must_use]
    pub fn places(&self) -> u32 {
        whole(self.limit)
    }

    pub(crate) const fn hold(&self, why: Why) -> Proposal {
        Proposal { limit: self.limit, why }
    }
}

/// Where an algorithm would put the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proposal {
    /// The limit, not yet held within the bounds.
    pub limit: f64,
    /// Why.
    pub why: Why,
}

/// How a limit follows what windows say.
///
/// An algorithm only proposes. What holds for all of them (unused places, bounds, the objective, throughput,
/// slow dependencies) is decided once, by the [`Controller`](super::Controller).
pub trait LimitAlgorithm: Send + fmt::Debug {
    /// Its name in policies and metrics.
    fn name(&self) -> &'static str;

    /// Where the limit should go after this window.
    fn propose(&mut self, reading: &Reading<'_>) -> Proposal;

    /// Whether it doubles the limit on the way up from a cold start, so that windows may close early there.
    fn has_slow_start(&self) -> bool {
        false
    }
}

/// The whole places in a limit.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from f64 saturates, and a limit is within bounds of 16 bits"
)]
pub(crate) const fn whole(limit: f64) -> u32 {
    limit as u32
}
