//! One due number for each key, packed into a word a key.
//!
//! The table is an array of [groups](super::group) of six slots. A key's hash names its **home** group
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
//! | 300 ms | due 400 ms   | swaps → due 600 ms                                    | due 600 ms   |
//! | 600 ms | due 600 ms   | another newcomer finds it idle and swaps in itself     | somebody else's |
//! | 700 ms | none         | decides from fresh, as it would have with its old slot | due 900 ms   |
//!
//! Reuse and update are both one compare-and-swap of the same word, so one of them fails and looks again.
//! Only newcomers of one home take turns, because two threads must not settle the same key twice.
//!
//! Memory: 1.5 slots of 8 bytes a key and a third for headers and hints, 16 bytes, allocated once.
//!
//! | file | is |
//! |---|---|
//! | [place] | where a key belongs |
//! | [usual] | decides for nearly all: the key is at home, where a hint says |
//! | [unusual] | decides in every other case |
//! | [settle] | how a newcomer gets a slot |
//! | [spot] | a slot that was found: how far ahead its key is, and swapping it |

mod place;
mod settle;
mod spot;
mod unusual;
mod usual;

use std::time::Duration;

use prefetch_index::prefetch_index;

use self::settle::Arrival;
pub use self::usual::Foreseen;
use super::group::{Group, SLOTS};
use super::key::{Key, MaxKeys};
use super::table::{Counter, Counters, Table};
use super::word::{Beat, FARTHEST, Header, PATIENCE, Slot};
use crate::rate::{DueRule, Reading, Schedule};
use crate::shell::{Enrolled, Packed, Resets, Roster};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Cost, Invalid, Moment};
use crate::verdict::{Charge, Usage, Verdict};

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
pub type DueTable = Table<DueSlots>;

impl DueTable {
    /// A table for `max_keys`, hashing with a seed that strangers do not know.
    #[must_use]
    pub fn new(max_keys: MaxKeys, seed: u64) -> Self {
        Self::over(DueSlots::new(max_keys), seed)
    }

    /// Makes a rule known, so that it can be decided with.
    ///
    /// # Errors
    /// When 16 rules are enrolled already.
    pub fn enrol(&self, rule: &impl DueRule) -> Result<Enrolled<Packed>, Invalid> {
        let schedule = rule.packed();
        let enrolled = self.counters.rules.enrol(Packed(schedule))?;
        // Before anybody can decide with the rule, since nobody has it yet.
        let patience = Beat::count(PATIENCE << schedule.shift());
        self.counters.patience.fetch_min(patience, Ordering::Relaxed);
        Ok(enrolled)
    }

    /// What [`decide`](Table::decide) would answer, with what it takes to do it. A request that meets several tables
    /// asks all of them first and takes from all afterwards, without looking for its slots again. Nothing when it is
    /// not the usual case: then [`peek`](Table::peek), and decide.
    #[inline(always)]
    pub fn foresee<'a>(
        &'a self,
        rule: &'a Enrolled<Packed>,
        key: Key,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Foreseen<'a>>> {
        if self.has_orders() {
            return None;
        }
        self.counters.foresee(rule, self.counters.probe(key), now, cost)
    }
}

/// The counters of a [`DueTable`]: one word a key, in groups of a cache line.
#[derive(Debug)]
pub struct DueSlots {
    rules: Roster<Packed>,
    groups: Box<[Group]>,
    /// The first slot of this group is the counter that newcomers of a full table share.
    overflow: Group,
    overflowed: AtomicU64,
    resets: Resets,
    /// Beats for which a group need not be tidied.
    patience: AtomicU64,
}

impl Counters for DueSlots {
    type Rule = Enrolled<Packed>;
    type Time = Moment;

    #[inline(always)]
    fn take(&self, rule: &Self::Rule, key: Key, now: Moment, cost: Cost) -> Verdict<Charge> {
        let probe = self.probe(key);
        match self.take_hinted(rule, probe, 0, now, cost) {
            Some(verdict) => verdict,
            None => self.take_away(rule, probe, now, cost),
        }
    }

