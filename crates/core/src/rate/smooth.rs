//! A smooth limiter that borrows from the future.
//!
//! A job that costs 8 meets a limiter of 1 a second. A token bucket of 3 refuses it for ever; a bucket of
//! 8 would let eight small ones through at once. The smooth limiter grants the job **at once** and lets
//! the *next* caller wait the 8 seconds: nobody waits for his own cost, everybody for the costs before him.
//! Idle time is stored up to the quota's burst and spent first.
//!
//! 1 per second, nothing stored; each call comes as soon as the one before it was let go:
//!
//! | cost  | 1   | 1   | 2   | 4   | 8   | 1   |
//! |-------|-----|-----|-----|-----|-----|-----|
//! | waits | 0 s | 1 s | 1 s | 2 s | 4 s | 8 s |
//!
//! In due time: a key with nothing stored is ahead by its store; it waits for what it is ahead beyond that.
//! A caller who would wait longer than `max_wait` is refused and told when it would be short enough. One
//! request may cost at most what is stored and granted within `max_wait`, or everybody after it would be
//! refused; more is refused for ever.
//!
//! The average never exceeds the rate, but single large requests do come through at once: use it where
//! work is uneven and the total matters, not where the size of one request hurts.
//!
//! Source: Guava's `SmoothBursty`, whose waits these are.

use std::time::Duration;

use super::schedule::{Due, DueRule, Schedule, Terms};
use crate::units::{Invalid, Moment, Quota};
use crate::verdict::Reason;

/// Grants any affordable request at once and lets the next one wait for it.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::rate::{Algorithm, Smooth};
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let rule = Smooth::new(Quota::per_second(Cost::ONE)?, Duration::from_secs(10))?;
/// let now = Moment::ORIGIN;
/// let mut state = rule.drained(now);
/// let large = rule.decide(&mut state, now, Cost::of(8)).admitted().expect("borrowing is allowed");
/// let next = rule.decide(&mut state, now, Cost::ONE).admitted().expect("8 s is below the longest wait");
/// assert_eq!((large.wait(), next.wait()), (Duration::ZERO, Duration::from_secs(8)));
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smooth(Schedule);

impl Smooth {
    /// A limiter that stores the quota's burst while idle and lets nobody wait longer than `max_wait`.
    ///
    /// # Errors
    /// When the store and the longest wait together exceed 400 days.
    pub fn new(quota: Quota, max_wait: Duration) -> Result<Self, Invalid> {
        let store = quota.burst();
        let reason = Reason::WaitTooLong;
        let terms = Terms { quota, room: store, free: store, borrowing: Some(max_wait), reason };
        Ok(Self(Schedule::fine(terms.check("burst")?)))
    }

    /// The state of a key that owes nothing and has nothing stored.
    #[must_use]
    pub fn drained(&self, now: Moment) -> Due {
        Due::at(self.0.granted(now), self.0.free())
    }
}

impl DueRule for Smooth {
    fn fine(&self) -> &Schedule {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Algorithm;
    use crate::units::Cost;
    use crate::verdict::{Retry, Verdict};

    fn one_a_second(max_wait: u64) -> Smooth {
        Smooth::new(Quota::per_second(Cost::ONE).unwrap(), Duration::from_secs(max_wait)).unwrap()
    }

    #[test]
    fn callers_wait_for_the_costs_before_them_as_in_the_example() {
        let rule = one_a_second(10);
        let mut now = Moment::ORIGIN;
        let mut state = rule.drained(now);
        let mut waits = Vec::new();
        for cost in [1, 1, 2, 4, 8, 1] {
            let wait = rule.decide(&mut state, now, Cost::of(cost)).admitted().unwrap().wait();
            waits.push(wait.as_secs());
            now = now.plus(wait);
        }
        assert_eq!(waits, [0, 1, 1, 2, 4, 8]);
    }

    #[test]
    fn who_would_wait_too_long_is_told_when_the_wait_is_short_enough() {
        let rule = one_a_second(2);
        let now = Moment::ORIGIN;
        let mut state = rule.drained(now);
        assert!(rule.decide(&mut state, now, Cost::of(3)).is_admit());
        let expected = Verdict::refuse(Reason::WaitTooLong, Retry::After(Duration::from_secs(1)));
        assert_eq!(rule.decide(&mut state, now, Cost::ONE), expected);
    }

    #[test]
    fn more_than_store_and_longest_wait_grant_is_refused_for_ever() {
        let rule = one_a_second(2);
        let mut state = rule.fresh(Moment::ORIGIN);
        let expected = Verdict::refuse(Reason::CostAboveBurst, Retry::Never);
        assert_eq!(rule.decide(&mut state, Moment::ORIGIN, Cost::of(4)), expected);
    }

    #[test]
    fn a_wait_beyond_any_clock_is_refused() {
        let problem = Smooth::new(Quota::per_second(Cost::ONE).unwrap(), Duration::MAX).unwrap_err();
        assert_eq!(problem.field, "max_wait");
    }
}
