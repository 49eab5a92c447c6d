//! How long to wait for an answer, learnt from the answers.
//!
//! A time-out of 30 s, set once and forgotten, ties up a caller for 30 s whenever a dependency that
//! answers in 20 ms hangs. A time-out of 25 ms cuts off what would have come. The right question is which
//! share of *false* time-outs one accepts: 0.1 % means the 99.9th percentile of the response times (D2).
//! So we watch them. Watching naively fails in five ways, and each has its answer here:
//!
//! | naively | what goes wrong | here |
//! |---|---|---|
//! | all results count | failures are fast, and pull the time-out below what a success needs | only successes count |
//! | only successes count | what was cut off is missing, so the percentile falls, so more is cut off | a timed-out attempt counts as one that took longer than anything seen |
//! | it always learns | overload is slow; the time-out learns to wait for it, and makes it worse | it learns nothing while [frozen](AdaptiveTimeout::freeze), nor from the interval in which the freeze came |
//! | the percentile as it is | where p99.9 ≈ p50, a slight shift of all cuts off most | at least twice the median |
//! | from the first sample on | the 99.9th percentile of ten samples is their maximum | the ceiling, until there are enough |
//!
//! Times are kept in a histogram of 864 counts ([`Latencies`]) whose relative error is below 1/32.
//! Samples of the running interval are held back until it ended without a freeze; the last two spans of
//! intervals count, so what is old fades.
//!
//! With false time-outs of 1 %, a floor of 10 ms, a ceiling of 2 s, and at least 100 samples:
//!
//! | samples                          | the quantile | time-out                                    |
//! |----------------------------------|--------------|---------------------------------------------|
//! | 99 of 20 ms                      |              | 2 s: too few                                |
//! | 985 of 20 ms, 15 of 100 ms       | 100.7 ms     | 100.7 ms: the end of the bucket of 100 ms   |
//! | 1000 of 20 ms                    | 20.4 ms      | 40.9 ms: twice the median                   |
//! | 1000 of 1 ms                     | 1.02 ms      | 10 ms: the floor                            |
//! | 950 of 20 ms, 50 timed out       | beyond all   | twice what it was, up to the ceiling        |
//!
//! When more is cut off than was asked for, nobody knows how long it would have taken. The time-out then
//! doubles, once a span and never beyond the ceiling, until enough answers are seen again: a dependency
//! that has become slower for good is found, and a driver that reports overload late has time to do so.
//!
//! [`Deadlines`] are the other half: how much of the time a caller gave us is left for those we call.

use std::time::Duration;

use crate::units::Moment;

mod deadline;
mod latencies;
mod rule;
mod shared;
#[cfg(test)]
mod tests;

pub use deadline::{DeadlineRule, DeadlineTerms, Deadlines, TimeLeft};
pub use latencies::Latencies;
pub use rule::{TimeoutRule, TimeoutTerms};
pub use shared::SharedTimeout;

/// What an attempt says about the time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// It succeeded after this long.
    Succeeded(Duration),
    /// It was given up after this long.
    TimedOut(Duration),
}

/// A time-out that follows the response times; [`SharedTimeout`] is the one for threads.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::Moment;
/// use tidegate_core::timeout::{AdaptiveTimeout, Sample, TimeoutRule};
///
/// let mut now = Moment::ORIGIN;
/// let mut timeout = AdaptiveTimeout::new(TimeoutRule::default(), now);
/// assert_eq!(timeout.timeout(), Duration::from_secs(5)); // the ceiling, for nothing is known
/// for _ in 0..10_000 {
///     now = now.plus(Duration::from_millis(1));
///     timeout.record(now, Sample::Succeeded(Duration::from_millis(20)));
/// }
/// assert!(timeout.timeout() < Duration::from_millis(42));
/// ```
#[derive(Clone, Debug)]
pub struct AdaptiveTimeout {
    rule: TimeoutRule,
    timeout: Duration,
    /// The interval under way.
    held_back: Gathered,
    recent: Gathered,
    before: Gathered,
    interval_began: Moment,
    span_began: Moment,
    learning: Learning,
    has_doubled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Learning {
    /// From attempts that began at this moment or later.
    Since(Moment),
    Frozen,
}

/// Successes, and how many attempts were cut off.
#[derive(Clone, Debug, Default)]
struct Gathered {
    latencies: Latencies,
    cut_off: u64,
}

impl AdaptiveTimeout {
    /// A time-out that has seen nothing: its ceiling.
    #[must_use]
    pub fn new(rule: TimeoutRule, now: Moment) -> Self {
        Self {
            rule,
            timeout: rule.terms().ceiling,
            held_back: Gathered::default(),
            recent: Gathered::default(),
            before: Gathered::default(),
            interval_began: now,
            span_began: now,
            learning: Learning::Since(now),
            has_doubled: false,
        }
    }

