//! Queues in front of busy workers: who is served next, and who leaves unserved, when and why.
//!
//! The simplest queue takes everything and serves the oldest first. When more comes than can be served,
//! it grows until every answer is late: the workers are busy all day with requests whose callers have
//! gone. The usual cure is a bound on the *number* that wait, and it is the wrong knob both ways. Linkerd
//! let 100 wait where 10 000 would have been served in time, and failed 51.5 % of a test that the larger
//! number passed without one failure (linkerd2#11198); the same 10 000 before one slow worker is a wait of
//! minutes. What a caller feels is time, so time is what we bound:
//!
//! 1. **Time.** Nobody waits longer than [`Bounds::max_wait`], or in a burst [`Bounds::burst_wait`], and nobody is
//!    served who cannot be answered before its deadline. An entry leaves at the moment it becomes hopeless;
//!    [`Queue::next_leave`] says when that is, so that a driver can answer its caller then.
//! 2. **Count and bytes** only keep memory finite. [`Bounds::outlasts`] refuses a count that would act
//!    before the time at the rate you expect.
//!
//! Levels of [`Criticality`] are served in strict order. When there is no room, the entry that would
//! have been served last leaves, be it the newcomer. Within a level the [`Order`] says who is next:
//!
//! | order | next | for |
//! |---|---|---|
//! | [`Order::Fifo`] | the oldest | queues that empty often |
//! | [`Order::Adaptive`] | the oldest; the newest while a queue stands | callers who give up |
//! | [`Order::Fair`] | the keys in turn | callers who do not know of each other |
//!
//! A [`DropLaw`] may be added: it watches how long entries of a level waited and drops some *before* the
//! time bound, to keep the queue short ([`Codel`], [`RequestCodel`]).
//!
//! One worker needs 40 ms a request, `max_wait` is 100 ms; five requests come at once, the third with a
//! deadline after 90 ms, and the service is expected to take its 40 ms. First in, first out:
//!
//! | moment | leaves unserved                            | served                |
//! |--------|--------------------------------------------|-----------------------|
//! | 0 ms   |                                            | 1                     |
//! | 40 ms  |                                            | 2                     |
//! | 80 ms  | 3: it had to start by 50 ms                | 4                     |
//! | 120 ms | 5: it has waited 120 ms, 100 are allowed   |                       |
//!
//! Nothing accepted is lost in silence: every entry is served, cancelled or handed back with its reason,
//! exactly once. Memory is taken when the queue is made; pushing and popping allocate nothing. A call may
//! hand back many entries at once, so the work of one call is bounded by the queue, and that of all calls
//! by the entries pushed.
//!
//! Sources: Maurer, "Fail at Scale" (ACM Queue 13/8); linkerd2#11198; Kubernetes API priority and fairness.

mod bounds;
mod codel;
mod entry;
mod fair;
mod level;
mod order;
mod request_codel;
mod store;

use std::hash::Hash;
use std::time::Duration;

pub use bounds::Bounds;
pub use codel::Codel;
pub use entry::{Entry, Handle, Left, Served};
pub use fair::Fair;
pub use order::{Adaptive, DropLaw, Order};
pub use request_codel::RequestCodel;

use crate::keyed::Key;
use crate::units::{Criticality, Invalid, Moment, nanos_of};
use crate::verdict::{Reason, Retry, Verdict};
use level::Level;
use store::Store;

/// Entries that wait. Single-threaded: whoever shares it puts a lock around it.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::Moment;
/// use tidegate_core::queue::{Bounds, Entry, Order, Queue};
///
/// let bounds = Bounds::new(Duration::from_millis(100))?;
/// let mut queue = Queue::new(bounds, Order::Fifo)?;
/// let mut late = Vec::new();
/// let start = Moment::ORIGIN;
/// assert!(queue.push(Entry::new("ann"), start, |left| late.push(left)).is_admit());
/// let now = start.plus(Duration::from_millis(101));
/// assert!(queue.pop(now, |left| late.push(left)).is_none());
/// assert_eq!(late[0].reason.as_str(), "wait_too_long");
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct Queue<T> {
    bounds: Bounds,
    order: Order,
    levels: [Level; 4],
    store: Store<T>,
    /// How long serving is expected to take: what a deadline must leave room for.
    expected: Duration,
}

impl<T> Queue<T> {
    /// An empty queue; takes its memory at once.
    ///
    /// # Errors
    /// When the order contradicts the bounds.
    pub fn new(bounds: Bounds, order: Order) -> Result<Self, Invalid> {
        order.check(&bounds)?;
        Ok(Self {
            bounds,
            order,
            levels: [(); 4].map(|()| Level::default()),
            store: Store::new(bounds.max_entries(), order.width() * Criticality::ALL.len()),
            expected: Duration::ZERO,
        })
    }

    /// The same queue, in which `law` drops entries of each level by how long that level waits.
    ///
    /// # Errors
    /// When the law could never act within the bounds.
    pub fn with_drop_law(mut self, law: DropLaw) -> Result<Self, Invalid> {
        law.check(&self.bounds)?;
        for level in &mut self.levels {
            level.law = Some(law);
        }
        Ok(self)
    }

