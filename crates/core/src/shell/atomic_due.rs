//! One due number in one atomic word.
//!
//! The word is `[rule: 4 bits][due: 60 bits]`. A decision reads it, computes, and swaps it if nobody was
//! faster; a loser computes again with the winner's word. A refusal writes nothing, so a flood of
//! refused requests does not even move the cache line.
//!
//! Rules that take turns, as plans do that share a counter, read each other's words. Only an admission writes the
//! word in its own rule's terms, for then all that is ahead fits an extent of it. A correction is applied in the
//! terms of the rule that wrote the word, so a charge of a small plan never cuts down what a large one consumed; it
//! gives nothing back when that is another rule than its own.
//!
//! Every word is whole in itself: no other memory is published through it, so relaxed ordering is
//! enough, but for what a settlement must know of a reset.
//!
//! 60 bits hold the last bits of a due time, on a clock that counts from the driver's origin. A grain takes a
//! nanosecond or more, so they run over once in 36 years, and a word can be read as long as its due time
//! is known to within 18. A limiter that nobody used has no due time: the word is 0, and it is fresh at every moment. A
//! due time whose last bits are zero is written as one grain later. What is not asked for 18 years is fresh again or
//! has just spent everything.

use std::time::Duration;

use super::resets::Resets;
use super::roster::{Enrolled, Fine, Roster, Writer};
use crate::rate::{DueRule, Reading};
use crate::sync::{AtomicU64, Ordering};
use crate::together::{Bound, Limiter};
use crate::units::{Cost, Invalid, Moment};
use crate::verdict::{Charge, Usage, Verdict};

const DUE_BITS: u32 = 60;
const DUE: u64 = (1 << DUE_BITS) - 1;

/// A limiter of the due family shared by threads, without locks.
///
/// ```
/// use tidegate_core::rate::TokenBucket;
/// use tidegate_core::shell::AtomicDue;
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let now = Moment::ORIGIN;
/// let limiter = AtomicDue::new();
/// let rule = limiter.enrol(&TokenBucket::new(Quota::per_second(Cost::of(2))?))?;
/// assert!(limiter.decide(&rule, now, Cost::of(2)).is_admit());
/// assert!(!limiter.decide(&rule, now, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct AtomicDue {
    word: AtomicU64,
    resets: Resets,
    rules: Roster<Fine>,
}

impl Default for AtomicDue {
    fn default() -> Self {
        Self::new()
    }
}

