//! The share of the traffic that may be retries and hedges.
//!
//! Bounds per request do not bound the sum: when everything fails, three attempts each are three times
//! the load. So a caller retries only while its retries are a small share of its requests. The simplest
//! budget adds 1/10 of a token per request and takes one per retry; but tokens saved up in quiet hours
//! are then all spent in the first seconds of an outage. So both are counted over a window, and a retry
//! is granted only if
//!
//! ```text
//! retries in the window, this one included  ≤  ratio · requests in the window + reserve
//! ```
//!
//! The reserve, so many a second, is for callers so quiet that a tenth of their requests is nothing. A
//! hedge is a retry that did not wait for the failure, and is taken from the same budget.
//!
//! Ratio .34 over 10 s, no reserve; 100 requests in the window:
//!
//! | retries before | 33      | 34      |
//! |----------------|---------|---------|
//! | left side      | 34      | 35      |
//! | right side     | 34      | 34      |
//! | verdict        | admit   | refuse  |
//!
//! All of it is in whole millionths. A budget that pays 1 per request and takes `int(1 / ratio)` per
//! retry, as a widely used one does, grants 50 % for .34, and 100 % for .51.
//!
//! The bound holds at every moment and not only on average: requests are counted over at most the window
//! and retries over at least the window, since they stay a bucket longer. The price is that a steady
//! stream is granted up to a twentieth less than the ratio. Limit: the budget of one process knows
//! nothing of the others; a ratio holds for the fleet all the same, because it holds for each. Source:
//! *Site Reliability Engineering*, chapter 21; Finagle's `RetryBudget` for the reserve.

use std::time::Duration;

use crate::tally::{Keep, Pair, Pairs};
use crate::units::share::{WHOLE, millionths};
use crate::units::{Invalid, Moment, Ratio};
use crate::verdict::{Reason, Retry, Verdict};

/// The window is forgotten a thirtieth at a time.
const BUCKETS: usize = 30;

/// Everything that can be chosen for a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetTerms {
    /// How many retries there may be for each request.
    pub ratio: Ratio,
    /// How many a second there may be besides.
    pub reserve_per_second: u32,
    /// Over how long both are counted.
    pub window: Duration,
}

impl Default for BudgetTerms {
    fn default() -> Self {
        Self {
            // 10 %: three layers then make 1.331 attempts of a request at most.
            ratio: Ratio::new(0.1).unwrap_or(Ratio::ZERO),
            reserve_per_second: 1,
            window: Duration::from_secs(10),
        }
    }
}

/// A budget's terms, checked and in whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetRule {
    ratio: u64,
    /// What the window grants without any request, in millionths.
    reserve: u64,
    window: Duration,
}

/// What a budget has counted within its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// First attempts.
    pub requests: u64,
    /// Retries and hedges.
    pub retries: u64,
}

impl BudgetRule {
    /// The rule with these terms. A ratio of zero without a reserve means that nothing is ever retried.
    ///
    /// # Errors
    /// When the window is not from 100 ms to 5 min, or the reserve above a million a second.
    pub fn new(terms: BudgetTerms) -> Result<Self, Invalid> {
        let BudgetTerms { ratio, reserve_per_second, window } = terms;
        if window < Duration::from_millis(100) || window > Duration::from_secs(300) {
            return Err(Invalid::new("window", format!("{window:?}"), "from 100 milliseconds to 5 minutes"));
        }
        if reserve_per_second > 1_000_000 {
            return Err(Invalid::new("reserve_per_second", reserve_per_second, "at most 1000000"));
        }
        // A microsecond grants a millionth of what a second does.
        let micros = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
        let reserve = micros.saturating_mul(reserve_per_second.into());
        Ok(Self { ratio: millionths(ratio), reserve, window })
    }

    /// Whether one more retry is within the bound.
    #[must_use]
    pub fn allows(&self, spent: Spent) -> bool {
        let after = (u128::from(spent.retries) + 1) * u128::from(WHOLE);
        after <= self.granted(spent.requests)
    }

    /// What so many requests grant, in millionths of a retry.
    fn granted(&self, requests: u64) -> u128 {
        u128::from(self.ratio) * u128::from(requests) + u128::from(self.reserve)
    }
}

impl Default for BudgetRule {
    fn default() -> Self {
        Self::new(BudgetTerms::default()).expect("the defaults are in their ranges; a test makes them")
    }
}

/// A budget of retries and hedges, shared by threads. Counting a request is one addition; taking a retry,
/// which is rare by design, holds a mutex so that no two threads take the last one.
///
/// ```
/// use tidegate_core::Moment;
/// use tidegate_core::retry::{BudgetRule, RetryBudget};
///
/// let now = Moment::ORIGIN;
/// let budget = RetryBudget::new(BudgetRule::default(), now);
/// (0..100).for_each(|_| budget.request(now));
/// let granted = (0..100).filter(|_| budget.take(now).is_admit()).count();
/// assert_eq!(granted, 10 + 10); // a tenth of the requests, and the reserve of ten seconds
/// ```
#[derive(Debug)]
pub struct RetryBudget {
    rule: BudgetRule,
    counts: Pairs,
}