    /// The key under which `name` takes its turns in a fair order.
    pub fn key(&self, name: &(impl Hash + ?Sized)) -> Key {
        self.order.key(name)
    }

    /// Tells how long serving is expected to take from now on. Entries that would start too late to be
    /// answered within their deadline leave.
    pub const fn expect_service(&mut self, took: Duration) {
        self.expected = took;
    }

    /// How long whoever comes from now on may wait, and how long in a burst. Who waits already leaves when it was going
    /// to.
    ///
    /// # Errors
    /// When the first is nothing, the second shorter than the first, or one longer than ten minutes.
    pub fn set_waits(&mut self, max_wait: Duration, burst_wait: Duration) -> Result<(), Invalid> {
        self.bounds = self.bounds.with_max_wait(max_wait)?.with_burst_wait(burst_wait)?;
        Ok(())
    }

    /// How long an entry of this level may wait that comes `now`.
    #[must_use]
    pub fn wait_of(&self, criticality: Criticality, now: Moment) -> Duration {
        let stands = self.levels[criticality.index()].stands(self.bounds.max_wait(), now);
        if stands { self.bounds.max_wait() } else { self.bounds.burst_wait() }
    }

    /// Puts an entry in. Whatever leaves unserved is handed to `left`, the newcomer too if it is refused.
    pub fn push(&mut self, entry: Entry<T>, now: Moment, mut left: impl FnMut(Left<T>)) -> Verdict<Handle> {
        self.expire(now, &mut left);
        match self.place_for(&entry, now, &mut left) {
            Verdict::Admit(list) => {
                let level = &mut self.levels[entry.criticality.index()];
                level.enters(list % self.order.width(), entry.bytes, now);
                let start_by = self.start_by(&entry, now);
                Verdict::Admit(self.store.insert(list, entry, now, start_by))
            }
            Verdict::Refuse(refusal) => {
                left(Left { entry, waited: Duration::ZERO, reason: refusal.reason });
                Verdict::Refuse(refusal)
            }
        }
    }

    /// Takes the next entry to be served. Whatever leaves unserved on the way is handed to `left`.
    pub fn pop(&mut self, now: Moment, mut left: impl FnMut(Left<T>)) -> Option<Served<T>> {
        self.expire(now, &mut left);
        for level in (0..self.levels.len()).rev() {
            while let Some(slot) = self.next_of(level, now) {
                let waited = now.since(self.store.enqueued(slot));
                match self.verdict_on(level, slot, now, waited) {
                    None => {
                        self.levels[level].turn_passes(self.store.list(slot) % self.order.width());
                        return Some(Served { entry: self.remove(slot, now), waited });
                    }
                    Some(reason) => left(Left { entry: self.remove(slot, now), waited, reason }),
                }
            }
        }
        None
    }

    /// Hands back whatever has become hopeless by `now`. Pushing and popping do it too.
    pub fn expire(&mut self, now: Moment, mut left: impl FnMut(Left<T>)) {
        while let Some((slot, start_by)) = self.store.first_to_expire() {
            if start_by >= now {
                break;
            }
            let waited = now.since(self.store.enqueued(slot));
            let is_old = waited > self.bounds.max_wait() || self.store.deadline(slot).is_none();
            let reason = if is_old { Reason::WaitTooLong } else { Reason::DeadlinePassed };
            left(Left { entry: self.remove(slot, now), waited, reason });
        }
        if let Some(limit) = self.order.standing_wait() {
            for level in 0..self.levels.len() {
                self.shorten(level, limit, now, &mut left);
            }
        }
    }

    /// Takes out an entry whose caller has gone, unless it has left already.
    pub fn cancel(&mut self, handle: Handle, now: Moment) -> Option<Entry<T>> {
        self.store.is_current(handle).then(|| self.remove(handle.slot, now))
    }

    /// The last moment at which all of those waiting may still be served. Just after it, somebody leaves.
    #[must_use]
    pub fn next_leave(&self) -> Option<Moment> {
        self.store.first_to_expire().map(|(_, start_by)| start_by)
    }

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of this level wait.
    #[must_use]
    pub const fn waiting(&self, criticality: Criticality) -> usize {
        self.levels[criticality.index()].length
    }