    #[inline]
    fn peek(&self, rule: &Self::Rule, key: Key, now: Moment, cost: Cost) -> Verdict<Duration> {
        let answer = self.answer(rule, self.probe(key), 0, now, cost, |_, _, _| Some(Duration::ZERO));
        if let Some(verdict) = answer {
            return verdict;
        }
        let (ahead, reading) = self.look(rule, key, now);
        rule.rule.0.ask(reading, ahead, cost).map(|(_, wait)| wait)
    }

    #[inline]
    fn touch(&self, key: Key) {
        prefetch_index(&self.groups, self.probe(key).home);
    }

    fn usage(&self, rule: &Self::Rule, key: Key, now: Moment) -> Usage {
        let (ahead, reading) = self.look(rule, key, now);
        rule.rule.0.usage(reading, ahead)
    }

    fn correct(&self, rule: &Self::Rule, key: Key, now: Moment, charge: &Charge, costs: (Cost, Cost)) {
        while !self.correct_once(rule, key, now, charge, costs) {}
    }

    fn reset(&self, rule: &Self::Rule, key: Key, now: Moment) {
        let probe = self.probe(key);
        self.resets.reset(probe.fingerprint(), || {
            while let Some(spot) = self.find(rule, probe, now) {
                if spot.group.swap(spot.index, spot.slot, Slot::VACANT) {
                    return;
                }
            }
        });
    }

    fn retire(&self, rule: Self::Rule, heir: &Self::Rule, now: Moment) {
        for group in self.groups.iter().chain([&self.overflow]) {
            let (now, header) = self.keep_up(group, heir, now);
            let (before, after) = (&rule.rule.0, &heir.rule.0);
            let granted = after.granted(now);
            group.rewrite(|slot| {
                if slot.stamp() != rule.stamp() {
                    return slot;
                }
                let ahead = after.carried_on(before, self.held(&rule, slot, now).ahead);
                slot.with_due(heir.stamp(), granted.wrapping_add(ahead.min(room(after, header, granted))))
            });
        }
        self.rules.retire(rule.serial);
    }

    fn each(&self, now: Moment, show: &mut dyn FnMut(Counter)) {
        for (place, group) in self.groups.iter().enumerate() {
            let base = group.header().tidied().start();
            for slot in (0..SLOTS).map(|index| group.slot(index)).filter(|slot| !slot.is_vacant()) {
                let Some(Packed(writer)) = self.rules.stamped(slot.stamp()) else { continue };
                let due = slot.due_since(writer.granted(base));
                let ahead = writer.readable(due.saturating_sub(writer.granted(now)));
                if ahead > 0 {
                    let fingerprint = self.probe_of(place, slot).fingerprint();
                    show(Counter { fingerprint, usage: writer.usage(writer.read(now), ahead) });
                }
            }
        }
    }

    fn fingerprint(&self, key: Key) -> u64 {
        self.probe(key).fingerprint()
    }

    fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.groups)
    }
}

impl DueSlots {
    fn new(max_keys: MaxKeys) -> Self {
        let groups = (0..max_keys.groups(SLOTS)).map(|_| Group::vacant()).collect();
        let (overflowed, patience) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Self {
            rules: Roster::new(),
            groups,
            overflow: Group::vacant(),
            overflowed,
            resets: Resets::new(),
            patience,
        }
    }

    /// Corrects a charge in the terms of the rule that wrote the key's slot; false when another thread was faster.
    fn correct_once(
        &self,
        rule: &Enrolled<Packed>,
        key: Key,
        now: Moment,
        charge: &Charge,
        costs: (Cost, Cost),
    ) -> bool {
        let probe = self.probe(key);
        let spot = if charge.is_overflow() {
            Some(self.shared_spot(rule, now))
        } else {
            self.find(rule, probe, now)
        };
        if let Some(spot) = spot {
            let held = self.held(rule, spot.slot, spot.now);
            let schedule = &held.writer.rule.0;
            let correction = held.writer.correction(held.granted, held.ahead, charge, costs);
            let write = |correction| {
                let after = schedule.corrected(held.ahead, correction);
                let after = if schedule.is_in_time(after) {
                    after
                } else {
                    after.min(room(schedule, spot.header, held.granted))
                };
                self.publish(rule, schedule, &spot, held.with_ahead(spot.slot, after), after)
            };
            // What newcomers share is never reset.
            return if charge.is_overflow() {
                write(correction)
            } else {
                self.resets.correct(probe.fingerprint(), charge.life, correction, write)
            };
        }
        let correction = rule.writer().correction(rule.rule.0.granted(now), 0, charge, costs);
        match rule.rule.0.corrected(0, correction) {
            0 => true,
            after => match self.settle_in(rule, probe, now, after) {
                Arrival::Settled(_) => true,
                Arrival::Known => false,
                Arrival::Full => self.correct_once(rule, key, now, &charge.as_shared(), costs),
            },
        }
    }

