//! What stands before an upstream: so many requests in flight, found out while serving; the others wait for a moment,
//! the most critical in front; and when too many would wait, whoever can be done without is told at once.
//!
//! ```text
//!           ┌ the edge ┐     ┌ the limit ┐
//! request ──┤ too low? ├─────┤ a place?  ├───────────────> the upstream ──> the place comes back
//!           └──refused─┘     └────none───┘                                      │
//!                                  │ waits, by criticality, then by order       │
//!                                  └──────────<── the next of those who wait ───┘
//! ```
//!
//! Every upstream has one of its own, so that one that is slow holds none of the places of another.
//!
//! A service of ten workers that take 10 ms each serves 1000 a second; 10 000 come, of which 600 are critical:
//!
//! | after     | the limit | waiting | the edge | who is served |
//! |-----------|-----------|---------|----------|---------------|
//! | 0 ms      | 20        | 0       | open     | the first twenty |
//! | 50 ms     | 20        | 450     | open     | critical, as they come; the others as far as places are left |
//! | 1 s       | 14        | 500     | some of sheddable refused at once | the same |
//! | 10 s      | 14        | 20      | all of sheddable refused, most of sheddable_plus | the same, and hardly anybody waits in vain |
//!
//! The limit says how much the service bears ([`concurrency`](tidegate_core::concurrency)), the queue evens out what
//! comes at random and keeps strict order among those who wait ([`queue`](tidegate_core::queue)), and the edge
//! spares those who have no chance their wait, and the gateway the work of letting them wait
//! ([`shed`](tidegate_core::shed)). The edge alone would be late, since it moves twice a second; the queue alone would
//! make nine in ten wait for nothing. And since it is late, the edge refuses nobody of the level it lies in while a
//! place is free and nobody waits for it: those who were refused come back in waves, and between two of them the service
//! would idle.
//!
//! | in `bulkhead/` | is |
//! |---|---|
//! | `terms` | from what a policy says to what the core is told |
//! | `waiting` | somebody who waits |
//! | `status` | what it is doing, for whoever looks |
//! | `flow` | what went through, counted where no other thread writes; what moves the edge |

mod flow;
mod status;
mod terms;
mod waiting;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Response;
use tidegate_core::concurrency::Adaptive;
use tidegate_core::permit::{Ended, Outcome, Permit, Places};
use tidegate_core::queue::{Entry, Left, Queue};
use tidegate_core::retry::{Advice, AttemptHistogram, HistogramRule};
use tidegate_core::shed::SharedEdge;
use tidegate_core::{Criticality, Invalid, Moment, Reason, Refusal, Retry, Verdict};
use tidegate_policy::policy::WaitingQueue;
use tidegate_policy::{Who, policy};

use self::flow::{Counts, Flows};
pub use self::flow::{RefusedHere, TICK};
pub use self::status::Status;
pub use self::terms::NewTerms;
use self::waiting::Waiter;
pub use self::waiting::Waiting;
use crate::clock::Clock;
use crate::guard::outcome_of;

/// All places are taken, and nobody may wait for one.
const FULL: Refusal = Refusal { reason: Reason::LimitReached, retry: Retry::After(TICK) };

/// The right to be in flight at an upstream; it ends exactly once, completed or dropped.
pub type Place = Permit<Arc<Bulkhead>>;

