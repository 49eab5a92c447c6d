//! Did more places bring more answers?
//!
//! Below the knee of a service, a quarter more in flight gives a quarter more throughput at the same
//! latency. Above it, the same throughput at a quarter more latency. Both can be seen without knowing where
//! the knee is, so every growth is put to this test, whatever algorithm proposed it:
//!
//! | limit   | throughput | latency | so |
//! |---------|------------|---------|----|
//! | 20 → 25 | 2000 → 2400 a second | 10 → 10 ms | it paid: compare with 25 from now on |
//! | 25 → 33 | 2400 → 2410 a second | 10 → 13 ms | futile: back to 25, and rest |
//!
//! Growth has paid when the throughput rose at least half as much as the limit. It is futile when it rose
//! by less than a quarter as much *and* the latency by more than half. Throughput alone would not do: where
//! traffic comes in bursts, more places change it little, and yet nobody waits. In between, the limit grows
//! on and is compared with the same mark until the difference is clear. After a rest it tries again, for
//! services change. The price is a few per cent of throughput: right at the knee a worker idles whenever
//! the next request is a moment late.

use std::time::Duration;

use super::window::Window;

/// Remembers what the last place that paid brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Payoff {
    mark: Option<Mark>,
    rest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    limit: f64,
    throughput: f64,
    latency: Duration,
}

/// What the comparison says about more places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Nothing speaks against them.
    Open,
    /// The last ones brought more answers, and no slower: nobody waits.
    Paid,
    /// The last ones were futile: back to this limit.
    Futile(f64),
    /// They were futile a while ago.
    Resting,
}

/// Growth by a quarter is compared: less drowns in the noise of windows of some hundred requests, more would
/// overshoot by as much.
const GROWTH: f64 = 1.25;
/// Only windows in which the limit was felt all the time are compared: where bursts touch it now and then,
/// it is the demand that decides over throughput.
const FULL: f64 = 0.85;
/// Latency this far above the mark's is no slower. It does not grow with the growth: a limit that was doubled to a
/// third above the knee has half as much throughput again, and a third of the requests wait.
const NO_SLOWER: f64 = (GROWTH - 1.0) / 2.0;
/// Windows before futile growth is tried again: at a window a second, the limit swings for a quarter of the
/// time.
const REST: u32 = 20;
/// Latency this far below the mark means that the service has changed, and the rest is over.
const FASTER: f64 = 0.8;

impl Payoff {
    pub(crate) fn judge(&mut self, limit: f64, window: &Window) -> Verdict {
        let is_full = window.mean_in_flight() >= FULL * limit.floor();
        let now = window.latency.map(|latency| Mark {
            limit,
            throughput: window.throughput(),
            latency: latency.median,
        });
        if self.rest > 0 {
            self.rest -= 1;
            let has_changed =
                self.mark.zip(now).is_some_and(|(mark, now)| now.slower_than(&mark) < FASTER - 1.0);
            if self.rest == 0 || has_changed {
                *self = Self::default();
            }
            return Verdict::Resting;
        }
        let Some(now) = now.filter(|_| is_full) else { return Verdict::Open };
        let Some(mark) = self.mark.filter(|mark| mark.limit < limit) else {
            self.mark = Some(now);
            return Verdict::Open;
        };
        let grown = limit / mark.limit;
        if grown < GROWTH {
            return Verdict::Open;
        }
        let gained = now.throughput / mark.throughput.max(1e-9) - 1.0;
        let slower = now.slower_than(&mark);
        if gained >= (grown - 1.0) / 2.0 {
            self.mark = Some(now);
            return if slower > NO_SLOWER { Verdict::Open } else { Verdict::Paid };
        }
        let is_slower = slower > (grown - 1.0) / 2.0;
        if gained < (grown - 1.0) / 4.0 && is_slower {
            self.rest = REST;
            // All the way: half of it would leave the next trial to start higher, and the limit would creep
            // up.
            return Verdict::Futile(mark.limit);
        }
        Verdict::Open // neither: the difference shows more clearly when more has grown
    }
}

impl Mark {
    /// By which share the latency is above the other's.
    fn slower_than(&self, other: &Self) -> f64 {
        self.latency.as_secs_f64() / other.latency.as_secs_f64().max(1e-9) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::window::Latency;

    fn window(in_flight: u32, succeeded: u32, millis: u64) -> Window {
        let median = Duration::from_millis(millis);
        Window {
            length: Duration::from_secs(1),
            latency: Some(Latency { min: median, median, mean: median }),
            succeeded,
            unheard: 0,
            failed: 0,
            overloaded: 0,
            abandoned: 0,
            max_in_flight: in_flight,
            sum_in_flight: u64::from(in_flight) * u64::from(succeeded),
            unloaded: None,
        }
    }

    #[test]
    fn growth_that_brings_only_latency_is_taken_back_as_in_the_example() {
        let mut payoff = Payoff::default();
        assert_eq!(payoff.judge(20.0, &window(20, 2_000, 10)), Verdict::Open);
        assert_eq!(payoff.judge(25.0, &window(25, 2_400, 10)), Verdict::Paid);
        assert_eq!(payoff.judge(33.0, &window(33, 2_410, 13)), Verdict::Futile(25.0));
        for _ in 0..REST {
            assert_eq!(payoff.judge(25.0, &window(25, 2_400, 10)), Verdict::Resting);
        }
        assert_eq!(payoff.judge(25.0, &window(25, 2_400, 10)), Verdict::Open);
    }

    #[test]
    fn bursts_that_need_more_places_for_the_same_throughput_are_not_futile() {
        let mut payoff = Payoff::default();
        for limit in [20, 25, 32, 40, 50] {
            assert_eq!(payoff.judge(f64::from(limit), &window(limit, 500, 10)), Verdict::Open);
        }
    }

    #[test]
    fn windows_that_were_not_full_prove_nothing() {
        let mut payoff = Payoff::default();
        assert_eq!(payoff.judge(20.0, &window(20, 2_000, 10)), Verdict::Open);
        assert_eq!(payoff.judge(40.0, &window(40, 2_000, 16)), Verdict::Open);
        assert_eq!(payoff.judge(40.0, &window(40, 2_000, 20)), Verdict::Futile(20.0));
    }

    #[test]
    fn what_is_not_clear_yet_is_compared_with_the_same_mark_again() {
        let mut payoff = Payoff::default();
        assert_eq!(payoff.judge(20.0, &window(20, 2_000, 10)), Verdict::Open);
        assert_eq!(payoff.judge(25.0, &window(25, 2_180, 11)), Verdict::Open);
        assert_eq!(payoff.judge(32.0, &window(32, 2_200, 14)), Verdict::Futile(20.0));
    }

    #[test]
    fn a_service_that_became_faster_ends_the_rest() {
        let mut payoff = Payoff::default();
        let _ = payoff.judge(20.0, &window(20, 2_000, 10));
        assert_eq!(payoff.judge(26.0, &window(26, 2_000, 13)), Verdict::Futile(20.0));
        assert_eq!(payoff.judge(20.0, &window(20, 4_000, 5)), Verdict::Resting);
        assert_eq!(payoff.judge(20.0, &window(20, 4_000, 5)), Verdict::Open);
    }
}
