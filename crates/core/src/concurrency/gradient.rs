//! The limit by how much slower requests have become (gradient).
//!
//! The *gradient* is the baseline over the latency now, with a tolerance for noise: 1 when requests are as
//! fast as without load, one half when they take twice as long. Multiplying the limit by it shrinks the
//! limit in proportion; and since a limit at its best would never be exceeded, and so never found to be too
//! small, each step adds some headroom, the square root of the limit, that the next gradient takes back if
//! it hurts.
//!
//! ```text
//! gradient = tolerance · baseline / latency, between 1/2 and 1
//! limit   += 0.2 · (limit · gradient + √limit − limit)
//! ```
//!
//! Baseline 10 ms, tolerance 1.1:
//!
//! | limit | latency | gradient | limit after |
//! |-------|---------|----------|-------------|
//! | 100   | 10 ms   | 1        | 102         |
//! | 100   | 11 ms   | 1        | 102         |
//! | 100   | 20 ms   | 0.55     | 93          |
//! | 100   | 1 s     | 0.5      | 92          |
//!
//! It rests where what the gradient takes is what the headroom adds: 1 − gradient = 1/√limit.
//! From a cold start it doubles instead, until the first trouble.
//!
//! **How it fails elsewhere.** Netflix's Gradient2 takes for the baseline a mean of its own past. When
//! every response takes the same five seconds, all is as it always was, and the limit climbs to its ceiling
//! (NCL#137). Ours is held by the objective. It ignores that the service says it is overloaded (NCL#176);
//! ours backs off. Envoy measures its baseline by letting only 3 requests through for a while, and refuses
//! the rest with 503 (envoy#8337); our [`Baseline`](super::Baseline) learns from what the limit does
//! anyway. And a tolerance of 1.5 does not see latency that is 49 % too high.
//!
//! Source: Netflix concurrency-limits, `Gradient2Limit`; Envoy, adaptive concurrency filter.

use std::time::Duration;

use super::algorithm::{LimitAlgorithm, Proposal, Reading};
use super::change::Why;
use super::start;
use crate::units::Invalid;

/// Shrinks the limit in proportion to the latency, and always tries a little more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradient {
    tolerance: f64,
}

/// How much of a step is taken at once (Netflix: 0.2). All of it would follow every odd window.
const SMOOTHING: f64 = 0.2;
/// What an overloaded window leaves: a tenth less, as AIMD.
const BACKOFF: f64 = 0.9;

impl Gradient {
    /// A gradient that takes latency up to `tolerance` times the baseline for noise.
    ///
    /// # Errors
    /// When the tolerance is not from 1 to 2: above, requests twice as slow would not shrink the limit.
    pub fn new(tolerance: f64) -> Result<Self, Invalid> {
        if !(1.0..=2.0).contains(&tolerance) {
            return Err(Invalid::new("tolerance", tolerance, "from 1 to 2"));
        }
        Ok(Self { tolerance })
    }

    /// The limit after requests took `latency`.
    #[must_use]
    pub fn step(&self, limit: f64, baseline: Duration, latency: Duration) -> f64 {
        let slower = latency.as_secs_f64() / baseline.as_secs_f64().max(1e-9);
        let gradient = (self.tolerance / slower.max(1e-9)).clamp(0.5, 1.0);
        limit + SMOOTHING * (limit * gradient + limit.sqrt() - limit)
    }
}

impl Default for Gradient {
    /// A tenth of noise. Medians of 50 and more are steadier than single samples, for which Envoy allows a
    /// quarter and Netflix a half.
    fn default() -> Self {
        Self { tolerance: 1.1 }
    }
}

impl LimitAlgorithm for Gradient {
    fn name(&self) -> &'static str {
        "gradient"
    }

    fn propose(&mut self, reading: &Reading<'_>) -> Proposal {
        if reading.window.is_overloaded() {
            return Proposal { limit: reading.limit * BACKOFF, why: Why::Overloaded };
        }
        let Some((latency, baseline)) = reading.window.latency.zip(reading.baseline) else {
            return reading.hold(Why::Unproven);
        };
        if let Some(doubled) = start::doubled(reading) {
            return doubled;
        }
        let limit = self.step(reading.limit, baseline, latency.median);
        Proposal { limit, why: if limit < reading.limit { Why::Queueing } else { Why::Headroom } }
    }

    fn has_slow_start(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_moves_a_limit_of_a_hundred_as_in_the_example() {
        let rule = Gradient::default();
        for (millis, expected) in [(10, 102.0), (11, 102.0), (20, 93.0), (1_000, 92.0)] {
            let after = rule.step(100.0, Duration::from_millis(10), Duration::from_millis(millis));
            assert!((after - expected).abs() < 1e-9, "{after} for {millis} ms");
        }
    }

    #[test]
    fn it_rests_where_the_gradient_takes_what_the_headroom_adds() {
        let rule = Gradient::new(1.0).unwrap();
        let after = rule.step(100.0, Duration::from_millis(9), Duration::from_millis(10));
        assert!((after - 100.0).abs() < 1e-9);
    }

    #[test]
    fn extreme_latencies_give_a_number() {
        let rule = Gradient::default();
        for (baseline, latency) in [(0, 0), (0, u64::MAX), (u64::MAX, 0)] {
            let after = rule.step(50.0, Duration::from_nanos(baseline), Duration::from_nanos(latency));
            assert!((45.0..=52.0).contains(&after), "{after}");
        }
        for tolerance in [0.9, 2.1, f64::NAN] {
            assert_eq!(Gradient::new(tolerance).unwrap_err().field, "tolerance");
        }
    }
}