/// What stands before an upstream, or one entrance to it.
///
/// Entrances lead to the same places. A thread that has its own shares no more with others than it must: a count of
/// references that two cores write costs each request more than the decision.
#[derive(Debug)]
pub struct Bulkhead {
    shared: Arc<Shared>,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Shared {
    limiter: Adaptive,
    /// None if nobody may wait.
    queue: Option<Mutex<Queue<Waiter>>>,
    /// How many wait, for those who do not hold the queue.
    waiting: AtomicUsize,
    /// Places held while the upstream waits for callers.
    lingering: AtomicU64,
    /// See [`Bulkhead::grace`], in nanoseconds.
    grace: AtomicU64,
    edge: SharedEdge,
    attempts: AttemptHistogram,
    flows: Flows,
    clock: Arc<dyn Clock>,
    waiting_terms: WaitingQueue,
}

/// Who would enter.
#[derive(Clone, Copy, Debug)]
pub struct Entering<W> {
    /// How late it should be shed.
    pub criticality: Criticality,
    /// On whose behalf; asked for only while somebody is shed or waits.
    pub who: W,
    /// Which attempt it is, from 0, where a peer that is believed says so.
    pub attempt: Option<u32>,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Entered {
    /// It may go on.
    Place(Place),
    /// It waits for a place.
    Wait(Waiting),
    /// It may not go on.
    Refuse(Refusal),
}

/// What would become of a request, as far as can be said before it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// It would go on at once.
    Place,
    /// It would wait, and then go on or be told that it took too long.
    Wait,
    /// It would not go on.
    Refuse(Refusal),
}

impl Bulkhead {
    /// The bulkhead of an upstream, everything open.
    ///
    /// # Errors
    /// When the upstream's terms contradict themselves, which those of a compiled policy do not.
    pub fn new(upstream: &policy::Upstream, seed: u64, clock: Arc<dyn Clock>) -> Result<Self, Invalid> {
        Self::starting_at(None, upstream, seed, clock)
    }

    fn starting_at(
        limit: Option<u32>,
        upstream: &policy::Upstream,
        seed: u64,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Invalid> {
        let queue = terms::queue(&upstream.concurrency.queue, seed)?;
        let shared = Shared {
            limiter: terms::limiter(upstream, limit, clock.moment())?,
            queue: queue.map(Mutex::new),
            waiting: AtomicUsize::new(0),
            lingering: AtomicU64::new(0),
            grace: AtomicU64::new(nanos(terms::grace(None))),
            edge: SharedEdge::new(),
            attempts: AttemptHistogram::new(HistogramRule::default()),
            flows: Flows::new(clock.moment())?,
            clock,
            waiting_terms: upstream.concurrency.queue,
        };
        Ok(Self::entrance_to(Arc::new(shared)))
    }

    /// What [`retune`](Self::retune) needs for an upstream that has changed; nothing if its queue is to be another one.
    /// Changes nothing yet.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn new_terms(&self, upstream: &policy::Upstream) -> Result<Option<NewTerms>, Invalid> {
        let is_same = upstream.concurrency.queue == self.shared.waiting_terms;
        is_same.then(|| NewTerms::of(upstream)).transpose()
    }

    /// Holds the bulkhead to the terms of an upstream that has changed, while it is in use: what is in flight, who waits,
    /// and what was learnt stay.
    pub fn retune(&self, terms: NewTerms) {
        let now = self.shared.clock.moment();
        terms.hold(&self.shared.limiter, now);
        self.pass_on_if_free(now);
    }

    /// The bulkhead of an upstream whose queue is to be another one: it begins with the limit that was found so far.
    /// Whoever is in flight or waits stays with the one before.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn succeeded_by(&self, upstream: &policy::Upstream, seed: u64) -> Result<Self, Invalid> {
        Self::starting_at(Some(self.shared.limiter.limit()), upstream, seed, Arc::clone(&self.shared.clock))
    }

    /// Another entrance, for another thread.
    #[must_use]
    pub fn entrance(&self) -> Self {
        Self::entrance_to(Arc::clone(&self.shared))
    }

    fn entrance_to(shared: Arc<Shared>) -> Self {
        let counts = shared.flows.stripe();
        Self { shared, counts }
    }

    /// Decides about a request.
    #[inline]
    pub fn enter<W>(self: &Arc<Self>, now: Moment, entering: Entering<W>) -> Entered
    where
        W: Fn() -> Who,
    {
        let shared = &*self.shared;
        let Entering { criticality, who, attempt } = entering;
        self.counts.arrived(criticality, shared.limiter.in_flight(), shared.limiter.limit());
        if let Some(attempt) = attempt {
            shared.attempts.record(attempt);
        }
        if shared.flows.is_due(now) {
            self.look(now);
        }
        if !shared.edge.is_open()
            && let Verdict::Refuse(refusal) = shared.edge.decide(criticality, who().cohort)
            && !self.spares(criticality)
        {
            return Entered::Refuse(self.refuse(criticality, refusal));
        }
        // Who comes while others wait goes to the queue, where the most critical is first.
        if shared.waiting.load(Ordering::Relaxed) == 0
            && let Verdict::Admit(place) = shared.limiter.admit_for(|| Arc::clone(self), now, criticality)
        {
            return Entered::Place(place);
        }
        self.wait(now, criticality, who().key)
    }