impl RetryBudget {
    /// A budget that has seen nothing.
    #[must_use]
    pub fn new(rule: BudgetRule, now: Moment) -> Self {
        Self { rule, counts: Pairs::new(rule.window, Keep::strict(BUCKETS), now) }
    }

    /// Counts a first attempt. Retries and hedges are not counted here.
    #[inline]
    pub fn request(&self, now: Moment) {
        self.counts.add_first(now);
    }

    /// Takes one retry or hedge, if the budget allows.
    pub fn take(&self, now: Moment) -> Verdict<()> {
        if self.counts.take(now, |counts| self.rule.allows(spent(counts))) {
            return Verdict::Admit(());
        }
        // By then all that is counted now has left the window, and what the reserve grants is there again.
        let has_reserve = self.rule.reserve >= WHOLE;
        let after = self.rule.window + self.rule.window / 30;
        Verdict::refuse(
            Reason::RetryBudgetSpent,
            if has_reserve { Retry::After(after) } else { Retry::Never },
        )
    }

    /// What is counted at `now`.
    pub fn spent(&self, now: Moment) -> Spent {
        spent(self.counts.sums(now))
    }

    /// The share of the budget that is left, for a metric: one if there is no budget to spend.
    pub fn remaining(&self, now: Moment) -> Ratio {
        let Spent { requests, retries } = self.spent(now);
        let granted = self.rule.granted(requests);
        let used = u128::from(retries) * u128::from(WHOLE);
        if granted == 0 {
            return Ratio::ONE;
        }
        Ratio::new(1.0 - used.min(granted) as f64 / granted as f64).unwrap_or(Ratio::ZERO)
    }
}

const fn spent(counts: Pair) -> Spent {
    Spent { requests: counts.first, retries: counts.second }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(seconds))
    }

    fn budget(ratio: f64, reserve_per_second: u32) -> RetryBudget {
        let ratio = Ratio::new(ratio).unwrap();
        let terms = BudgetTerms { ratio, reserve_per_second, ..BudgetTerms::default() };
        RetryBudget::new(BudgetRule::new(terms).unwrap(), at(0))
    }

    fn granted(budget: &RetryBudget, now: Moment) -> usize {
        (0..1_000).filter(|_| budget.take(now).is_admit()).count()
    }

    #[test]
    fn a_share_of_34_percent_is_34_percent_and_not_a_half() {
        for (ratio, expected) in
            [(0.34, 34), (0.3, 30), (0.45, 45), (0.51, 51), (0.1, 10), (0.001, 0), (0.0, 0)]
        {
            let budget = budget(ratio, 0);
            (0..100).for_each(|_| budget.request(at(0)));
            assert_eq!(granted(&budget, at(0)), expected, "of 100 at {ratio}");
        }
    }

    #[test]
    fn a_quiet_caller_has_a_reserve_again_after_the_time_that_it_was_told() {
        let budget = budget(0.1, 1);
        budget.request(at(0));
        assert_eq!(granted(&budget, at(0)), 10);
        let refusal = budget.take(at(0)).refusal().unwrap();
        assert_eq!(refusal.retry, Retry::After(Duration::from_secs(310) / 30));
        assert_eq!(granted(&budget, at(10)), 0);
        assert_eq!(granted(&budget, at(11)), 10);
    }

    #[test]
    fn nothing_saved_up_in_quiet_hours_is_left_in_an_outage() {
        let budget = budget(0.1, 0);
        for second in 0..3_600 {
            (0..100).for_each(|_| budget.request(at(second)));
        }
        assert_eq!(granted(&budget, at(3_599)), 100);
        assert_eq!(granted(&budget, at(3_620)), 0);
    }

    #[test]
    fn a_ratio_of_nothing_without_reserve_means_never() {
        let budget = budget(0.0, 0);
        budget.request(at(0));
        assert_eq!(budget.take(at(0)), Verdict::refuse(Reason::RetryBudgetSpent, Retry::Never));
        assert_eq!(budget.remaining(at(0)), Ratio::ONE);
    }

    #[test]
    fn what_remains_is_a_share() {
        let budget = budget(0.1, 0);
        (0..100).for_each(|_| budget.request(at(0)));
        assert!(budget.take(at(0)).is_admit());
        assert!((budget.remaining(at(0)).value() - 0.9).abs() < 1e-9);
    }

    #[test]
    fn a_clock_set_back_an_hour_neither_grants_twice_nor_locks_out() {
        let budget = budget(0.0, 1);
        assert_eq!(granted(&budget, at(3_600)), 10);
        assert_eq!(granted(&budget, at(3_595)), 0); // a little late
        assert_eq!(granted(&budget, at(0)), 10); // set back: a new time begins
        assert_eq!(granted(&budget, at(1)), 0);
        assert_eq!(granted(&budget, at(11)), 10);
    }

    #[test]
    fn windows_that_cannot_be_counted_are_refused() {
        let terms = BudgetTerms { window: Duration::ZERO, ..BudgetTerms::default() };
        assert_eq!(BudgetRule::new(terms).unwrap_err().field, "window");
        assert_eq!(BudgetRule::default().ratio, 100_000);
    }
}
