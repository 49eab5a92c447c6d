//! What many requests say together.
//!
//! One response says little: it was cached, it met a pause, it was the expensive kind. A limit that moves on
//! every response follows noise, and moves a thousand times a second where traffic is heavy. So responses
//! are gathered, and the limit moves when a window closes: when it is *both* old enough and full enough.
//!
//! How each ending counts:
//!
//! | outcome    | latency | throughput | why |
//! |------------|---------|------------|-----|
//! | ok         | counts  | counts     | the service did the work |
//! | failed     | no      | no         | an error page is quick: it must not teach that the service is fast |
//! | overloaded | no      | no         | counted by itself, the strongest sign there is |
//! | abandoned  | no      | no         | how long it would have taken is unknown |
//! | abandoned, and done all the same | counts | counts | the service did the work, for nobody |
//!
//! All of them took a place, so all say how many were in flight. And when less than half of a window
//! succeeded, the window is *unproven*: a limit may shrink on it but not grow. Abandoned requests alone never
//! shrink a limit, for a caller can abandon as many as it likes.
//!
//! What was done for nobody is *unheard*. It says how long the work really takes, which those who stayed to the end
//! cannot tell: they are the ones that were fast. But when most of a window is unheard, that latency is the callers'
//! patience at its end, and no proof of anything; see [`Controller`](super::Controller).
//!
//! Four requests end in a window of 100 ms:
//!
//! | outcome   | took  | in flight | |
//! |-----------|-------|-----------|---|
//! | ok        | 10 ms | 3         | |
//! | ok        | 30 ms | 4         | |
//! | ok        | 20 ms | 2         | |
//! | failed    | 1 ms  | 5         | not the fastest answer of the window |
//!
//! Latency: median 20 ms, mean 20 ms, least 10 ms. Three in 100 ms are 30 a second; at 20 ms each, 0.6 of
//! them were in flight on average. Most in flight: 5.

use std::time::Duration;

use super::crowds::Crowds;
use super::histogram::Histogram;
use crate::permit::Outcome;
use crate::units::{Invalid, Moment};

/// When a window is old enough and full enough to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windowing {
    length: Duration,
    least: u32,
}

impl Windowing {
    /// Windows that close after `length` if at least so many requests ended in them, else later.
    ///
    /// # Errors
    /// When the length is not from 1 ms to an hour, or fewer than 10 endings would do: a median of fewer is
    /// the latency of whoever happened to come.
    pub fn new(length: Duration, least_endings: u32) -> Result<Self, Invalid> {
        if !(Duration::from_millis(1)..=Duration::from_secs(3_600)).contains(&length) {
            return Err(Invalid::new("window", format!("{length:?}"), "from 1ms to 1h"));
        }
        if least_endings < 10 {
            return Err(Invalid::new("least_endings", least_endings, "at least 10"));
        }
        Ok(Self { length, least: least_endings })
    }

    /// How old a window must be.
    #[must_use]
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// How many requests must have ended in it.
    #[must_use]
    pub const fn least_endings(&self) -> u32 {
        self.least
    }
}

impl Default for Windowing {
    /// A second and 50 endings, as failsafe-go: long enough for a median, short enough to follow a flood.
    fn default() -> Self {
        Self { length: Duration::from_secs(1), least: 50 }
    }
}

/// One request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, if that is known. Known of what was abandoned, it says that the work was done all the same.
    pub took: Option<Duration>,
    /// How many were in flight when it started, itself included.
    pub in_flight: u32,
}

/// Latencies of the requests that succeeded in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The fastest. Nothing is decided by it: it is the luckiest request.
    pub min: Duration,
    /// Half took no longer.
    pub median: Duration,
    /// The mean.
    pub mean: Duration,
}

/// A closed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How long requests could end in it.
    pub length: Duration,
    /// The latency of what succeeded, if anything did.
    pub latency: Option<Latency>,
    /// How many requests succeeded.
    pub succeeded: u32,
    /// How many of those nobody waited for any more.
    pub unheard: u32,
    /// How many failed for reasons of their own.
    pub failed: u32,
    /// How many ended because the service was overloaded.
    pub overloaded: u32,
    /// How many nobody waited for.
    pub abandoned: u32,
    /// The most that were in flight when one of them started.
    pub max_in_flight: u32,
    /// What was in flight when each of them started, added up.
    pub sum_in_flight: u64,
    /// What a request takes without load, where nothing was known of it before and the window shows it: those that
    /// found few in flight took half as long as all, or less.
    pub unloaded: Option<Duration>,
}

/// One in so many overloaded answers is noise: a deployment, one bad instance. Netflix backs off on a single
/// one, which at a thousand requests a window means always.
const OVERLOADED_ONE_IN: u64 = 100;

/// Whoever starts finds so many of a hundred places taken, counting its own, where nearly all of them are.
const FULL_PERCENT: u64 = 85;

/// Whether requests that started with so many in flight, added up, found nearly all of `limit` places taken.
const fn is_full(endings: u64, sum_in_flight: u64, limit: u32) -> bool {
    let all = endings.saturating_mul(limit as u64);
    endings > 0 && sum_in_flight.saturating_mul(100) >= all.saturating_mul(FULL_PERCENT)
}

