//! Time for limits that need no precision.
//!
//! A connection that has been idle for 75 seconds may live a quarter of a second longer. So its reads and writes
//! do not look at a clock: they copy the tick that its worker renews a few times a second, and the worker compares.
//!
//! Nor is the date asked for at every request: it goes on with the moments, unless somebody sets it, and how far it is
//! ahead of them is looked at with each tick.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::{Moment, WallTime};
use tidegate_policy::Now;

/// Milliseconds since a worker began. Relaxed throughout: a tick is an instant, it guards nothing.
#[derive(Debug)]
pub(crate) struct Ticks {
    began: Moment,
    now: AtomicU64,
    /// How many nanoseconds the wall time is ahead of the moment.
    ahead: AtomicU64,
    /// The second since 1970 and how a `Date` field tells it.
    date: Mutex<(u64, [u8; DATE])>,
}

/// How long a date is.
const DATE: usize = 29;

impl Ticks {
    pub(crate) fn new(now: Now) -> Self {
        let second = second(now);
        Self {
            began: now.moment,
            now: AtomicU64::new(0),
            ahead: AtomicU64::new(ahead(now)),
            date: Mutex::new((second, date(second))),
        }
    }

    /// The tick of this moment, as it was last renewed.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// A moment with the wall time of the same instant.
    pub(crate) fn dated(&self, moment: Moment) -> Now {
        let ahead = self.ahead.load(Ordering::Relaxed);
        Now { moment, wall: WallTime::from_unix_nanos(moment.nanos().wrapping_add(ahead)) }
    }

    /// Is told what the clocks say; says which tick that is.
    pub(crate) fn renew(&self, now: Now) -> u64 {
        let tick = millis(now.moment.since(self.began));
        self.now.store(tick, Ordering::Relaxed);
        self.ahead.store(ahead(now), Ordering::Relaxed);
        let second = second(now);
        let mut known = self.known_date();
        if known.0 != second {
            *known = (second, date(second));
        }
        tick
    }

    /// What a `Date` field says (RFC 9110 §5.6.7), as late as the tick.
    pub(crate) fn date(&self) -> [u8; DATE] {
        self.known_date().1
    }

    /// The second since 1970, as late as the tick.
    pub(crate) fn second(&self) -> u64 {
        self.known_date().0
    }

    fn known_date(&self) -> MutexGuard<'_, (u64, [u8; DATE])> {
        self.date.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn ahead(now: Now) -> u64 {
    now.wall.unix_nanos().wrapping_sub(now.moment.nanos())
}

/// Seconds since 1970.
const fn second(now: Now) -> u64 {
    now.wall.unix_nanos() / 1_000_000_000
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(second: u64) -> [u8; DATE] {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    let (days, within) = (second / 86_400, second % 86_400);
    let weekday = WEEKDAYS[usize::try_from(days % 7).unwrap_or_default()];
    // Years that begin in March end with the day that may be missing, so that all others have fixed places. 719 468
    // days lie between the first of them and 1970, and 146 097 are 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (year, day) = (400 * era + year + u64::from(month >= 10), day - (153 * month + 2) / 5 + 1);
    let month = MONTHS[usize::try_from(month % 12).unwrap_or_default()];
    let text = format!(
        "{weekday}, {day:02} {month} {year:04} {:02}:{:02}:{:02} GMT",
        within / 3_600,
        within / 60 % 60,
        within % 60,
    );
    // Only years behind 9999 are longer.
    text.as_bytes().first_chunk().copied().unwrap_or([b' '; DATE])
}

/// A length of time in ticks, at least one.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_time_goes_on_with_the_moments_and_follows_the_date_with_the_tick() {
        let at =
            |moment, wall| Now { moment: Moment::from_nanos(moment), wall: WallTime::from_unix_nanos(wall) };
        let ticks = Ticks::new(at(100, 1_000));
        assert_eq!(ticks.dated(Moment::from_nanos(107)), at(107, 1_007));
        // Somebody sets the date back, behind where the moments are.
        ticks.renew(at(110, 30));
        assert_eq!(ticks.dated(Moment::from_nanos(112)), at(112, 32));
    }

    #[test]
    fn dates_are_told_as_fields_tell_them() {
        for (second, told) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (1_704_067_199, "Sun, 31 Dec 2023 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(std::str::from_utf8(&date(second)), Ok(told));
        }
    }
}