    /// How long to wait for an answer.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Learns how long an attempt took that ended at `now`.
    pub fn record(&mut self, now: Moment, sample: Sample) {
        self.turn(now);
        let (Sample::Succeeded(took) | Sample::TimedOut(took)) = sample;
        let is_learning = match self.learning {
            // Begun while frozen, it may still be slow because of what froze us.
            Learning::Since(thawed) => now.since(thawed) >= took,
            Learning::Frozen => false,
        };
        match sample {
            Sample::Succeeded(took) if is_learning => self.held_back.latencies.record(took),
            Sample::TimedOut(_) if is_learning => self.held_back.cut_off += 1,
            Sample::Succeeded(_) | Sample::TimedOut(_) => {}
        }
    }

    /// Stops learning: the breaker is not closed, or requests are being shed. What the interval under way
    /// has gathered is forgotten, for trouble begins before it is noticed.
    pub fn freeze(&mut self) {
        self.learning = Learning::Frozen;
        self.held_back.clear();
    }

    /// Learns again, from attempts that begin at `now` or later.
    pub fn thaw(&mut self, now: Moment) {
        if self.learning == Learning::Frozen {
            self.learning = Learning::Since(now);
            (self.interval_began, self.span_began) = (now, now);
        }
    }

    /// Whether it learns nothing at the moment.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        matches!(self.learning, Learning::Frozen)
    }

    fn turn(&mut self, now: Moment) {
        // From the future: the clock was set back.
        self.interval_began = self.interval_began.min(now);
        self.span_began = self.span_began.min(now);
        if let Learning::Since(thawed) = &mut self.learning {
            *thawed = (*thawed).min(now);
        }
        if self.is_frozen() || now.since(self.interval_began) < self.rule.terms().interval {
            return;
        }
        self.interval_began = now;
        self.recent.merge(&mut self.held_back);
        self.learn();
        let span = self.rule.terms().interval.saturating_mul(self.rule.terms().intervals);
        if now.since(self.span_began) >= span {
            self.span_began = now;
            std::mem::swap(&mut self.before, &mut self.recent);
            self.recent.clear();
            self.has_doubled = false;
        }
    }

    fn learn(&mut self) {
        let all = [&self.recent, &self.before];
        let cut_off = all.iter().map(|gathered| gathered.cut_off).sum::<u64>();
        let latencies = all.map(|gathered| &gathered.latencies);
        let count = latencies.iter().map(|latencies| latencies.count()).sum::<u64>() + cut_off;
        if count < u64::from(self.rule.terms().min_samples) {
            return;
        }
        let quantile = |rank: u64| Latencies::at_rank(&latencies, rank);
        match quantile(self.rule.rank(count)) {
            Some(quantile_found) => {
                let median = quantile(count.div_ceil(2)).unwrap_or(quantile_found);
                self.timeout = self.rule.within(quantile_found.max(self.rule.padded(median)));
            }
            // The quantile is among those that were cut off.
            None if self.has_doubled => {}
            None => {
                self.has_doubled = true;
                self.timeout = self.rule.within(self.timeout.saturating_mul(2));
            }
        }
    }
}

impl Gathered {
    fn clear(&mut self) {
        self.latencies.clear();
        self.cut_off = 0;
    }

    fn merge(&mut self, other: &mut Self) {
        self.latencies.merge(&other.latencies);
        self.cut_off += other.cut_off;
        other.clear();
    }
}
