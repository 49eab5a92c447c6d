//! How many are in flight, for each of many keys.
//!
//! "At most 20 requests of one caller at once" needs a count for each caller that has any. Most callers have
//! none at most times, so a map of all of them is mostly zeros, and strangers can make it grow. So the table
//! is allocated once, and a slot belongs to its key only while its count is above zero.
//!
//! A slot is one word: 40 bits of the key's hash, the *tag*, and 24 bits of count. Entering and leaving are one
//! atomic step each on that word. A slot at zero keeps its tag, so that a caller who comes back finds it; and
//! anybody else may take it over, in one step too, so one of the two wins and the other looks again.
//!
//! A limit of 2, in a table with a single slot left:
//!
//! | what happens   | slot before | slot after | answer                     |
//! |----------------|-------------|------------|----------------------------|
//! | ann enters     | vacant      | ann 1      | a place                    |
//! | ann enters     | ann 1       | ann 2      | a place                    |
//! | ann enters     | ann 2       | ann 2      | refused                    |
//! | bob enters     | ann 2       | ann 2      | a place of the overflow, 1 of 2 |
//! | ann leaves twice | ann 2     | ann 0      |                            |
//! | cid enters     | ann 0       | cid 1      | a place                    |
//!
//! Two threads must not bring the same key into two slots, or it would have twice its limit. So newcomers take
//! turns, by stripes of their hashes; who finds its slot does not.
//!
//! Limits of the method: 16 million in flight a key. Two keys of one neighbourhood whose 40 bits agree share a
//! count, which errs on the strict side. When all 64 slots that a newcomer may take are in use, it shares the
//! overflow count with all such newcomers, under the limit of a single key.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use prefetch_index::prefetch_index;

use super::key::{Hashing, Key, MaxKeys};
use crate::permit::{Ended, Permit, Places};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::units::Moment;
use crate::verdict::{Reason, Retry, Verdict};

/// Slots of a group: a cache line; loom, which tries every order of every access, is spared all but two.
const GROUP: usize = if cfg!(loom) { 2 } else { 8 };
/// Groups in which a key may have its slot.
const PROBES: usize = 8;
/// Turns that newcomers take.
const STRIPES: usize = if cfg!(loom) { 1 } else { 64 };

const COUNT_BITS: u32 = 24;
const COUNT: u64 = MOST as u64;
/// The most that a slot can count.
const MOST: u32 = (1 << COUNT_BITS) - 1;

/// A bounded table of counts in flight, one for each key.
///
/// ```
/// use tidegate_core::Moment;
/// use tidegate_core::keyed::{InFlightTable, MaxKeys};
/// use tidegate_core::permit::Outcome;
///
/// let table = InFlightTable::new(MaxKeys::new(1_000)?, 0x5eed);
/// let (alice, bob, now) = (table.key("alice"), table.key("bob"), Moment::ORIGIN);
///
/// let permit = InFlightTable::admit(&table, alice, 1, now).admitted().expect("she has none yet");
/// assert!(!InFlightTable::admit(&table, alice, 1, now).is_admit());
/// assert!(InFlightTable::admit(&table, bob, 1, now).is_admit());
/// permit.complete(now, Outcome::Ok);
/// assert_eq!(table.in_flight(alice), 0);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
pub struct InFlightTable {
    hashing: Hashing,
    groups: Box<[Group]>,
    turns: [Mutex<()>; STRIPES],
    /// The count that newcomers of a full table share.
    overflow: AtomicU64,
    overflowed: AtomicU64,
}

#[repr(align(64))]
struct Group([AtomicU64; GROUP]);

/// One place that was taken. Whoever has it must give it back to the table it is from.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a place that is forgotten stays taken"]
pub struct Place(u64);

impl Place {
    const OVERFLOW: Self = Self(u64::MAX);

    /// Whether it is one of those that the newcomers of a full table share.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        *self == Self::OVERFLOW
    }
}

/// A place that could be taken: a slot as it was found.
#[derive(Clone, Copy, Debug)]
pub struct ForeseenPlace<'a> {
    slot: u64,
    word: &'a AtomicU64,
    found: u64,
}

impl ForeseenPlace<'_> {
    /// Takes it; nothing when another thread changed the slot first.
    #[inline]
    #[must_use]
    pub fn take(self) -> Option<Place> {
        // Relaxed: the count guards itself and publishes nothing else.
        let taken =
            self.word.compare_exchange(self.found, self.found + 1, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok().then_some(Place(self.slot))
    }

    #[inline]
    const fn count(&self) -> u32 {
        (self.found & COUNT) as u32
    }
}

