//! What every table of keys offers, whatever keeps its counters.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use super::key::{Hashing, Key};
use super::overlay::{Overlay, Override};
use crate::together::{Bound, Limiter};
use crate::units::{Cost, Invalid, Time};
use crate::verdict::{Charge, Reason, Refusal, Retry, Usage, Verdict};

/// What keeps a table's counters: packed words ([`DueSlots`](super::DueSlots)) or cells with any state
/// ([`Cells`](super::Cells)).
pub trait Counters: fmt::Debug {
    /// A rule it knows.
    type Rule;
    /// What it is told as "now".
    type Time: Time;

    /// Takes `cost` from the key's counter if it fits.
    fn take(&self, rule: &Self::Rule, key: Key, now: Self::Time, cost: Cost) -> Verdict<Charge>;

    /// What [`take`](Self::take) would answer, for a key that has a counter of its own or could have one.
    fn peek(&self, rule: &Self::Rule, key: Key, now: Self::Time, cost: Cost) -> Verdict<Duration>;

    /// Has the processor fetch what a question about the key looks at first.
    fn touch(&self, key: Key);

    /// How much the key has used.
    fn usage(&self, rule: &Self::Rule, key: Key, now: Self::Time) -> Usage;

    /// Corrects a charge from what it took to its true cost.
    fn correct(&self, rule: &Self::Rule, key: Key, now: Self::Time, charge: &Charge, costs: (Cost, Cost));

    /// Forgets what the key has consumed.
    fn reset(&self, rule: &Self::Rule, key: Key, now: Self::Time);

    /// Forgets a rule nobody uses any more; what was written under it passes to `heir`.
    fn retire(&self, rule: Self::Rule, heir: &Self::Rule, now: Self::Time);

    /// Shows every counter that is not idle.
    fn each(&self, now: Self::Time, show: &mut dyn FnMut(Counter));

    /// What the storage knows of a key.
    fn fingerprint(&self, key: Key) -> u64;

    /// How often a newcomer found no room and was decided by the shared counter.
    fn overflowed(&self) -> u64;

    /// The bytes its counters occupy, with all that they can come to take from the heap.
    fn bytes(&self) -> usize;
}

/// A bounded table of counters, one for each key.
#[derive(Debug)]
pub struct Table<C> {
    hashing: Hashing,
    overlay: Overlay,
    pub(super) counters: C,
}

/// One active counter of a table, for an operator to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// What the table knows of the key; compare with [`Table::fingerprint`].
    pub fingerprint: u64,
    /// How much it has used, under the rule it was last charged by.
    pub usage: Usage,
}

impl<C> Table<C> {
    pub(super) fn over(counters: C, seed: u64) -> Self {
        Self { hashing: Hashing::new(seed), overlay: Overlay::new(), counters }
    }

    /// The key of a caller, a route, or both: anything that can be hashed, without building a string.
    #[inline]
    pub fn key(&self, name: &(impl Hash + ?Sized)) -> Key {
        self.hashing.key(name)
    }
}

impl<C: Counters> Table<C> {
    /// Takes `cost` from `key` under `rule` if it fits.
    #[inline]
    pub fn decide(&self, rule: &C::Rule, key: Key, now: C::Time, cost: Cost) -> Verdict<Charge> {
        if self.overlay.is_empty() {
            self.counters.take(rule, key, now, cost)
        } else {
            self.decide_under_orders(rule, key, now, cost)
        }
    }

    /// Decides while orders stand, perhaps for other keys.
    #[inline(never)]
    fn decide_under_orders(&self, rule: &C::Rule, key: Key, now: C::Time, cost: Cost) -> Verdict<Charge> {
        let times = match self.overlay.order(key, now.nanos()) {
            None => 1,
            Some((Override::Boost(times), _)) => times,
            Some((Override::Block, wait)) => return Verdict::Refuse(blocked(wait)),
        };
        let taken = self.counters.take(rule, key, now, cost.divided(times));
        taken.map(|charge| charge.boosted(times, cost))
    }

    /// What [`decide`](Self::decide) would answer, with the wait it would ask for.
    #[inline]
    pub fn peek(&self, rule: &C::Rule, key: Key, now: C::Time, cost: Cost) -> Verdict<Duration> {
        if self.overlay.is_empty() {
            return self.counters.peek(rule, key, now, cost);
        }
        match self.overlay.order(key, now.nanos()) {
            None => self.counters.peek(rule, key, now, cost),
            Some((Override::Block, wait)) => Verdict::Refuse(blocked(wait)),
            Some((Override::Boost(times), _)) => self.counters.peek(rule, key, now, cost.divided(times)),
        }
    }

    /// Whether any key has an order.
    #[inline]
    pub(super) fn has_orders(&self) -> bool {
        !self.overlay.is_empty()
    }

