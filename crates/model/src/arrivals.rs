//! When requests arrive, and how urgent they are.
//!
//! Arrivals are an open loop: they follow a schedule whatever the service does, because users of a slow
//! page do not take turns. A generator that waits for answers slows down with the service it tests and
//! so hides the overload it was meant to show.
//!
//! Gaps are exponential (independent users). A rate that changes is met by thinning: draw at the peak
//! rate and keep each arrival with probability rate ÷ peak. At a peak of 10 and a rate of 2, one in five.

use std::time::Duration;

use tidegate_core::{Criticality, Moment};

use crate::chance::Chance;

/// Requests a second as a multiple of what the service can do: 1.4 is 40 % too many.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Load(pub f64);

/// How the load goes: one stretch after another, beginning at the origin; nothing afterwards.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::Moment;
/// use tidegate_model::arrivals::{Load, Schedule};
///
/// let minute = Duration::from_secs(60);
/// let day = Schedule::default().steady(minute, Load(0.5)).ramp(minute, Load(1.5));
/// assert_eq!(day.load(Moment::ORIGIN.plus(minute / 2)), Load(0.5));
/// assert_eq!(day.load(Moment::ORIGIN.plus(minute * 3 / 2)), Load(1.0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    stretches: Vec<Stretch>,
    peak: f64,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    begins: Moment,
    ends: Moment,
    first: Load,
    last: Load,
}

impl Schedule {
    /// Goes on with this load for this long.
    #[must_use]
    pub fn steady(self, length: Duration, load: Load) -> Self {
        self.stretch(length, load, load)
    }

    /// Goes on from the load there is to this one, in a straight line.
    #[must_use]
    pub fn ramp(self, length: Duration, to: Load) -> Self {
        let from = self.stretches.last().map_or(Load(0.0), |stretch| stretch.last);
        self.stretch(length, from, to)
    }

    /// Goes on from the first of these loads to the last, in a straight line.
    #[must_use]
    pub fn stretch(mut self, length: Duration, first: Load, last: Load) -> Self {
        let begins = self.ends();
        self.peak = self.peak.max(first.0).max(last.0);
        self.stretches.push(Stretch { begins, ends: begins.plus(length), first, last });
        self
    }

    /// The load at this moment.
    #[must_use]
    pub fn load(&self, at: Moment) -> Load {
        let index = self.stretches.partition_point(|stretch| stretch.ends <= at);
        let Some(stretch) = self.stretches.get(index) else { return Load(0.0) };
        let passed =
            at.since(stretch.begins).as_secs_f64() / stretch.ends.since(stretch.begins).as_secs_f64();
        Load(stretch.first.0 + (stretch.last.0 - stretch.first.0) * passed)
    }

    /// When the schedule is over.
    #[must_use]
    pub fn ends(&self) -> Moment {
        self.stretches.last().map_or(Moment::ORIGIN, |stretch| stretch.ends)
    }

    /// The next arrival after `now`, where a load of one is `capacity` a second.
    pub(crate) fn next(&self, now: Moment, capacity: f64, chance: &mut Chance) -> Option<Moment> {
        if self.peak <= 0.0 {
            return None;
        }
        let gap = Duration::from_secs_f64(1.0 / (self.peak * capacity));
        let mut at = now;
        loop {
            at = at.plus(chance.exponential(gap));
            if at >= self.ends() {
                return None;
            }
            if chance.happens(self.load(at).0 / self.peak) {
                return Some(at);
            }
        }
    }
}

/// How many in a hundred requests have which criticality.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// In the order of [`Criticality::ALL`].
    shares: [f64; 4],
}

impl Mix {
    /// All of them have this one.
    #[must_use]
    pub fn only(level: Criticality) -> Self {
        let mut shares = [0.0; 4];
        shares[level.index()] = 1.0;
        Self { shares }
    }

    /// These shares of one, in the order of [`Criticality::ALL`]: what is shed first comes first.
    #[must_use]
    pub const fn of(shares: [f64; 4]) -> Self {
        Self { shares }
    }

    pub(crate) fn draw(&self, chance: &mut Chance) -> Criticality {
        let mut left = chance.share();
        for level in Criticality::ALL {
            left -= self.shares[level.index()];
            if left < 0.0 {
                return level;
            }
        }
        Criticality::CriticalPlus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(schedule: &Schedule, from: u64, to: u64) -> usize {
        let mut chance = Chance::stream(1, 1);
        let mut now = Moment::ORIGIN;
        let arrivals = std::iter::from_fn(|| {
            now = schedule.next(now, 1000.0, &mut chance)?;
            Some(now)
        });
        let seconds = |at: Moment| at.since(Moment::ORIGIN).as_secs();
        arrivals.filter(|at| (from..to).contains(&seconds(*at))).count()
    }

    #[test]
    fn as_many_arrive_as_the_schedule_says() {
        let ten = Duration::from_secs(10);
        let schedule = Schedule::default().steady(ten, Load(0.5)).ramp(ten, Load(1.5)).steady(ten, Load(0.1));
        // 5000, 10000 and 1000; three standard deviations are 212, 300 and 95.
        assert!(count(&schedule, 0, 10).abs_diff(5000) < 212);
        assert!(count(&schedule, 10, 20).abs_diff(10_000) < 300);
        assert!(count(&schedule, 20, 30).abs_diff(1000) < 95);
        assert_eq!(count(&schedule, 30, 100), 0);
    }

    #[test]
    fn nobody_arrives_while_a_wave_is_off() {
        let (half, on, off) = (Duration::from_secs(2), Load(3.0), Load(0.0));
        let wave = |schedule: Schedule| schedule.steady(half, on).steady(half, off);
        let schedule = wave(wave(Schedule::default()));
        assert_eq!((count(&schedule, 2, 4), count(&schedule, 6, 8)), (0, 0));
        assert!(count(&schedule, 4, 6).abs_diff(6000) < 232);
    }

    #[test]
    fn a_mix_is_drawn_in_its_shares() {
        let mix = Mix::of([0.6, 0.34, 0.03, 0.03]);
        let mut chance = Chance::stream(1, 1);
        let mut drawn = [0_u32; 4];
        (0..10_000).for_each(|_| drawn[mix.draw(&mut chance).index()] += 1);
        for (count, expected) in drawn.into_iter().zip([6000_u32, 3400, 300, 300]) {
            assert!(count.abs_diff(expected) < 150, "{drawn:?}");
        }
    }
}