impl Window {
    /// How many requests ended.
    #[must_use]
    pub fn endings(&self) -> u64 {
        [self.succeeded, self.failed, self.overloaded, self.abandoned].map(u64::from).iter().sum()
    }

    /// Successes per second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        let seconds = self.length.as_secs_f64();
        if seconds > 0.0 { f64::from(self.succeeded) / seconds } else { 0.0 }
    }

    /// How many were in flight on average, among those that succeeded: by Little's law, throughput times
    /// latency.
    #[must_use]
    pub fn mean_in_flight(&self) -> f64 {
        self.latency.map_or(0.0, |latency| self.throughput() * latency.mean.as_secs_f64())
    }

    /// Whether at least a hundredth of the answers were that the service is overloaded.
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.overloaded > 0 && u64::from(self.overloaded) * OVERLOADED_ONE_IN >= self.endings()
    }

    /// Whether too few succeeded to learn that the service is well.
    #[must_use]
    pub fn is_unproven(&self) -> bool {
        u64::from(self.succeeded) * 2 < self.endings()
    }

    /// Whether most of what succeeded came when its caller had left.
    #[must_use]
    pub const fn is_unheard(&self) -> bool {
        self.unheard > self.succeeded / 2
    }

    /// Whether those who started found nearly all of `limit` places taken.
    #[must_use]
    pub fn is_full(&self, limit: u32) -> bool {
        is_full(self.endings(), self.sum_in_flight, limit)
    }

    /// Whether less than half of `limit` places were in use.
    #[must_use]
    pub const fn is_unused(&self, limit: u32) -> bool {
        self.max_in_flight.saturating_mul(2) < limit
    }
}

/// A window that is still open.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    latencies: Histogram,
    /// While it is not known what a request takes without load.
    crowds: Option<Box<Crowds>>,
    ended: [u32; 4],
    unheard: u32,
    max_in_flight: u32,
    sum_in_flight: u64,
}

impl Gathering {
    /// The first window, which is asked what a request takes without load.
    #[must_use]
    pub fn first() -> Self {
        Self { crowds: Some(Box::default()), ..Self::default() }
    }

    /// That is known now.
    pub(crate) fn forget_crowds(&mut self) {
        self.crowds = None;
    }

    /// Counts one request.
    pub fn add(&mut self, sample: Sample) {
        let (outcome, known) = match (sample.outcome, sample.took) {
            (Outcome::Abandoned, Some(took)) => {
                self.unheard = self.unheard.saturating_add(1);
                (Outcome::Ok, Some(took))
            }
            (Outcome::Ok, took) => (Outcome::Ok, took),
            (outcome @ (Outcome::Failed | Outcome::Overloaded | Outcome::Abandoned), _) => (outcome, None),
        };
        if let Some(took) = known {
            self.latencies.add(took);
            if let Some(crowds) = &mut self.crowds {
                crowds.add(sample.in_flight, took);
            }
        }
        let ended = &mut self.ended[outcome as usize];
        *ended = ended.saturating_add(1);
        self.max_in_flight = self.max_in_flight.max(sample.in_flight);
        self.sum_in_flight = self.sum_in_flight.saturating_add(u64::from(sample.in_flight));
    }

    /// How many requests ended so far.
    #[must_use]
    pub fn endings(&self) -> u64 {
        self.ended.map(u64::from).iter().sum()
    }

    /// Whether those who started found nearly all of `limit` places taken.
    pub(crate) fn is_full(&self, limit: u32) -> bool {
        is_full(self.endings(), self.sum_in_flight, limit)
    }

    /// What those that succeeded took so far, on average.
    pub(crate) fn mean(&self) -> Option<Duration> {
        self.latencies.mean()
    }

    /// Takes over what another thread gathered, and leaves it empty.
    pub(crate) fn drain(&mut self, other: &mut Self) {
        if other.endings() == 0 {
            return;
        }
        self.latencies.merge(&other.latencies);
        for (mine, theirs) in self.ended.iter_mut().zip(other.ended) {
            *mine = mine.saturating_add(theirs);
        }
        self.unheard = self.unheard.saturating_add(other.unheard);
        self.max_in_flight = self.max_in_flight.max(other.max_in_flight);
        self.sum_in_flight = self.sum_in_flight.saturating_add(other.sum_in_flight);
        if let Some((mine, theirs)) = self.crowds.as_mut().zip(other.crowds.as_ref()) {
            mine.merge(theirs);
        }
        other.clear();
    }

    /// Forgets what was gathered, and keeps the memory that it lay in.
    pub(crate) fn clear(&mut self) {
        let mut crowds = self.crowds.take();
        crowds.iter_mut().for_each(|crowds| crowds.clear());
        *self = Self { crowds, ..Self::default() };
    }

