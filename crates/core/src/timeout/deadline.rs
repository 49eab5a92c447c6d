//! How much of a caller's time is left for those we call.
//!
//! Work on what nobody waits for any more is wasted, and under overload there is much of it. So whoever
//! calls says how long it will wait, and everybody on the way passes on what is left:
//!
//! ```text
//! out = min(in − elapsed − margin, cap)
//! ```
//!
//! A chain that starts with 30 s, without margin: the first server works 7 s and gives the next 23 s;
//! that works 4 s and gives the third 19 s. The margin is for the way back. Less than what the work is
//! expected to take is refused at once: it would be thrown away.
//!
//! Lengths of time travel, not moments: two machines agree on how long 4 s are, but not on what time it is.
//!
//! Still, somebody's lengths will be computed from a wrong clock one day, and then every request has
//! expired on arrival. So at most a fifth of the requests of ten seconds is refused for its deadline; the
//! others pass as if they had been given the expected time. Source: *Site Reliability Engineering*,
//! chapter 22; Finagle's deadline filter for the guard.

use std::time::Duration;

use super::rule::length;
use crate::tally::{Keep, Pair, Pairs};
use crate::units::share::{WHOLE, millionths};
use crate::units::{Invalid, LONGEST, Moment, Ratio};
use crate::verdict::{Reason, Retry, Verdict};

const BUCKETS: usize = 10;

/// Everything that can be chosen for deadlines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineTerms {
    /// What is kept back for the way home.
    pub margin: Duration,
    /// The most that is given to anybody, also where no caller set a deadline.
    pub cap: Duration,
    /// At most this share of the requests is refused for its deadline.
    pub most_refused: Ratio,
    /// Over how long that is counted.
    pub window: Duration,
}

impl Default for DeadlineTerms {
    fn default() -> Self {
        Self {
            margin: Duration::from_millis(5),
            cap: Duration::from_secs(30),
            // Finagle's numbers.
            most_refused: Ratio::new(0.2).unwrap_or(Ratio::ZERO),
            window: Duration::from_secs(10),
        }
    }
}

/// The terms of deadlines, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineRule {
    terms: DeadlineTerms,
    most_refused: u64,
}

/// The time a request has, as we were told and as it went by since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft {
    /// What the caller gave, if it said so.
    pub given: Option<Duration>,
    /// What has passed here since the request arrived.
    pub elapsed: Duration,
}

impl DeadlineRule {
    /// The rule with these terms.
    ///
    /// # Errors
    /// When the cap is not from 1 µs to 400 days, or the window not from 100 ms to 5 min.
    pub fn new(terms: DeadlineTerms) -> Result<Self, Invalid> {
        length("cap", terms.cap)?;
        if terms.margin > LONGEST {
            return Err(Invalid::new("margin", format!("{:?}", terms.margin), "at most 400 days"));
        }
        if terms.window < Duration::from_millis(100) || terms.window > Duration::from_secs(300) {
            let value = format!("{:?}", terms.window);
            return Err(Invalid::new("window", value, "from 100 milliseconds to 5 minutes"));
        }
        Ok(Self { terms, most_refused: millionths(terms.most_refused) })
    }

    /// What may be given to those we call.
    #[must_use]
    pub fn remaining(&self, left: TimeLeft) -> Duration {
        let DeadlineTerms { margin, cap, .. } = self.terms;
        let spend = |given: Duration| given.saturating_sub(left.elapsed).saturating_sub(margin);
        left.given.map_or(cap, spend).min(cap)
    }

    /// Whether one more refusal is within the guard.
    fn allows(&self, counts: Pair) -> bool {
        let after = (u128::from(counts.second) + 1) * u128::from(WHOLE);
        after <= u128::from(counts.first) * u128::from(self.most_refused)
    }
}

impl Default for DeadlineRule {
    fn default() -> Self {
        Self::new(DeadlineTerms::default()).expect("the defaults are in their ranges; a test makes them")
    }
}

