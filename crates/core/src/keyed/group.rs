//! Seven slots and a header in one cache line, and how they keep up with time.
//!
//! A slot has 32 bits for its due time, and a quota's clock passes that many grains in seconds. The bits
//! can be read as long as the true due time is known to within half their range, so every slot must be
//! looked at now and then. The header holds the **era** (2^30 ns) in which that was last done, and whoever
//! finds an older one **tidies** the group first: a slot whose due time has passed becomes due now,
//! which says the same and can be read for two seconds more. Nobody waits for a tidying thread:
//!
//! - A slot it finds idle is swapped; whoever charges that slot at the same time makes the swap fail.
//! - A slot it finds ahead is left alone, and whatever others do to it moves it on.
//!
//! When the clock was set back by more than an era, the group is **moved** to the earlier time: a key that
//! was ahead stays ahead by as much, at most by its rule's extent, so that it neither gets a new burst nor
//! waits until the old time returns. Only then does a decision wait, for the few nanoseconds it takes.

use super::word::{Era, Header, IDENTITY, Slot};
use crate::rate::Schedule;
use crate::shell::{Enrolled, Packed, Roster};
use crate::sync::{AtomicU64, Ordering, spin_loop, yield_now};
use crate::units::Moment;

/// Slots of a group. With the header they fill a cache line of 64 bytes; loom, which tries every order of
/// every access, is spared all but two.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 7 };

/// One cache line of the table.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Group {
    header: AtomicU64,
    slots: [AtomicU64; SLOTS],
}

impl Group {
    pub(crate) fn vacant() -> Self {
        Self { header: AtomicU64::new(0), slots: [(); SLOTS].map(|()| AtomicU64::new(0)) }
    }

    /// Acquire pairs with the release of whoever tidied or moved: with the era come its slots.
    #[inline]
    pub(crate) fn header(&self) -> Header {
        Header(self.header.load(Ordering::Acquire))
    }

    /// Slots are whole in themselves, so relaxed ordering is enough for them.
    #[inline]
    pub(crate) fn slot(&self, index: usize) -> Slot {
        Slot(self.slots[index].load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn swap(&self, index: usize, old: Slot, new: Slot) -> bool {
        self.slots[index].compare_exchange(old.0, new.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The slot of this identity.
    #[inline]
    pub(crate) fn find(&self, identity: u64) -> Option<(usize, Slot)> {
        for index in 0..SLOTS {
            let slot = self.slot(index);
            if slot.0 & IDENTITY == identity {
                return Some((index, slot));
            }
        }
        None
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

    /// Brings the group to the era of `now` and returns the moment to decide with: `now`, or the start of
    /// the era that somebody else has already seen.
    #[inline]
    pub(crate) fn keep_up(&self, rules: &Roster<Packed>, rule: &Enrolled<Packed>, now: Moment) -> Moment {
        let header = self.header();
        if header.era() == Era::of(now) && !header.is_moving() {
            return now;
        }
        self.catch_up(&Rules { rules, rule }, now)
    }

    #[cold]
    fn catch_up(&self, rules: &Rules<'_>, now: Moment) -> Moment {
        let mut tries = 0;
        let era = Era::of(now);
        loop {
            let header = self.header();
            if header.is_moving() {
                pause(&mut tries);
            } else if header.era() == era {
                return now;
            } else if header.era() == era.next() {
                return header.era().start();
            } else if header.era() > era {
                self.move_back(rules, header, now);
            } else {
                self.tidy(rules, header, now);
            }
        }
    }

    /// Rewrites idle slots as due now, then the era.
    fn tidy(&self, rules: &Rules<'_>, header: Header, now: Moment) {
        self.rewrite(|slot| {
            let schedule = rules.writer(slot);
            let due = slot.due_since(schedule.granted(header.era().start()));
            let granted = schedule.granted(now);
            if due > granted { slot } else { slot.with_due(slot.stamp(), granted) }
        });
        // A failure means that somebody else changed the header; the caller looks again.
        self.swap_header(header, header.with_era(Era::of(now)));
    }

    /// Rewrites all slots for a time before the header's era.
    fn move_back(&self, rules: &Rules<'_>, header: Header, now: Moment) {
        if !self.swap_header(header, header.moving()) {
            return;
        }
        self.rewrite(|slot| {
            let schedule = rules.writer(slot);
            let base = schedule.granted(header.era().start());
            let ahead = slot.due_since(base).saturating_sub(base).min(schedule.extent());
            slot.with_due(slot.stamp(), schedule.granted(now) + ahead)
        });
        loop {
            let header = self.header();
            if self.swap_header(header, header.settled().with_era(Era::of(now))) {
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

/// The rules a slot may have been written under: the caller's own at hand, the others looked up.
struct Rules<'a> {
    rules: &'a Roster<Packed>,
    rule: &'a Enrolled<Packed>,
}

impl Rules<'_> {
    fn writer(&self, slot: Slot) -> Schedule {
        let own = self.rule.rule.0;
        if slot.stamp() == self.rule.stamp() {
            return own;
        }
        self.rules.stamped(slot.stamp()).map_or(own, |packed| packed.0)
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
