//! A count per day or month of the calendar.
//!
//! "10 000 a month" in a contract means the month on the wall, not thirty times 24 hours: it starts again
//! on the first at midnight, and February is short. So this limiter is a
//! [`FixedWindow`](super::FixedWindow) whose windows are numbered by the calendar, and it is told the
//! [`WallTime`]. Everything else is the same, including that up to twice the amount can pass around
//! midnight.
//!
//! Numbering takes some arithmetic. If a year begins in March, the day that leap years add is its last,
//! and the months before it run 31, 30, 31, 30, 31, … which a straight line can count: month m (March
//! is 0) begins (153·m + 2) / 5 days into the year. Four hundred years have 146 097 days, and then
//! everything repeats.
//!
//! For 2024-02-29, at an offset of zero, with days counted from 0000-03-01:
//!
//! | what                                      | value                           |
//! |-------------------------------------------|---------------------------------|
//! | days since 1970-01-01, plus 719 468       | 19 782 + 719 468 = 739 250      |
//! | in which 400 years, and which day of them | 5, day 8 765                    |
//! | which year of those, and which day of it  | 23, day 365 (the last of 2023)  |
//! | month, from March                         | (5·365 + 2) / 153 = 11: February|
//!
//! The zone is a fixed offset. Zones whose clocks change twice a year would need their tables, which are
//! data that grows old in a binary; a quota that starts an hour off for half of the year is the lesser
//! evil.

use std::time::Duration;

use super::window::WindowCount;
use super::{Algorithm, Marks};
use crate::units::{Cost, Invalid, WallTime};
use crate::verdict::{Charge, Usage, Verdict};

/// At most so much in each day or month.
///
/// ```
/// use tidegate_core::rate::{Algorithm, Calendar, Period, UtcOffset};
/// use tidegate_core::{Cost, WallTime};
///
/// let rule = Calendar::new(Cost::of(2), Period::Day, UtcOffset::UTC)?;
/// let noon = WallTime::from_unix_seconds(12 * 3_600);
/// let mut state = rule.fresh(noon);
/// assert!(rule.decide(&mut state, noon, Cost::of(2)).is_admit());
/// assert!(!rule.decide(&mut state, noon, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    amount: Cost,
    period: Period,
    offset: UtcOffset,
}

/// What starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// The day, at midnight.
    Day,
    /// The month, at midnight before its first day.
    Month,
}

/// How far local time is ahead of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UtcOffset {
    minutes: i16,
}

impl UtcOffset {
    /// Not at all.
    pub const UTC: Self = Self { minutes: 0 };

    /// Ahead of UTC by this many minutes; behind if negative.
    ///
    /// # Errors
    /// When it is more than 14 hours either way, which no zone is.
    pub fn minutes(minutes: i16) -> Result<Self, Invalid> {
        if (-14 * 60..=14 * 60).contains(&minutes) {
            Ok(Self { minutes })
        } else {
            Err(Invalid::new("utc_offset", minutes, "from -840 to 840 minutes"))
        }
    }

    fn seconds(self) -> i64 {
        i64::from(self.minutes) * 60
    }
}

const DAY: i64 = 86_400;

/// Days from 0000-03-01 to 1970-01-01. Counting from there keeps every number positive.
const TO_1970: i64 = 719_468;

impl Calendar {
    /// `amount` in each `period`, as it begins at `offset`.
    ///
    /// # Errors
    /// When the amount is zero.
    pub fn new(amount: Cost, period: Period, offset: UtcOffset) -> Result<Self, Invalid> {
        if amount == Cost::ZERO {
            return Err(Invalid::new("amount", amount, "more than 0"));
        }
        Ok(Self { amount, period, offset })
    }

    /// The number of the day or month that `now` lies in.
    fn index(&self, now: WallTime) -> u64 {
        let day = TO_1970 + (seconds_of(now) + self.offset.seconds()).div_euclid(DAY);
        let index = match self.period {
            Period::Day => day,
            Period::Month => month_of(day),
        };
        u64::try_from(index).unwrap_or(0)
    }

    fn until_end(&self, index: u64, now: WallTime) -> Duration {
        let next = i64::try_from(index).unwrap_or(i64::MAX).saturating_add(1);
        let day = match self.period {
            Period::Day => next,
            Period::Month => first_day_of(next),
        };
        let start = (day - TO_1970) * DAY - self.offset.seconds();
        let whole = u64::try_from(start - seconds_of(now)).unwrap_or(0);
        Duration::from_secs(whole).saturating_sub(Duration::from_nanos(now.unix_nanos() % 1_000_000_000))
    }
}

