//! Grow by one, shrink by a tenth (AIMD).
//!
//! The simplest rule that finds a limit by itself: as long as nothing goes wrong, allow one more; when the
//! service says that it is overloaded or answers later than the timeout, take a share away. Growing slowly
//! and shrinking fast makes several limiters in front of one service converge to equal shares.
//!
//! Limit 20, backoff 0.9, timeout 5 s, sample by sample as Netflix does it:
//!
//! | took  | in flight | outcome    | limit |
//! |-------|-----------|------------|-------|
//! | 1 ms  | 10        | ok         | 21 (half of the places were in use) |
//! | 1 ms  | 10        | ok         | 21 (10 is less than half of 21)     |
//! | 1 ms  | 30        | overloaded | 18    |
//! | 6 s   | 18        | ok         | 16    |
//!
//! Ours decides by windows: one step a window instead of a thousand a second. One step a second from 20 to
//! 200 would take three minutes, so until the first trouble a window adds a quarter (slow start, which
//! others lack: vector#3255).
//!
//! **How it fails elsewhere.** It hears of trouble only when requests are lost, so the queue is full before
//! it shrinks. Ours stops earlier: the [`Controller`](super::Controller) gives back places that made
//! requests slower and not more of them. Netflix lets no limit below 20, too much for a service with two
//! cores; here the operator says.
//!
//! Source: Chiu and Jain, 1989; Netflix concurrency-limits, `AIMDLimit`; Vector, adaptive concurrency.

use std::time::Duration;

use super::algorithm::{LimitAlgorithm, Proposal, Reading, whole};
use super::bounds::Bounds;
use super::change::Why;
use super::window::Sample;
use crate::permit::Outcome;
use crate::units::{Invalid, Ratio};

/// One more while all is well, a share less when it is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    backoff: Ratio,
    timeout: Duration,
}

/// The share that slow start adds in a window: from 20 to 200 in eleven windows, and never past the knee by
/// more than the throughput check gives back.
const START_GROWTH: f64 = 0.25;

impl Aimd {
    /// Backs off to `backoff` of the limit when the service is overloaded or slower than `timeout`.
    ///
    /// # Errors
    /// When the backoff is not from 0.5 to 0.99 or the timeout is zero. Below a half, three bad windows leave
    /// a tenth; at one, nothing ever shrinks.
    pub fn new(backoff: Ratio, timeout: Duration) -> Result<Self, Invalid> {
        if !(0.5..=0.99).contains(&backoff.value()) {
            return Err(Invalid::new("backoff", backoff.value(), "from 0.5 to 0.99"));
        }
        if timeout.is_zero() {
            return Err(Invalid::new("timeout", "0s", "more than 0s"));
        }
        Ok(Self { backoff, timeout })
    }

    /// The limit after one sample, exactly as Netflix has it.
    #[must_use]
    pub fn step(&self, bounds: &Bounds, limit: u32, sample: &Sample) -> u32 {
        let is_late = sample.took.is_some_and(|took| took > self.timeout);
        let next = match sample.outcome {
            Outcome::Failed | Outcome::Abandoned => limit,
            Outcome::Overloaded => self.backed_off(limit),
            Outcome::Ok if is_late => self.backed_off(limit),
            Outcome::Ok if sample.in_flight.saturating_mul(2) >= limit => limit.saturating_add(1),
            Outcome::Ok => limit,
        };
        next.clamp(bounds.min(), bounds.max())
    }

    fn backed_off(&self, limit: u32) -> u32 {
        whole(f64::from(limit) * self.backoff.value())
    }
}

impl Default for Aimd {
    /// A tenth less, after 5 s: Netflix's defaults. Halving, as TCP does, takes 200 to 12 in four bad
    /// windows.
    fn default() -> Self {
        Self { backoff: Ratio::new(0.9).unwrap_or(Ratio::ONE), timeout: Duration::from_secs(5) }
    }
}

impl LimitAlgorithm for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn propose(&mut self, reading: &Reading<'_>) -> Proposal {
        let places = reading.places();
        let less = || f64::from(self.backed_off(places));
        if reading.window.is_overloaded() {
            return Proposal { limit: less(), why: Why::Overloaded };
        }
        if reading.window.latency.is_some_and(|latency| latency.median > self.timeout) {
            return Proposal { limit: less(), why: Why::Objective };
        }
        let (step, why) = if reading.is_starting {
            ((reading.limit * START_GROWTH).floor().max(1.0), Why::SlowStart)
        } else {
            (1.0, Why::Headroom)
        };
        Proposal { limit: f64::from(places) + step, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(outcome: Outcome, millis: u64, in_flight: u32) -> Sample {
        Sample { outcome, took: Some(Duration::from_millis(millis)), in_flight }
    }

    #[test]
    fn four_samples_move_the_limit_as_in_the_example() {
        let (rule, bounds) = (Aimd::default(), Bounds::new(1..=200).unwrap());
        let mut limit = 20;
        for (outcome, millis, in_flight, expected) in [
            (Outcome::Ok, 1, 10, 21),
            (Outcome::Ok, 1, 10, 21),
            (Outcome::Overloaded, 1, 30, 18),
            (Outcome::Ok, 6_000, 18, 16),
            (Outcome::Failed, 1, 16, 16),
        ] {
            limit = rule.step(&bounds, limit, &sample(outcome, millis, in_flight));
            assert_eq!(limit, expected);
        }
    }

    #[test]
    fn a_step_ends_at_the_bounds() {
        let (rule, bounds) = (Aimd::default(), Bounds::new(5..=10).unwrap());
        assert_eq!(rule.step(&bounds, 10, &sample(Outcome::Ok, 1, 10)), 10);
        assert_eq!(rule.step(&bounds, 5, &sample(Outcome::Overloaded, 1, 5)), 5);
    }

    #[test]
    fn a_backoff_that_collapses_or_never_shrinks_is_refused() {
        let second = Duration::from_secs(1);
        for value in [0.0, 0.49, 1.0] {
            assert_eq!(Aimd::new(Ratio::new(value).unwrap(), second).unwrap_err().field, "backoff");
        }
        assert_eq!(Aimd::new(Ratio::new(0.9).unwrap(), Duration::ZERO).unwrap_err().field, "timeout");
    }
}
