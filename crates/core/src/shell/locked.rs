//! Any algorithm behind a mutex.

use std::time::Duration;

use super::lives::{Before, Life, Lives};
use super::roster::{Enrolled, Roster};
use crate::rate::{Algorithm, Marks};
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
    lives: Lives,
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
        Self { state: Mutex::new(None), rules: Roster::new(), lives: Lives::new() }
    }

    /// Makes a rule known, so that it can be decided with.
    ///
    /// # Errors
    /// When 16 rules are enrolled already.
    pub fn enrol(&self, rule: A, now: A::Time) -> Result<Enrolled<A>, Invalid> {
        let rule = self.rules.enrol(rule)?;
        lock(&self.state).get_or_insert_with(|| Written::fresh(&rule, now, &self.lives));
        Ok(rule)
    }

    /// Forgets a rule nobody uses any more; what was written under it passes to `heir`.
    pub fn retire(&self, rule: Enrolled<A>, heir: &Enrolled<A>, now: A::Time) {
        self.with(heir, now, |_| ());
        self.rules.retire(rule.serial);
    }

    /// Takes `cost` under `rule` if it fits.
    pub fn decide(&self, rule: &Enrolled<A>, now: A::Time, cost: Cost) -> Verdict<Charge> {
        self.with(rule, now, |written| written.decide(&rule.rule, now, cost))
    }

    /// What [`decide`](Self::decide) would answer, with the wait it would ask for.
    pub fn peek(&self, rule: &Enrolled<A>, now: A::Time, cost: Cost) -> Verdict<Duration> {
        self.with(rule, now, |written| rule.rule.peek(&written.state, now, cost))
    }

    /// How much is used under `rule`.
    pub fn usage(&self, rule: &Enrolled<A>, now: A::Time) -> Usage {
        self.with(rule, now, |written| rule.rule.usage(&written.state, now))
    }

    /// Settles a charge to its true cost. Doing it twice changes nothing.
    pub fn settle(&self, rule: &Enrolled<A>, now: A::Time, charge: &mut Charge, true_cost: Cost) {
        if let Some(taken) = charge.close(true_cost) {
            self.with(rule, now, |written| written.correct(&rule.rule, now, charge, (taken, true_cost)));
        }
    }

    /// Gives a charge back. Doing it twice changes nothing.
    pub fn refund(&self, rule: &Enrolled<A>, now: A::Time, charge: &mut Charge) {
        self.settle(rule, now, charge, Cost::ZERO);
    }

    /// Forgets everything consumed. Charges that are open give nothing back any more.
    pub fn reset(&self, rule: &Enrolled<A>, now: A::Time) {
        self.with(rule, now, |written| written.renew(rule, now, &self.lives));
    }

    /// This limiter with a rule and a moment, as one of several that a request is charged by together.
    pub fn at<'a>(&'a self, rule: &'a Enrolled<A>, now: A::Time) -> impl Limiter + 'a {
        Bound {
            peek: move |cost| self.peek(rule, now, cost),
            take: move |cost| self.decide(rule, now, cost),
            refund: move |charge: &mut Charge| self.refund(rule, now, charge),
        }
    }

    fn with<T>(&self, rule: &Enrolled<A>, now: A::Time, step: impl FnOnce(&mut Written<A>) -> T) -> T {
        let mut guard = lock(&self.state);
        let written = guard.get_or_insert_with(|| Written::fresh(rule, now, &self.lives));
        step(written.under(rule, (&self.rules, &self.lives), now))
    }
}

/// A state, the rule that wrote it and the life it is in.
#[derive(Debug)]
pub(crate) struct Written<A: Algorithm> {
    serial: u32,
    life: Life,
    /// In a box: it is there only after a change of windows, and every cell of every table has the place for it.
    before: Option<Box<Before>>,
    pub(crate) state: A::State,
}

impl<A: Algorithm + Clone> Written<A> {
    /// What a state that has passed to a rule with other windows takes from the heap, beside its own.
    pub(crate) const MOST_BEFORE: usize = size_of::<Before>();

