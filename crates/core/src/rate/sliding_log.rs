//! The exact count over the last window, from a log.
//!
//! "At most 100 in any minute" taken at its word: keep the moment and cost of everything admitted, and
//! admit a request when what the last minute admitted leaves room for it. Nothing is estimated, and no
//! stretch of one window, wherever it begins, holds more than the amount. 3 a second:
//!
//! | now    | in the log (moment: cost) | counted | a request of 2               |
//! |--------|---------------------------|---------|------------------------------|
//! | 0 ms   | 0 ms: 1                   | 1       |                              |
//! | 400 ms | 0 ms: 1, 400 ms: 1        | 2       | refuse, retry after 600 ms   |
//! | 999 ms | 0 ms: 1, 400 ms: 1        | 2       | refuse, retry after 1 ms     |
//! | 1 s    | 400 ms: 1                 | 1       | admit                        |
//!
//! An entry counts while less than one window has passed since. The price is memory: a place in a ring
//! for each request that still counts. A key that was only asked about has no ring. The first entry makes one
//! of 4 places, and a full one doubles until it has its **capacity**, which for 3 is 3 and for 10 comes as 4, 8,
//! 10. So a key takes memory for what it does and not for what it might do, asks for it once in a
//! doubling, and keeps it: whoever gets its cell next finds it there.
//!
//! By default the capacity is a place for each whole unit of the amount, up to 4096, so the log is exact for
//! requests of one unit or more, and requests of the same moment share a place. When it is full all the same,
//! the two oldest entries become one at the *later* of their moments: what they took stays taken a little longer
//! than it should. The answer errs towards no, and never lets more pass.

use std::time::Duration;

use super::fixed_window::refuse_burst;
use super::window::{Place, duration_of, wide_nanos};
use super::{Algorithm, Marks};
use crate::units::{Cost, Invalid, Moment, Quota, nanos_of};
use crate::verdict::{Charge, Reason, Retry, Usage, Verdict};

/// At most so much in any stretch of one window, exactly.
///
/// ```
/// use tidegate_core::rate::{Algorithm, SlidingLog};
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let rule = SlidingLog::new(Quota::per_minute(Cost::of(2))?)?;
/// let mut state = rule.fresh(Moment::ORIGIN);
/// assert!(rule.decide(&mut state, Moment::ORIGIN, Cost::of(2)).is_admit());
/// assert!(!rule.decide(&mut state, Moment::ORIGIN, Cost::ONE).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    amount: Cost,
    window: Duration,
    capacity: usize,
}

/// 64 KiB a key. A quota that needs more places is so large that merging a pair of them loses less than
/// a 4000th of it.
const DEFAULT_CAPACITY: u64 = 4_096;

/// The places of a ring that was just made: a cache line of them. Most keys never have more requests at once.
const FIRST_PLACES: usize = 4;

/// 1 MiB a key, beyond which the keys and not the quota decide whether the process survives.
const LARGEST_CAPACITY: usize = 65_536;

impl SlidingLog {
    /// The quota's amount in any of its windows, with a place for each whole unit up to 4096.
    ///
    /// # Errors
    /// When the quota names a burst.
    pub fn new(quota: Quota) -> Result<Self, Invalid> {
        refuse_burst(&quota)?;
        let places = quota.amount().whole().clamp(1, DEFAULT_CAPACITY);
        let capacity = usize::try_from(places).unwrap_or(LARGEST_CAPACITY);
        Ok(Self { amount: quota.amount(), window: quota.window(), capacity })
    }

    /// The same with room for `capacity` entries: more where requests cost less than a unit, fewer to
    /// save memory.
    ///
    /// # Errors
    /// When there would be no room, or room for more than 65 536.
    pub fn with_capacity(self, capacity: usize) -> Result<Self, Invalid> {
        if (1..=LARGEST_CAPACITY).contains(&capacity) {
            Ok(Self { capacity, ..self })
        } else {
            Err(Invalid::new("capacity", capacity, "from 1 to 65536"))
        }
    }

    fn place(&self, log: &Log, now: Moment) -> Place {
        Place::of(now.nanos(), log.latest, nanos_of(self.window))
    }

    fn counts(&self, entry: Entry, now: u64) -> bool {
        now.saturating_sub(entry.moment) < nanos_of(self.window)
    }