/// Deadlines with their guard, shared by threads.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::Moment;
/// use tidegate_core::timeout::{DeadlineRule, Deadlines, TimeLeft};
///
/// let (now, expected) = (Moment::ORIGIN, Duration::from_millis(20));
/// let deadlines = Deadlines::new(DeadlineRule::default(), now);
/// let left = TimeLeft { given: Some(Duration::from_millis(100)), elapsed: Duration::from_millis(15) };
/// let given_on = deadlines.decide(left, now, expected).admitted();
/// assert_eq!(given_on, Some(Duration::from_millis(80))); // 5 ms are kept for the way back
/// ```
#[derive(Debug)]
pub struct Deadlines {
    rule: DeadlineRule,
    /// Requests, and those refused for their deadline.
    counts: Pairs,
}

impl Deadlines {
    /// Deadlines that have refused nothing.
    #[must_use]
    pub fn new(rule: DeadlineRule, now: Moment) -> Self {
        Self { rule, counts: Pairs::new(rule.terms.window, Keep::strict(BUCKETS), now) }
    }

    /// What may be given to those we call, or a refusal if it is less than the work is `expected` to
    /// take. Such a refusal says that no wait helps: time only runs out.
    pub fn decide(&self, left: TimeLeft, now: Moment, expected: Duration) -> Verdict<Duration> {
        self.counts.add_first(now);
        let remaining = self.rule.remaining(left);
        let expected = expected.min(self.rule.terms.cap);
        if remaining > Duration::ZERO && remaining >= expected {
            return Verdict::Admit(remaining);
        }
        if self.counts.take(now, |counts| self.rule.allows(counts)) {
            return Verdict::refuse(Reason::DeadlinePassed, Retry::Never);
        }
        // If nothing is expected either, a microsecond: a time-out of zero is not one.
        Verdict::Admit(expected.max(Duration::from_micros(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_secs(seconds))
    }

    fn left(given: u64, elapsed: u64) -> TimeLeft {
        TimeLeft { given: Some(Duration::from_secs(given)), elapsed: Duration::from_secs(elapsed) }
    }

    #[test]
    fn thirty_seconds_become_23_and_19_along_the_chain() {
        let terms = DeadlineTerms { margin: Duration::ZERO, ..DeadlineTerms::default() };
        let rule = DeadlineRule::new(terms).unwrap();
        assert_eq!(rule.remaining(left(30, 7)), Duration::from_secs(23));
        assert_eq!(rule.remaining(left(23, 4)), Duration::from_secs(19));
        assert_eq!(rule.remaining(left(3, 4)), Duration::ZERO);
        assert_eq!(rule.remaining(left(3_600, 0)), Duration::from_secs(30));
        assert_eq!(rule.remaining(TimeLeft { given: None, ..left(0, 9) }), Duration::from_secs(30));
    }

    #[test]
    fn what_cannot_be_served_in_time_is_refused() {
        let deadlines = Deadlines::new(DeadlineRule::default(), at(0));
        let ask = |left| deadlines.decide(left, at(0), Duration::from_secs(2));
        (0..100).for_each(|_| assert!(ask(left(5, 0)).is_admit()));
        assert_eq!(ask(left(5, 4)), Verdict::refuse(Reason::DeadlinePassed, Retry::Never));
        assert_eq!(ask(left(5, 2)), Verdict::Admit(Duration::from_millis(2_995)));
    }

    #[test]
    fn a_wrong_clock_refuses_at_most_a_fifth() {
        let deadlines = Deadlines::new(DeadlineRule::default(), at(0));
        let expected = Duration::from_secs(1);
        for second in 0..60 {
            let ask = |_: &u32| deadlines.decide(left(0, 9), at(second), expected).is_admit();
            let admitted = (0..100).filter(ask).count();
            assert!(second > 0 || admitted == 80, "{admitted} of 100");
            assert!(admitted >= 80, "{admitted} of 100 in second {second}");
        }
        let verdict = Deadlines::new(DeadlineRule::default(), at(0)).decide(left(0, 9), at(0), expected);
        assert_eq!(verdict, Verdict::Admit(expected));
    }
}
