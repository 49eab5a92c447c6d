//! Slots, lists and the order of leaving, in memory that is taken once.
//!
//! Every entry sits in a slot. Slots are linked into lists by index, oldest to newest, and stand in one
//! heap by the moment at which they must start; so the next to be served, the newest, and the next to
//! become hopeless are all at hand, and any slot can be taken out of the middle.

use super::{Entry, Handle};
use crate::units::Moment;

/// No slot: the end of a list.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Store<T> {
    slots: Vec<Slot<T>>,
    lists: Box<[List]>,
    /// Slots by the moment they must start, the earliest at the top: the children of `i` are `2i + 1` and
    /// `2i + 2`.
    heap: Vec<u32>,
    /// The first of the vacant slots, which are linked by `newer`.
    vacant: u32,
}

#[derive(Debug)]
struct Slot<T> {
    entry: Option<Entry<T>>,
    enqueued: Moment,
    start_by: Moment,
    older: u32,
    newer: u32,
    list: u32,
    heap_position: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    oldest: u32,
    newest: u32,
    length: usize,
}

impl<T> Store<T> {
    /// Room for `capacity` entries in `lists` lists.
    pub(super) fn new(capacity: usize, lists: usize) -> Self {
        let empty = List { oldest: NONE, newest: NONE, length: 0 };
        Self {
            slots: Vec::with_capacity(capacity),
            lists: vec![empty; lists].into_boxed_slice(),
            heap: Vec::with_capacity(capacity),
            vacant: NONE,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.heap.len()
    }

    /// Makes the entry the newest of its list. The caller has seen to it that there is room.
    pub(super) fn insert(
        &mut self,
        list: usize,
        entry: Entry<T>,
        enqueued: Moment,
        start_by: Moment,
    ) -> Handle {
        let number = self.vacate(enqueued);
        let older = self.lists[list].newest;
        let heap_position = narrow(self.heap.len());
        let slot = &mut self.slots[number as usize];
        *slot = Slot {
            entry: Some(entry),
            enqueued,
            start_by,
            older,
            newer: NONE,
            list: narrow(list),
            heap_position,
            generation: slot.generation,
        };
        let handle = Handle { slot: number, generation: slot.generation };
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = number,
            None => self.lists[list].oldest = number,
        }
        self.lists[list].newest = number;
        self.lists[list].length += 1;
        self.heap.push(number);
        self.rise(self.heap.len() - 1);
        handle
    }

    /// Takes an entry out, wherever it stands.
    pub(super) fn remove(&mut self, number: u32) -> Entry<T> {
        let slot = &mut self.slots[number as usize];
        let entry = slot.entry.take().expect("only slots that are taken are in lists or handed out");
        let (older, newer, list, position) = (slot.older, slot.newer, slot.list, slot.heap_position);
        slot.generation = slot.generation.wrapping_add(1);
        slot.newer = self.vacant;
        self.vacant = number;
        let list = list as usize;
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.lists[list].oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.lists[list].newest = older,
        }
        self.lists[list].length -= 1;
        self.leave_heap(position as usize);
        entry
    }

    pub(super) fn is_current(&self, handle: Handle) -> bool {
        let slot = self.slots.get(handle.slot as usize);
        slot.is_some_and(|slot| slot.generation == handle.generation && slot.entry.is_some())
    }

    pub(super) fn oldest(&self, list: usize) -> Option<u32> {
        some(self.lists[list].oldest)
    }

    pub(super) fn newest(&self, list: usize) -> Option<u32> {
        some(self.lists[list].newest)
    }

    pub(super) const fn length(&self, list: usize) -> usize {
        self.lists[list].length
    }

    pub(super) fn list(&self, slot: u32) -> usize {
        self.slots[slot as usize].list as usize
    }

    pub(super) fn enqueued(&self, slot: u32) -> Moment {
        self.slots[slot as usize].enqueued
    }

    pub(super) fn deadline(&self, slot: u32) -> Option<Moment> {
        self.slots[slot as usize].entry.as_ref().and_then(|entry| entry.deadline)
    }

    /// Who must start first, and by when.
    pub(super) fn first_to_expire(&self) -> Option<(u32, Moment)> {
        self.heap.first().map(|slot| (*slot, self.slots[*slot as usize].start_by))
    }

    /// A slot that is vacant, a new one if there is none.
    fn vacate(&mut self, now: Moment) -> u32 {
        if let Some(number) = some(self.vacant) {
            self.vacant = self.slots[number as usize].newer;
            return number;
        }
        debug_assert!(self.slots.len() < self.slots.capacity(), "the queue has checked its bounds");
        self.slots.push(Slot {
            entry: None,
            enqueued: now,
            start_by: now,
            older: NONE,
            newer: NONE,
            list: 0,
            heap_position: 0,
            generation: 0,
        });
        narrow(self.slots.len() - 1)
    }

    fn start_by(&self, position: usize) -> Moment {
        self.slots[self.heap[position] as usize].start_by
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for position in [one, other] {
            self.slots[self.heap[position] as usize].heap_position = narrow(position);
        }
    }

    fn leave_heap(&mut self, position: usize) {
        let last = self.heap.len() - 1;
        self.swap(position, last);
        self.heap.pop();
        if position < last {
            self.sink(position);
            self.rise(position);
        }
    }

    fn rise(&mut self, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.start_by(parent) <= self.start_by(position) {
                return;
            }
            self.swap(parent, position);
            position = parent;
        }
    }

    fn sink(&mut self, mut position: usize) {
        loop {
            let children = 2 * position + 1..self.heap.len().min(2 * position + 3);
            let Some(earlier) = children.min_by_key(|child| self.start_by(*child)) else { return };
            if self.start_by(position) <= self.start_by(earlier) {
                return;
            }
            self.swap(position, earlier);
            position = earlier;
        }
    }
}

fn some(slot: u32) -> Option<u32> {
    (slot != NONE).then_some(slot)
}

/// Slots are at most a million, lists at most 256.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_to_expire_is_known_whoever_is_taken_out(
            entries in prop::collection::vec(0..1_000_u64, 1..64),
            order in prop::collection::vec(any::<prop::sample::Index>(), 64),
        ) {
            let mut store = Store::new(64, 1);
            let mut known = BTreeSet::new();
            for start_by in entries {
                let moment = Moment::from_nanos(start_by);
                known.insert((moment, store.insert(0, Entry::new(()), moment, moment).slot));
            }
            for index in order {
                let first = known.first().map(|(moment, _)| *moment);
                prop_assert_eq!(store.first_to_expire().map(|(_, moment)| moment), first);
                if known.is_empty() {
                    break;
                }
                let taken = known.iter().nth(index.index(known.len())).copied().unwrap();
                known.remove(&taken);
                store.remove(taken.1);
            }
        }
    }
}
