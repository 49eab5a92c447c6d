//! Whether one request may have another attempt, and when.
//!
//! Retries are bounded twice: by number, since the fourth attempt at what failed three times rarely
//! helps, and by time, since an answer after the caller has left helps nobody. What will fail again (a
//! bad request, a missing right) and what must not be done twice is not tried again at all. And the other
//! side has a word:
//!
//! | advice | from | the wait |
//! |---|---|---|
//! | none | | our own back-off |
//! | after 1 s | a `Retry-After` | from 1 s up to 2 s: a thousand callers told the same second must not all keep it |
//! | exactly 0 s | a refusal by one overloaded instance while few are (S6) | none: at once, elsewhere |
//! | exactly 100 ms | a gRPC pushback | 100 ms: there the server spreads its callers out |
//! | never | "overloaded; don't retry", a pushback that is negative or unreadable | no retry |

use std::time::Duration;

use super::backoff::{Backoff, Delays};
use crate::units::share::{between, millionths, share_of};
use crate::units::{Invalid, LONGEST, Moment, Ratio, Roll};
use crate::verdict::{Reason, Retry, Verdict};

/// What the other side said about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Nothing.
    None,
    /// Not before this has passed.
    After(Duration),
    /// When exactly this has passed.
    Exactly(Duration),
    /// Not at all.
    Never,
}

impl Advice {
    /// Try elsewhere without waiting: one instance is overloaded, and few others are.
    pub const AT_ONCE: Self = Self::Exactly(Duration::ZERO);

    /// A gRPC pushback, read as milliseconds; `None` if it was negative or could not be read.
    #[must_use]
    pub fn pushback(millis: Option<u32>) -> Self {
        millis.map_or(Self::Never, |millis| Self::Exactly(Duration::from_millis(millis.into())))
    }
}

/// How an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// It may work next time, and doing it twice does no harm.
    Transient(Advice),
    /// It will fail again, or it must not be done twice.
    Final,
}

/// Everything that can be chosen for the retries of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryTerms {
    /// How many attempts a request may have, the first one included.
    pub attempts: u32,
    /// No attempt begins later than this after the first one did.
    pub total: Duration,
    /// How long to wait in between.
    pub backoff: Backoff,
    /// A delay named by the other side is lengthened by up to this share of itself.
    pub spread: Ratio,
}

impl Default for RetryTerms {
    fn default() -> Self {
        let base = Duration::from_millis(25);
        Self {
            // Three, as in large-scale practice: at one failure in ten, a thousandth is left.
            attempts: 3,
            // Longer than people wait.
            total: Duration::from_secs(10),
            backoff: Backoff::new(base).expect("25 ms is in the range"),
            // Twice the delay at most: re-arrivals are then even over as long a time as was asked for.
            spread: Ratio::ONE,
        }
    }
}

/// The terms of retrying, checked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RetryRule {
    terms: RetryTerms,
}

/// One request's attempts so far.
#[derive(Clone, Copy, Debug)]
pub struct Attempts {
    began: Moment,
    made: u32,
    delays: Delays,
}

impl Attempts {
    /// A request whose first attempt begins now.
    #[must_use]
    pub const fn begin(now: Moment) -> Self {
        Self { began: now, made: 1, delays: Delays::new() }
    }

    /// How many attempts were made or allowed, the first one included.
    #[must_use]
    pub const fn made(&self) -> u32 {
        self.made
    }

    /// The number the current attempt carries to the server: 0 for the first.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.made - 1
    }
}

impl RetryRule {
    /// The rule with these terms.
    ///
    /// # Errors
    /// When there are not from 1 to 100 attempts, or the total is above 400 days.
    pub fn new(terms: RetryTerms) -> Result<Self, Invalid> {
        if terms.attempts == 0 || terms.attempts > 100 {
            return Err(Invalid::new("attempts", terms.attempts, "from 1 to 100"));
        }
        if terms.total > LONGEST {
            return Err(Invalid::new("total", format!("{:?}", terms.total), "at most 400 days"));
        }
        Ok(Self { terms })
    }

    /// What it was made of.
    #[must_use]
    pub const fn terms(&self) -> &RetryTerms {
        &self.terms
    }