    /// A place for a request that its upstream is at work on already, beyond the limit if all are taken: others wait then.
    pub fn enter_anyway(self: &Arc<Self>, criticality: Criticality) -> Place {
        let shared = &self.shared;
        shared.limiter.admit_anyway(Arc::clone(self), shared.clock.moment(), criticality)
    }

    /// The upstream begins its work only now; until now it waited for the caller.
    pub fn begin(&self, place: &mut Place) {
        place.begin(self.shared.clock.moment());
    }

    /// What [`enter`](Self::enter) would make of a request now; takes and counts nothing.
    #[must_use]
    pub fn foresee(&self, criticality: Criticality, who: Who) -> Foreseen {
        let shared = &*self.shared;
        if let Verdict::Refuse(refusal) = shared.edge.decide(criticality, who.cohort)
            && !self.spares(criticality)
        {
            return Foreseen::Refuse(refusal);
        }
        match &shared.queue {
            _ if self.has_room() => Foreseen::Place,
            Some(_) => Foreseen::Wait,
            None => Foreseen::Refuse(FULL),
        }
    }

    /// Whether somebody of this level passes although the edge refuses it.
    fn spares(&self, criticality: Criticality) -> bool {
        self.shared.edge.edge().is_next(criticality) && self.has_room()
    }

    /// Whether a place is free that nobody waits for.
    fn has_room(&self) -> bool {
        self.shared.waiting.load(Ordering::Relaxed) == 0 && self.has_free_place()
    }

    /// A request that would have come here was refused by a rule or got a cheaper answer, to spare the upstream: it counts
    /// as wanted, and as nothing else.
    pub fn held_back(&self) {
        self.counts.held_back();
    }

    fn wait(self: &Arc<Self>, now: Moment, criticality: Criticality, caller: u64) -> Entered {
        let Some(queue) = &self.shared.queue else {
            return Entered::Refuse(self.refuse(criticality, FULL));
        };
        let (waiter, receiver) = Waiter::new(self);
        let mut left = Vec::new();
        let (verdict, patience) = {
            let mut queue = lock(queue);
            let entry = Entry { key: queue.key(&caller), criticality, ..Entry::new(waiter) };
            let verdict = queue.push(entry, now, |who| left.push(who));
            self.shared.waiting.store(queue.len(), Ordering::Relaxed);
            (verdict, queue.wait_of(criticality, now))
        };
        // A place may have come back before anybody could see that somebody waits for it. Either its giver sees us or
        // we see the place: each writes before the fence and reads after it.
        fence(Ordering::SeqCst);
        self.pass_on_if_free(now);
        let entered = match verdict {
            Verdict::Admit(handle) => {
                Entered::Wait(Waiting::new(receiver, patience, handle, criticality, Arc::clone(self)))
            }
            Verdict::Refuse(refusal) => {
                // The last of those that left is its own entry.
                drop(left.pop());
                Entered::Refuse(self.refuse(criticality, refusal))
            }
        };
        turn_away(left);
        entered
    }

    /// Hands free places to those who wait.
    fn pass_on_if_free(&self, now: Moment) {
        while self.has_free_place()
            && let Some((waiter, place)) = self.next(now)
        {
            // Who has gone in the meantime gives it back, and so to the next.
            waiter.tell(Ok(place));
        }
    }

    fn has_free_place(&self) -> bool {
        let limiter = &self.shared.limiter;
        limiter.in_flight() < u64::from(limiter.limit())
    }

    /// The next of those who wait, with its place.
    fn next(&self, now: Moment) -> Option<(Waiter, Place)> {
        let queue = self.shared.queue.as_ref()?;
        let mut left = Vec::new();
        let mut queue = lock(queue);
        let served = if self.has_free_place() { queue.pop(now, |who| left.push(who)) } else { None };
        let next = served.map(|served| {
            self.shared.flows.waited(now, served.waited);
            let entry = served.entry;
            let door = Arc::clone(&entry.payload.door);
            let place = self.shared.limiter.admit_anyway(door, now, entry.criticality);
            (entry.payload, place)
        });
        self.shared.waiting.store(queue.len(), Ordering::Relaxed);
        drop(queue);
        turn_away(left);
        next
    }