impl Algorithm for Calendar {
    type Time = WallTime;
    type State = WindowCount;

    fn fresh(&self, now: WallTime) -> WindowCount {
        WindowCount::new(self.index(now))
    }

    fn peek(&self, state: &WindowCount, now: WallTime, cost: Cost) -> Verdict<Duration> {
        let count = state.at(self.index(now));
        count.check(self.amount, cost, self.until_end(count.index(), now))
    }

    fn decide(&self, state: &mut WindowCount, now: WallTime, cost: Cost) -> Verdict<Charge> {
        *state = state.at(self.index(now));
        self.peek(state, now, cost).map(|_| {
            state.take(cost);
            Charge::new(cost, state.index())
        })
    }

    fn correct(&self, state: &mut WindowCount, now: WallTime, charge: &Charge, taken: Cost, true_cost: Cost) {
        *state = state.at(self.index(now));
        state.correct(charge.mark, taken, true_cost);
    }

    fn usage(&self, state: &WindowCount, now: WallTime) -> Usage {
        let count = state.at(self.index(now));
        count.usage(self.amount, self.until_end(count.index(), now))
    }

    fn is_idle(&self, state: &WindowCount, now: WallTime) -> bool {
        let index = self.index(now);
        let count = state.at(index);
        count.is_empty() && count.index() == index
    }

    /// The count goes on in the new rule's present period.
    fn carry(&self, before: &Self, state: &mut WindowCount, now: WallTime) {
        *state = state.at(before.index(now));
        if (self.period, self.offset) != (before.period, before.offset) {
            *state = state.moved(self.index(now));
        }
    }

    /// The charges of the present period are moved with its count.
    fn marks(&self, before: &Self, state: &WindowCount, now: WallTime) -> Marks {
        if (self.period, self.offset) == (before.period, before.offset) {
            return Marks::SAME;
        }
        Marks::moved(state.at(before.index(now)).index(), self.index(now))
    }
}

fn seconds_of(now: WallTime) -> i64 {
    i64::try_from(now.unix_nanos() / 1_000_000_000).unwrap_or(i64::MAX)
}

/// The month that `day` lies in, counted from March of the year 0; days likewise.
fn month_of(day: i64) -> i64 {
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    // Every 4th year has a day more, every 100th has not, the 400th has: take those days out first.
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    (era * 400 + year) * 12 + (5 * day_of_year + 2) / 153
}