impl InFlightTable {
    /// A table for `max_keys`, hashing with a seed that strangers do not know.
    #[must_use]
    pub fn new(max_keys: MaxKeys, seed: u64) -> Self {
        let group = |_| Group([(); GROUP].map(|()| AtomicU64::new(0)));
        Self {
            hashing: Hashing::new(seed),
            groups: (0..max_keys.groups(GROUP)).map(group).collect(),
            turns: [(); STRIPES].map(|()| Mutex::new(())),
            overflow: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
        }
    }

    /// The key of a caller, a route, or both: anything that can be hashed, without building a string.
    #[inline]
    pub fn key(&self, name: &(impl std::hash::Hash + ?Sized)) -> Key {
        self.hashing.key(name)
    }

    /// A permit for one more of `key`, if it has fewer than `limit`. It comes back when it is completed or
    /// dropped.
    pub fn admit<H>(table: H, key: Key, limit: u32, now: Moment) -> Verdict<Permit<H>>
    where
        H: Deref<Target = Self>,
    {
        let taken = table.take(key, limit);
        taken.map(|Place(note)| Permit::noted(table, now, note))
    }

    /// Takes a place for `key`, if it has fewer than `limit`. Nobody knows when one will be free, so a refusal
    /// names no time to wait; a limit of zero refuses for ever.
    #[inline]
    pub fn take(&self, key: Key, limit: u32) -> Verdict<Place> {
        match self.find(key).and_then(|seen| enter(seen, key, limit)) {
            Some(verdict) => verdict,
            None => self.arrive(key, limit),
        }
    }

    /// What [`take`](Self::take) would answer, for a key that has a slot or could have one.
    #[inline]
    pub fn peek(&self, key: Key, limit: u32) -> Verdict<()> {
        if self.in_flight(key) < limit { Verdict::Admit(()) } else { full(limit) }
    }

    /// What [`take`](Self::take) would answer, with what it takes to do it; see
    /// [`DueTable::foresee`](super::DueTable::foresee). Nothing for a key that has no slot.
    #[inline]
    pub fn foresee(&self, key: Key, limit: u32) -> Option<Verdict<ForeseenPlace<'_>>> {
        let seen = self.find(key)?;
        Some(if seen.count() < limit.min(MOST) { Verdict::Admit(seen) } else { full(limit) })
    }

    /// Has the processor fetch the key's count into its cache; see [`Table::touch`](super::Table::touch).
    #[inline]
    pub fn touch(&self, key: Key) {
        prefetch_index(&self.groups, key.place(self.groups.len()));
    }

    /// Gives a place back.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "a place is given back once")]
    pub fn give_back(&self, place: Place) {
        let count = if place.is_overflow() { Some(&self.overflow) } else { self.word(place.0) };
        if let Some(count) = count {
            // Relaxed: the count guards itself and publishes nothing else. It is above zero, since the place
            // is in it, and until now nobody else could take the slot over.
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How many places `key` has.
    #[inline]
    pub fn in_flight(&self, key: Key) -> u32 {
        self.find(key).map_or(0, |seen| seen.count())
    }

    /// How many keys have any. Walks the table beside live traffic.
    pub fn active(&self) -> usize {
        self.groups.iter().flat_map(|group| &group.0).filter(|word| load(word) & COUNT > 0).count()
    }

    /// How many places are taken in all. Walks the table beside live traffic.
    pub fn total(&self) -> u64 {
        let own: u64 = self.groups.iter().flat_map(|group| &group.0).map(|word| load(word) & COUNT).sum();
        own + load(&self.overflow)
    }

    /// How often a newcomer found no room and was decided by the shared count.
    pub fn overflowed(&self) -> u64 {
        load(&self.overflowed)
    }

    /// The bytes the table occupies, allocated once.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.groups)
    }

    /// The slots a key may have, its home's first.
    fn slots(&self, key: Key) -> impl Iterator<Item = u64> {
        let groups = self.groups.len();
        let (home, stride) = (key.place(groups), Key::stride(key.tag(), groups));
        (0..PROBES * GROUP)
            .map(move |place| ((home + place / GROUP * stride) % groups * GROUP + place % GROUP) as u64)
    }

    #[inline]
    fn word(&self, slot: u64) -> Option<&AtomicU64> {
        let slot = usize::try_from(slot).ok()?;
        self.groups.get(slot / GROUP)?.0.get(slot % GROUP)
    }

    /// The slot with the key's tag.
    #[inline]
    fn find(&self, key: Key) -> Option<ForeseenPlace<'_>> {
        let (home, own) = (key.place(self.groups.len()), tag(key));
        for (index, word) in self.groups[home].0.iter().enumerate() {
            // Relaxed: what is read here is a hint; who takes a place swaps what was found.
            let found = load(word);
            if found >> COUNT_BITS == own {
                return Some(ForeseenPlace { slot: (home * GROUP + index) as u64, word, found });
            }
            if found == 0 {
                return None;
            }
        }
        self.find_away(key)
    }

    #[inline(never)]
    fn find_away(&self, key: Key) -> Option<ForeseenPlace<'_>> {
        for slot in self.slots(key).skip(GROUP) {
            let word = self.word(slot)?;
            match load(word) {
                // A slot never becomes vacant again, and newcomers take the first vacant one before they go on to
                // another group: so the key is nowhere behind a vacancy.
                0 => return None,
                found if found >> COUNT_BITS == tag(key) => return Some(ForeseenPlace { slot, word, found }),
                _ => {}
            }
        }
        None
    }

    /// Brings a newcomer in, in its turn.
    #[inline(never)]
    fn arrive(&self, key: Key, limit: u32) -> Verdict<Place> {
        if limit == 0 {
            return full(limit);
        }
        let _turn = lock(&self.turns[key.place(STRIPES)]);
        while let Some(seen) = self.find(key) {
            if let Some(verdict) = enter(seen, key, limit) {
                return verdict;
            }
        }
        let groups = self.groups.len();
        let (home, stride) = (key.place(groups), Key::stride(key.tag(), groups));
        let settled = (0..PROBES).find_map(|probe| self.settle_in((home + probe * stride) % groups, key));
        settled.map_or_else(|| self.share(limit), Verdict::Admit)
    }

    /// Gives a newcomer a slot of this group: a vacant one, else one at zero, beginning at a place of its own, so
    /// that not all newcomers turn out the same neighbour.
    fn settle_in(&self, group: usize, key: Key) -> Option<Place> {
        let slots = &self.groups[group].0;
        let own = tag(key) << COUNT_BITS | 1;
        let claim = |index: usize, is_free: fn(u64) -> bool| {
            let found = load(&slots[index]);
            let swap = || slots[index].compare_exchange(found, own, Ordering::Relaxed, Ordering::Relaxed);
            (is_free(found) && swap().is_ok()).then_some(Place((group * GROUP + index) as u64))
        };
        let start = key.tag() as usize % GROUP;
        (0..GROUP)
            .find_map(|index| claim(index, |found| found == 0))
            .or_else(|| (0..GROUP).find_map(|step| claim((start + step) % GROUP, |found| found & COUNT == 0)))
    }

    /// Takes a place of those that the newcomers of a full table share.
    fn share(&self, limit: u32) -> Verdict<Place> {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        let free = |count| (count < u64::from(limit)).then_some(count + 1);
        match self.overflow.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free) {
            Ok(_) => Verdict::Admit(Place::OVERFLOW),
            Err(_) => Verdict::refuse(Reason::OverflowSpent, Retry::After(Duration::ZERO)),
        }
    }
}

