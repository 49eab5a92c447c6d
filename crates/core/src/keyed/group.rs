//! Six slots, a header and hints in one cache line, and how they keep up with time.
//!
//! **Hints.** A decision that misses the cache waits for this line, and everything it then does with it
//! delays the next decision's own miss. Comparing six tags takes forty instructions. So the line also holds
//! a word with nine bits of each slot's tag, and one comparison of all of them names the slot to look at. Hints
//! only ever save time: a slot is believed when its own word agrees, and who is misled by a stale hint
//! compares all slots and mends it.
//!
//! **Time.** A slot has 32 bits for its due time, and a quota's clock passes that many grains in seconds or
//! minutes. The bits can be read as long as the true due time is known to within half their range, so every
//! slot must be looked at now and then. The header remembers when that was last done, and whoever finds
//! that long ago **tidies** the group first: a slot whose due time has passed becomes due a while ago, which
//! says the same and can be read anew. Nobody waits for a tidying thread:
//!
//! - A slot it finds idle is swapped; whoever charges that slot at the same time makes the swap fail.
//! - A slot it finds ahead is left alone, and whatever others do to it moves it on.
//!
//! How long a group may wait depends on the finest ticks among the table's rules: 2^30.6 of them. For 10 a
//! second with a burst of 10 a tick is 16 ns, and a group is tidied every 26 s at most; for 100 a minute
//! with a burst of 100, every half hour.
//!
//! **Late threads.** A thread may be put aside between reading its clock and asking. When the moment it was told
//! lies after the last tidying, its slot can be read at that moment: slots are due less than 2^31 grains after the
//! tidying, however late the thread is. What is ahead is then believed, as [`Schedule`] says, and no slot is due
//! earlier for it. When its moment lies before the tidying, it decides with the time of the tidying, which somebody
//! has seen; that is no later than the present, so it grants nothing that is not granted anyway.
//!
//! When the moment lies more than [`SLACK`] before the tidying, the clock was set back, and the group is
//! **moved** to the earlier time: a key that was ahead stays ahead by as much, at most by its rule's extent,
//! so that it neither gets a new burst nor waits until the old time returns. Only then does a decision
//! wait, for the few nanoseconds it takes. Within a group's patience the same is found slot by slot: one that
//! is further ahead than all debts and the slack has its due time written anew.

use super::word::{A_WHILE, Beat, Header, IDENTITY, Slot};
use crate::rate::{SLACK, Schedule};
use crate::shell::{Enrolled, Packed, Roster};
use crate::sync::{AtomicU64, Ordering, spin_loop, yield_now};
use crate::units::Moment;

/// Slots of a group. With header and hints they fill a cache line of 64 bytes; loom, which tries every order
/// of every access, is spared all but two.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 6 };

/// The bits of a hint's lane. The highest of them stays zero, so that lanes can be compared all at once.
/// Six lanes fit a word, and one in 130 lookups is misled by a neighbour's hint.
const LANE_BITS: u32 = 10;
const HINT: u64 = (1 << (LANE_BITS - 1)) - 1;
/// The lowest bit of every lane.
const LOWEST: u64 = 1 | 1 << 10 | 1 << 20 | 1 << 30 | 1 << 40 | 1 << 50;
/// The highest bit of every lane.
const HIGHEST: u64 = LOWEST << (LANE_BITS - 1);

/// One cache line of the table.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Group {
    header: AtomicU64,
    hints: AtomicU64,
    slots: [AtomicU64; SLOTS],
}

impl Group {
    pub(crate) fn vacant() -> Self {
        let slots = [(); SLOTS].map(|()| AtomicU64::new(0));
        Self { header: AtomicU64::new(0), hints: AtomicU64::new(0), slots }
    }

    /// Acquire pairs with the release of whoever tidied or moved: with the header come its slots.
    #[inline]
    pub(crate) fn header(&self) -> Header {
        Header(self.header.load(Ordering::Acquire))
    }

