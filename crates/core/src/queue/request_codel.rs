//! Controlled delay for requests: in an overloaded interval, everything that waited too long goes.
//!
//! [`Codel`](super::Codel) drops one and waits for the sender to slow down. Callers do not; each dropped
//! request is one call less and nothing more, so in a flood a law that begins gently is late by seconds.
//! What remains true is the test: a queue whose *shortest* wait in a whole interval is above `target`
//! stands. Here that verdict holds for the interval that follows, and in it every entry that waited more
//! than `slough`, twice the target, is dropped when its turn comes. Those below are served: they are the
//! ones whose callers still wait.
//!
//! Target 5 ms, slough 10 ms, interval 100 ms:
//!
//! | moment | waited | shortest so far | verdict on the interval before | entry              |
//! |--------|--------|-----------------|--------------------------------|--------------------|
//! | 0 ms   | 30 ms  | 30 ms           | none                           | served             |
//! | 50 ms  | 12 ms  | 12 ms           |                                | served             |
//! | 101 ms | 40 ms  | 40 ms           | 12 ms: overloaded              | served: the first  |
//! | 110 ms | 11 ms  | 11 ms           |                                | dropped            |
//! | 120 ms | 9 ms   | 9 ms            |                                | served             |
//! | 150 ms | 2 ms   | 2 ms            |                                | served             |
//! | 202 ms | 40 ms  | 40 ms           | 2 ms: not overloaded           | served             |
//! | 210 ms | 40 ms  | 40 ms           |                                | served             |
//!
//! At low rates one slow request is all an interval sees, and it proves nothing. So the first sample of an
//! interval is never dropped, an interval of a single sample never counts as overloaded, and a verdict
//! older than an interval is void. The last two are ours: without them a request that waited 30 ms
//! condemns one that comes an hour later.
//!
//! Source: folly `Codel`, with these numbers; the last entry is spared as in RFC 8289.

use std::time::Duration;

use super::codel::check;
use crate::units::{Invalid, Moment, Ratio};

/// The law in its form for requests, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCodel {
    target: Duration,
    slough: Duration,
    interval: Duration,
    /// The interval under way: when it ends, its shortest wait, and whether more than one was seen.
    ends: Option<Moment>,
    shortest: Duration,
    is_proven: bool,
    is_overloaded: bool,
}

impl RequestCodel {
    /// Drops what waited more than twice the `target` while nothing waits less than the target.
    ///
    /// # Errors
    /// When the target is nothing, or as long as the interval.
    pub fn new(target: Duration, interval: Duration) -> Result<Self, Invalid> {
        check(target, interval)?;
        let slough = target.saturating_mul(2);
        let shortest = Duration::ZERO;
        Ok(Self { target, slough, interval, ends: None, shortest, is_proven: false, is_overloaded: false })
    }

    /// The same, dropping what waited more than `slough`.
    ///
    /// # Errors
    /// When that is below the target.
    pub fn with_slough(self, slough: Duration) -> Result<Self, Invalid> {
        if slough < self.target {
            return Err(Invalid::new("slough", format_args!("{slough:?}"), "at least the target"));
        }
        Ok(Self { slough, ..self })
    }

    /// The wait above which entries are dropped in an overloaded interval.
    #[must_use]
    pub const fn slough(&self) -> Duration {
        self.slough
    }

    /// Whether the interval before was overloaded.
    #[must_use]
    pub const fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// The shortest wait of the interval under way as a share of the slough: a signal of load.
    #[must_use]
    pub fn load(&self) -> Ratio {
        let share = self.shortest.as_secs_f64() / self.slough.as_secs_f64();
        Ratio::new(share).unwrap_or(Ratio::ONE)
    }

    /// Whether the entry whose turn it is, and which waited so long, is dropped.
    pub fn drops(&mut self, now: Moment, waited: Duration, is_last: bool) -> bool {
        let Some(ends) = self.ends.filter(|ends| now <= *ends) else {
            self.begin(now, waited);
            return false;
        };
        self.ends = Some(ends);
        self.is_proven = true;
        self.shortest = self.shortest.min(waited);
        self.is_overloaded && waited > self.slough && !is_last
    }

    fn begin(&mut self, now: Moment, waited: Duration) {
        let is_fresh = self.ends.is_some_and(|ended| now.since(ended) <= self.interval);
        self.is_overloaded = is_fresh && self.is_proven && self.shortest > self.target;
        self.ends = Some(now.plus(self.interval));
        self.shortest = waited;
        self.is_proven = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn law() -> RequestCodel {
        RequestCodel::new(millis(5), millis(100)).unwrap()
    }

    fn at(milli: u64) -> Moment {
        Moment::ORIGIN.plus(millis(milli))
    }

    #[test]
    fn entries_fare_as_in_the_example() {
        let mut law = law();
        let entries = [(0, 30), (50, 12), (101, 40), (110, 11), (120, 9), (150, 2), (202, 40), (210, 40)];
        let dropped: Vec<_> = entries
            .into_iter()
            .filter(|(moment, waited)| law.drops(at(*moment), millis(*waited), false))
            .collect();
        assert_eq!(dropped, [(110, 11)]);
    }

    #[test]
    fn a_single_sample_proves_nothing() {
        let mut law = law();
        // One slow request in each interval, for ever: every one is the first of its interval.
        assert!((0..100).all(|count| !law.drops(at(count * 150), millis(50), false)));
        // Two a time: the first begins the interval, the second finds no proof in the one before.
        assert!(!law.drops(at(20_000), millis(50), false));
        assert!(!law.drops(at(20_101), millis(50), false));
        assert!(!law.drops(at(20_102), millis(50), false));
    }

    #[test]
    fn an_old_verdict_is_void() {
        let mut law = law();
        for milli in [0, 10, 20] {
            assert!(!law.drops(at(milli), millis(50), false));
        }
        let hour = 3_600_000;
        assert!(!law.drops(at(hour), millis(50), false));
        assert!(!law.is_overloaded());
        assert!(!law.drops(at(hour + 1), millis(50), false));
    }

    #[test]
    fn load_is_the_shortest_wait_against_the_slough() {
        let mut law = law();
        assert!(law.load() <= Ratio::ZERO);
        assert!(!law.drops(at(0), millis(5), false));
        assert!((law.load().value() - 0.5).abs() < 1e-9);
        assert!(!law.drops(at(200), millis(50), false));
        assert!(law.load() >= Ratio::ONE);
    }

    #[test]
    fn contradictory_settings_are_refused() {
        assert_eq!(RequestCodel::new(millis(100), millis(100)).unwrap_err().field, "target");
        assert_eq!(law().with_slough(millis(4)).unwrap_err().field, "slough");
    }
}
