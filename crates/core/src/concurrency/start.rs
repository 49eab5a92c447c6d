//! The way up from a cold start: double while it costs nothing.
//!
//! Nobody knows the knee when a limiter is made, so it starts low, and an algorithm that is careful around the knee is
//! slow on the way to it. Vegas adds six places a second. Where 64 are needed and 20 are there, it refuses for eight
//! seconds what the service could have done. So until something first speaks against it, a limit *doubles*, as TCP does:
//! if requests found nearly all places taken, and took no longer than without load.
//!
//! A window of a second would make each doubling wait for a second. On the way up, a window therefore closes early, after
//! a sixteenth of its length, if nearly all places were taken in it, if twice as many requests ended as a window needs
//! (a median of few is chance), and if it is four times as long as they took: a shorter one hears of the fast requests only.
//!
//! Vegas before 100 workers of 10 ms, with more to do than they can:
//!
//! | at     | limit | throughput | median | limit after | why |
//! |--------|-------|------------|--------|-------------|-----|
//! | 63 ms  | 20    | 2000 a second   | 10 ms  | 40  | slow_start |
//! | 125 ms | 40    | 4000 a second   | 10 ms  | 80  | slow_start |
//! | 188 ms | 80    | 8000 a second   | 10 ms  | 160 | slow_start: at most twice the knee |
//! | 250 ms | 160   | 10 000 a second | 16 ms  | 136 | queueing: the start is over for good |
//! | 1.3 s  | 136   | 10 000 a second | 14 ms  | 124 | queueing |
//!
//! **When it ends.** With the first window that is overloaded, late, unproven, futile, or slower than half as long
//! again as the baseline; from then on the algorithm alone moves the limit, however long the service idles. Places that are
//! not all taken end nothing: a service that starts at night doubles in the morning, under the same conditions.
//!
//! **Where it is weak.** The first window has no baseline but itself. In a burst its first requests tell what they take
//! without load ([`Window::unloaded`](super::Window::unloaded)); when the service was full before the limiter was made, the
//! first doubling comes whatever the latency, and costs a window of a sixteenth at twice the places. If all responses
//! are slow from the first one on, nothing is slower than before; then the [`Objective`](super::Objective) holds it.
//!
//! Source: Jacobson, *Congestion Avoidance and Control*, 1988.

use std::time::Duration;

use super::algorithm::{Proposal, Reading};
use super::change::Why;
use super::window::{Gathering, Windowing};

/// What a window on the way up makes of the limit.
const GROWTH: f64 = 2.0;

/// Medians up to this many times the baseline are as without load. At the knee, doubling makes it 2; medians of a
/// hundred requests are within a third of the truth.
const SLOWER: f64 = 1.5;

/// The share of a window's length after which it may close.
const EARLY: u32 = 16;

/// How many times the endings that any window needs.
const ENDINGS: u64 = 2;

/// How many times the latency a window must be long.
const LATENCIES: u32 = 4;

/// Twice the places, if this is still the start and nothing speaks against it.
pub(super) fn doubled(reading: &Reading<'_>) -> Option<Proposal> {
    let is_fast =
        reading.window.latency.zip(reading.baseline).is_some_and(|(latency, baseline)| {
            latency.median.as_secs_f64() <= baseline.as_secs_f64() * SLOWER
        });
    let is_called_for = reading.is_starting && is_fast && reading.window.is_full(reading.places());
    is_called_for.then_some(Proposal { limit: reading.limit * GROWTH, why: Why::SlowStart })
}

/// How long a window must be open before it may close early.
pub(super) fn early(windowing: &Windowing) -> Duration {
    windowing.length() / EARLY
}

