//! One due number for each key, packed into a word a key.
//!
//! The table is an array of [groups](super::group) of seven slots. A key's hash names its **home** group
//! and the tag by which it is known there. When home is full of active keys, the key settles in one of
//! seven more groups, a stride of its own apart; home's header remembers how far to look (`reach`), so
//! that nearly every decision touches one cache line.
//!
//! What happens to one key of 5 a second, burst 3, in a table with room:
//!
//! | now    | slot before  | what the thread does                                  | slot after   |
//! |--------|--------------|-------------------------------------------------------|--------------|
//! | 0 ms   | none         | takes its turn at home, swaps vacant → due 200 ms      | due 200 ms   |
//! | 0 ms   | due 200 ms   | swaps → due 400 ms                                    | due 400 ms   |
//! | 300 ms | due 400 ms   | swaps → due 500 ms                                    | due 500 ms   |
//! | 600 ms | due 500 ms   | another newcomer finds it idle and swaps in itself     | somebody else's |
//! | 700 ms | none         | decides from fresh, as it would have with its old slot | due 900 ms   |
//!
//! Reuse and update are both one compare-and-swap of the same word, so one of them fails and looks again.
//! Only newcomers of one home take turns, because two threads must not settle the same key twice.
//!
//! Memory: 1.5 slots of 8 bytes a key and an eighth for headers, 13.8 bytes, allocated once.

mod slots;

use std::hash::Hash;
use std::time::Duration;

use self::slots::Slots;
use super::key::{Hashing, Key, MaxKeys};
use super::overlay::{Overlay, Override};
use crate::rate::DueRule;
use crate::shell::{Enrolled, Packed};
use crate::together::{Bound, Limiter};
use crate::units::{Cost, Invalid, Moment};
use crate::verdict::{Charge, Reason, Refusal, Retry, Usage, Verdict};

/// A bounded table of counters of the due family.
///
/// ```
/// use tidegate_core::keyed::{DueTable, MaxKeys};
/// use tidegate_core::rate::TokenBucket;
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let table = DueTable::new(MaxKeys::new(1_000)?, 0x5eed);
/// let rule = table.enrol(&TokenBucket::new(Quota::per_second(Cost::of(2))?))?;
/// let (alice, bob, now) = (table.key("alice"), table.key("bob"), Moment::ORIGIN);
///
/// assert!(table.decide(&rule, alice, now, Cost::of(2)).is_admit());
/// assert!(!table.decide(&rule, alice, now, Cost::ONE).is_admit());
/// assert!(table.decide(&rule, bob, now, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct DueTable {
    hashing: Hashing,
    slots: Slots,
    overlay: Overlay,
}

/// One active counter of a table, for an operator to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// What the table knows of the key; compare with [`DueTable::fingerprint`].
    pub fingerprint: u64,
    /// How much it has used, under the rule it was last charged by.
    pub usage: Usage,
}

impl DueTable {
    /// A table for `max_keys`, hashing with a seed that strangers do not know.
    #[must_use]
    pub fn new(max_keys: MaxKeys, seed: u64) -> Self {
        Self { hashing: Hashing::new(seed), slots: Slots::new(max_keys), overlay: Overlay::new() }
    }

    /// The key of a caller, a route, or both: anything that can be hashed, without building a string.
    #[inline]
    pub fn key(&self, name: &(impl Hash + ?Sized)) -> Key {
        self.hashing.key(name)
    }

    /// Makes a rule known, so that it can be decided with.
    ///
    /// # Errors
    /// When 16 rules are enrolled already.
    pub fn enrol(&self, rule: &impl DueRule) -> Result<Enrolled<Packed>, Invalid> {
        self.slots.rules.enrol(Packed(rule.packed()))
    }

    /// Forgets a rule nobody uses any more; what was written under it passes to `heir`. Walks the table.
    pub fn retire(&self, rule: Enrolled<Packed>, heir: &Enrolled<Packed>, now: Moment) {
        self.slots.pass_on(&rule, heir, now);
        self.slots.rules.retire(rule.serial);
    }

    /// Takes `cost` from `key` under `rule` if it fits.
    #[inline]
    pub fn decide(&self, rule: &Enrolled<Packed>, key: Key, now: Moment, cost: Cost) -> Verdict<Charge> {
        let boost = match self.overlay.order(key, now) {
            None => 1,
            Some((Override::Boost(times), _)) => times,
            Some((Override::Block, until)) => return Verdict::Refuse(blocked(now, until)),
        };
        let taken = self.slots.take(rule, key, now, cost.divided(boost));
        taken.map(|taken| {
            let charge = Charge::new(cost, taken.due).with_wait(taken.wait).made_under(rule.serial);
            charge.boosted(boost).shared(taken.is_overflow)
        })
    }