    /// Has the processor fetch the key's counter into its cache, without waiting for it. Changes nothing.
    ///
    /// With millions of keys a decision is mostly waiting for one line of memory. Whoever knows the key before the
    /// moment touches first and reads the clock then, which takes a while too, and lets nothing overtake it on some
    /// processors. A request that meets several tables touches all of them before it asks the first, and waits
    /// for all lines at once.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use tidegate_core::keyed::{DueTable, MaxKeys};
    /// # use tidegate_core::rate::TokenBucket;
    /// # use tidegate_core::{Cost, Moment, Quota};
    /// # let started = Instant::now();
    /// # let table = DueTable::new(MaxKeys::new(1_000)?, 0x5eed);
    /// # let rule = table.enrol(&TokenBucket::new(Quota::per_second(Cost::of(2))?))?;
    /// let alice = table.key("alice");
    /// table.touch(alice);
    /// let now = Moment::ORIGIN.plus(started.elapsed());
    /// assert!(table.decide(&rule, alice, now, Cost::ONE).is_admit());
    /// # Ok::<(), tidegate_core::Invalid>(())
    /// ```
    #[inline]
    pub fn touch(&self, key: Key) {
        self.counters.touch(key);
    }

    /// How much `key` has used under `rule`.
    pub fn usage(&self, rule: &C::Rule, key: Key, now: C::Time) -> Usage {
        let usage = self.counters.usage(rule, key, now);
        self.overlay.order(key, now.nanos()).map_or(usage, |(order, _)| order.seen(usage))
    }

    /// Settles a charge of `key` to its true cost. Doing it twice changes nothing.
    pub fn settle(&self, rule: &C::Rule, key: Key, now: C::Time, charge: &mut Charge, true_cost: Cost) {
        if let Some(taken) = charge.close(true_cost) {
            let costs = (charge.counted(taken), charge.counted(true_cost));
            self.counters.correct(rule, key, now, charge, costs);
        }
    }

    /// Gives a charge of `key` back. Doing it twice changes nothing.
    pub fn refund(&self, rule: &C::Rule, key: Key, now: C::Time, charge: &mut Charge) {
        self.settle(rule, key, now, charge, Cost::ZERO);
    }

    /// Forgets everything `key` has consumed. Charges of it that are open give nothing back any more.
    pub fn reset(&self, rule: &C::Rule, key: Key, now: C::Time) {
        self.counters.reset(rule, key, now);
    }

    /// Forgets a rule nobody uses any more; what was written under it passes to `heir`. Walks the table.
    pub fn retire(&self, rule: C::Rule, heir: &C::Rule, now: C::Time) {
        self.counters.retire(rule, heir, now);
    }

    /// Orders something for one key until then, in place of what was ordered for it before.
    ///
    /// # Errors
    /// When the boost is by zero times, or 1024 orders stand already.
    pub fn set_override(
        &self,
        key: Key,
        what: Override,
        now: C::Time,
        until: C::Time,
    ) -> Result<(), Invalid> {
        self.overlay.set(key, what, now.nanos(), until.nanos())
    }

    /// Ends what was ordered for one key.
    pub fn clear_override(&self, key: Key) {
        self.overlay.clear(key);
    }

    /// This table with rule, key and moment, as one of several limiters that a request is charged by together.
    pub fn at<'a>(&'a self, rule: &'a C::Rule, key: Key, now: C::Time) -> impl Limiter + 'a {
        Bound {
            peek: move |cost| self.peek(rule, key, now, cost),
            take: move |cost| self.decide(rule, key, now, cost),
            refund: move |charge: &mut Charge| self.refund(rule, key, now, charge),
        }
    }

    /// Shows every counter that is not idle, in no particular order. Walks the table beside live traffic.
    pub fn each(&self, now: C::Time, mut show: impl FnMut(Counter)) {
        self.counters.each(now, &mut show);
    }

    /// How many counters are not idle. Walks the table beside live traffic.
    pub fn active(&self, now: C::Time) -> usize {
        let mut active = 0;
        self.each(now, |_| active += 1);
        active
    }

    /// What the table knows of `key`: as rare to repeat as two keys are to share a counter.
    pub fn fingerprint(&self, key: Key) -> u64 {
        self.counters.fingerprint(key)
    }

    /// How often a newcomer found no room and was decided by the shared counter.
    pub fn overflowed(&self) -> u64 {
        self.counters.overflowed()
    }

    /// The bytes the table occupies, allocated once; in a [`CellTable`](super::CellTable) of logs or of windows with
    /// buckets, with the most that its cells can come to take besides.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.counters.bytes()
    }
}

fn blocked(wait: Duration) -> Refusal {
    Refusal { reason: Reason::Blocked, retry: Retry::After(wait) }
}

/// The answer of the counter that newcomers of a full table share: a yes is marked as shared, and "not
/// now" says that it was not the key's own quota that is spent.
pub(super) fn shared(verdict: Verdict<Charge>) -> Verdict<Charge> {
    match verdict {
        Verdict::Admit(charge) => Verdict::Admit(charge.shared()),
        Verdict::Refuse(Refusal { retry: Retry::After(wait), .. }) => {
            Verdict::refuse(Reason::OverflowSpent, Retry::After(wait))
        }
        never @ Verdict::Refuse(Refusal { retry: Retry::Never, .. }) => never,
    }
}
