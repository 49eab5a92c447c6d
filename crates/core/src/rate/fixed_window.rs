//! A count per window of the clock.
//!
//! The simplest way to allow 60 a minute: write down the minute and count. When a request comes in a new
//! minute, the count starts again at nothing. One number per key, one comparison per request, and an
//! answer everybody understands: "the minute's 60 are gone, come back in 12 seconds".
//!
//! Windows begin on the origin of time and not with the first request, so that all processes, and the
//! person who reads the dashboard, agree where one ends. 3 a second:
//!
//! | now     | window | count before | verdict                    |
//! |---------|--------|--------------|----------------------------|
//! | 0.9 s   | 0      | 2            | admit (the third)          |
//! | 0.9 s   | 0      | 3            | refuse, retry after 100 ms |
//! | 1.0 s   | 1      | 0            | admit                      |
//!
//! The limit of the method is in the same table: three pass just before the boundary and three just
//! after it. In *some* stretch of one window's length up to twice the amount passes, all at once. Where
//! that hurts, use a [`SlidingWindow`](super::SlidingWindow) or a [`TokenBucket`](super::TokenBucket).
//!
//! A charge corrected upwards may leave the count above the amount. The rest of the window is then
//! refused; with the window the debt ends too, since a window knows nothing of the one before.

use std::time::Duration;

use super::window::{WindowCount, duration_of, wide_nanos};
use super::{Algorithm, Marks};
use crate::units::{Cost, Invalid, Moment, Quota, nanos_of};
use crate::verdict::{Charge, Usage, Verdict};

/// At most so much in each window of the clock.
///
/// ```
/// use tidegate_core::rate::{Algorithm, FixedWindow};
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let rule = FixedWindow::new(Quota::per_minute(Cost::of(2))?)?;
/// let mut state = rule.fresh(Moment::ORIGIN);
/// assert!(rule.decide(&mut state, Moment::ORIGIN, Cost::of(2)).is_admit());
/// assert!(!rule.decide(&mut state, Moment::ORIGIN, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    amount: Cost,
    window: Duration,
}

impl FixedWindow {
    /// The quota's amount in each of its windows.
    ///
    /// # Errors
    /// When the quota names a burst.
    pub fn new(quota: Quota) -> Result<Self, Invalid> {
        refuse_burst(&quota)?;
        Ok(Self { amount: quota.amount(), window: quota.window() })
    }

    fn index(&self, now: Moment) -> u64 {
        now.nanos() / nanos_of(self.window)
    }

    fn until_end(&self, index: u64, now: Moment) -> Duration {
        let end = (u128::from(index) + 1) * wide_nanos(self.window);
        duration_of(end.saturating_sub(u128::from(now.nanos())))
    }
}

impl Algorithm for FixedWindow {
    type Time = Moment;
    type State = WindowCount;

    fn fresh(&self, now: Moment) -> WindowCount {
        WindowCount::new(self.index(now))
    }

    fn peek(&self, state: &WindowCount, now: Moment, cost: Cost) -> Verdict<Duration> {
        let count = state.at(self.index(now));
        count.check(self.amount, cost, self.until_end(count.index(), now))
    }

    fn decide(&self, state: &mut WindowCount, now: Moment, cost: Cost) -> Verdict<Charge> {
        *state = state.at(self.index(now));
        self.peek(state, now, cost).map(|_| {
            state.take(cost);
            Charge::new(cost, state.index())
        })
    }

    fn correct(&self, state: &mut WindowCount, now: Moment, charge: &Charge, taken: Cost, true_cost: Cost) {
        *state = state.at(self.index(now));
        state.correct(charge.mark, taken, true_cost);
    }

    fn usage(&self, state: &WindowCount, now: Moment) -> Usage {
        let count = state.at(self.index(now));
        count.usage(self.amount, self.until_end(count.index(), now))
    }

    fn is_idle(&self, state: &WindowCount, now: Moment) -> bool {
        let index = self.index(now);
        let count = state.at(index);
        count.is_empty() && count.index() == index
    }

    /// The count goes on in the new rule's present window. Where the length has changed, we no longer
    /// know when within the old window it was made, and count all of it.
    fn carry(&self, before: &Self, state: &mut WindowCount, now: Moment) {
        *state = state.at(before.index(now));
        if self.window != before.window {
            *state = state.moved(self.index(now));
        }
    }

    /// The charges of the present window are moved with its count.
    fn marks(&self, before: &Self, state: &WindowCount, now: Moment) -> Marks {
        if self.window == before.window {
            return Marks::SAME;
        }
        Marks::moved(state.at(before.index(now)).index(), self.index(now))
    }
}

