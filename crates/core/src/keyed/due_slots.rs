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
//! | 300 ms | due 400 ms   | swaps → due 500 ms                                    | due 500 ms   |
//! | 600 ms | due 500 ms   | another newcomer finds it idle and swaps in itself     | somebody else's |
//! | 700 ms | none         | decides from fresh, as it would have with its old slot | due 900 ms   |
//!
//! Reuse and update are both one compare-and-swap of the same word, so one of them fails and looks again.
//! Only newcomers of one home take turns, because two threads must not settle the same key twice.
//!
//! Memory: 1.5 slots of 8 bytes a key and a third for headers and hints, 16 bytes, allocated once.

use std::time::Duration;

use super::group::{Group, Rules, SLOTS, swap};
use super::key::{Key, MaxKeys};
use super::table::{Counter, Counters, Table, shared};
use super::word::{Beat, Header, PATIENCE, Slot, identity};
use crate::rate::{DueRule, Reading};
use crate::shell::{Enrolled, Packed, Roster};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Cost, Invalid, Moment};
use crate::verdict::{Charge, Usage, Verdict};

/// Groups in which a key may settle: its home and seven more. In a table that holds all the keys it was
/// made for, and all of them active, one newcomer in a million finds all eight full.
const PROBES: u64 = 8;

/// Groups in which a newcomer looks for a vacant slot before it takes an idle one. In such a table all of
/// them are full for a few newcomers in a thousand.
const NEARBY: u64 = 3;

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

/// A yes that has not been carried out: a slot as it was found, and what it becomes.
#[derive(Clone, Copy, Debug)]
pub struct Foreseen<'a> {
    word: &'a AtomicU64,
    slot: Slot,
    due: u64,
    cost: Cost,
    rule: &'a Enrolled<Packed>,
}

impl Foreseen<'_> {
    /// Carries it out; nothing when another thread changed the slot first.
    #[inline(always)]
    #[must_use]
    pub fn take(self) -> Option<Charge> {
        let is_ours = swap(self.word, self.slot, self.slot.moved_to(self.due));
        is_ours.then(|| charge_until(self.rule, self.cost, self.due, Duration::ZERO))
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
    /// Beats for which a group need not be tidied.
    patience: AtomicU64,
}

/// A key's home and tag.
#[derive(Clone, Copy)]
struct Probe {
    home: usize,
    tag: u32,
}

/// A slot as it was found, and the time to decide with there: the asker's, or a later one that somebody has
/// already seen.
struct Spot<'a> {
    group: &'a Group,
    /// The header for which that holds.
    header: Header,
    index: usize,
    slot: Slot,
    now: Moment,
}

impl Spot<'_> {
    /// Swaps the slot, unless another thread changed it, or its group's time, first.
    fn swap(&self, new: Slot) -> bool {
        self.group.header() == self.header && self.group.swap(self.index, self.slot, new)
    }
}

/// How a newcomer fared.
enum Arrival {
    /// It has a slot and is due then.
    Settled(u64),
    /// Another thread brought the same key in first.
    Known,
    /// There is no room.
    Full,
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
    fn touch(&self, key: Key) -> u64 {
        self.groups[self.probe(key).home].header().0
    }

    fn usage(&self, rule: &Self::Rule, key: Key, now: Moment) -> Usage {
        let (ahead, reading) = self.look(rule, key, now);
        rule.rule.0.usage(reading, ahead)
    }

    fn correct(&self, rule: &Self::Rule, key: Key, now: Moment, charge: &Charge, costs: (Cost, Cost)) {
        let correction = self.rules.correction(rule, now, charge, costs);
        let change = |ahead| rule.rule.0.corrected(ahead, correction);
        while !self.update(rule, key, now, charge.is_overflow(), change) {}
    }

    fn reset(&self, rule: &Self::Rule, key: Key, now: Moment) {
        while let Some(spot) = self.find(rule, self.probe(key), now) {
            if spot.group.swap(spot.index, spot.slot, Slot::VACANT) {
                return;
            }
        }
    }

    fn retire(&self, rule: Self::Rule, heir: &Self::Rule, now: Moment) {
        for group in self.groups.iter().chain([&self.overflow]) {
            let (now, _) = self.keep_up(group, heir, now);
            let granted = heir.rule.0.granted(now);
            group.rewrite(|slot| {
                if slot.stamp() != rule.stamp() {
                    return slot;
                }
                slot.with_due(heir.stamp(), granted + self.ahead(heir, slot, now, granted))
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
                    let fingerprint = fingerprint(self.home_of(place, slot), slot.tag());
                    show(Counter { fingerprint, usage: writer.usage(writer.read(now), ahead) });
                }
            }
        }
    }