    /// A place has come back.
    fn came_back(&self) {
        // See `wait`.
        fence(Ordering::SeqCst);
        if self.shared.waiting.load(Ordering::Relaxed) > 0 {
            self.pass_on_if_free(self.shared.clock.moment());
        }
    }

    /// Whether one more of the places may be held while the upstream waits for a caller: at most half of them, since
    /// callers that send or take a byte a second would keep all of them from others.
    #[must_use]
    pub fn linger(self: &Arc<Self>) -> Option<Linger> {
        let shared = &self.shared;
        let most = u64::from(shared.limiter.limit()) / 2;
        let one_more = |lingering| (lingering < most).then_some(lingering + 1);
        let taken = shared.lingering.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| Linger(Arc::clone(self)))
    }

    /// For how long the upstream is taken to be at work for a caller that has gone: ten times what an answer takes
    /// without load, from 100 ms to 2 s; half a second while that is not known.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_nanos(self.shared.grace.load(Ordering::Relaxed))
    }

    /// Takes a waiter out whose time is up or who has gone; says whether it still waited.
    fn cancel(&self, handle: tidegate_core::queue::Handle) -> bool {
        let Some(queue) = &self.shared.queue else { return false };
        let now = self.shared.clock.moment();
        let mut queue = lock(queue);
        let entry = queue.cancel(handle, now);
        self.shared.waiting.store(queue.len(), Ordering::Relaxed);
        drop(queue);
        entry.is_some()
    }

    /// Counts a refusal, and says what its caller should do.
    fn refuse(&self, criticality: Criticality, refusal: Refusal) -> Refusal {
        self.counts.refused(criticality, refusal.reason);
        match self.shared.attempts.refuse() {
            Advice::Never => Refusal { retry: Retry::Never, ..refusal },
            Advice::None | Advice::After(_) | Advice::Exactly(_) => refusal,
        }
    }

    /// Moves the edge if its time has come. Requests do so as they come; a driver that also does it twice a second lets
    /// the edge fall when none come.
    #[cold]
    pub fn look(&self, now: Moment) {
        let shared = &*self.shared;
        let waiting = shared.waiting.load(Ordering::Relaxed) as u64;
        let Some(edge) = shared.flows.look(now, waiting) else { return };
        shared.edge.publish(edge, TICK);
        shared.limiter.tell(shared.flows.surroundings(now));
        let Some(baseline) = shared.limiter.baseline() else { return };
        shared.grace.store(nanos(terms::grace(Some(baseline))), Ordering::Relaxed);
        if let Some(queue) = &shared.queue {
            let (patience, in_burst) = terms::patience(&shared.waiting_terms, Some(baseline));
            let mut queue = lock(queue);
            queue.expect_service(baseline);
            // They are above zero, for there is a queue.
            drop(queue.set_waits(patience, in_burst));
        }
    }

    /// The upstream says how busy it is, from 0 to 1.
    pub fn tell_utilization(&self, now: Moment, utilization: f64) {
        self.shared.flows.utilized(now, utilization);
    }
}

impl Places for Bulkhead {
    fn give_back(&self, ended: Ended) {
        self.counts.ended(ended.outcome);
        self.shared.limiter.give_back(ended);
        self.came_back();
    }

    fn undo(&self, ended: Ended) {
        self.shared.limiter.undo(ended);
        self.came_back();
    }
}

/// One of the places that may be held while the upstream waits for a caller: for the rest of a body, or to take an
/// answer.
#[derive(Debug)]
pub struct Linger(Arc<Bulkhead>);

impl Drop for Linger {
    fn drop(&mut self) {
        self.0.shared.lingering.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an answer says about its upstream.
pub fn outcome<B>(response: &Response<B>) -> Outcome {
    outcome_of(response.status(), response.headers())
}

/// Tells those who left the queue why.
fn turn_away(left: Vec<Left<Waiter>>) {
    for Left { entry, reason, .. } in left {
        let door = Arc::clone(&entry.payload.door);
        let refusal = Refusal { reason, retry: Retry::After(TICK) };
        entry.payload.tell(Err(door.refuse(entry.criticality, refusal)));
    }
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
