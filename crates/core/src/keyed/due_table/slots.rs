//! The groups of a table, and how threads find, charge and reuse their slots.

use std::time::Duration;

use crate::keyed::group::{Group, SLOTS};
use crate::keyed::key::{Key, MaxKeys};
use crate::keyed::word::{Era, Slot, identity};
use crate::shell::{Enrolled, Packed, Roster};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Cost, Moment};
use crate::verdict::{Reason, Refusal, Retry, Verdict};

/// Groups in which a key may settle: its home and seven more. At two thirds full, a group has no free
/// slot one time in ten, so all eight are taken once in 10^8 newcomers.
const PROBES: u64 = 8;

#[derive(Debug)]
pub(super) struct Slots {
    pub(super) rules: Roster<Packed>,
    groups: Box<[Group]>,
    /// The first slot of this group is the counter that newcomers of a full table share.
    overflow: Group,
    overflowed: AtomicU64,
}

/// What a yes took from a slot.
pub(super) struct Taken {
    pub(super) due: u64,
    pub(super) wait: Duration,
    pub(super) is_overflow: bool,
}

/// A key's home and tag.
#[derive(Clone, Copy)]
struct Probe {
    home: usize,
    tag: u32,
}

/// A slot as it was found, and the moment to decide with there.
struct Spot<'a> {
    group: &'a Group,
    index: usize,
    slot: Slot,
    now: Moment,
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

impl Slots {
    pub(super) fn new(max_keys: MaxKeys) -> Self {
        let groups = max_keys.slots().div_ceil(SLOTS);
        let groups = (0..groups).map(|_| Group::vacant()).collect();
        let overflow = Group::vacant();
        overflow.swap(0, Slot::VACANT, Slot::new(identity(1, 0), 0, 0));
        Self { rules: Roster::new(), groups, overflow, overflowed: AtomicU64::new(0) }
    }

    /// Takes `cost` from the key's counter if it fits.
    #[inline]
    pub(super) fn take(&self, rule: &Enrolled<Packed>, key: Key, now: Moment, cost: Cost) -> Verdict<Taken> {
        let probe = self.probe(key);
        loop {
            let answer = match self.find(rule, probe, now) {
                Some(spot) => self.charge(rule, &spot, cost),
                None => self.arrive(rule, probe, now, cost),
            };
            if let Some(verdict) = answer {
                return verdict;
            }
        }
    }

    /// Changes how far a key is ahead; false when another thread was faster.
    pub(super) fn update(
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

    /// How far ahead a key is, and the moment at which it is.
    pub(super) fn look(&self, rule: &Enrolled<Packed>, key: Key, now: Moment) -> (u64, Moment) {
        self.find(rule, self.probe(key), now).map_or((0, now), |spot| {
            (self.ahead(rule, spot.slot, spot.now, rule.rule.0.granted(spot.now)), spot.now)
        })
    }

    /// Gives up the key's slot.
    pub(super) fn vacate(&self, rule: &Enrolled<Packed>, key: Key, now: Moment) {
        while let Some(spot) = self.find(rule, self.probe(key), now) {
            if spot.group.swap(spot.index, spot.slot, Slot::VACANT) {
                return;
            }
        }
    }

    /// Rewrites what was written under `rule` as `heir` expresses it.
    pub(super) fn pass_on(&self, rule: &Enrolled<Packed>, heir: &Enrolled<Packed>, now: Moment) {
        for group in self.groups.iter().chain([&self.overflow]) {
            let now = group.keep_up(&self.rules, heir, now);
            let granted = heir.rule.0.granted(now);
            group.rewrite(|slot| {
                if slot.stamp() != rule.stamp() {
                    return slot;
                }
                slot.with_due(heir.stamp(), granted + self.ahead(heir, slot, now, granted))
            });
        }
    }

    /// Every occupied slot with its key's fingerprint and the moment its due time is read from.
    pub(super) fn occupied(&self) -> impl Iterator<Item = (u64, Slot, Moment)> + '_ {
        self.groups.iter().enumerate().flat_map(move |(place, group)| {
            let base = group.header().era().start();
            let slots = (0..SLOTS).map(|index| group.slot(index)).filter(|slot| !slot.is_vacant());
            slots.map(move |slot| (fingerprint(self.home_of(place, slot), slot.tag()), slot, base))
        })
    }