    /// How many of the oldest entries no longer count, and what the others sum up to.
    fn live(&self, log: &Log, place: Place) -> (usize, u128) {
        match place {
            Place::On(now) | Place::Late(now) => {
                let gone = log.iter().take_while(|entry| !self.counts(*entry, now));
                let (number, sum) =
                    gone.fold((0, 0), |(number, sum), entry| (number + 1, sum + u128::from(entry.cost)));
                (number, log.total - sum)
            }
            Place::SetBack(_) => (0, log.total),
        }
    }

    /// The time from `now` until an entry of `moment` leaves.
    fn until_gone(&self, place: Place, moment: u64, now: Moment) -> Duration {
        // After a clock was set back, everything counts as of now.
        let moment = if matches!(place, Place::SetBack(_)) { now.nanos() } else { moment };
        duration_of((u128::from(moment) + wide_nanos(self.window)).saturating_sub(u128::from(now.nanos())))
    }

    fn advance(&self, log: &mut Log, now: Moment) {
        let place = self.place(log, now);
        if let Place::SetBack(now) = place {
            log.restart(now);
        }
        log.latest = place.number();
        while log.get(0).is_some_and(|oldest| !self.counts(oldest, log.latest)) {
            log.pop_oldest();
        }
    }
}

impl Algorithm for SlidingLog {
    type Time = Moment;
    type State = Log;

    fn fresh(&self, now: Moment) -> Log {
        Log { entries: Box::default(), first: 0, length: 0, total: 0, latest: now.nanos() }
    }

    fn renew(&self, state: &mut Log, now: Moment) {
        if state.entries.len() > self.capacity {
            *state = self.fresh(now);
        } else {
            (state.first, state.length, state.total, state.latest) = (0, 0, 0, now.nanos());
        }
    }

    fn most_heap(&self) -> usize {
        self.capacity * size_of::<Entry>()
    }

    fn peek(&self, state: &Log, now: Moment, cost: Cost) -> Verdict<Duration> {
        if cost > self.amount {
            return Verdict::refuse(Reason::CostAboveBurst, Retry::Never);
        }
        let place = self.place(state, now);
        let room = u128::from(self.amount.minus(cost).micros());
        let (gone, mut counted) = self.live(state, place);
        if counted <= room {
            return Verdict::Admit(Duration::ZERO);
        }
        let last_to_leave = state.iter().skip(gone).find(|entry| {
            counted -= u128::from(entry.cost);
            counted <= room
        });
        let leaves = last_to_leave.map_or(Duration::ZERO, |entry| self.until_gone(place, entry.moment, now));
        Verdict::refuse(Reason::QuotaSpent, Retry::After(leaves))
    }

    fn decide(&self, state: &mut Log, now: Moment, cost: Cost) -> Verdict<Charge> {
        self.advance(state, now);
        self.peek(state, now, cost).map(|_| {
            state.push(cost, self.capacity);
            Charge::new(cost, state.latest)
        })
    }

    /// A smaller cost is given back to the entry it was taken by, as long as that one counts.
    fn correct(&self, state: &mut Log, now: Moment, charge: &Charge, taken: Cost, true_cost: Cost) {
        self.advance(state, now);
        state.push(true_cost.minus(taken), self.capacity);
        let entry = Entry { moment: charge.mark, cost: taken.minus(true_cost).micros() };
        if self.counts(entry, state.latest) {
            state.give_back(entry);
        }
    }

    fn usage(&self, state: &Log, now: Moment) -> Usage {
        let place = self.place(state, now);
        let (_, counted) = self.live(state, place);
        let used = Cost::from_micros(u64::try_from(counted).unwrap_or(u64::MAX));
        let reset = match state.newest() {
            Some(newest) if counted > 0 => self.until_gone(place, newest.moment, now),
            Some(_) | None => Duration::ZERO,
        };
        Usage { limit: self.amount, used, remaining: self.amount.minus(used), reset }
    }

    fn is_idle(&self, state: &Log, now: Moment) -> bool {
        let place = self.place(state, now);
        self.live(state, place).1 == 0 && !matches!(place, Place::Late(_))
    }

    /// The log goes on as it is: what the new window still reaches counts. A smaller ring merges.
    fn carry(&self, before: &Self, state: &mut Log, now: Moment) {
        before.advance(state, now);
        if self.capacity < state.entries.len() {
            let old = std::mem::replace(state, self.fresh(now));
            for entry in old.iter() {
                state.latest = entry.moment;
                state.push(Cost::from_micros(entry.cost), self.capacity);
            }
            state.latest = old.latest;
        }
    }

