//! When requests are meant to be sent.
//!
//! A schedule is a list of phases, each with a rate that stays or changes in a straight line. Think of a counter
//! that runs as fast as the rate: whenever it has counted one more, a request is due. A phase that goes from rate
//! *a* to rate *b* in *T* seconds has counted after *t* seconds
//!
//! ```text
//! n(t) = a·t + (b − a)·t² / 2T        and so        t(n) = 2n / (a + √(a² + 2n·(b − a)/T))
//! ```
//!
//! Even pacing asks for t(0), t(1), t(2), …: nothing drifts, because every moment is computed from the start. For
//! independent callers (Poisson) the counter need only move on by exponential steps of mean one; that it runs
//! at a changing rate does the rest.
//!
//! From 0 to 100 a second within 2 s makes 100 requests: the 25th is due after 1 s, the 81st after 1.8 s.

use std::time::Duration;

use crate::chance::Chance;

/// Requests a second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

/// A rate is never NaN.
impl Eq for Rate {}

impl Rate {
    /// Nothing is sent.
    pub const ZERO: Self = Self(0.0);

    /// The most that can be asked for: gaps of a microsecond, below which no generator keeps its schedule.
    pub const MAX: Self = Self(1e6);

    /// This many a second; parts of one are fine. None if that is negative, no number, or above [`Rate::MAX`].
    #[must_use]
    pub fn per_second(requests: f64) -> Option<Self> {
        (0.0..=Self::MAX.0).contains(&requests).then_some(Self(requests))
    }

    /// As a number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// How the gaps between requests are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// One like the other, as exact as a clock.
    Even,
    /// Exponential: callers who know nothing of each other.
    Poisson,
}

/// Phases one after another, and how requests are spaced within them.
///
/// ```
/// use std::time::Duration;
/// use tidegate_load::{Pacing, Rate, Schedule};
///
/// let rate = |requests| Rate::per_second(requests).unwrap();
/// let second = Duration::from_secs(1);
/// let schedule = Schedule::new(Pacing::Even).steady(rate(100.0), second).ramp(rate(300.0), second * 2);
/// assert_eq!(schedule.length(), second * 3);
/// assert_eq!(schedule.requests(), 500.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pacing: Pacing,
    phases: Vec<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Phase {
    begins: Duration,
    length: Duration,
    first: f64,
    last: f64,
    /// What the counter shows when it begins and when it ends.
    counted: f64,
    counts_to: f64,
}

impl Schedule {
    /// An empty one, to be followed by phases.
    #[must_use]
    pub fn new(pacing: Pacing) -> Self {
        Self { pacing, phases: Vec::new() }
    }

    /// Goes on with this rate for this long.
    #[must_use]
    pub fn steady(self, rate: Rate, length: Duration) -> Self {
        self.phase(rate, rate, length)
    }

    /// Goes on from the rate there is, or from nothing, to this one in a straight line.
    #[must_use]
    pub fn ramp(self, to: Rate, length: Duration) -> Self {
        let from = Rate(self.phases.last().map_or(0.0, |phase| phase.last));
        self.phase(from, to, length)
    }

    /// How long all phases take.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.phases.last().map_or(Duration::ZERO, |phase| phase.begins.saturating_add(phase.length))
    }

    /// How many requests that makes: exactly with even pacing, on average with Poisson.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.phases.last().map_or(0.0, |phase| phase.counts_to)
    }

    /// Goes on from one rate to another in a straight line.
    #[must_use]
    pub fn phase(mut self, first: Rate, last: Rate, length: Duration) -> Self {
        let (begins, counted) = (self.length(), self.requests());
        let exact = counted + f64::midpoint(first.0, last.0) * length.as_secs_f64();
        // To a billionth, so that ten phases of a tenth make one.
        let counts_to = (exact * 1e9).round() / 1e9;
        self.phases.push(Phase { begins, length, first: first.0, last: last.0, counted, counts_to });
        self
    }

    /// When the counter shows `count`; none when it never gets there.
    fn moment(&self, count: f64) -> Option<Duration> {
        let index = self.phases.partition_point(|phase| phase.counts_to <= count);
        let phase = self.phases.get(index)?;
        Some(phase.begins + phase.after(count - phase.counted))
    }
}

