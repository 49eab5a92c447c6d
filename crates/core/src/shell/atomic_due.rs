//! One due number in one atomic word.
//!
//! The word is `[rule: 4 bits][due: 60 bits]`. A decision reads it, computes, and swaps it if nobody was
//! faster; a loser computes again with the winner's word. A refusal writes nothing, so a flood of
//! refused requests does not even move the cache line.
//!
//! Every word is whole in itself: no other memory is published through it, so relaxed ordering is
//! enough. Due times count from the limiter's own origin and stand still after 18 years.

use std::time::Duration;

use super::roster::{Enrolled, Fine, Roster};
use crate::rate::{DueRule, Reading, Schedule};
use crate::sync::{AtomicU64, Ordering};
use crate::together::{Bound, Limiter};
use crate::units::{Cost, Invalid, Moment};
use crate::verdict::{Charge, Usage, Verdict};

const DUE_BITS: u32 = 60;
const DUE: u64 = (1 << DUE_BITS) - 1;
/// Half of what 60 bits of nanoseconds hold, so that debts fit above it.
const LAST: u64 = 1 << (DUE_BITS - 1);

/// A limiter of the due family shared by threads, without locks.
///
/// ```
/// use tidegate_core::rate::TokenBucket;
/// use tidegate_core::shell::AtomicDue;
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let now = Moment::ORIGIN;
/// let limiter = AtomicDue::new(now);
/// let rule = limiter.enrol(&TokenBucket::new(Quota::per_second(Cost::of(2))?))?;
/// assert!(limiter.decide(&rule, now, Cost::of(2)).is_admit());
/// assert!(!limiter.decide(&rule, now, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct AtomicDue {
    origin: Moment,
    word: AtomicU64,
    rules: Roster<Fine>,
}

impl AtomicDue {
    /// A fresh limiter whose time begins `now`.
    #[must_use]
    pub fn new(now: Moment) -> Self {
        Self { origin: now, word: AtomicU64::new(0), rules: Roster::new() }
    }

    /// Makes a rule known, so that it can be decided with.
    ///
    /// # Errors
    /// When 16 rules are enrolled already.
    pub fn enrol(&self, rule: &impl DueRule) -> Result<Enrolled<Fine>, Invalid> {
        self.rules.enrol(Fine(*rule.fine()))
    }

    /// Forgets a rule nobody uses any more; what was written under it passes to `heir`.
    pub fn retire(&self, rule: Enrolled<Fine>, heir: &Enrolled<Fine>, now: Moment) {
        self.update(heir, now, |ahead| ahead);
        self.rules.retire(rule.serial);
    }

    /// Takes `cost` under `rule` if it fits.
    #[inline]
    pub fn decide(&self, rule: &Enrolled<Fine>, now: Moment, cost: Cost) -> Verdict<Charge> {
        let reading = rule.rule.0.read_fine(self.relative(now));
        match self.decide_usual(rule, reading, cost) {
            Some(verdict) => verdict,
            None => self.decide_unusual(rule, now, cost, reading),
        }
    }

    /// The answer in the usual case, in a straight line: the word was written under this rule, nobody else is faster,
    /// and it is a no or a yes without a wait. Nothing when it is not so.
    #[inline]
    fn decide_usual(&self, rule: &Enrolled<Fine>, reading: Reading, cost: Cost) -> Option<Verdict<Charge>> {
        let word = self.word.load(Ordering::Relaxed);
        // What another rule wrote keeps bits beyond the due ones.
        let due = word ^ pack(rule, 0);
        if due > DUE {
            return None;
        }
        let schedule = &rule.rule.0;
        let (ahead, grains) = (due.saturating_sub(reading.granted), schedule.grains(cost));
        if let Some(after) = schedule.at_once(ahead, grains) {
            let due = reading.granted + after;
            let is_ours = self.swap(word, pack(rule, due)).is_ok();
            return is_ours.then(|| Verdict::Admit(Charge::new(cost, due).made_under(rule.serial)));
        }
        let refusal = schedule.refusal(reading, ahead, grains)?;
        schedule.is_readable(ahead).then_some(Verdict::Refuse(refusal))
    }

