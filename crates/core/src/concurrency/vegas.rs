//! The limit by the length of the queue (Vegas).
//!
//! We cannot see how many requests wait inside a service, but we can compute it. Without load a request takes
//! the *baseline*. If 20 are in flight and each takes twice the baseline, then half of its time each of them
//! waits, so about 10 are waiting at any moment:
//!
//! ```text
//! queue = limit · (1 − baseline / latency)
//! ```
//!
//! A short queue is good: it keeps the service busy. None means room for more; a long one only adds latency.
//! How long is long grows with the limit: `g = max(1, ⌊log10 limit⌋)`, one below a hundred places.
//!
//! | queue       | limit                    |
//! |-------------|--------------------------|
//! | up to g     | + 6 g                    |
//! | below 3 g   | + g                      |
//! | 3 g to 6 g  | stays                    |
//! | above 6 g   | − g                      |
//! | overloaded  | − g                      |
//!
//! Limit 10, sample by sample as Netflix does it: the first sample, 10 ms, is the baseline. Then 10 ms with
//! 11 in flight: no queue, 16. Or 50 ms: a queue of 8, the limit falls to 9.
//!
//! **Few long requests among many short ones.** 95 of 100 take 1 ms and 5 take 100 ms, so the median is 1 ms and the mean 6.
//! If everybody waits for 1 ms more, the median has doubled, and half of 80 places seem to wait. But a place is held for the
//! *mean*, 7 ms, of which 1 is waiting: 80 · 1/7, about 12 wait. So ours divides what the median has gained by the mean,
//! where that is larger:
//!
//! ```text
//! queue = limit · (median − baseline) / max(median, mean)
//! ```
//!
//! Ours decides by windows, from the median. A window stands for many samples, so where the queue is too
//! long it takes half of what is too much away, at least `g`: from 200 places in front of 20 workers it
//! comes to rest in 9 windows, where steps of `g` would be 123. From a cold start it doubles instead of adding six, until
//! the first trouble.
//!
//! **How it fails elsewhere.** Everything hangs on the baseline: see [`Baseline`](super::Baseline). A
//! variant in another library computes `(latency − least) / least · limit`, which says 80 wait when 20 are
//! in flight and take five times as long; a queue is never longer than what is in flight. And one limit for
//! cheap and expensive requests alike sees a change of the mixture as a queue: give them limiters of their
//! own.
//!
//! Source: Brakmo and Peterson, TCP Vegas, 1995; Netflix concurrency-limits, `VegasLimit`.

use std::time::Duration;

use super::algorithm::{LimitAlgorithm, Proposal, Reading, whole};
use super::bounds::Bounds;
use super::change::Why;
use super::start;
use super::window::Sample;
use crate::permit::Outcome;

/// Keeps a short queue inside the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vegas;

/// Below three times `g` waiting the limit grows, above six times it shrinks: Netflix's and failsafe-go's
/// values.
const SHORT: u32 = 3;
const LONG: u32 = 6;

/// What Vegas knows when it is fed sample by sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasState {
    /// The limit.
    pub limit: u32,
    /// The least latency seen.
    pub baseline: Option<Duration>,
}

impl Vegas {
    /// The state after one sample, as Netflix has it, without the random probes that forget the baseline. An
    /// overloaded answer shrinks the limit and, unlike there, is never taken for the baseline.
    #[must_use]
    pub fn step(bounds: &Bounds, state: VegasState, sample: &Sample) -> VegasState {
        let at = |limit: u32| VegasState { limit: limit.clamp(bounds.min(), bounds.max()), ..state };
        let g = allowance(state.limit);
        let took = match (sample.outcome, sample.took) {
            (Outcome::Overloaded, _) => return at(state.limit.saturating_sub(g)),
            (Outcome::Failed | Outcome::Abandoned, _) | (Outcome::Ok, None) => return state,
            (Outcome::Ok, Some(took)) => took,
        };
        let Some(baseline) = state.baseline.filter(|baseline| *baseline <= took) else {
            return VegasState { baseline: Some(took), ..state };
        };
        if sample.in_flight.saturating_mul(2) < state.limit {
            return state;
        }
        match queue(state.limit, baseline, took, took) {
            waiting if waiting <= g => at(state.limit.saturating_add(LONG * g)),
            waiting if waiting < SHORT * g => at(state.limit.saturating_add(g)),
            waiting if waiting > LONG * g => at(state.limit.saturating_sub(g)),
            _ => state,
        }
    }
}

impl LimitAlgorithm for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn propose(&mut self, reading: &Reading<'_>) -> Proposal {
        let limit = reading.places();
        let g = allowance(limit);
        let less = |by: u32, why| Proposal { limit: f64::from(limit.saturating_sub(by)), why };
        let more = |by: u32| Proposal { limit: f64::from(limit.saturating_add(by)), why: Why::Headroom };
        if reading.window.is_overloaded() {
            // One window stands for many overloaded answers; a single `g` would not be felt.
            return less(g.max(limit / 10), Why::Overloaded);
        }
        let Some((latency, baseline)) = reading.window.latency.zip(reading.baseline) else {
            return reading.hold(Why::Unproven);
        };
        if let Some(doubled) = start::doubled(reading) {
            return doubled;
        }
        match queue(limit, baseline, latency.median, latency.mean) {
            waiting if waiting <= g => more(LONG * g),
            waiting if waiting < SHORT * g => more(g),
            waiting if waiting > LONG * g => less(g.max((waiting - LONG * g) / 2), Why::Queueing),
            _ => reading.hold(Why::Steady),
        }
    }

    fn has_slow_start(&self) -> bool {
        true
    }
}