/// Whether a window that is not yet old enough says enough to double the limit.
pub(super) fn is_telling(gathering: &Gathering, windowing: &Windowing, limit: u32, age: Duration) -> bool {
    gathering.endings() >= u64::from(windowing.least_endings()) * ENDINGS
        && gathering.is_full(limit)
        && gathering.mean().is_some_and(|mean| age >= mean * LATENCIES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::window::{Latency, Sample, Window};
    use crate::concurrency::{
        Bounds, Change, Controller, Gradient, LimitAlgorithm, Objective, Surroundings, Vegas,
    };
    use crate::permit::Outcome;

    const MS: Duration = Duration::from_millis(1);

    /// A window in which all places were taken before a hundred workers of 10 ms.
    fn full(limit: u32) -> Window {
        let median = 10 * MS * limit.max(100) / 100;
        let succeeded = limit.min(100) * 100;
        Window {
            length: Duration::from_secs(1),
            latency: Some(Latency { min: median, median, mean: median }),
            succeeded,
            unheard: 0,
            failed: 0,
            overloaded: 0,
            abandoned: 0,
            max_in_flight: limit,
            sum_in_flight: u64::from(limit) * u64::from(succeeded),
            unloaded: None,
        }
    }

    fn controller(algorithm: impl LimitAlgorithm + 'static) -> Controller {
        let bounds = Bounds::new(2..=1_000).unwrap();
        Controller::new(algorithm, bounds, Objective::latency(100 * MS).unwrap())
    }

    fn after(limit: &mut Controller, window: &Window) -> Change {
        limit.update(window, Surroundings::default())
    }

    #[test]
    fn the_limit_doubles_up_to_the_knee_as_in_the_example() {
        let mut limit = controller(Vegas);
        for (from, to, why) in [
            (20, 40, Why::SlowStart),
            (40, 80, Why::SlowStart),
            (80, 160, Why::SlowStart),
            (160, 136, Why::Queueing),
            (136, 124, Why::Queueing),
        ] {
            assert_eq!(limit.is_doubling(), from != 136);
            assert_eq!(after(&mut limit, &full(from)), Change { from, to, why });
        }
    }

    #[test]
    fn gradient_doubles_too_and_neither_does_so_again() {
        for mut limit in [controller(Vegas), controller(Gradient::default())] {
            assert_eq!(after(&mut limit, &full(20)), Change { from: 20, to: 40, why: Why::SlowStart });
            let overloaded = Window { overloaded: 1_000, ..full(40) };
            assert_eq!(after(&mut limit, &overloaded).why, Why::Overloaded);
            for _ in 0..100 {
                let places = limit.limit();
                assert_ne!(after(&mut limit, &full(places)).why, Why::SlowStart, "{}", limit.algorithm());
            }
        }
    }

    #[test]
    fn places_that_are_not_all_taken_neither_double_nor_end_the_start() {
        let mut limit = controller(Vegas);
        let idle = Window { max_in_flight: 5, sum_in_flight: 2_000 * 3, ..full(20) };
        assert_eq!(after(&mut limit, &idle).why, Why::Unused);
        let touched = Window { sum_in_flight: 2_000 * 16, ..full(20) };
        assert_eq!(after(&mut limit, &touched), Change { from: 20, to: 26, why: Why::Headroom });
        assert_eq!(after(&mut limit, &full(26)), Change { from: 26, to: 52, why: Why::SlowStart });
    }

    #[test]
    fn responses_that_are_late_from_the_first_one_on_double_nothing() {
        for mut limit in [controller(Vegas), controller(Gradient::default())] {
            let late = Latency { min: 150 * MS, median: 150 * MS, mean: 150 * MS };
            for _ in 0..50 {
                let places = limit.limit();
                let change = after(&mut limit, &Window { latency: Some(late), ..full(places) });
                assert!(change.to <= 20 && change.why != Why::SlowStart, "{change}");
            }
        }
    }

    #[test]
    fn a_window_closes_early_only_if_it_is_full_and_says_enough() {
        let windowing = Windowing::default();
        let says_enough = |endings, in_flight, age| {
            let mut gathering = Gathering::default();
            let sample = Sample { outcome: Outcome::Ok, took: Some(10 * MS), in_flight };
            (0..endings).for_each(|_| gathering.add(sample));
            is_telling(&gathering, &windowing, 20, age)
        };
        assert_eq!(early(&windowing), Duration::from_micros(62_500));
        assert!(says_enough(100, 17, 40 * MS));
        assert!(
            !says_enough(99, 17, 40 * MS) && !says_enough(100, 16, 40 * MS) && !says_enough(100, 17, 39 * MS)
        );
    }
}