/// A window grants its whole amount at its start: there is nothing that a burst could still say.
pub(super) fn refuse_burst(quota: &Quota) -> Result<(), Invalid> {
    match quota.explicit_burst() {
        Some(burst) => Err(Invalid::new("burst", burst, "left out: this algorithm has none")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Reason, Retry};

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn three_a_second() -> FixedWindow {
        FixedWindow::new(Quota::per_second(Cost::of(3)).unwrap()).unwrap()
    }

    fn spent(rule: &FixedWindow, now: Moment) -> WindowCount {
        let mut state = rule.fresh(now);
        assert!(rule.decide(&mut state, now, rule.amount).is_admit());
        state
    }

    #[test]
    fn the_worked_example_comes_out_as_written() {
        let rule = three_a_second();
        let mut state = rule.fresh(at(900));
        assert!(rule.decide(&mut state, at(900), Cost::of(2)).is_admit());
        assert!(rule.decide(&mut state, at(900), Cost::ONE).is_admit());
        assert_eq!(
            rule.decide(&mut state, at(900), Cost::ONE),
            Verdict::refuse(Reason::QuotaSpent, Retry::After(Duration::from_millis(100)))
        );
        assert!(rule.decide(&mut state, at(1_000), Cost::ONE).is_admit());
    }

    #[test]
    fn a_cost_above_the_amount_never_fits() {
        let rule = three_a_second();
        assert_eq!(
            rule.peek(&rule.fresh(at(0)), at(0), Cost::of(4)),
            Verdict::refuse(Reason::CostAboveBurst, Retry::Never)
        );
    }

    #[test]
    fn a_named_burst_is_refused() {
        let quota = Quota::per_second(Cost::of(3)).unwrap().with_burst(Cost::of(5)).unwrap();
        assert_eq!(
            FixedWindow::new(quota).unwrap_err().to_string(),
            "burst is 5, but must be left out: this algorithm has none"
        );
    }

    #[test]
    fn moments_flipping_around_a_boundary_grant_one_new_window_only() {
        let rule = three_a_second();
        let mut state = spent(&rule, at(999));
        assert!(rule.decide(&mut state, at(1_000), Cost::of(3)).is_admit());
        assert_eq!(
            rule.decide(&mut state, at(999), Cost::ONE),
            Verdict::refuse(Reason::QuotaSpent, Retry::After(Duration::from_millis(1_001)))
        );
        assert!(!rule.decide(&mut state, at(1_001), Cost::ONE).is_admit());
    }

    #[test]
    fn a_key_that_is_ahead_of_a_late_moment_is_not_idle() {
        let rule = three_a_second();
        let state = rule.fresh(at(1_000));
        assert!(rule.is_idle(&state, at(1_000)) && !rule.is_idle(&state, at(999)));
    }

    #[test]
    fn a_clock_set_back_neither_grants_anew_nor_locks_out() {
        let rule = three_a_second();
        let mut state = spent(&rule, at(3_600_000));
        assert!(!rule.decide(&mut state, at(500), Cost::ONE).is_admit());
        assert!(rule.decide(&mut state, at(1_000), Cost::ONE).is_admit());
    }

    #[test]
    fn a_refund_counts_only_in_its_own_window() {
        let rule = three_a_second();
        let mut state = rule.fresh(at(0));
        let mut early = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
        let mut late = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
        rule.refund(&mut state, at(500), &mut early);
        assert_eq!(rule.usage(&state, at(500)).used, Cost::ONE);
        assert!(rule.decide(&mut state, at(1_000), Cost::of(2)).is_admit());
        rule.refund(&mut state, at(1_000), &mut late);
        assert_eq!(rule.usage(&state, at(1_000)).used, Cost::of(2));
    }

    #[test]
    fn a_larger_true_cost_is_owed_until_the_window_ends() {
        let rule = three_a_second();
        let mut state = rule.fresh(at(0));
        let mut charge = rule.decide(&mut state, at(0), Cost::ONE).admitted().unwrap();
        rule.settle(&mut state, at(400), &mut charge, Cost::of(10));
        let usage = rule.usage(&state, at(400));
        assert_eq!((usage.used, usage.remaining), (Cost::of(10), Cost::ZERO));
        assert_eq!(usage.reset, Duration::from_millis(600));
        assert!(!rule.peek(&state, at(999), Cost::ZERO).is_admit());
        assert!(rule.is_idle(&state, at(1_000)));
    }

    #[test]
    fn a_new_quota_keeps_what_was_consumed() {
        let before = three_a_second();
        let after = FixedWindow::new(Quota::per_minute(Cost::of(5)).unwrap()).unwrap();
        let mut state = spent(&before, at(59_500));
        after.carry(&before, &mut state, at(59_500));
        assert_eq!(after.usage(&state, at(59_500)).remaining, Cost::of(2));
        assert_eq!(after.usage(&state, at(59_500)).reset, Duration::from_millis(500));
    }
}