impl Places for InFlightTable {
    fn give_back(&self, ended: Ended) {
        Self::give_back(self, Place(ended.note));
    }
}

impl fmt::Debug for InFlightTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightTable").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

/// What a slot keeps of its key: the lower 40 bits of its hash, the first of them always set, so that no slot in
/// use looks vacant.
#[inline]
const fn tag(key: Key) -> u64 {
    (key.0 | 1 << 39) & ((1 << 40) - 1)
}

/// Takes a place in a slot; nothing when the slot has passed to another key.
#[inline]
fn enter(mut seen: ForeseenPlace<'_>, key: Key, limit: u32) -> Option<Verdict<Place>> {
    loop {
        if seen.found >> COUNT_BITS != tag(key) {
            return None;
        }
        if seen.count() >= limit.min(MOST) {
            return Some(full(limit));
        }
        if let Some(place) = seen.take() {
            return Some(Verdict::Admit(place));
        }
        seen.found = load(seen.word);
    }
}

#[inline]
fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// The refusal where as many as `limit` are in flight: under a limit of zero no wait helps.
#[inline]
fn full<T>(limit: u32) -> Verdict<T> {
    let retry = if limit == 0 { Retry::Never } else { Retry::After(Duration::ZERO) };
    Verdict::refuse(Reason::LimitReached, retry)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::permit::Outcome;
    use crate::verdict::Refusal;

    fn table(keys: usize) -> InFlightTable {
        InFlightTable::new(MaxKeys::new(keys).unwrap(), 7)
    }

    #[test]
    fn a_key_has_its_limit_and_places_come_back() {
        let (table, now) = (Arc::new(table(100)), Moment::ORIGIN);
        let (ann, bob) = (table.key("ann"), table.key("bob"));
        let admit = |key| InFlightTable::admit(Arc::clone(&table), key, 2, now);
        let first = admit(ann).admitted().unwrap();
        let second = admit(ann).admitted().unwrap();
        let refusal = admit(ann).refusal().unwrap();
        assert_eq!((refusal.reason, refusal.retry), (Reason::LimitReached, Retry::After(Duration::ZERO)));
        assert!(table.peek(ann, 3).is_admit() && !table.peek(ann, 2).is_admit());
        let other = admit(bob).admitted().unwrap();
        assert_eq!((table.in_flight(ann), table.in_flight(bob), table.active()), (2, 1, 2));
        first.complete(now, Outcome::Ok);
        assert_eq!(table.in_flight(ann), 1);
        drop((second, other));
        assert_eq!((table.active(), table.total()), (0, 0));
    }

    #[test]
    fn the_worked_example_comes_out_as_written() {
        let table = table(1);
        let slots = table.groups.len() * GROUP;
        let others: Vec<_> =
            (1..slots).map(|name| table.take(table.key(&name), 1).admitted().unwrap()).collect();
        let [ann, bob, cid] = ["ann", "bob", "cid"].map(|name| table.key(name));
        let places = [table.take(ann, 2), table.take(ann, 2)].map(|taken| taken.admitted().unwrap());
        assert_eq!(table.take(ann, 2).refusal().unwrap().reason, Reason::LimitReached);
        let shared = table.take(bob, 2).admitted().unwrap();
        assert!(shared.is_overflow() && places.iter().all(|place| !place.is_overflow()));
        assert_eq!((load(&table.overflow), table.in_flight(ann), table.in_flight(bob)), (1, 2, 0));
        places.into_iter().for_each(|place| table.give_back(place));
        assert_eq!(table.in_flight(ann), 0);
        let taken_over = table.take(cid, 2).admitted().unwrap();
        assert!(!taken_over.is_overflow() && table.find(ann).is_none());
        assert_eq!((table.in_flight(cid), table.active()), (1, slots));
        others.into_iter().chain([shared, taken_over]).for_each(|place| table.give_back(place));
        assert_eq!(table.total(), 0);
    }

    #[test]
    fn a_full_table_shares_the_limit_of_one_key_among_newcomers() {
        let table = table(1);
        let slots = table.groups.len() * GROUP;
        let held: Vec<_> = (0..slots).map(|key| table.take(table.key(&key), 2).admitted().unwrap()).collect();
        assert_eq!(table.overflowed(), 0);
        let late = ["x", "y", "z"].map(|name| table.take(table.key(name), 2));
        assert!(late[0].is_admit() && late[1].is_admit());
        let [x, y, z] = late;
        assert_eq!(z.refusal().unwrap().reason, Reason::OverflowSpent);
        assert_eq!((table.overflowed(), table.total()), (3, slots as u64 + 2));
        for place in held.into_iter().chain([x, y].into_iter().filter_map(Verdict::admitted)) {
            table.give_back(place);
        }
        assert_eq!(table.total(), 0);
        let place = table.take(table.key("x"), 2).admitted().unwrap();
        assert!(!place.is_overflow());
        table.give_back(place);
    }

    #[test]
    fn a_slot_at_zero_passes_to_a_newcomer_and_one_above_zero_never_does() {
        let table = table(4);
        let ann = table.take(table.key("ann"), 9).admitted().unwrap();
        for stranger in 0..10_000 {
            let place = table.take(table.key(&stranger), 9).admitted().unwrap();
            assert!(!place.is_overflow());
            table.give_back(place);
        }
        assert_eq!(table.in_flight(table.key("ann")), 1);
        table.give_back(ann);
        assert_eq!(table.total(), 0);
    }

    #[test]
    fn a_limit_of_zero_refuses_for_ever() {
        let table = table(4);
        let [ann, bob] = ["ann", "bob"].map(|name| table.key(name));
        let place = table.take(ann, 1).admitted().unwrap();
        let is_never = |refusal: Option<Refusal>| {
            assert_eq!(refusal, Some(Refusal { reason: Reason::LimitReached, retry: Retry::Never }));
        };
        for key in [ann, bob] {
            is_never(table.take(key, 0).refusal());
            is_never(table.peek(key, 0).refusal());
            is_never(InFlightTable::admit(&table, key, 0, Moment::ORIGIN).refusal());
        }
        is_never(table.foresee(ann, 0).unwrap().refusal());
        assert!(table.foresee(bob, 0).is_none());
        table.give_back(place);
        assert_eq!((table.total(), table.overflowed()), (0, 0));
    }

    #[test]
    fn threads_never_exceed_the_limit_and_leave_nothing_behind() {
        let (table, highest) = (table(8), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (table, highest) = (&table, &highest);
                scope.spawn(move || {
                    for round in 0..20_000_u64 {
                        let key = table.key(&((round * (thread + 1)) % 24));
                        if let Some(place) = table.take(key, 2).admitted() {
                            if !place.is_overflow() {
                                highest.fetch_max(u64::from(table.in_flight(key)), Ordering::Relaxed);
                            }
                            table.give_back(place);
                        }
                    }
                });
            }
        });
        assert!((1..=2).contains(&load(&highest)));
        assert_eq!(table.total(), 0);
    }
}
