//! Counters of any algorithm, each behind a mutex of its own.
//!
//! A sliding window needs two counts and a window's number, a log its entries: too much for one word. So
//! each counter is a cell with a mutex. The keys stand apart, eight to a cache line, and are searched
//! without a lock; a decision then locks the cell of its own key and looks once more whether it still
//! is. No two keys share a mutex, so threads meet only where they would contend for the same count anyway,
//! and no lock is held for longer than one step of the algorithm. A step may take memory where a state grows
//! with its key's requests ([`Algorithm::most_heap`]); a question about a key that has no cell takes none.
//!
//! | group at home          | a search for 7 | for 9 | for a newcomer |
//! |------------------------|----------------|-------|----------------|
//! | 3 7 5 2 8 1 4 6 (full) | found          | goes on to its next group | goes on |
//! | 9 . . . . . . .        |                | found | stops at the first vacancy: it is nowhere |
//!
//! Keys never leave a slot vacant again: a slot passes from an idle key directly to a newcomer, with what memory the
//! idle key's state had. That is why a search may stop at a vacancy. Newcomers whose hashes fall into the same of 64
//! stripes take turns, so that a key never gets two cells.

use std::time::Duration;

use prefetch_index::prefetch_index;

use super::key::{Key, MaxKeys};
use super::table::{Counter, Counters, Table, shared};
use crate::rate::Algorithm;
use crate::shell::{Enrolled, Lives, Roster, Written};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::units::{Cost, Invalid};
use crate::verdict::{Charge, Usage, Verdict};

/// Keys of a group: a cache line of hashes; loom, which tries every order of every access, is spared all but two.
const GROUP: usize = if cfg!(loom) { 2 } else { 8 };
/// Groups in which a key may have its cell.
const PROBES: usize = 8;
/// Turns that newcomers take. Newcomers are rare beside decisions; 64 turns keep them from queueing.
const STRIPES: usize = if cfg!(loom) { 1 } else { 64 };

/// A bounded table of counters of any algorithm.
///
/// ```
/// use tidegate_core::keyed::{CellTable, MaxKeys};
/// use tidegate_core::rate::FixedWindow;
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let table = CellTable::new(MaxKeys::new(1_000)?, 0x5eed);
/// let rule = table.enrol(FixedWindow::new(Quota::per_minute(Cost::of(2))?)?)?;
/// let (alice, bob, now) = (table.key("alice"), table.key("bob"), Moment::ORIGIN);
///
/// assert!(table.decide(&rule, alice, now, Cost::of(2)).is_admit());
/// assert!(!table.decide(&rule, alice, now, Cost::ONE).is_admit());
/// assert!(table.decide(&rule, bob, now, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
pub type CellTable<A> = Table<Cells<A>>;

impl<A: Algorithm + Clone> CellTable<A> {
    /// A table for `max_keys`, hashing with a seed that strangers do not know.
    #[must_use]
    pub fn new(max_keys: MaxKeys, seed: u64) -> Self {
        Self::over(Cells::new(max_keys), seed)
    }

    /// Makes a rule known, so that it can be decided with.
    ///
    /// # Errors
    /// When 16 rules are enrolled already.
    pub fn enrol(&self, rule: A) -> Result<Enrolled<A>, Invalid> {
        let heap = rule.most_heap() as u64;
        let enrolled = self.counters.rules.enrol(rule)?;
        self.counters.heap_each.fetch_max(heap, Ordering::Relaxed);
        if enrolled.serial > 0 {
            // It may have other windows than the first.
            self.counters.before_each.store(Written::<A>::MOST_BEFORE as u64, Ordering::Relaxed);
        }
        Ok(enrolled)
    }

    /// The most bytes that a table for `max_keys` takes from the heap while keys come and go, beside those it takes
    /// when it is made: what its states may grow by under `rule`.
    pub fn most_heap(rule: &A, max_keys: MaxKeys) -> usize {
        rule.most_heap().saturating_mul(max_keys.groups(GROUP) * GROUP + 1)
    }
}

/// The counters of a [`CellTable`].
#[derive(Debug)]
pub struct Cells<A: Algorithm> {
    rules: Roster<A>,
    lives: Lives,
    /// The most memory that a cell may take from the heap, under any rule enrolled so far.
    heap_each: AtomicU64,
    /// What a cell may take besides once rules have changed.
    before_each: AtomicU64,
    /// The key of each cell, or zero. Written only under the cell's mutex.
    keys: Box<[AtomicU64]>,
    cells: Box<[Cell<A>]>,
    turns: [Mutex<()>; STRIPES],
    /// The counter that newcomers of a full table share.
    overflow: Cell<A>,
    overflowed: AtomicU64,
}