    /// What a charge about to be made carries of its rule, and of how many resets there were.
    #[inline]
    fn origin(&self, rule: &Enrolled<Packed>) -> Origin {
        Origin { serial: rule.serial, resets: self.resets.count() }
    }

    /// How far ahead a key is, and by which reading.
    fn look(&self, rule: &Enrolled<Packed>, key: Key, now: Moment) -> (u64, Reading) {
        let schedule = &rule.rule.0;
        self.find(rule, self.probe(key), now).map_or_else(
            || (0, schedule.read(now)),
            |spot| {
                let granted = schedule.granted(spot.now);
                (self.ahead(rule, spot.slot, spot.now, granted), Reading { now, granted })
            },
        )
    }
}

/// How far ahead of `granted` a slot can be due, in a group with this header.
fn room(schedule: &Schedule, header: Header, granted: u64) -> u64 {
    schedule.granted(header.tidied().start()).saturating_add(FARTHEST).saturating_sub(granted)
}

/// Under which rule a charge is made, and after how many resets.
#[derive(Clone, Copy, Debug)]
struct Origin {
    serial: u32,
    resets: u32,
}

fn charge_until(origin: Origin, cost: Cost, due: u64, wait: Duration) -> Charge {
    Charge::new(cost, due).with_wait(wait).made_under(origin.serial).in_life(origin.resets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::TokenBucket;
    use crate::units::Quota;

    fn at(millis: u64) -> Moment {
        Moment::ORIGIN.plus(Duration::from_millis(millis))
    }

    #[test]
    fn the_worked_example_comes_out_as_written() {
        let table = DueTable::new(MaxKeys::new(1).unwrap(), 7);
        let five = Quota::per_second(Cost::of(5)).unwrap().with_burst(Cost::of(3)).unwrap();
        let five = table.enrol(&TokenBucket::new(five)).unwrap();
        // Others hold every slot but one, so that the newcomer has to take the idle one.
        let daily = table.enrol(&TokenBucket::new(Quota::per_day(Cost::ONE).unwrap())).unwrap();
        let slots = table.counters.groups.len() * SLOTS;
        for name in 1..slots {
            assert!(table.decide(&daily, table.key(&name), at(0), Cost::ONE).is_admit());
        }
        let [ann, bob] = ["ann", "bob"].map(|name| table.key(name));
        let has_slot = |key, now| table.counters.find(&five, table.counters.probe(key), at(now)).is_some();
        let due = |key, now| at(now).plus(table.usage(&five, key, at(now)).reset);

        assert!(!has_slot(ann, 0));
        for (now, before, after) in [(0, 0, 200), (0, 200, 400), (300, 400, 600)] {
            assert_eq!(due(ann, now), at(before));
            assert!(table.decide(&five, ann, at(now), Cost::ONE).is_admit());
            assert_eq!(due(ann, now), at(after));
        }
        assert!(has_slot(ann, 600));
        assert!(table.decide(&five, bob, at(600), Cost::ONE).is_admit());
        assert!(has_slot(bob, 600) && !has_slot(ann, 600));

        table.reset(&daily, table.key(&1), at(700)); // leaves room
        assert!(table.decide(&five, ann, at(700), Cost::ONE).is_admit());
        assert_eq!((due(ann, 700), table.overflowed()), (at(900), 0));
    }
}