    /// What [`decide`](Self::decide) would answer, with the wait it would ask for.
    pub fn peek(&self, rule: &Enrolled<Packed>, key: Key, now: Moment, cost: Cost) -> Verdict<Duration> {
        let counted = match self.overlay.order(key, now) {
            None => cost,
            Some((Override::Block, until)) => return Verdict::Refuse(blocked(now, until)),
            Some((boost, _)) => boost.counted(cost),
        };
        let (ahead, now) = self.slots.look(rule, key, now);
        rule.rule.0.ask(now, ahead, counted).map(|(_, wait)| wait)
    }

    /// How much `key` has used under `rule`.
    pub fn usage(&self, rule: &Enrolled<Packed>, key: Key, now: Moment) -> Usage {
        let order = self.overlay.order(key, now);
        let (ahead, now) = self.slots.look(rule, key, now);
        let usage = rule.rule.0.usage(now, ahead);
        order.map_or(usage, |(order, _)| order.seen(usage))
    }

    /// Settles a charge of `key` to its true cost. Doing it twice changes nothing.
    pub fn settle(
        &self,
        rule: &Enrolled<Packed>,
        key: Key,
        now: Moment,
        charge: &mut Charge,
        true_cost: Cost,
    ) {
        let Some(taken) = charge.close(true_cost) else { return };
        let costs = (charge.counted(taken), charge.counted(true_cost));
        let correction = self.slots.rules.correction(rule, now, charge, costs);
        let change = |ahead| rule.rule.0.corrected(ahead, correction);
        while !self.slots.update(rule, key, now, charge.is_overflow, change) {}
    }

    /// Gives a charge of `key` back. Doing it twice changes nothing.
    pub fn refund(&self, rule: &Enrolled<Packed>, key: Key, now: Moment, charge: &mut Charge) {
        self.settle(rule, key, now, charge, Cost::ZERO);
    }

    /// Forgets everything `key` has consumed.
    pub fn reset(&self, rule: &Enrolled<Packed>, key: Key, now: Moment) {
        self.slots.vacate(rule, key, now);
    }

    /// Orders something for one key until then.
    ///
    /// # Errors
    /// When the boost is by zero times, or 1024 orders stand already.
    pub fn set_override(&self, key: Key, what: Override, now: Moment, until: Moment) -> Result<(), Invalid> {
        self.overlay.set(key, what, now, until)
    }

    /// Ends what was ordered for one key.
    pub fn clear_override(&self, key: Key) {
        self.overlay.clear(key);
    }

    /// This table with rule, key and moment, as one of several limiters that a request is charged by together.
    pub fn at<'a>(&'a self, rule: &'a Enrolled<Packed>, key: Key, now: Moment) -> impl Limiter + 'a {
        Bound {
            peek: move |cost| self.peek(rule, key, now, cost),
            take: move |cost| self.decide(rule, key, now, cost),
            refund: move |charge: &mut Charge| self.refund(rule, key, now, charge),
        }
    }

    /// How often a newcomer found no room and was decided by the shared counter.
    pub fn overflowed(&self) -> u64 {
        self.slots.overflowed()
    }

    /// The counters that are not idle, in no particular order. Walks the table beside live traffic.
    pub fn counters(&self, now: Moment) -> impl Iterator<Item = Counter> + '_ {
        self.slots.occupied().filter_map(move |(fingerprint, slot, base)| {
            let schedule = self.slots.rules.stamped(slot.stamp())?.0;
            let ahead = slot.due_since(schedule.granted(base)).saturating_sub(schedule.granted(now));
            (ahead > 0).then(|| Counter { fingerprint, usage: schedule.usage(now, ahead) })
        })
    }

    /// What the table knows of `key`: as rare to repeat as two keys are to share a counter.
    pub fn fingerprint(&self, key: Key) -> u64 {
        self.slots.fingerprint(key)
    }

    /// The bytes the table occupies, now and for ever.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.slots.bytes()
    }
}

fn blocked(now: Moment, until: Moment) -> Refusal {
    Refusal { reason: Reason::Blocked, retry: Retry::After(until.since(now)) }
}