type Cell<A> = Mutex<Option<Written<A>>>;

impl<A: Algorithm + Clone> Counters for Cells<A> {
    type Rule = Enrolled<A>;
    type Time = A::Time;

    fn take(&self, rule: &Enrolled<A>, key: Key, now: A::Time, cost: Cost) -> Verdict<Charge> {
        let decide = |written: &mut Written<A>| written.decide(&rule.rule, now, cost);
        match self.cell_of(rule, key, now) {
            Some(mut cell) => decide(self.written(rule, &mut cell, now)),
            None => {
                self.overflowed.fetch_add(1, Ordering::Relaxed);
                shared(decide(self.written(rule, &mut lock(&self.overflow), now)))
            }
        }
    }

    fn peek(&self, rule: &Enrolled<A>, key: Key, now: A::Time, cost: Cost) -> Verdict<Duration> {
        self.look(rule, key, now, |rule, state| rule.peek(state, now, cost))
    }

    fn touch(&self, key: Key) {
        if let Some(place) = self.places(key).next() {
            prefetch_index(&self.keys, place);
        }
    }

    fn usage(&self, rule: &Enrolled<A>, key: Key, now: A::Time) -> Usage {
        self.look(rule, key, now, |rule, state| rule.usage(state, now))
    }

    fn correct(&self, rule: &Enrolled<A>, key: Key, now: A::Time, charge: &Charge, costs: (Cost, Cost)) {
        let cell = match charge.is_overflow() {
            true => Some(lock(&self.overflow)),
            false => self.find(key),
        };
        // A key that has lost its cell had nothing in it that could be given back. What it owes it owes all the same,
        // where there is no room for it together with all newcomers.
        let owes = || costs.1 > costs.0;
        let cell = cell
            .or_else(|| owes().then(|| self.cell_of(rule, key, now).unwrap_or_else(|| lock(&self.overflow))));
        if let Some(mut cell) = cell {
            self.written(rule, &mut cell, now).correct(&rule.rule, now, charge, costs);
        }
    }

    fn reset(&self, rule: &Enrolled<A>, key: Key, now: A::Time) {
        if let Some(mut cell) = self.find(key) {
            self.renew(rule, &mut cell, now);
        }
    }

    fn retire(&self, rule: Enrolled<A>, heir: &Enrolled<A>, now: A::Time) {
        for cell in self.cells.iter().chain([&self.overflow]) {
            if let Some(written) = lock(cell).as_mut().filter(|written| written.is_by(&rule)) {
                written.under(heir, (&self.rules, &self.lives), now);
            }
        }
        self.rules.retire(rule.serial);
    }

    fn each(&self, now: A::Time, show: &mut dyn FnMut(Counter)) {
        for (key, cell) in self.keys.iter().zip(&self.cells) {
            let active = lock(cell).as_ref().and_then(|written| {
                let rule = written.rule(&self.rules)?;
                (!rule.is_idle(&written.state, now)).then(|| rule.usage(&written.state, now))
            });
            if let Some(usage) = active {
                show(Counter { fingerprint: key.load(Ordering::Relaxed), usage });
            }
        }
    }

    fn fingerprint(&self, key: Key) -> u64 {
        name(key)
    }

    fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> usize {
        let heap = self.heap_each.load(Ordering::Relaxed) + self.before_each.load(Ordering::Relaxed);
        let heap = usize::try_from(heap).unwrap_or(usize::MAX);
        let cells = size_of_val(&*self.keys) + size_of_val(&*self.cells);
        cells.saturating_add(heap.saturating_mul(self.cells.len() + 1))
    }
}

impl<A: Algorithm + Clone> Cells<A> {
    fn new(max_keys: MaxKeys) -> Self {
        let slots = max_keys.groups(GROUP) * GROUP;
        Self {
            rules: Roster::new(),
            lives: Lives::new(),
            heap_each: AtomicU64::new(0),
            before_each: AtomicU64::new(0),
            keys: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            cells: (0..slots).map(|_| Mutex::new(None)).collect(),
            turns: [(); STRIPES].map(|()| Mutex::new(())),
            overflow: Mutex::new(None),
            overflowed: AtomicU64::new(0),
        }
    }

    /// The places where a key may be, its home first.
    fn places(&self, key: Key) -> impl Iterator<Item = usize> {
        let groups = self.keys.len() / GROUP;
        let (home, stride) = (key.place(groups), Key::stride(key.tag(), groups));
        (0..PROBES * GROUP).map(move |place| (home + place / GROUP * stride) % groups * GROUP + place % GROUP)
    }