/// How many may wait: the logarithm of the limit, at least one.
const fn allowance(limit: u32) -> u32 {
    match limit.checked_ilog10() {
        Some(log) if log > 1 => log,
        _ => 1,
    }
}

/// How many of `limit` in flight wait, when half of them take no longer than `median` instead of `baseline`, and hold their
/// places for `mean`.
fn queue(limit: u32, baseline: Duration, median: Duration, mean: Duration) -> u32 {
    let held = median.max(mean);
    let Some(waits) = median.checked_sub(baseline).filter(|_| !held.is_zero()) else { return 0 };
    // Whole numbers stay what they are.
    let waiting = f64::from(limit) * waits.as_secs_f64() / held.as_secs_f64();
    whole((waiting - 1e-9).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::window::{Gathering, Latency, Window};
    use crate::units::Moment;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_queue_is_never_longer_than_what_is_in_flight() {
        let queue = |baseline, latency| queue(20, baseline, latency, latency);
        assert_eq!(queue(10 * MS, 20 * MS), 10);
        assert_eq!(queue(10 * MS, 50 * MS), 16);
        assert_eq!(queue(10 * MS, 100_000 * MS), 20);
        assert_eq!(queue(10 * MS, 9 * MS), 0);
        assert_eq!(queue(Duration::ZERO, Duration::ZERO), 0);
    }

    #[test]
    fn few_long_requests_do_not_make_a_short_wait_look_long_as_in_the_example() {
        assert_eq!(queue(80, MS, 2 * MS, 2 * MS), 40);
        assert_eq!(queue(80, MS, 2 * MS, 7 * MS), 12);
    }

    #[test]
    fn the_allowance_is_the_logarithm_but_at_least_one() {
        assert_eq!([0, 1, 9, 99, 100, 999, 1_000, 65_535].map(allowance), [1, 1, 1, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn each_length_of_the_queue_moves_the_limit_as_in_the_table() {
        let bounds = Bounds::new(1..=1_000).unwrap();
        let state = VegasState { limit: 20, baseline: Some(10 * MS) };
        let after = |millis: u64, in_flight| {
            let took = Some(Duration::from_millis(millis));
            Vegas::step(&bounds, state, &Sample { outcome: Outcome::Ok, took, in_flight }).limit
        };
        assert_eq!(after(10, 20), 26); // nobody waits
        assert_eq!(after(11, 20), 21); // 2 wait
        assert_eq!(after(13, 20), 20); // 5 wait
        assert_eq!(after(20, 20), 19); // 10 wait
        assert_eq!(after(20, 9), 20); // and nothing is learnt while places are unused
    }

    #[test]
    fn a_long_queue_is_shortened_in_nine_windows_instead_of_a_hundred_and_twenty_three_steps() {
        // 20 workers of 10 ms: what is above 20 waits.
        let latency = |limit: u32| Duration::from_micros(500) * limit;
        let (mut limit, mut windows) = (200.0, 0);
        loop {
            let median = latency(whole(limit));
            let latency = Some(Latency { min: median, median, mean: median });
            let window = Window {
                latency,
                succeeded: 2_000,
                ..Gathering::default().close(Moment::ORIGIN, Moment::ORIGIN)
            };
            let reading = Reading { limit, window: &window, baseline: Some(10 * MS), is_starting: false };
            match Vegas.propose(&reading) {
                Proposal { why: Why::Queueing, limit: less } => limit = less,
                Proposal { why, .. } => break assert_eq!((why, limit, windows), (Why::Steady, 26.0, 9)),
            }
            windows += 1;
        }
        let bounds = Bounds::new(1..=200).unwrap();
        let mut state = VegasState { limit: 200, baseline: Some(10 * MS) };
        for _ in 0..123 {
            let took = Some(latency(state.limit));
            let sample = Sample { outcome: Outcome::Ok, took, in_flight: state.limit };
            assert!(state.limit > 26);
            state = Vegas::step(&bounds, state, &sample);
        }
        assert_eq!(state.limit, 26);
    }

    #[test]
    fn only_a_success_teaches_the_baseline() {
        let bounds = Bounds::new(1..=100).unwrap();
        let state = VegasState { limit: 10, baseline: None };
        for outcome in [Outcome::Failed, Outcome::Abandoned, Outcome::Overloaded] {
            let sample = Sample { outcome, took: Some(MS), in_flight: 10 };
            assert_eq!(Vegas::step(&bounds, state, &sample).baseline, None);
        }
    }
}