    pub(super) fn fingerprint(&self, key: Key) -> u64 {
        let probe = self.probe(key);
        fingerprint(probe.home, probe.tag)
    }

    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.groups)
    }

    /// Charges the counter at `spot`; nothing when another thread was faster.
    #[inline]
    fn charge(&self, rule: &Enrolled<Packed>, spot: &Spot<'_>, cost: Cost) -> Option<Verdict<Taken>> {
        let granted = rule.rule.0.granted(spot.now);
        let ahead = self.ahead(rule, spot.slot, spot.now, granted);
        match rule.rule.0.ask(spot.now, ahead, cost) {
            Verdict::Refuse(refusal) => Some(Verdict::Refuse(refusal)),
            Verdict::Admit((after, wait)) => {
                let due = granted + after;
                let is_ours = self.publish(rule, spot, spot.slot.with_due(rule.stamp(), due), after);
                is_ours.then_some(Verdict::Admit(Taken { due, wait, is_overflow: false }))
            }
        }
    }

    /// Decides for a key that has no slot, as for a fresh one; nothing when another thread was faster.
    #[cold]
    fn arrive(
        &self,
        rule: &Enrolled<Packed>,
        probe: Probe,
        now: Moment,
        cost: Cost,
    ) -> Option<Verdict<Taken>> {
        let (after, wait) = match rule.rule.0.ask(now, 0, cost) {
            Verdict::Refuse(refusal) => return Some(Verdict::Refuse(refusal)),
            Verdict::Admit(taken) => taken,
        };
        if after == 0 {
            return Some(Verdict::Admit(Taken { due: 0, wait, is_overflow: false }));
        }
        match self.settle_in(rule, probe, now, after) {
            Arrival::Settled(due) => Some(Verdict::Admit(Taken { due, wait, is_overflow: false })),
            Arrival::Known => None,
            Arrival::Full => Some(self.share(rule, now, cost)),
        }
    }

    /// Decides by the counter that newcomers of a full table share.
    fn share(&self, rule: &Enrolled<Packed>, now: Moment, cost: Cost) -> Verdict<Taken> {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        loop {
            match self.charge(rule, &self.shared_spot(rule, now), cost) {
                None => {}
                Some(Verdict::Admit(taken)) => return Verdict::Admit(Taken { is_overflow: true, ..taken }),
                Some(Verdict::Refuse(Refusal { reason, retry: Retry::Never })) => {
                    return Verdict::refuse(reason, Retry::Never);
                }
                Some(Verdict::Refuse(Refusal { retry: Retry::After(wait), .. })) => {
                    return Verdict::refuse(Reason::OverflowSpent, Retry::After(wait));
                }
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

    fn settle_near(&self, rule: &Enrolled<Packed>, probe: Probe, now: Moment, after: u64) -> (Arrival, u64) {
        for distance in 0..PROBES {
            let group = self.group(probe, distance);
            let now = group.keep_up(&self.rules, rule, now);
            let granted = rule.rule.0.granted(now);
            for index in 0..SLOTS {
                let slot = group.slot(index);
                if self.ahead(rule, slot, now, granted) > 0 {
                    continue;
                }
                let due = granted + after;
                let new = Slot::new(identity(probe.tag, distance), rule.stamp(), due);
                if self.publish(rule, &Spot { group, index, slot, now }, new, after) {
                    return (Arrival::Settled(due), distance);
                }
            }
        }
        (Arrival::Full, 0)
    }

    #[inline]
    fn find(&self, rule: &Enrolled<Packed>, probe: Probe, now: Moment) -> Option<Spot<'_>> {
        let group = &self.groups[probe.home];
        let here = group.keep_up(&self.rules, rule, now);
        if let Some((index, slot)) = group.find(identity(probe.tag, 0)) {
            return Some(Spot { group, index, slot, now: here });
        }
        (1..=group.header().reach()).find_map(|distance| {
            let group = self.group(probe, distance);
            let now = group.keep_up(&self.rules, rule, now);
            let (index, slot) = group.find(identity(probe.tag, distance))?;
            Some(Spot { group, index, slot, now })
        })
    }

    fn shared_spot(&self, rule: &Enrolled<Packed>, now: Moment) -> Spot<'_> {
        let (group, index) = (&self.overflow, 0);
        let now = group.keep_up(&self.rules, rule, now);
        Spot { group, index, slot: group.slot(index), now }
    }

    /// How far ahead a slot is under `rule`, whichever rule wrote it.
    #[inline]
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

    /// Swaps a slot, unless another thread changed it first.
    ///
    /// A thread that was put aside for seconds between reading the header and swapping may write a due
    /// time that the group's present era cannot read; it then dates its own word anew.
    #[inline]
    fn publish(&self, rule: &Enrolled<Packed>, spot: &Spot<'_>, new: Slot, after: u64) -> bool {
        if !spot.group.swap(spot.index, spot.slot, new) {
            return false;
        }
        let (mine, seen) = (Era::of(spot.now), spot.group.header().era());
        if seen != mine && seen != mine.next() {
            let due = rule.rule.0.granted(seen.start()) + after;
            spot.group.swap(spot.index, new, new.with_due(rule.stamp(), due));
        }
        true
    }

    #[inline]
    fn probe(&self, key: Key) -> Probe {
        Probe { home: key.place(self.groups.len()), tag: key.tag() }
    }

    fn group(&self, probe: Probe, distance: u64) -> &Group {
        &self.groups[(probe.home + self.away(probe.tag, distance)) % self.groups.len()]
    }

    /// How far from home a key's next groups lie: a stride of the key's own, so that neighbours at home
    /// part ways.
    #[expect(clippy::cast_possible_truncation, reason = "distances are below eight")]
    fn away(&self, tag: u32, distance: u64) -> usize {
        let stride = 1 + tag as usize % self.groups.len();
        distance as usize * stride % self.groups.len()
    }

    /// The home of the key in a slot: the way from home walked backwards.
    fn home_of(&self, place: usize, slot: Slot) -> usize {
        let count = self.groups.len();
        (place + count - self.away(slot.tag(), slot.distance())) % count
    }
}

const fn fingerprint(home: usize, tag: u32) -> u64 {
    ((home as u64) << 25) | tag as u64
}