impl AtomicDue {
    /// A fresh limiter.
    #[must_use]
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0), resets: Resets::new(), rules: Roster::new() }
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
        self.change(|word| {
            if word >> DUE_BITS != rule.stamp() || word & DUE == 0 {
                return word;
            }
            let (before, after) = (&rule.rule.0, &heir.rule.0);
            let ahead = after.carried_on(before, self.held(&rule, word, now).ahead);
            word_of(heir.stamp(), after.granted(now), ahead)
        });
        self.rules.retire(rule.serial);
    }

    /// Takes `cost` under `rule` if it fits.
    #[inline]
    pub fn decide(&self, rule: &Enrolled<Fine>, now: Moment, cost: Cost) -> Verdict<Charge> {
        let reading = rule.rule.0.read_fine(now);
        match self.decide_usual(rule, reading, cost) {
            Some(verdict) => verdict,
            None => self.decide_unusual(rule, cost, reading),
        }
    }

    /// The answer in the usual case, in a straight line: the word was written under this rule, nobody else is faster,
    /// and it is a no or a yes without a wait. Nothing when it is not so.
    #[inline]
    fn decide_usual(&self, rule: &Enrolled<Fine>, reading: Reading, cost: Cost) -> Option<Verdict<Charge>> {
        let word = self.word.load(Ordering::Relaxed);
        // What another rule wrote keeps bits beyond the due ones, and what nobody used has none.
        let due = word ^ rule.stamp() << DUE_BITS;
        if due.wrapping_sub(1) >= DUE {
            return None;
        }
        let schedule = &rule.rule.0;
        let (ahead, grains) = (ahead_of(due, reading.granted), schedule.grains(cost));
        if let Some(after) = schedule.at_once(ahead, grains) {
            let due = reading.granted.wrapping_add(after);
            let resets = self.resets.count();
            let is_ours = self.swap(word, pack(rule.stamp(), due)).is_ok();
            return is_ours.then(|| Verdict::Admit(charge_until(rule, resets, cost, due)));
        }
        let refusal = schedule.refusal(reading, ahead, grains)?;
        schedule.is_readable(ahead).then_some(Verdict::Refuse(refusal))
    }

    #[inline(never)]
    fn decide_unusual(&self, rule: &Enrolled<Fine>, cost: Cost, reading: Reading) -> Verdict<Charge> {
        let schedule = &rule.rule.0;
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let ahead = self.ahead(rule, word, reading);
            let (after, wait) = match schedule.ask(reading, ahead, cost) {
                Verdict::Admit(taken) => taken,
                Verdict::Refuse(refusal) => {
                    // What another rule wrote stays in its terms, in which all of it can be told.
                    let held = self.held(rule, word, reading.now);
                    if held.is_readable || self.swap(word, held.with_ahead(held.ahead)).is_ok() {
                        return Verdict::Refuse(refusal);
                    }
                    word = self.word.load(Ordering::Relaxed);
                    continue;
                }
            };
            let due = reading.granted.wrapping_add(after);
            let resets = self.resets.count();
            match self.swap(word, word_of(rule.stamp(), reading.granted, after)) {
                Ok(()) => return Verdict::Admit(charge_until(rule, resets, cost, due).with_wait(wait)),
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
        if let Some(taken) = charge.close(true_cost) {
            while !self.correct_once(rule, now, charge, (taken, true_cost)) {}
        }
    }

    /// Corrects a charge in the terms of the rule that wrote the word; false when another thread was faster.
    fn correct_once(&self, rule: &Enrolled<Fine>, now: Moment, charge: &Charge, costs: (Cost, Cost)) -> bool {
        // Acquire pairs with the release of a reset: who changes what was written since knows of it.
        let word = self.word.load(Ordering::Acquire);
        let held = self.held(rule, word, now);
        let correction = held.writer.correction(held.granted, held.ahead, charge, costs);
        self.resets.correct(0, charge.life, correction, |correction| {
            let after = held.writer.rule.0.corrected(held.ahead, correction);
            self.swap(word, held.with_ahead(after)).is_ok()
        })
    }

    /// Gives a charge back. Doing it twice changes nothing.
    pub fn refund(&self, rule: &Enrolled<Fine>, now: Moment, charge: &mut Charge) {
        self.settle(rule, now, charge, Cost::ZERO);
    }

    /// Forgets everything consumed. Charges that are open get nothing back any more.
    pub fn reset(&self) {
        // Release pairs with the acquire of a settlement.
        self.resets.reset(0, || {
            self.word.swap(0, Ordering::Release);
        });
    }

    /// This limiter with a rule and a moment, as one of several that a request is charged by together.
    pub fn at<'a>(&'a self, rule: &'a Enrolled<Fine>, now: Moment) -> impl Limiter + 'a {
        Bound {
            peek: move |cost| self.peek(rule, now, cost),
            take: move |cost| self.decide(rule, now, cost),
            refund: move |charge: &mut Charge| self.refund(rule, now, charge),
        }
    }

    fn change(&self, change: impl Fn(u64) -> u64) {
        let mut word = self.word.load(Ordering::Relaxed);
        while let Err(found) = self.swap(word, change(word)) {
            word = found;
        }
    }

    #[inline]
    fn swap(&self, word: u64, new: u64) -> Result<(), u64> {
        self.word.compare_exchange_weak(word, new, Ordering::Relaxed, Ordering::Relaxed).map(drop)
    }

    fn look(&self, rule: &Enrolled<Fine>, now: Moment) -> (u64, Reading) {
        let reading = rule.rule.0.read_fine(now);
        (self.ahead(rule, self.word.load(Ordering::Relaxed), reading), reading)
    }

    /// How far ahead the word is under `rule`, whichever rule wrote it.
    #[inline]
    fn ahead(&self, rule: &Enrolled<Fine>, word: u64, reading: Reading) -> u64 {
        if word >> DUE_BITS == rule.stamp() {
            return if word & DUE == 0 {
                0
            } else {
                rule.rule.0.readable(ahead_of(word & DUE, reading.granted))
            };
        }
        let held = self.held(rule, word, reading.now);
        rule.rule.0.carried(&held.writer.rule.0, held.ahead)
    }

    /// What the word says under the rule that wrote it. Where that has been retired by a thread that was faster, the
    /// key has just spent everything.
    fn held<'a>(&self, rule: &'a Enrolled<Fine>, word: u64, now: Moment) -> Held<'a> {
        let due = word & DUE;
        let known = if due == 0 { None } else { self.rules.writer(rule, word >> DUE_BITS) };
        let is_readable = known.is_some();
        let writer = known.unwrap_or_else(|| rule.writer());
        let schedule = &writer.rule.0;
        let granted = schedule.granted(now);
        match (due, is_readable) {
            (0, _) => Held { granted, ahead: 0, is_readable: true, writer },
            (_, false) => Held { granted, ahead: schedule.extent(), is_readable, writer },
            (due, true) => {
                let ahead = ahead_of(due, granted);
                let (ahead, is_readable) = (schedule.readable(ahead), schedule.is_readable(ahead));
                Held { granted, ahead, is_readable, writer }
            }
        }
    }
}

/// What a word says, in the terms of the rule that wrote it.
struct Held<'a> {
    writer: Writer<'a, Fine>,
    granted: u64,
    ahead: u64,
    /// Whether it can be true.
    is_readable: bool,
}

impl Held<'_> {
    /// The word of a key so far ahead, in the same terms.
    fn with_ahead(&self, ahead: u64) -> u64 {
        word_of(self.writer.stamp(), self.granted, ahead)
    }
}

/// A charge that was made after so many resets: as many as were counted before the word was swapped.
#[inline]
fn charge_until(rule: &Enrolled<Fine>, resets: u32, cost: Cost, due: u64) -> Charge {
    Charge::new(cost, due).made_under(rule.serial).in_life(resets)
}

/// How far a due time lies ahead of `granted`: the difference of their last bits, which is negative from half of their
/// range on. Eight extents of 400 days and the slack are less than that.
#[inline]
const fn ahead_of(due: u64, granted: u64) -> u64 {
    const ABOVE: u32 = u64::BITS - DUE_BITS;
    let difference = (due.wrapping_sub(granted) << ABOVE).cast_signed() >> ABOVE;
    if difference > 0 { difference.cast_unsigned() } else { 0 }
}

/// The word of a key that is so far ahead of `granted`. Who has nothing taken at the very origin is as one that nobody
/// used.
fn word_of(stamp: u64, granted: u64, ahead: u64) -> u64 {
    let due = granted.wrapping_add(ahead);
    if ahead == 0 && due & DUE == 0 { 0 } else { pack(stamp, due) }
}

/// A word that is never taken for one that nobody used.
#[inline]
fn pack(stamp: u64, due: u64) -> u64 {
    stamp << DUE_BITS | (due & DUE).max(1)
}