/// The first day of a month, both counted from March of the year 0.
fn first_day_of(month: i64) -> i64 {
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12));
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Reason, Retry};

    const HOUR: u64 = 3_600;

    /// Midnight in UTC at the start of a date, by counting day after day from 1970.
    fn date(year: u64, month: usize, day: u64) -> WallTime {
        let is_leap =
            |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let years: u64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
        let february = if is_leap(year) { 29 } else { 28 };
        let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let days = years + months[..month - 1].iter().sum::<u64>() + day - 1;
        WallTime::from_unix_seconds(days * 86_400)
    }

    fn later(wall: WallTime, seconds: u64) -> WallTime {
        WallTime::from_unix_nanos(wall.unix_nanos() + seconds * 1_000_000_000)
    }

    fn rule(period: Period, minutes: i16) -> Calendar {
        Calendar::new(Cost::of(2), period, UtcOffset::minutes(minutes).unwrap()).unwrap()
    }

    /// When a quota that is spent at `now` comes back.
    fn retry(rule: &Calendar, now: WallTime) -> Duration {
        let mut state = rule.fresh(now);
        assert!(rule.decide(&mut state, now, Cost::of(2)).is_admit());
        match rule.decide(&mut state, now, Cost::ONE).refusal().unwrap() {
            crate::Refusal { reason: Reason::QuotaSpent, retry: Retry::After(wait) } => wait,
            other => panic!("refused with {other:?}"),
        }
    }

    fn days(days: u64) -> Duration {
        Duration::from_secs(days * 86_400)
    }

    #[test]
    fn the_worked_example_comes_out_as_written() {
        let day = i64::try_from(date(2024, 2, 29).unix_nanos() / 86_400_000_000_000).unwrap();
        assert_eq!(day, 19_782);
        assert_eq!((day + TO_1970) % 146_097, 8_765);
        assert_eq!(month_of(day + TO_1970), (5 * 400 + 23) * 12 + 11);
    }

    #[test]
    fn every_day_for_five_centuries_falls_in_its_month() {
        for year in 1970..=2470 {
            for month in 1..=12 {
                let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
                let (first, end) = (date(year, month, 1), date(next_year, next_month, 1));
                let rule = rule(Period::Month, 0);
                assert_eq!(retry(&rule, first), end.since(first), "{year}-{month}");
                let last = WallTime::from_unix_nanos(end.unix_nanos() - 1);
                assert_eq!(rule.index(last), rule.index(first), "{year}-{month}");
                assert_eq!(rule.index(end), rule.index(first) + 1, "{year}-{month}");
            }
        }
    }

    #[test]
    fn february_has_its_own_length_in_leap_years() {
        let month = rule(Period::Month, 0);
        assert_eq!(retry(&month, date(2023, 2, 28)), days(1));
        assert_eq!(retry(&month, date(2024, 2, 28)), days(2));
        assert_eq!(retry(&month, date(2024, 2, 29)), days(1));
        assert_eq!(retry(&month, date(2100, 2, 28)), days(1));
        assert_eq!(retry(&month, date(2000, 2, 28)), days(2));
    }

    #[test]
    fn a_year_ends_like_any_month_and_day() {
        let evening = later(date(2025, 12, 31), 23 * HOUR);
        assert_eq!(retry(&rule(Period::Month, 0), evening), Duration::from_secs(HOUR));
        assert_eq!(retry(&rule(Period::Day, 0), evening), Duration::from_secs(HOUR));
    }

    #[test]
    fn the_day_begins_at_local_midnight() {
        let noon = later(date(2025, 6, 30), 12 * HOUR);
        let hours = |hours| Duration::from_secs(hours * HOUR);
        assert_eq!(retry(&rule(Period::Day, 120), noon), hours(10));
        assert_eq!(retry(&rule(Period::Day, -300), noon), hours(17));
        assert_eq!(retry(&rule(Period::Month, 840), noon), days(31) - hours(2));
        assert_eq!(retry(&rule(Period::Day, 345), noon), Duration::from_secs(6 * HOUR + 15 * 60));
    }

    #[test]
    fn the_first_and_the_last_moment_there_are_have_a_day_and_a_month() {
        for period in [Period::Day, Period::Month] {
            for minutes in [-840, 0, 840] {
                let rule = rule(period, minutes);
                for nanos in [0, 1, u64::MAX] {
                    assert!(retry(&rule, WallTime::from_unix_nanos(nanos)) > Duration::ZERO);
                }
            }
        }
    }

    #[test]
    fn a_wall_clock_set_back_by_months_neither_grants_anew_nor_locks_out() {
        let rule = rule(Period::Month, 0);
        let mut state = rule.fresh(date(2025, 6, 15));
        assert!(rule.decide(&mut state, date(2025, 6, 15), Cost::of(2)).is_admit());
        assert!(!rule.decide(&mut state, date(2025, 5, 31), Cost::ONE).is_admit());
        assert!(!rule.decide(&mut state, date(2025, 3, 31), Cost::ONE).is_admit());
        assert!(rule.decide(&mut state, date(2025, 4, 1), Cost::ONE).is_admit());
    }

    #[test]
    fn what_cannot_be_a_quota_or_an_offset_is_refused() {
        assert_eq!(Calendar::new(Cost::ZERO, Period::Day, UtcOffset::UTC).unwrap_err().field, "amount");
        assert_eq!(
            UtcOffset::minutes(841).unwrap_err().to_string(),
            "utc_offset is 841, but must be from -840 to 840 minutes"
        );
        assert!(UtcOffset::minutes(-841).is_err());
    }

    #[test]
    fn a_month_that_becomes_days_keeps_what_was_consumed() {
        let (month, day) = (rule(Period::Month, 0), rule(Period::Day, 0));
        let now = later(date(2025, 6, 15), HOUR);
        let mut state = month.fresh(now);
        assert!(month.decide(&mut state, now, Cost::ONE).is_admit());
        day.carry(&month, &mut state, now);
        let usage = day.usage(&state, now);
        assert_eq!((usage.remaining, usage.reset), (Cost::ONE, Duration::from_secs(23 * HOUR)));
    }
}
