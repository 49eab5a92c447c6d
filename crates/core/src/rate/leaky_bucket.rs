//! A leaky bucket: requests drip out at a steady rate, and the bucket is how many may wait.
//!
//! A token bucket lets a burst through as it came; what stands behind it feels the burst. A leaky bucket
//! admits the same requests and tells each one how long to wait, so that they leave evenly spaced. As a
//! *shaper* it says "go on in 300 ms"; as a *meter* ([`LeakyBucket::without_delay`]) it only counts.
//! In between, a delay-free part lets the first few of a burst pass at once.
//!
//! 10 per second, 5 may wait; seven requests in the same millisecond:
//!
//! | arrival                | 1 | 2   | 3   | 4   | 5   | 6   | 7       |
//! |------------------------|---|-----|-----|-----|-----|-----|---------|
//! | ahead before, ms       | 0 | 100 | 200 | 300 | 400 | 500 | 600     |
//! | waits, ms              | 0 | 100 | 200 | 300 | 400 | 500 | refused |
//! | waits, first two free  | 0 | 0   | 0   | 100 | 200 | 300 | refused |
//! | waits, without delay   | 0 | 0   | 0   | 0   | 0   | 0   | refused |
//!
//! One passes at once and five wait: the room is `1 + waiting`. The seventh may come again after 100 ms,
//! when one place has dripped out. The price of even spacing is latency: a caller at the back of the
//! bucket waits `waiting / rate`, so keep that below what callers are ready to wait.
//!
//! Source: nginx `limit_req`, whose `burst`, `delay` and `nodelay` have these results.

use super::schedule::{DueRule, Schedule, Terms};
use crate::units::{Cost, Invalid, Quota};
use crate::verdict::Reason;

/// Spaces requests out to the quota's rate, up to a bounded number that wait.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::rate::{Algorithm, LeakyBucket};
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let rule = LeakyBucket::new(Quota::per_second(Cost::of(10))?, Cost::of(5))?;
/// let now = Moment::ORIGIN;
/// let mut bucket = rule.fresh(now);
/// let waits: Vec<_> = (0..3)
///     .filter_map(|_| rule.decide(&mut bucket, now, Cost::ONE).admitted())
///     .map(|charge| charge.wait().as_millis())
///     .collect();
/// assert_eq!(waits, [0, 100, 200]);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {
    terms: Terms,
    schedule: Schedule,
}

impl LeakyBucket {
    /// A bucket that leaks at the quota's rate and in which `waiting` may wait beside the one that passes.
    ///
    /// # Errors
    /// When the quota names a burst (here `waiting` says how much may come at once), or the bucket would
    /// take longer than 400 days to drain.
    pub fn new(quota: Quota, waiting: Cost) -> Result<Self, Invalid> {
        if let Some(burst) = quota.explicit_burst() {
            return Err(Invalid::new(
                "burst",
                burst,
                "left out: a leaky bucket says how many may wait instead",
            ));
        }
        let room = waiting.plus(Cost::ONE);
        let terms = Terms { quota, room, free: Cost::ZERO, borrowing: None, reason: Reason::WaitTooLong };
        let terms = terms.check("waiting")?;
        Ok(Self { terms, schedule: Schedule::fine(terms) })
    }

    /// The same bucket, in which a request with no more than `free` before it does not wait.
    ///
    /// # Errors
    /// When more would be free of delay than may wait.
    pub fn with_delay_free(self, free: Cost) -> Result<Self, Invalid> {
        if free.plus(Cost::ONE) > self.terms.room {
            return Err(Invalid::new("delay", free, "at most the number that may wait"));
        }
        Ok(self.free_of_delay(free))
    }

    /// The same bucket as a meter: it counts and refuses, and nobody waits.
    #[must_use]
    pub fn without_delay(self) -> Self {
        self.free_of_delay(Cost::MAX)
    }

    fn free_of_delay(self, free: Cost) -> Self {
        let terms = Terms { free, ..self.terms };
        Self { terms, schedule: Schedule::fine(terms) }
    }
}

impl DueRule for LeakyBucket {
    fn fine(&self) -> &Schedule {
        &self.schedule
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rate::Algorithm;
    use crate::units::Moment;
    use crate::verdict::{Retry, Verdict};

    fn ten_a_second_five_waiting() -> LeakyBucket {
        LeakyBucket::new(Quota::per_second(Cost::of(10)).unwrap(), Cost::of(5)).unwrap()
    }

    fn waits(rule: LeakyBucket) -> Vec<Option<u128>> {
        let now = Moment::ORIGIN;
        let mut state = rule.fresh(now);
        let mut wait = || rule.decide(&mut state, now, Cost::ONE).admitted().map(|c| c.wait().as_millis());
        (0..7).map(|_| wait()).collect()
    }

    fn millis(waits: [u128; 6]) -> Vec<Option<u128>> {
        waits.into_iter().map(Some).chain([None]).collect()
    }

    #[test]
    fn seven_at_once_wait_as_in_the_example() {
        let rule = ten_a_second_five_waiting();
        assert_eq!(waits(rule), millis([0, 100, 200, 300, 400, 500]));
        let two_free = rule.with_delay_free(Cost::of(2)).unwrap();
        assert_eq!(waits(two_free), millis([0, 0, 0, 100, 200, 300]));
        assert_eq!(waits(rule.without_delay()), millis([0; 6]));
    }

    #[test]
    fn the_one_refused_may_come_again_when_a_place_has_dripped_out() {
        let rule = ten_a_second_five_waiting();
        let now = Moment::ORIGIN;
        let mut state = rule.fresh(now);
        assert!(rule.decide(&mut state, now, Cost::of(6)).is_admit());
        let expected = Verdict::refuse(Reason::WaitTooLong, Retry::After(Duration::from_millis(100)));
        assert_eq!(rule.decide(&mut state, now, Cost::ONE), expected);
    }

    #[test]
    fn contradictory_settings_are_refused() {
        let quota = Quota::per_second(Cost::ONE).unwrap();
        let burst = quota.with_burst(Cost::of(2)).unwrap();
        assert_eq!(LeakyBucket::new(burst, Cost::ONE).unwrap_err().field, "burst");
        assert_eq!(LeakyBucket::new(quota, Cost::MAX).unwrap_err().field, "waiting");
        let free = LeakyBucket::new(quota, Cost::ONE).unwrap().with_delay_free(Cost::of(2));
        assert_eq!(free.unwrap_err().to_string(), "delay is 2, but must be at most the number that may wait");
    }
}