    /// The bytes of all that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.bytes).sum()
    }

    /// Whether entries of this level are served newest first at `now`, because a queue of them stands.
    #[must_use]
    pub fn is_newest_first(&self, criticality: Criticality, now: Moment) -> bool {
        self.is_standing(criticality.index(), now)
    }

    /// The list a newcomer goes to, once there is room for it.
    fn place_for(&mut self, entry: &Entry<T>, now: Moment, left: &mut impl FnMut(Left<T>)) -> Verdict<usize> {
        if entry.deadline.is_some_and(|deadline| now.plus(self.expected) > deadline) {
            return Verdict::refuse(Reason::DeadlinePassed, Retry::Never);
        }
        if entry.bytes > self.bounds.max_bytes() {
            return Verdict::refuse(Reason::QueueFull, Retry::Never);
        }
        let level = entry.criticality.index();
        let list = level * self.order.width() + self.choose(level, entry.key);
        while !self.has_room(entry.bytes) {
            let Some(slot) = self.served_last(level, list, entry.bytes, now) else {
                // When the next of those waiting has left, there is a place.
                let wait = self.next_leave().map_or(Duration::ZERO, |leave| leave.since(now));
                return Verdict::refuse(Reason::QueueFull, Retry::After(wait + Duration::from_nanos(1)));
            };
            let waited = now.since(self.store.enqueued(slot));
            left(Left { entry: self.remove(slot, now), waited, reason: Reason::Displaced });
        }
        Verdict::Admit(list)
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.len() < self.bounds.max_entries()
            && self.bytes().saturating_add(bytes) <= self.bounds.max_bytes()
    }

    /// Who must make room for a newcomer: whoever would be served last, unless that is the newcomer.
    fn served_last(&self, level: usize, list: usize, bytes: u64, now: Moment) -> Option<u32> {
        let is_standing = self.is_standing(level, now);
        // Nobody leaves in vain: all that could make room together must make enough.
        let own = if is_standing || self.order.width() > 1 { self.levels[level].bytes } else { 0 };
        let yielding = own + self.levels[..level].iter().map(|lower| lower.bytes).sum::<u64>();
        if self.bytes() - yielding + bytes > self.bounds.max_bytes() {
            return None;
        }
        let lowest = (0..level).find(|lower| self.levels[*lower].length > 0);
        match lowest {
            Some(lower) if self.is_standing(lower, now) => self.store.oldest(lower),
            Some(lower) => self.store.newest(self.longest(lower)),
            None if is_standing => self.store.oldest(level),
            None => {
                let longest = self.longest(level);
                let is_longer = self.store.length(longest) > self.store.length(list);
                if is_longer { self.store.newest(longest) } else { None }
            }
        }
    }

    /// Who of this level is next.
    fn next_of(&self, level: usize, now: Moment) -> Option<u32> {
        let list = self.levels[level].next_list()?;
        let list = level * self.order.width() + list;
        if self.is_standing(level, now) { self.store.newest(list) } else { self.store.oldest(list) }
    }

    /// Why the entry whose turn it is leaves unserved, if it does.
    fn verdict_on(&mut self, level: usize, slot: u32, now: Moment, waited: Duration) -> Option<Reason> {
        if self.store.deadline(slot).is_some_and(|deadline| now.plus(self.expected) > deadline) {
            return Some(Reason::DeadlinePassed);
        }
        let level = &mut self.levels[level];
        let is_last = level.length == 1;
        let is_dropped = level.law.as_mut().is_some_and(|law| law.drops(now, waited, is_last));
        is_dropped.then_some(Reason::StandingQueue)
    }

    /// While a queue stands, nobody but the newest waits longer than `limit`. The newest is spared, for
    /// the worker that asks next must find somebody to serve.
    fn shorten(&mut self, level: usize, limit: Duration, now: Moment, left: &mut impl FnMut(Left<T>)) {
        while self.is_standing(level, now) && self.levels[level].length > 1 {
            let Some(slot) = self.store.oldest(level) else { return };
            let waited = now.since(self.store.enqueued(slot));
            if waited <= limit {
                return;
            }
            left(Left { entry: self.remove(slot, now), waited, reason: Reason::StandingQueue });
        }
    }

    fn remove(&mut self, slot: u32, now: Moment) -> Entry<T> {
        let list = self.store.list(slot);
        let entry = self.store.remove(slot);
        let is_list_empty = self.store.length(list) == 0;
        let width = self.order.width();
        self.levels[list / width].leaves(list % width, entry.bytes, is_list_empty, now);
        entry
    }

    fn is_standing(&self, level: usize, now: Moment) -> bool {
        self.order.standing_after().is_some_and(|interval| self.levels[level].stands(interval, now))
    }

    fn choose(&self, level: usize, key: Key) -> usize {
        match &self.order {
            Order::Fifo | Order::Adaptive(_) => 0,
            Order::Fair(fair) => fair.shortest(key, |list| self.store.length(level * fair.width() + list)),
        }
    }

    fn longest(&self, level: usize) -> usize {
        let lists = level * self.order.width()..(level + 1) * self.order.width();
        lists.max_by_key(|list| self.store.length(*list)).unwrap_or(level)
    }

    /// The last moment at which an entry that comes `now` may be served.
    fn start_by(&self, entry: &Entry<T>, now: Moment) -> Moment {
        let patience = now.plus(self.wait_of(entry.criticality, now));
        entry.deadline.map_or(patience, |deadline| {
            let latest = deadline.nanos().saturating_sub(nanos_of(self.expected));
            patience.min(Moment::from_nanos(latest))
        })
    }
}

#[cfg(test)]
mod tests;