    /// Slots are whole in themselves; acquire keeps a later look at the header behind this one.
    #[inline]
    pub(crate) fn slot(&self, index: usize) -> Slot {
        Slot(self.slots[index].load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn swap(&self, index: usize, old: Slot, new: Slot) -> bool {
        swap(&self.slots[index], old, new)
    }

    /// The slot of this identity, among all of them.
    pub(crate) fn find(&self, identity: u64) -> Option<(usize, Slot)> {
        let slots = (0..SLOTS).map(|index| (index, self.slot(index)));
        slots.into_iter().find(|(_, slot)| slot.0 & IDENTITY == identity)
    }

    /// The slot that the hints name, if it belongs to this author: identity and rule.
    #[inline]
    pub(crate) fn find_hinted(&self, author: u64) -> Option<(&AtomicU64, Slot)> {
        let differing = self.hints.load(Ordering::Relaxed) ^ (hint(author) * LOWEST);
        // Only a lane that does not differ keeps its highest bit when the difference is taken away.
        let equal = (HIGHEST - differing) & HIGHEST;
        let index = (equal.trailing_zeros() / LANE_BITS) as usize;
        let word = self.slots.get(index)?;
        let slot = Slot(word.load(Ordering::Acquire));
        (slot.0 >> 32 == author >> 32).then_some((word, slot))
    }

    /// Leaves a hint to the slot of this identity.
    pub(crate) fn leave_hint(&self, index: usize, identity: u64) {
        let shift = index as u64 * u64::from(LANE_BITS);
        loop {
            let hints = self.hints.load(Ordering::Relaxed);
            let new = hints & !(HINT << shift) | hint(identity) << shift;
            let put = || self.hints.compare_exchange(hints, new, Ordering::Relaxed, Ordering::Relaxed);
            if new == hints || put().is_ok() {
                return;
            }
        }
    }

    fn swap_header(&self, old: Header, new: Header) -> bool {
        self.header.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Waits for its turn to bring a newcomer into this home; no decision on a known key does.
    pub(crate) fn lock(&self) {
        let mut tries = 0;
        loop {
            let header = self.header();
            if !header.is_locked() && self.swap_header(header, Header(header.0 | Header::LOCKED)) {
                return;
            }
            pause(&mut tries);
        }
    }

    /// Ends its turn, having put a newcomer `reach` groups away.
    pub(crate) fn unlock(&self, reach: u64) {
        loop {
            let header = self.header();
            if self.swap_header(header, Header(header.0 & !Header::LOCKED).with_reach(reach)) {
                return;
            }
        }
    }

    /// The header, if the group was tidied within `patience`, so that its slots can be read at `now`.
    #[inline]
    pub(crate) fn tidy_header(&self, now: Moment, patience: u64) -> Option<Header> {
        let header = self.header();
        (Beat::of(now).after(header.tidied()) < patience).then_some(header)
    }

    /// Tidies the group if that was last done more than `patience` ago. Returns the moment to decide with,
    /// `now` or a later one that somebody else has already seen, and the header for which that holds: who
    /// finds another one after reading a slot must start again, for the slot may tell another time.
    pub(crate) fn keep_up(&self, rules: &Rules<'_>, now: Moment) -> (Moment, Header) {
        match self.tidy_header(now, rules.patience) {
            Some(header) => (now, header),
            None => self.catch_up(rules, now),
        }
    }

    #[cold]
    fn catch_up(&self, rules: &Rules<'_>, now: Moment) -> (Moment, Header) {
        let mut tries = 0;
        let beat = Beat::of(now);
        loop {
            let header = self.header();
            let tidied = header.tidied();
            if header.is_moving() {
                pause(&mut tries);
            } else if beat.after(tidied) < rules.patience {
                return (now, header);
            } else if beat > tidied {
                self.tidy(rules, header, now);
            } else if tidied.after(beat) <= LATE {
                return (tidied.start(), header);
            } else {
                self.move_back(rules, header, now);
            }
        }
    }

    /// Rewrites idle slots as due a while ago, so that late threads find them idle too, then the header.
    fn tidy(&self, rules: &Rules<'_>, header: Header, now: Moment) {
        let tidied = header.tidied().start();
        self.rewrite(|slot| {
            rules.with_writer(slot, |schedule| {
                let due = slot.due_since(schedule.granted(tidied));
                let granted = schedule.granted(now);
                if due > granted {
                    slot
                } else {
                    slot.with_due(slot.stamp(), granted.saturating_sub(A_WHILE))
                }
            })
        });
        // A failure means that somebody else changed the header; the caller looks again.
        self.swap_header(header, header.tidied_at(Beat::of(now)));
    }

    /// Rewrites all slots for a time before the header's.
    fn move_back(&self, rules: &Rules<'_>, header: Header, now: Moment) {
        if !self.swap_header(header, header.moving()) {
            return;
        }
        let tidied = header.tidied().start();
        self.rewrite(|slot| {
            rules.with_writer(slot, |schedule| {
                let base = schedule.granted(tidied);
                let ahead = slot.due_since(base).saturating_sub(base).min(schedule.extent());
                slot.with_due(slot.stamp(), schedule.granted(now).wrapping_add(ahead))
            })
        });
        loop {
            let header = self.header();
            if self.swap_header(header, header.tidied_at(Beat::of(now))) {
                return;
            }
        }
    }

    /// Replaces every occupied slot by what `change` makes of it.
    pub(crate) fn rewrite(&self, change: impl Fn(Slot) -> Slot) {
        for index in 0..SLOTS {
            loop {
                let slot = self.slot(index);
                let new = if slot.is_vacant() { slot } else { change(slot) };
                if new == slot || self.swap(index, slot, new) {
                    break;
                }
            }
        }
    }
}

/// Swaps the word of a slot. Release pairs with the acquire of who reads the slot: whoever sees a slot that was moved
/// sees in the header that it was.
#[inline]
pub(crate) fn swap(word: &AtomicU64, old: Slot, new: Slot) -> bool {
    word.compare_exchange(old.0, new.0, Ordering::Release, Ordering::Relaxed).is_ok()
}

/// The last bits of the tag. A slot that was never used has the hint of one tag in five hundred; who has
/// that tag and comes later in its group is always misled.
#[inline]
const fn hint(identity: u64) -> u64 {
    (identity >> 32) & HINT
}

/// Beats by which a thread may come late: it read the clock and was then put aside.
const LATE: u64 = Beat::count(SLACK);

/// The rules a slot may have been written under: the caller's own at hand, the others looked up.
pub(crate) struct Rules<'a> {
    pub(crate) rules: &'a Roster<Packed>,
    pub(crate) rule: &'a Enrolled<Packed>,
    /// Beats for which a group need not be tidied, for the finest rule of all.
    pub(crate) patience: u64,
}

impl Rules<'_> {
    fn with_writer(&self, slot: Slot, change: impl FnOnce(&Schedule) -> Slot) -> Slot {
        let own = &self.rule.rule.0;
        if slot.stamp() == self.rule.stamp() {
            return change(own);
        }
        match self.rules.stamped(slot.stamp()) {
            Some(Packed(writer)) => change(&writer),
            None => change(own),
        }
    }
}

/// Waits a moment for another thread's few instructions; lets it run if it was put aside.
fn pause(tries: &mut u32) {
    *tries += 1;
    if *tries < 32 && cfg!(not(loom)) {
        spin_loop();
    } else {
        yield_now();
    }
}