    pub(crate) fn fresh(rule: &Enrolled<A>, now: A::Time, lives: &Lives) -> Self {
        Self { serial: rule.serial, life: lives.begin(), before: None, state: rule.rule.fresh(now) }
    }

    /// Begins a new life in the memory of this one.
    pub(crate) fn renew(&mut self, rule: &Enrolled<A>, now: A::Time, lives: &Lives) {
        self.serial = rule.serial;
        (self.life, self.before) = (lives.begin(), None);
        rule.rule.renew(&mut self.state, now);
    }

    /// Takes `cost` if it fits, under the rule that the state is expressed in.
    #[inline]
    pub(crate) fn decide(&mut self, rule: &A, now: A::Time, cost: Cost) -> Verdict<Charge> {
        let verdict = rule.decide(&mut self.state, now, cost);
        verdict.map(|charge| charge.in_life(self.life.number()))
    }

    /// Corrects a charge, under the rule that the state is expressed in. It gives back only what it took from
    /// what this state still counts.
    pub(crate) fn correct(&mut self, rule: &A, now: A::Time, charge: &Charge, costs: (Cost, Cost)) {
        let (taken, true_cost) = costs;
        match self.mark_of(charge) {
            Some(mark) => {
                let charge = Charge::new(charge.cost(), mark);
                rule.correct(&mut self.state, now, &charge, taken, true_cost);
            }
            None if true_cost > taken => rule.correct(&mut self.state, now, charge, taken, true_cost),
            None => {}
        }
    }

    pub(crate) const fn is_by(&self, rule: &Enrolled<A>) -> bool {
        self.serial == rule.serial
    }

    /// The charge's mark as the present rule reads it, if what the charge took may still count.
    fn mark_of(&self, charge: &Charge) -> Option<u64> {
        if charge.life == self.life.number() {
            return Some(charge.mark);
        }
        self.before.as_ref()?.mark_of(charge)
    }

    /// The rule that wrote it.
    pub(crate) fn rule(&self, rules: &Roster<A>) -> Option<A> {
        rules.numbered(self.serial)
    }

    /// The state as `rule` expresses it, whichever rule wrote it.
    #[inline]
    pub(crate) fn under(
        &mut self,
        rule: &Enrolled<A>,
        (rules, lives): (&Roster<A>, &Lives),
        now: A::Time,
    ) -> &mut Self {
        if self.serial != rule.serial {
            self.carry(rule, rules, lives, now);
        }
        self
    }

    #[cold]
    fn carry(&mut self, rule: &Enrolled<A>, rules: &Roster<A>, lives: &Lives, now: A::Time) {
        let marks = rules.numbered(self.serial).map_or(Marks::LOST, |writer| {
            // What charges of an idle state took counts no more, so nothing of it need be remembered. Most cells of
            // a large table are idle when windows change.
            let is_idle = writer.is_idle(&self.state, now);
            let marks = match rule.rule.marks(&writer, &self.state, now) {
                marks if is_idle && marks != Marks::SAME => Marks::LOST,
                marks => marks,
            };
            rule.rule.carry(&writer, &mut self.state, now);
            marks
        });
        if marks != Marks::SAME {
            self.before = Before::of(self.life, marks);
            self.life = lives.begin();
        }
        self.serial = rule.serial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::FixedWindow;
    use crate::units::{Moment, Quota};

    #[test]
    fn only_a_state_in_use_remembers_the_windows_before() {
        let (rules, lives) = (Roster::new(), Lives::new());
        let [seconds, minutes] = [1, 60].map(|seconds| {
            let quota = Quota::new(Cost::of(10), Duration::from_secs(seconds)).unwrap();
            rules.enrol(FixedWindow::new(quota).unwrap()).unwrap()
        });
        for (later, is_remembered) in [(500, true), (1_500, false)] {
            let later = Moment::ORIGIN.plus(Duration::from_millis(later));
            let mut written = Written::fresh(&seconds, Moment::ORIGIN, &lives);
            assert!(written.decide(&seconds.rule, Moment::ORIGIN, Cost::ONE).is_admit());
            let written = written.under(&minutes, (&rules, &lives), later);
            assert_eq!(written.before.is_some(), is_remembered);
        }
    }
}
