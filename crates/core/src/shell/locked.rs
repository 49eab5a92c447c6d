//! Any algorithm behind a mutex.

use std::time::Duration;

use super::roster::{Enrolled, Roster};
use crate::rate::Algorithm;
use crate::sync::{Mutex, lock};
use crate::together::{Bound, Limiter};
use crate::units::{Cost, Invalid};
use crate::verdict::{Charge, Usage, Verdict};

/// A limiter of any algorithm shared by threads.
///
/// ```
/// use tidegate_core::rate::SlidingLog;
/// use tidegate_core::shell::Locked;
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let now = Moment::ORIGIN;
/// let limiter = Locked::new();
/// let rule = limiter.enrol(SlidingLog::new(Quota::per_minute(Cost::of(2))?)?, now)?;
/// assert!(limiter.decide(&rule, now, Cost::of(2)).is_admit());
/// assert!(!limiter.decide(&rule, now, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct Locked<A: Algorithm> {
    state: Mutex<Option<Written<A>>>,
    rules: Roster<A>,
}

impl<A: Algorithm + Clone> Default for Locked<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Algorithm + Clone> Locked<A> {
    /// A limiter that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { state: Mutex::new(None), rules: Roster::new() }
    }

    /// Makes a rule known, so that it can be decided with.
    ///
    /// # Errors
    /// When 16 rules are enrolled already.
    pub fn enrol(&self, rule: A, now: A::Time) -> Result<Enrolled<A>, Invalid> {
        let rule = self.rules.enrol(rule)?;
        lock(&self.state).get_or_insert_with(|| Written::fresh(&rule, now));
        Ok(rule)
    }

    /// Forgets a rule nobody uses any more; what was written under it passes to `heir`.
    pub fn retire(&self, rule: Enrolled<A>, heir: &Enrolled<A>, now: A::Time) {
        self.with(heir, now, |_, _| ());
        self.rules.retire(rule.serial);
    }

    /// Takes `cost` under `rule` if it fits.
    pub fn decide(&self, rule: &Enrolled<A>, now: A::Time, cost: Cost) -> Verdict<Charge> {
        self.with(rule, now, |rule, state| rule.decide(state, now, cost))
    }

    /// What [`decide`](Self::decide) would answer, with the wait it would ask for.
    pub fn peek(&self, rule: &Enrolled<A>, now: A::Time, cost: Cost) -> Verdict<Duration> {
        self.with(rule, now, |rule, state| rule.peek(state, now, cost))
    }

    /// How much is used under `rule`.
    pub fn usage(&self, rule: &Enrolled<A>, now: A::Time) -> Usage {
        self.with(rule, now, |rule, state| rule.usage(state, now))
    }

    /// Settles a charge to its true cost. Doing it twice changes nothing.
    pub fn settle(&self, rule: &Enrolled<A>, now: A::Time, charge: &mut Charge, true_cost: Cost) {
        self.with(rule, now, |rule, state| rule.settle(state, now, charge, true_cost));
    }

    /// Gives a charge back. Doing it twice changes nothing.
    pub fn refund(&self, rule: &Enrolled<A>, now: A::Time, charge: &mut Charge) {
        self.settle(rule, now, charge, Cost::ZERO);
    }

    /// Forgets everything consumed.
    pub fn reset(&self, rule: &Enrolled<A>, now: A::Time) {
        self.with(rule, now, |rule, state| *state = rule.fresh(now));
    }

    /// This limiter with a rule and a moment, as one of several that a request is charged by together.
    pub fn at<'a>(&'a self, rule: &'a Enrolled<A>, now: A::Time) -> impl Limiter + 'a {
        Bound {
            peek: move |cost| self.peek(rule, now, cost),
            take: move |cost| self.decide(rule, now, cost),
            refund: move |charge: &mut Charge| self.refund(rule, now, charge),
        }
    }

    fn with<T>(&self, rule: &Enrolled<A>, now: A::Time, step: impl FnOnce(&A, &mut A::State) -> T) -> T {
        let mut guard = lock(&self.state);
        let written = guard.get_or_insert_with(|| Written::fresh(rule, now));
        step(&rule.rule, written.under(rule, &self.rules, now))
    }
}

/// A state and the rule that wrote it.
#[derive(Debug)]
pub(crate) struct Written<A: Algorithm> {
    serial: u32,
    pub(crate) state: A::State,
}

impl<A: Algorithm + Clone> Written<A> {
    pub(crate) fn fresh(rule: &Enrolled<A>, now: A::Time) -> Self {
        Self { serial: rule.serial, state: rule.rule.fresh(now) }
    }

    pub(crate) const fn is_by(&self, rule: &Enrolled<A>) -> bool {
        self.serial == rule.serial
    }

    /// The rule that wrote it.
    pub(crate) fn rule(&self, rules: &Roster<A>) -> Option<A> {
        rules.numbered(self.serial)
    }

    /// The state as `rule` expresses it, whichever rule wrote it.
    pub(crate) fn under(&mut self, rule: &Enrolled<A>, rules: &Roster<A>, now: A::Time) -> &mut A::State {
        if self.serial != rule.serial {
            if let Some(writer) = rules.numbered(self.serial) {
                rule.rule.carry(&writer, &mut self.state, now);
            }
            self.serial = rule.serial;
        }
        &mut self.state
    }
}