    /// What was gathered between two moments; the next window is empty.
    pub fn close(&mut self, opened: Moment, now: Moment) -> Window {
        let latencies = &self.latencies;
        let latency = latencies.min().zip(latencies.median()).zip(latencies.mean());
        let count = |outcome: Outcome| self.ended[outcome as usize];
        let window = Window {
            length: now.since(opened),
            latency: latency.map(|((min, median), mean)| Latency { min, median, mean }),
            succeeded: count(Outcome::Ok),
            unheard: self.unheard,
            failed: count(Outcome::Failed),
            overloaded: count(Outcome::Overloaded),
            abandoned: count(Outcome::Abandoned),
            max_in_flight: self.max_in_flight,
            sum_in_flight: self.sum_in_flight,
            unloaded: self.crowds.as_ref().and_then(|crowds| crowds.unloaded(self.max_in_flight)),
        };
        self.clear();
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(endings: &[(Outcome, u64, u32)]) -> Window {
        let mut gathering = Gathering::default();
        for &(outcome, millis, in_flight) in endings {
            let took = (outcome != Outcome::Abandoned).then_some(Duration::from_millis(millis));
            gathering.add(Sample { outcome, took, in_flight });
        }
        gathering.close(Moment::ORIGIN, Moment::from_nanos(100_000_000))
    }

    #[test]
    fn four_endings_are_summed_up_as_in_the_example() {
        let endings =
            [(Outcome::Ok, 10, 3), (Outcome::Ok, 30, 4), (Outcome::Ok, 20, 2), (Outcome::Failed, 1, 5)];
        let window = window(&endings);
        let latency = window.latency.unwrap();
        let millis = |duration: Duration| duration.as_secs_f64() * 1_000.0;
        assert!((millis(latency.median) - 20.0).abs() < 20.0 / 16.0);
        assert_eq!((latency.mean, latency.min), (Duration::from_millis(20), Duration::from_millis(10)));
        assert!((window.throughput() - 30.0).abs() < 1e-9);
        assert!((window.mean_in_flight() - 0.6).abs() < 1e-9);
        assert_eq!((window.max_in_flight, window.endings()), (5, 4));
    }

    #[test]
    fn fast_failures_do_not_teach_that_the_service_is_fast() {
        let mut endings = vec![(Outcome::Ok, 300, 9); 10];
        endings.extend([(Outcome::Failed, 1, 9); 30]);
        let window = window(&endings);
        assert_eq!(window.latency.unwrap().min, Duration::from_millis(300));
        assert!(window.is_unproven());
    }

    #[test]
    fn abandoned_requests_are_evidence_of_load_but_not_of_speed() {
        let window = window(&[(Outcome::Abandoned, 0, 40); 12]);
        assert_eq!((window.latency, window.max_in_flight, window.abandoned), (None, 40, 12));
        assert!(window.is_unproven() && !window.is_overloaded());
    }

    #[test]
    fn work_done_for_nobody_says_how_long_it_takes_and_is_told_apart() {
        let took = Some(Duration::from_millis(300));
        let mut gathering = Gathering::default();
        for (outcome, took) in [(Outcome::Ok, took), (Outcome::Abandoned, took), (Outcome::Abandoned, None)] {
            gathering.add(Sample { outcome, took, in_flight: 1 });
        }
        let mut main = Gathering::default();
        main.drain(&mut gathering);
        let window = main.close(Moment::ORIGIN, Moment::from_nanos(1));
        assert_eq!((window.succeeded, window.unheard, window.abandoned), (2, 1, 1));
        assert_eq!(window.latency.map(|latency| latency.mean), took);
        assert!(!window.is_unheard());
        assert!(Window { unheard: 2, ..window }.is_unheard());
    }

    #[test]
    fn one_overloaded_answer_in_a_hundred_counts_and_one_in_more_does_not() {
        let with_ok = |ok| {
            let mut endings = vec![(Outcome::Ok, 1, 1); ok];
            endings.push((Outcome::Overloaded, 1, 1));
            window(&endings)
        };
        assert!(with_ok(99).is_overloaded());
        assert!(!with_ok(100).is_overloaded());
    }

    #[test]
    fn a_drained_window_is_empty_and_the_other_has_all() {
        let sample = Sample { outcome: Outcome::Ok, took: Some(Duration::from_millis(5)), in_flight: 3 };
        let (mut main, mut shard) = (Gathering::default(), Gathering::default());
        shard.add(sample);
        shard.add(Sample { outcome: Outcome::Overloaded, ..sample });
        main.drain(&mut shard);
        main.drain(&mut shard);
        assert_eq!((main.endings(), shard.endings()), (2, 0));
        let window = main.close(Moment::ORIGIN, Moment::from_nanos(1));
        assert_eq!((window.succeeded, window.overloaded, window.max_in_flight), (1, 1, 3));
    }

    #[test]
    fn windows_that_prove_nothing_are_refused() {
        let second = Duration::from_secs(1);
        for (length, least, field) in
            [(Duration::ZERO, 50, "window"), (second * 3_601, 50, "window"), (second, 9, "least_endings")]
        {
            assert_eq!(Windowing::new(length, least).unwrap_err().field, field);
        }
        assert_eq!(Windowing::new(second, 50), Ok(Windowing::default()));
    }
}