    /// A moment is a moment under every rule. But a longer window must not give back, from what came later, what
    /// a shorter one had forgotten.
    fn marks(&self, before: &Self, state: &Log, now: Moment) -> Marks {
        if self.window == before.window {
            return Marks::SAME;
        }
        let reached = before.place(state, now).number().saturating_add(1);
        Marks::since(reached.saturating_sub(nanos_of(before.window)))
    }
}

/// What one key was admitted, oldest first, in a ring that doubles when it is full, up to its rule's capacity.
#[derive(Clone, Debug)]
pub struct Log {
    entries: Box<[Entry]>,
    first: usize,
    length: usize,
    /// The sum of all entries.
    total: u128,
    /// The latest moment seen; entries are never after it.
    latest: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    moment: u64,
    /// Millionths of a unit.
    cost: u64,
}

impl Log {
    fn slot(&self, position: usize) -> usize {
        (self.first + position) % self.entries.len()
    }

    fn get(&self, position: usize) -> Option<Entry> {
        (position < self.length).then(|| self.entries[self.slot(position)])
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = Entry> {
        (0..self.length).map(|position| self.entries[self.slot(position)])
    }

    fn newest(&self) -> Option<Entry> {
        self.iter().next_back()
    }

    fn pop_oldest(&mut self) -> Option<Entry> {
        let oldest = self.get(0)?;
        self.first = self.slot(1);
        self.length -= 1;
        self.total -= u128::from(oldest.cost);
        Some(oldest)
    }

    /// Writes `cost` down as of the latest moment, in a ring of up to `capacity` places.
    fn push(&mut self, cost: Cost, capacity: usize) {
        let cost = cost.micros();
        if cost == 0 {
            return;
        }
        if self.newest().is_some_and(|newest| newest.moment == self.latest) {
            self.add(self.length - 1, cost);
            return;
        }
        let merged = if self.length == self.entries.len() { self.make_place(capacity) } else { 0 };
        let cost = cost.saturating_add(merged);
        let slot = self.slot(self.length);
        self.entries[slot] = Entry { moment: self.latest, cost };
        self.length += 1;
        self.total += u128::from(cost);
    }

    /// Makes a place in a full ring: by growing, or by merging the two oldest. In a ring of one place the second
    /// oldest is yet to come, and the cost of the oldest is handed back for it.
    #[cold]
    #[inline(never)]
    fn make_place(&mut self, capacity: usize) -> u64 {
        if self.length < capacity {
            self.grow(capacity);
            return 0;
        }
        let merged = self.pop_oldest().map_or(0, |oldest| oldest.cost);
        if self.length == 0 {
            return merged;
        }
        self.add(0, merged);
        0
    }

    /// Doubles the ring, which is full, up to `capacity`.
    fn grow(&mut self, capacity: usize) {
        let places = (self.entries.len() * 2).max(FIRST_PLACES).min(capacity);
        let (newer, older) = self.entries.split_at(self.first);
        let mut entries = Vec::with_capacity(places);
        entries.extend_from_slice(older);
        entries.extend_from_slice(newer);
        entries.resize(places, Entry::default());
        self.entries = entries.into_boxed_slice();
        self.first = 0;
    }

    fn add(&mut self, position: usize, cost: u64) {
        let entry = &mut self.entries[(self.first + position) % self.entries.len()];
        let before = entry.cost;
        entry.cost = before.saturating_add(cost);
        self.total += u128::from(entry.cost - before);
    }

    /// Takes `given.cost` off the first entry not before `given.moment`: the charge's own, or the one
    /// it was merged into.
    fn give_back(&mut self, given: Entry) {
        let Some(position) = (0..self.length).rev().take_while(|at| self.is_from(*at, given.moment)).last()
        else {
            return;
        };
        let slot = self.slot(position);
        let entry = &mut self.entries[slot];
        let given = given.cost.min(entry.cost);
        entry.cost -= given;
        self.total -= u128::from(given);
        while self.newest().is_some_and(|newest| newest.cost == 0) {
            self.length -= 1;
        }
    }

    fn is_from(&self, position: usize, moment: u64) -> bool {
        self.get(position).is_some_and(|entry| entry.moment >= moment)
    }

    /// Dates everything `now`: when it came, a clock that was set back cannot say.
    #[cold]
    #[inline(never)]
    fn restart(&mut self, now: u64) {
        let total = u64::try_from(self.total).unwrap_or(u64::MAX);
        (self.first, self.length, self.total, self.latest) = (0, 0, 0, now);
        self.push(Cost::from_micros(total), self.entries.len());
    }
}

#[cfg(test)]
mod tests;