    /// After a failure: how long to wait before the next attempt, or why there is none. Ask the budget
    /// afterwards, so that it is not charged for retries that other bounds forbid.
    pub fn next(
        &self,
        attempts: &mut Attempts,
        now: Moment,
        failure: Failure,
        roll: Roll,
    ) -> Verdict<Duration> {
        let advice = match failure {
            Failure::Transient(advice) => advice,
            Failure::Final => return never(Reason::NotRetryable),
        };
        if attempts.made >= self.terms.attempts {
            return never(Reason::AttemptsSpent);
        }
        let wait = match advice {
            Advice::None => attempts.delays.next(&self.terms.backoff, roll),
            Advice::After(named) => self.spread_out(named, roll),
            Advice::Exactly(named) => named,
            Advice::Never => return never(Reason::NotRetryable),
        };
        if now.since(attempts.began).saturating_add(wait) > self.terms.total {
            return never(Reason::DeadlinePassed);
        }
        attempts.made += 1;
        Verdict::Admit(wait)
    }

    fn spread_out(&self, named: Duration, roll: Roll) -> Duration {
        let latest = named.saturating_add(share_of(named, millionths(self.terms.spread)));
        between(named, latest, roll)
    }
}

fn never(reason: Reason) -> Verdict<Duration> {
    Verdict::refuse(reason, Retry::Never)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_millis(millis))
    }

    fn ask(attempts: &mut Attempts, now: u64, advice: Advice, roll: f64) -> Result<u128, Reason> {
        let failure = Failure::Transient(advice);
        match RetryRule::default().next(attempts, at(now), failure, Roll::new(roll).unwrap()) {
            Verdict::Admit(wait) => Ok(wait.as_millis()),
            Verdict::Refuse(refusal) => Err(refusal.reason),
        }
    }

    #[test]
    fn a_request_has_three_attempts() {
        let mut attempts = Attempts::begin(at(0));
        assert_eq!(ask(&mut attempts, 0, Advice::None, 0.5), Ok(12));
        assert_eq!(ask(&mut attempts, 0, Advice::None, 0.5), Ok(25));
        assert_eq!(ask(&mut attempts, 0, Advice::None, 0.8), Err(Reason::AttemptsSpent));
        assert_eq!((attempts.made(), attempts.number()), (3, 2));
    }

    #[test]
    fn the_other_side_has_a_word_as_in_the_table() {
        let ask = |advice, roll| ask(&mut Attempts::begin(at(0)), 0, advice, roll);
        let second = Duration::from_secs(1);
        assert_eq!(ask(Advice::After(second), 0.0), Ok(1_000));
        assert_eq!(ask(Advice::After(second), 0.5), Ok(1_500));
        assert_eq!(ask(Advice::AT_ONCE, 0.9), Ok(0));
        assert_eq!(ask(Advice::pushback(Some(100)), 0.9), Ok(100));
        assert_eq!(ask(Advice::pushback(None), 0.0), Err(Reason::NotRetryable));
        assert_eq!(ask(Advice::Never, 0.0), Err(Reason::NotRetryable));
    }

    #[test]
    fn what_will_fail_again_is_not_tried_again() {
        let mut attempts = Attempts::begin(at(0));
        let verdict =
            RetryRule::default().next(&mut attempts, at(0), Failure::Final, Roll::new(0.0).unwrap());
        assert_eq!(verdict, Verdict::refuse(Reason::NotRetryable, Retry::Never));
        assert_eq!(attempts.made(), 1);
    }

    #[test]
    fn no_attempt_begins_after_the_total_time() {
        let mut attempts = Attempts::begin(at(0));
        let second = Advice::Exactly(Duration::from_secs(1));
        assert_eq!(ask(&mut attempts, 9_001, second, 0.0), Err(Reason::DeadlinePassed));
        assert_eq!(ask(&mut attempts, 9_000, second, 0.0), Ok(1_000));
        assert_eq!(ask(&mut attempts, 0, Advice::After(Duration::MAX), 0.9), Err(Reason::DeadlinePassed));
    }

    #[test]
    fn no_attempts_are_refused_as_a_rule() {
        let terms = RetryTerms { attempts: 0, ..RetryTerms::default() };
        assert_eq!(RetryRule::new(terms).unwrap_err().field, "attempts");
    }
}