    fn fingerprint(&self, key: Key) -> u64 {
        let probe = self.probe(key);
        fingerprint(probe.home, probe.tag)
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
        Self { rules: Roster::new(), groups, overflow: Group::vacant(), overflowed, patience }
    }

    /// Changes how far a key is ahead; false when another thread was faster.
    fn update(
        &self,
        rule: &Enrolled<Packed>,
        key: Key,
        now: Moment,
        is_overflow: bool,
        change: impl Fn(u64) -> u64,
    ) -> bool {
        let probe = self.probe(key);
        let spot = if is_overflow { Some(self.shared_spot(rule, now)) } else { self.find(rule, probe, now) };
        if let Some(spot) = spot {
            let granted = rule.rule.0.granted(spot.now);
            let after = change(self.ahead(rule, spot.slot, spot.now, granted));
            return self.publish(rule, &spot, spot.slot.with_due(rule.stamp(), granted + after), after);
        }
        let after = change(0);
        if after == 0 {
            return true;
        }
        match self.settle_in(rule, probe, now, after) {
            Arrival::Settled(_) => true,
            Arrival::Known => false,
            Arrival::Full => self.update(rule, key, now, true, change),
        }
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

    /// Decides in the usual case; nothing when it is not that, or another thread is faster.
    #[inline(always)]
    fn take_hinted(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        distance: u64,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Charge>> {
        self.answer(rule, probe, distance, now, cost, |word, slot, due| {
            let is_ours = swap(word, slot, slot.moved_to(due));
            is_ours.then(|| charge_until(rule, cost, due, Duration::ZERO))
        })
    }

    /// The answer in the usual case, with what it takes to carry it out.
    #[inline(always)]
    fn foresee<'a>(
        &'a self,
        rule: &'a Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Foreseen<'a>>> {
        self.answer(rule, probe, 0, now, cost, |word, slot, due| {
            Some(Foreseen { word, slot, due, cost, rule })
        })
    }

    /// The answer in the usual case, in a straight line: the group is tidy, a hint leads to the key's slot, it was
    /// written under this rule, and the answer is a no or a yes without a wait; of a yes, what `admit` makes of the
    /// slot and of when it is due then. Nothing when it is not so.
    ///
    /// A processor looks some three hundred instructions ahead, so with half as many in a decision, two of
    /// them wait for their cache lines at once. With a million keys that is what counts.
    #[inline(always)]
    fn answer<'a, T>(
        &'a self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        distance: u64,
        now: Moment,
        cost: Cost,
        admit: impl FnOnce(&'a AtomicU64, Slot, u64) -> Option<T>,
    ) -> Option<Verdict<T>> {
        let group = if distance == 0 { &self.groups[probe.home] } else { self.group(probe, distance) };
        let author = Slot::new(identity(probe.tag, distance), rule.stamp(), 0);
        // With a header come slots at least as new, so what is found in a tidy group can be read. Should the
        // clock be set back between the two looks, this one decision is as late as any that read the clock
        // before that.
        group.tidy_header(now, self.patience.load(Ordering::Relaxed))?;
        let (word, slot) = group.find_hinted(author.0)?;
        let schedule = &rule.rule.0;
        let reading = schedule.read_packed(now);
        let (ahead, grains) = (slot.ahead_of(reading.granted), schedule.grains(cost));
        if let Some(after) = schedule.at_once(ahead, grains) {
            return admit(word, slot, reading.granted + after).map(Verdict::Admit);
        }
        let refusal = schedule.refusal(reading, ahead, grains)?;
        schedule.is_readable(ahead).then_some(Verdict::Refuse(refusal))
    }

    /// Decides for a key that is not to be found at home by a hint: after a pause, or since it is one of the
    /// twentieth that settled elsewhere when the table is full.
    #[inline(never)]
    fn take_away(&self, rule: &Enrolled<Packed>, probe: Probe, now: Moment, cost: Cost) -> Verdict<Charge> {
        let home = &self.groups[probe.home];
        // At home it has just been looked for, unless a pause hid it.
        let first = u64::from(home.tidy_header(now, self.patience.load(Ordering::Relaxed)).is_some());
        let (_, header) = self.keep_up(home, rule, now);
        (first..=header.reach())
            .find_map(|distance| self.take_hinted(rule, probe, distance, now, cost))
            .unwrap_or_else(|| self.take_anywhere(rule, probe, now, cost))
    }

    /// Decides in every case: for newcomers, under a new rule, after a pause, beside faster threads.
    fn take_anywhere(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        cost: Cost,
    ) -> Verdict<Charge> {
        loop {
            let answer = match self.find(rule, probe, now) {
                Some(spot) => {
                    spot.group.leave_hint(spot.index, spot.slot.0);
                    self.charge(rule, &spot, now, cost)
                }
                None => self.arrive(rule, probe, now, cost),
            };
            if let Some(verdict) = answer {
                return verdict;
            }
        }
    }

    /// Charges the counter at `spot`; nothing when another thread was faster.
    fn charge(
        &self,
        rule: &Enrolled<Packed>,
        spot: &Spot<'_>,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Charge>> {
        let schedule = &rule.rule.0;
        let granted = schedule.granted(spot.now);
        let ahead = self.ahead(rule, spot.slot, spot.now, granted);
        let (after, verdict) = match schedule.ask(Reading { now, granted }, ahead, cost) {
            Verdict::Admit((after, wait)) => {
                (after, Verdict::Admit(charge_until(rule, cost, granted + after, wait)))
            }
            Verdict::Refuse(refusal) if schedule.is_readable(spot.slot.ahead_of(granted)) => {
                return (spot.group.header() == spot.header).then_some(Verdict::Refuse(refusal));
            }
            Verdict::Refuse(refusal) => (ahead, Verdict::Refuse(refusal)),
        };
        spot.swap(spot.slot.with_due(rule.stamp(), granted + after)).then_some(verdict)
    }

    /// Decides for a key that has no slot, as for a fresh one; nothing when another thread was faster.
    fn arrive(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Charge>> {
        let (after, wait) = match rule.rule.0.ask(rule.rule.0.read(now), 0, cost) {
            Verdict::Refuse(refusal) => return Some(Verdict::Refuse(refusal)),
            Verdict::Admit(taken) => taken,
        };
        if after == 0 {
            return Some(Verdict::Admit(charge_until(rule, cost, 0, wait)));
        }
        match self.settle_in(rule, probe, now, after) {
            Arrival::Settled(due) => Some(Verdict::Admit(charge_until(rule, cost, due, wait))),
            Arrival::Known => None,
            Arrival::Full => Some(self.share(rule, now, cost)),
        }
    }

    /// Decides by the counter that newcomers of a full table share.
    fn share(&self, rule: &Enrolled<Packed>, now: Moment, cost: Cost) -> Verdict<Charge> {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        loop {
            if let Some(verdict) = self.charge(rule, &self.shared_spot(rule, now), now, cost) {
                return shared(verdict);
            }
        }
    }

    /// Gives a key that is `after` ahead a slot: a vacant one or one that is idle.
    fn settle_in(&self, rule: &Enrolled<Packed>, probe: Probe, now: Moment, after: u64) -> Arrival {
        let home = &self.groups[probe.home];
        home.lock();
        let (arrival, reach) = if self.find(rule, probe, now).is_some() {
            (Arrival::Known, 0)
        } else {
            self.settle_near(rule, probe, now, after)
        };
        home.unlock(reach);
        arrival
    }

    /// Looks for a vacant slot nearby, then for an idle one: whoever left an idle slot may come back to it,
    /// but a search through all groups for a vacant one would cost a newcomer more than that.
    fn settle_near(&self, rule: &Enrolled<Packed>, probe: Probe, now: Moment, after: u64) -> (Arrival, u64) {
        let vacant = |slot: Slot, _, _| slot.is_vacant();
        let idle = |slot: Slot, now, granted| self.ahead(rule, slot, now, granted) == 0;
        self.settle_where(rule, probe, now, after, NEARBY, vacant)
            .or_else(|| self.settle_where(rule, probe, now, after, PROBES, idle))
            .unwrap_or((Arrival::Full, 0))
    }

    fn settle_where(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        after: u64,
        groups: u64,
        is_free: impl Fn(Slot, Moment, u64) -> bool,
    ) -> Option<(Arrival, u64)> {
        (0..groups).find_map(|distance| {
            let group = self.group(probe, distance);
            let (now, header) = self.keep_up(group, rule, now);
            let granted = rule.rule.0.granted(now);
            let due = granted + after;
            let new = Slot::new(identity(probe.tag, distance), rule.stamp(), due);
            (0..SLOTS).find_map(|index| {
                let slot = group.slot(index);
                let spot = Spot { group, header, index, slot, now };
                let is_ours = is_free(slot, now, granted) && self.publish(rule, &spot, new, after);
                is_ours.then(|| {
                    group.leave_hint(index, new.0);
                    (Arrival::Settled(due), distance)
                })
            })
        })
    }

    fn find(&self, rule: &Enrolled<Packed>, probe: Probe, now: Moment) -> Option<Spot<'_>> {
        let group = &self.groups[probe.home];
        let (here, header) = self.keep_up(group, rule, now);
        if let Some((index, slot)) = group.find(identity(probe.tag, 0)) {
            return Some(Spot { group, header, index, slot, now: here });
        }
        (1..=group.header().reach()).find_map(|distance| {
            let group = self.group(probe, distance);
            let (now, header) = self.keep_up(group, rule, now);
            let (index, slot) = group.find(identity(probe.tag, distance))?;
            Some(Spot { group, header, index, slot, now })
        })
    }

    fn keep_up(&self, group: &Group, rule: &Enrolled<Packed>, now: Moment) -> (Moment, Header) {
        let patience = self.patience.load(Ordering::Relaxed);
        group.keep_up(&Rules { rules: &self.rules, rule, patience }, now)
    }

    fn shared_spot(&self, rule: &Enrolled<Packed>, now: Moment) -> Spot<'_> {
        let (group, index) = (&self.overflow, 0);
        let (now, header) = self.keep_up(group, rule, now);
        let slot = group.slot(index);
        if slot.is_vacant() {
            // Any tag will do, as long as the slot never looks vacant while it is in use.
            group.swap(index, slot, Slot::new(identity(1, 0), rule.stamp(), rule.rule.0.granted(now)));
        }
        Spot { group, header, index, slot: group.slot(index), now }
    }

    /// How far ahead a slot is under `rule`, whichever rule wrote it.
    fn ahead(&self, rule: &Enrolled<Packed>, slot: Slot, now: Moment, granted: u64) -> u64 {
        if slot.stamp() == rule.stamp() && !slot.is_vacant() {
            return rule.rule.0.readable(slot.ahead_of(granted));
        }
        self.ahead_by_other(rule, slot, now)
    }

    fn ahead_by_other(&self, rule: &Enrolled<Packed>, slot: Slot, now: Moment) -> u64 {
        if slot.is_vacant() {
            return 0;
        }
        self.rules.stamped(slot.stamp()).map_or(rule.rule.0.extent(), |Packed(writer)| {
            rule.rule.0.carried(&writer, writer.readable(slot.ahead_of(writer.granted(now))))
        })
    }

    /// Swaps a slot for a due time that may lie before what the slot held.
    ///
    /// A thread that was put aside between its last look at the header and the swap, for so long that the
    /// group was tidied or moved meanwhile, may write a due time that can no longer be read; it dates its
    /// word anew.
    fn publish(&self, rule: &Enrolled<Packed>, spot: &Spot<'_>, new: Slot, after: u64) -> bool {
        if !spot.swap(new) {
            return false;
        }
        let (now, _) = self.keep_up(spot.group, rule, spot.now);
        if now != spot.now {
            let due = rule.rule.0.granted(now) + after;
            spot.group.swap(spot.index, new, new.with_due(rule.stamp(), due));
        }
        true
    }

    #[inline]
    fn probe(&self, key: Key) -> Probe {
        Probe { home: key.place(self.groups.len()), tag: key.tag() }
    }

    fn group(&self, probe: Probe, distance: u64) -> &Group {
        &self.groups[wrapped(probe.home + self.away(probe.tag, distance), self.groups.len())]
    }

    /// How far from home a key's next groups lie.
    fn away(&self, tag: u32, distance: u64) -> usize {
        let count = self.groups.len();
        let stride = Key::stride(tag, count);
        (0..distance).fold(0, |away, _| wrapped(away + stride, count))
    }

    /// The home of the key in a slot: the way from home walked backwards.
    fn home_of(&self, place: usize, slot: Slot) -> usize {
        let count = self.groups.len();
        wrapped(place + count - self.away(slot.tag(), slot.distance()), count)
    }
}

/// A place less than twice round, without a division.
const fn wrapped(place: usize, count: usize) -> usize {
    if place >= count { place - count } else { place }
}

const fn fingerprint(home: usize, tag: u32) -> u64 {
    ((home as u64) << 25) | tag as u64
}

fn charge_until(rule: &Enrolled<Packed>, cost: Cost, due: u64, wait: Duration) -> Charge {
    Charge::new(cost, due).with_wait(wait).made_under(rule.serial)
}