impl Phase {
    /// How long after its beginning it has counted this many.
    fn after(&self, count: f64) -> Duration {
        if count <= 0.0 {
            return Duration::ZERO;
        }
        let slope = (self.last - self.first) / self.length.as_secs_f64();
        let root = (self.first * self.first + 2.0 * count * slope).max(0.0).sqrt();
        Duration::from_secs_f64(2.0 * count / (self.first + root)).min(self.length)
    }
}

/// The moments of a schedule, counted from its start, in order.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    schedule: Schedule,
    count: f64,
    chance: Chance,
}

impl Moments {
    pub(crate) fn new(schedule: Schedule, mut chance: Chance) -> Self {
        let count = match schedule.pacing {
            Pacing::Even => 0.0,
            Pacing::Poisson => chance.exponential(),
        };
        Self { schedule, count, chance }
    }
}

impl Iterator for Moments {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let moment = self.schedule.moment(self.count)?;
        self.count += match self.schedule.pacing {
            Pacing::Even => 1.0,
            Pacing::Poisson => self.chance.exponential(),
        };
        Some(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rate(requests: f64) -> Rate {
        Rate::per_second(requests).unwrap()
    }

    fn moments(schedule: Schedule) -> Vec<Duration> {
        Moments::new(schedule, Chance::stream(1, 0)).collect()
    }

    #[test]
    fn even_pacing_is_exact_to_the_nanosecond() {
        let moments = moments(Schedule::new(Pacing::Even).steady(rate(1000.0), SECOND * 10));
        assert_eq!(moments.len(), 10_000);
        for (index, moment) in (0..).zip(&moments) {
            assert_eq!(*moment, Duration::from_millis(index));
        }
    }

    #[test]
    fn steps_follow_each_other_without_gap_or_overlap() {
        let schedule = Schedule::new(Pacing::Even)
            .steady(rate(10.0), SECOND)
            .steady(Rate::ZERO, SECOND)
            .steady(rate(2.5), SECOND * 2);
        let moments = moments(schedule);
        let late: Vec<u128> = moments[10..].iter().map(Duration::as_millis).collect();
        assert_eq!(late, [2000, 2400, 2800, 3200, 3600]);
    }

    /// The module's example.
    #[test]
    fn a_ramp_speeds_up_in_a_straight_line() {
        let moments = moments(Schedule::new(Pacing::Even).ramp(rate(100.0), SECOND * 2));
        assert_eq!(moments.len(), 100);
        assert_eq!((moments[25], moments[81]), (SECOND, Duration::from_millis(1800)));
        let down = Schedule::new(Pacing::Even).steady(rate(100.0), SECOND).ramp(Rate::ZERO, SECOND * 2);
        let down: Vec<Duration> = Moments::new(down, Chance::stream(1, 0)).collect();
        assert_eq!((down.len(), down[175]), (200, SECOND * 2));
    }

    #[test]
    fn many_short_phases_lose_nothing() {
        let tenth = Duration::from_millis(100);
        let schedule =
            (0..100).fold(Schedule::new(Pacing::Even), |schedule, _| schedule.steady(rate(3.0), tenth));
        assert_eq!(moments(schedule).len(), 30);
    }

    #[test]
    fn poisson_has_the_rate_and_the_spread_of_independent_callers() {
        let schedule = Schedule::new(Pacing::Poisson).steady(rate(1000.0), SECOND * 20);
        let moments = moments(schedule);
        // Three standard deviations of 20 000.
        assert!(moments.len().abs_diff(20_000) < 425, "{}", moments.len());
        let gaps: Vec<f64> = moments.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "gaps vary as much as they are long");
    }

    #[test]
    fn nothing_is_due_in_an_empty_schedule() {
        assert_eq!(moments(Schedule::new(Pacing::Even)), []);
        assert_eq!(moments(Schedule::new(Pacing::Even).steady(rate(5.0), Duration::ZERO)), []);
        assert_eq!(moments(Schedule::new(Pacing::Poisson).steady(Rate::ZERO, SECOND)), []);
        assert_eq!((Rate::per_second(-1.0), Rate::per_second(f64::NAN)), (None, None));
    }
}