    /// The key's cell, locked; none when it has none.
    fn find(&self, key: Key) -> Option<MutexGuard<'_, Option<Written<A>>>> {
        for place in self.places(key) {
            // Relaxed: what is read here is only a hint until the mutex is held.
            match self.keys[place].load(Ordering::Relaxed) {
                0 => return None,
                found if found == name(key) => {
                    let cell = lock(&self.cells[place]);
                    if self.keys[place].load(Ordering::Relaxed) == found {
                        return Some(cell);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The key's cell, locked; a new one for a newcomer, none when there is no room.
    fn cell_of(
        &self,
        rule: &Enrolled<A>,
        key: Key,
        now: A::Time,
    ) -> Option<MutexGuard<'_, Option<Written<A>>>> {
        self.find(key).or_else(|| {
            let _turn = lock(&self.turns[key.place(STRIPES)]);
            self.find(key).or_else(|| self.settle_in(rule, key, now))
        })
    }

    /// Gives a newcomer the first cell that is vacant or idle.
    fn settle_in(
        &self,
        rule: &Enrolled<A>,
        key: Key,
        now: A::Time,
    ) -> Option<MutexGuard<'_, Option<Written<A>>>> {
        self.places(key).find_map(|place| {
            let mut cell = lock(&self.cells[place]);
            let is_free = cell.as_ref().is_none_or(|written| {
                written.rule(&self.rules).is_some_and(|rule| rule.is_idle(&written.state, now))
            });
            is_free.then(|| {
                self.keys[place].store(name(key), Ordering::Relaxed);
                self.renew(rule, &mut cell, now);
                cell
            })
        })
    }

    /// Makes what is in a cell a fresh state, in the memory it has.
    fn renew(&self, rule: &Enrolled<A>, cell: &mut Option<Written<A>>, now: A::Time) {
        match cell {
            Some(written) => written.renew(rule, now, &self.lives),
            None => *cell = Some(Written::fresh(rule, now, &self.lives)),
        }
    }

    /// What is in a cell, as `rule` expresses it.
    #[inline]
    fn written<'a>(
        &self,
        rule: &Enrolled<A>,
        cell: &'a mut Option<Written<A>>,
        now: A::Time,
    ) -> &'a mut Written<A> {
        let written = cell.get_or_insert_with(|| Written::fresh(rule, now, &self.lives));
        written.under(rule, (&self.rules, &self.lives), now)
    }

    /// Looks at a key's counter, or at a fresh one that is not kept and has no memory of its own.
    fn look<T>(
        &self,
        rule: &Enrolled<A>,
        key: Key,
        now: A::Time,
        step: impl FnOnce(&A, &mut A::State) -> T,
    ) -> T {
        match self.find(key) {
            Some(mut cell) => step(&rule.rule, &mut self.written(rule, &mut cell, now).state),
            None => step(&rule.rule, &mut rule.rule.fresh(now)),
        }
    }
}

/// The key as a slot keeps it: its whole hash, and never zero.
const fn name(key: Key) -> u64 {
    if key.0 == 0 { 1 } else { key.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::FixedWindow;
    use crate::units::{Moment, Quota};

    #[test]
    fn the_worked_example_is_searched_as_written() {
        // Small hashes are all at home in the first of two groups.
        let table = CellTable::new(MaxKeys::new(10).unwrap(), 1);
        let rule = FixedWindow::new(Quota::per_second(Cost::ONE).unwrap()).unwrap();
        let rule = table.enrol(rule).unwrap();
        for hash in [3, 7, 5, 2, 8, 1, 4, 6, 9] {
            assert!(table.decide(&rule, Key(hash), Moment::ORIGIN, Cost::ONE).is_admit());
        }
        let cells = &table.counters;
        let keys: Vec<_> = cells.keys.iter().map(|key| key.load(Ordering::Relaxed)).collect();
        assert_eq!(keys, [3, 7, 5, 2, 8, 1, 4, 6, 9, 0, 0, 0, 0, 0, 0, 0]);
        let looked_at = |hash| {
            let seen = |place: &usize| keys[*place] != hash && keys[*place] != 0;
            1 + cells.places(Key(hash)).take_while(seen).count()
        };
        assert_eq!([7, 9, 10].map(looked_at), [2, 9, 10]);
        assert_eq!([7, 9, 10].map(|hash| cells.find(Key(hash)).is_some()), [true, true, false]);
    }
}