    #[inline(never)]
    fn decide_unusual(
        &self,
        rule: &Enrolled<Fine>,
        now: Moment,
        cost: Cost,
        reading: Reading,
    ) -> Verdict<Charge> {
        let schedule = &rule.rule.0;
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let ahead = self.ahead(rule, word, reading);
            let (after, wait) = match schedule.ask(reading, ahead, cost) {
                Verdict::Admit(taken) => taken,
                Verdict::Refuse(refusal) => {
                    if !schedule.is_readable((word & DUE).saturating_sub(reading.granted)) {
                        self.update(rule, now, |ahead| ahead);
                    }
                    return Verdict::Refuse(refusal);
                }
            };
            let due = reading.granted + after;
            match self.swap(word, pack(rule, due)) {
                Ok(()) => {
                    return Verdict::Admit(Charge::new(cost, due).made_under(rule.serial).with_wait(wait));
                }
                Err(found) => word = found,
            }
        }
    }

    /// What [`decide`](Self::decide) would answer, with the wait it would ask for.
    pub fn peek(&self, rule: &Enrolled<Fine>, now: Moment, cost: Cost) -> Verdict<Duration> {
        let (ahead, reading) = self.look(rule, now);
        rule.rule.0.ask(reading, ahead, cost).map(|(_, wait)| wait)
    }

    /// How much is used under `rule`.
    pub fn usage(&self, rule: &Enrolled<Fine>, now: Moment) -> Usage {
        let (ahead, reading) = self.look(rule, now);
        rule.rule.0.usage(reading, ahead)
    }

    /// Settles a charge to its true cost. Doing it twice changes nothing.
    pub fn settle(&self, rule: &Enrolled<Fine>, now: Moment, charge: &mut Charge, true_cost: Cost) {
        let Some(taken) = charge.close(true_cost) else { return };
        let correction = self.rules.correction(rule, self.relative(now), charge, (taken, true_cost));
        self.update(rule, now, |ahead| rule.rule.0.corrected(ahead, correction));
    }

    /// Gives a charge back. Doing it twice changes nothing.
    pub fn refund(&self, rule: &Enrolled<Fine>, now: Moment, charge: &mut Charge) {
        self.settle(rule, now, charge, Cost::ZERO);
    }

    /// Forgets everything consumed.
    pub fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
    }

    /// This limiter with a rule and a moment, as one of several that a request is charged by together.
    pub fn at<'a>(&'a self, rule: &'a Enrolled<Fine>, now: Moment) -> impl Limiter + 'a {
        Bound {
            peek: move |cost| self.peek(rule, now, cost),
            take: move |cost| self.decide(rule, now, cost),
            refund: move |charge: &mut Charge| self.refund(rule, now, charge),
        }
    }

    fn update(&self, rule: &Enrolled<Fine>, now: Moment, change: impl Fn(u64) -> u64) {
        let reading = rule.rule.0.read_fine(self.relative(now));
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let after = change(self.ahead(rule, word, reading));
            match self.swap(word, pack(rule, reading.granted + after)) {
                Ok(()) => return,
                Err(found) => word = found,
            }
        }
    }

    #[inline]
    fn swap(&self, word: u64, new: u64) -> Result<(), u64> {
        self.word.compare_exchange_weak(word, new, Ordering::Relaxed, Ordering::Relaxed).map(drop)
    }

    fn look(&self, rule: &Enrolled<Fine>, now: Moment) -> (u64, Reading) {
        let reading = rule.rule.0.read_fine(self.relative(now));
        (self.ahead(rule, self.word.load(Ordering::Relaxed), reading), reading)
    }

    /// How far ahead the word is under `rule`, whichever rule wrote it.
    #[inline]
    fn ahead(&self, rule: &Enrolled<Fine>, word: u64, reading: Reading) -> u64 {
        if word >> DUE_BITS == rule.stamp() {
            return rule.rule.0.ahead(word & DUE, reading.granted);
        }
        self.ahead_by_other(&rule.rule.0, word, reading.now)
    }

    #[cold]
    fn ahead_by_other(&self, schedule: &Schedule, word: u64, now: Moment) -> u64 {
        match (word & DUE, self.rules.stamped(word >> DUE_BITS)) {
            (0, _) => 0,
            (due, Some(Fine(writer))) => schedule.carried(&writer, writer.ahead(due, writer.granted(now))),
            (_, None) => schedule.extent(),
        }
    }

    #[inline]
    fn relative(&self, now: Moment) -> Moment {
        match now.nanos().checked_sub(self.origin.nanos()) {
            Some(since) if since <= LAST => Moment::from_nanos(since),
            _ => self.beyond(now),
        }
    }

    /// A moment before the limiter's time begins, or after it stands still.
    #[cold]
    fn beyond(&self, now: Moment) -> Moment {
        if now < self.origin { Moment::ORIGIN } else { Moment::from_nanos(LAST) }
    }
}

#[inline]
const fn pack(rule: &Enrolled<Fine>, due: u64) -> u64 {
    rule.stamp() << DUE_BITS | due
}
