//! Rate limiting by due time: a token bucket that stores one number (GCRA).
//!
//! The simplest limiter of 5 a second remembers its last yes and refuses anything within 200 ms of it.
//! Fair, and useless: two requests that arrive together are never both served. A bucket of tokens that
//! fills at 5 a second and holds 3 serves them, but needs two numbers (tokens, time of the last look) and
//! rounds every time it is looked at. So we remember instead the moment the *next* request is due if the
//! quota were spent evenly. Each admission moves `due` on by the request's worth; idle time lets `now`
//! catch up. A caller may be ahead by the burst's worth, its `lead`.
//!
//! 5 per second, burst 3: one unit is worth 200 ms and the lead is 600 ms.
//!
//! | now    | due before | ahead if admitted | verdict                     |
//! |--------|------------|-------------------|-----------------------------|
//! | 0 ms   | 400 ms     | 600 ms            | admit (third of the burst)  |
//! | 0 ms   | 600 ms     | 800 ms            | refuse, retry after 200 ms  |
//! | 200 ms | 600 ms     | 600 ms            | admit                       |
//!
//! In any interval of length d at most `burst + rate·d` is admitted: exactly the bucket's promise.
//! Its weakness is the bucket's too: after idleness the whole burst may come at once. Where that hurts,
//! choose a [`LeakyBucket`](super::LeakyBucket), which spaces requests out.
//!
//! Source: ATM Forum, Traffic Management Specification 4.0, the generic cell rate algorithm.

use super::schedule::{DueRule, Schedule, Terms};
use crate::units::{Cost, Quota};
use crate::verdict::Reason;

/// Admits the burst at once and the quota's rate ever after.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::rate::{Algorithm, TokenBucket};
/// use tidegate_core::{Cost, Moment, Quota, Retry};
///
/// let rule = TokenBucket::new(Quota::per_second(Cost::of(5))?.with_burst(Cost::of(3))?);
/// let now = Moment::ORIGIN;
/// let mut caller = rule.fresh(now);
///
/// assert!(rule.decide(&mut caller, now, Cost::of(3)).is_admit());
/// let refusal = rule.decide(&mut caller, now, Cost::ONE).refusal().expect("the burst is spent");
/// assert_eq!(refusal.retry, Retry::After(Duration::from_millis(200)));
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket(Schedule);

impl TokenBucket {
    /// A bucket that holds the quota's burst and fills at its rate.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        let reason = Reason::QuotaSpent;
        Self(Schedule::fine(Terms { quota, room: quota.burst(), free: Cost::MAX, borrowing: None, reason }))
    }
}

impl DueRule for TokenBucket {
    fn fine(&self) -> &Schedule {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rate::Algorithm;
    use crate::units::Moment;
    use crate::verdict::{Refusal, Retry, Verdict};

    fn at(millis: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_millis(millis))
    }

    fn five_a_second_burst_three() -> TokenBucket {
        TokenBucket::new(Quota::per_second(Cost::of(5)).unwrap().with_burst(Cost::of(3)).unwrap())
    }

    #[test]
    fn five_a_second_with_burst_three_answers_as_in_the_example() {
        let rule = five_a_second_burst_three();
        let mut state = rule.fresh(at(0));
        for _ in 0..3 {
            assert!(rule.decide(&mut state, at(0), Cost::ONE).is_admit());
        }
        let refusal = rule.decide(&mut state, at(0), Cost::ONE).refusal();
        let retry = Retry::After(Duration::from_millis(200));
        assert_eq!(refusal, Some(Refusal { reason: Reason::QuotaSpent, retry }));
        assert!(rule.decide(&mut state, at(200), Cost::ONE).is_admit());
    }

    #[test]
    fn a_cost_above_the_burst_is_refused_for_ever() {
        let rule = five_a_second_burst_three();
        let mut state = rule.fresh(at(0));
        let expected = Verdict::refuse(Reason::CostAboveBurst, Retry::Never);
        assert_eq!(rule.decide(&mut state, at(0), Cost::of(4)), expected);
    }

    #[test]
    fn a_larger_true_cost_leaves_a_debt_that_later_requests_wait_out() {
        let rule = five_a_second_burst_three();
        let mut state = rule.fresh(at(0));
        let mut charge = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
        rule.settle(&mut state, at(0), &mut charge, Cost::of(5));
        rule.settle(&mut state, at(0), &mut charge, Cost::of(9)); // the second time is a no-op
        let usage = rule.usage(&state, at(0));
        assert_eq!((usage.used, usage.remaining), (Cost::of(5), Cost::ZERO));
        let refusal = rule.decide(&mut state, at(0), Cost::ONE).refusal().unwrap();
        assert_eq!(refusal.retry, Retry::After(Duration::from_millis(600)));
    }

    #[test]
    fn a_late_refund_returns_only_what_time_has_not_granted_again() {
        let rule = five_a_second_burst_three();
        let mut state = rule.fresh(at(0));
        let mut charge = rule.decide(&mut state, at(0), Cost::of(3)).admitted().unwrap();
        rule.settle(&mut state, at(400), &mut charge, Cost::ONE);
        assert_eq!(rule.usage(&state, at(400)).used, Cost::ZERO);
        assert!(rule.is_idle(&state, at(400)));
        assert!(!rule.is_idle(&state, at(399)));
    }

    #[test]
    fn a_new_quota_keeps_the_units_consumed() {
        let before = five_a_second_burst_three();
        let mut state = before.fresh(at(0));
        assert!(before.decide(&mut state, at(0), Cost::of(2)).is_admit());
        let after = TokenBucket::new(Quota::per_minute(Cost::of(30)).unwrap());
        after.carry(&before, &mut state, at(0));
        assert_eq!(after.usage(&state, at(0)).used, Cost::of(2));
        assert_eq!(after.usage(&state, at(0)).reset, Duration::from_secs(4));
    }
}
