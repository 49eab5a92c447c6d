//! What a request takes without load.
//!
//! Vegas and gradient compare the latency now with the latency without load. Nobody measures the latter:
//! the service is never without load. The simplest guess is the fastest request ever seen. It fails twice:
//!
//! * **One lucky request sets it for ever** (NCL#37). Requests take 300 ms, a rare one 150 ms; from then on
//!   every request seems to wait half of its time. We take medians of windows, never single requests.
//! * **A service that became slower is punished for ever**, so others forget the baseline now and then and
//!   measure again. When that falls into an overload, the queue becomes the baseline (NCL#165).
//!
//! Ours falls quickly and rises only on proof that no queue is the cause. The proof costs nothing, because
//! the limit moves anyway. Let a limit of 30 be cut to 24, by a fifth:
//!
//! | the latency was | and is now | so |
//! |-----------------|------------|----|
//! | 20 ms           | 16 ms      | a fifth fewer wait a fifth less: a queue. The baseline stays |
//! | 20 ms           | 20 ms      | fewer requests are no faster: nobody waited. The baseline is 20 ms |
//!
//! The line between the two is drawn half way, at 18 ms; above 22 ms the service is just changing, and the
//! next window will tell. So a service that becomes slower costs the limit a part for some windows and not,
//! as with a baseline for ever, all of it: in our model, three times slower takes 24 places to 14, by bad
//! luck to 5, and back within 50 s. A single request in flight waits for nobody: its latency is the
//! baseline too. The same proof the other way round is growth that [paid](Baseline::prove): more requests,
//! and none of them slower.
//!
//! The first guess of all is the median of the first window, or, where that began with nobody in flight and ended in a
//! crowd, what its first requests took; see [`Window::unloaded`](super::Window::unloaded).
//!
//! Where it is weak: when several limiters share one service and the others grow while this one shrinks, its
//! latency stays, and it takes their queue for its baseline. The objective bounds what follows.

use std::time::Duration;

/// The latency without load, renewed by what the limit's own movements prove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    latency: Option<Duration>,
    /// The most crowded window that later ones are compared with.
    crowded: Option<Crowd>,
}

/// How many were in flight in a window, and what they took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Crowd {
    in_flight: u32,
    latency: Duration,
}

/// Medians within a tenth are the same. Following every lower one would end at the luckiest window of a
/// day, and a tenth too low a baseline sees a tenth of the places waiting.
const NOISE: f64 = 0.9;

/// Medians further above the compared one than this are no longer its noise.
const RISEN: f64 = 1.1;

impl Baseline {
    /// The latency without load, as far as is known.
    #[must_use]
    pub const fn latency(&self) -> Option<Duration> {
        self.latency
    }

    /// Knows from the first window what a request takes without load, and not from its median, which is that of a queue.
    /// Nor is it a crowd to compare with: it began with nobody.
    pub(crate) const fn begin(&mut self, unloaded: Duration) {
        self.latency = Some(unloaded);
    }

    /// Learns that nobody waited while requests took `median`: more of them had been no slower.
    pub fn prove(&mut self, median: Duration) {
        self.latency = self.latency.map(|latency| latency.max(median));
    }

    /// Learns from a window's most in flight and its median.
    pub fn observe(&mut self, in_flight: u32, median: Duration) {
        let now = Crowd { in_flight, latency: median };
        let Some(baseline) = self.latency else {
            *self = Self { latency: Some(median), crowded: Some(now) };
            return;
        };
        let crowded = *self.crowded.get_or_insert(now);
        if median.as_secs_f64() < baseline.as_secs_f64() * NOISE {
            // Half of the way, for one odd window (all its requests cached) should not do all of it.
            self.latency = Some(baseline - baseline.saturating_sub(median) / 2);
        } else if in_flight <= 1 {
            self.latency = Some(baseline + median.saturating_sub(baseline) / 4);
        }
        let is_thinner = u64::from(in_flight) * 5 <= u64::from(crowded.in_flight) * 4;
        if is_thinner && median > baseline && crowded.is_no_queue(&now) {
            self.latency = Some(median);
        }
        // What is nearly as crowded is newer, what is more crowded makes the better comparison, and what is
        // much less has answered the question.
        let is_similar = u64::from(in_flight) * 20 >= u64::from(crowded.in_flight) * 19;
        if is_thinner || is_similar {
            self.crowded = Some(now);
        }
    }
}

impl Crowd {
    /// Whether the latency has hardly fallen with the crowd: by less than half as much. When it has risen,
    /// the service itself is changing between the two windows, and comparing them proves nothing.
    fn is_no_queue(&self, thinner: &Self) -> bool {
        let fewer = f64::from(thinner.in_flight) / f64::from(self.in_flight.max(1));
        let slower = thinner.latency.as_secs_f64() / self.latency.as_secs_f64().max(1e-9);
        ((1.0 + fewer) / 2.0..=RISEN).contains(&slower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(windows: &[(u32, u32)]) -> Duration {
        let mut baseline = Baseline::default();
        for &(in_flight, millis) in windows {
            baseline.observe(in_flight, millis * MS);
        }
        baseline.latency().unwrap()
    }

    #[test]
    fn fewer_in_flight_tell_a_queue_from_a_slow_service_as_in_the_example() {
        assert_eq!(after(&[(10, 10), (30, 20), (24, 16)]), 10 * MS);
        assert_eq!(after(&[(10, 10), (30, 20), (24, 20)]), 20 * MS);
        assert_eq!(after(&[(10, 10), (30, 20), (24, 19)]), 19 * MS);
        assert_eq!(after(&[(10, 10), (30, 20), (24, 17)]), 10 * MS);
        assert_eq!(after(&[(10, 10), (30, 20), (24, 23)]), 10 * MS);
    }

    #[test]
    fn a_service_that_loses_workers_while_the_limit_shrinks_is_not_taken_for_a_slow_one() {
        // Half of the workers go in the midst of a window: it looks faster than the state it ends in.
        assert_eq!(after(&[(24, 10), (24, 15), (19, 19), (14, 14), (14, 14)]), 10 * MS);
    }

    #[test]
    fn a_longer_overload_never_becomes_the_baseline() {
        // The queue is always full: what is in flight and the latency rise and fall together.
        let mut windows = vec![(10, 10)];
        for round in 0..200 {
            let in_flight = 100 - round % 60;
            windows.push((in_flight, in_flight));
        }
        assert_eq!(after(&windows), 10 * MS);
    }

    #[test]
    fn a_faster_service_is_believed_within_a_few_windows() {
        let baseline = after(&[(10, 100), (10, 10), (10, 10), (10, 10), (10, 10), (10, 10)]);
        assert!(baseline < 13 * MS, "{baseline:?}");
    }

    #[test]
    fn a_single_request_in_flight_waits_for_nobody() {
        let mut windows = vec![(10, 10)];
        windows.extend([(1, 30); 12]);
        assert!(after(&windows) > 29 * MS);
    }

    #[test]
    fn requests_that_stay_slow_in_an_unchanged_crowd_prove_nothing() {
        let mut windows = vec![(10, 10)];
        windows.extend([(30, 50); 100]);
        assert_eq!(after(&windows), 10 * MS);
    }
}
