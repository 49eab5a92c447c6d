//! How long a request counts as in flight at its upstream.
//!
//! A service is busy with a request until it has written the last byte of its answer, so the place is held until that
//! byte has come. But an answer may be a stream of hours, or wait for a caller that reads a byte a second; ten such
//! callers would hold all places of a service that is idle. So half a second after its head an answer is taken for a
//! stream, and its place goes to somebody else:
//!
//! | the answer                     | holds its place until |
//! |--------------------------------|-----------------------|
//! | is here with its head, as nearly all are | its head   |
//! | comes in pieces                | the last piece |
//! | lasts for longer than 500 ms   | 500 to 750 ms after its head |
//! | turns to another protocol      | its head |
//!
//! What the limit learns from is always the time to the head: how long the rest takes is the caller's doing as often
//! as the service's.
//!
//! The same at the other end: while the body of a request is still coming, the service waits for the caller. Short bodies
//! are waited for before a place is asked for; a long one holds its place for 500 ms at most while it is waited for, then
//! lends it to others. When the last of it has come, the service is at work, and the request takes a place again, beyond
//! the limit if all are taken: it cannot be turned away any more, but others can wait
//! ([why](../../../docs/adr/0011-an-upload-lends-its-place.md)). The limit learns the time from there.
//!
//! All whose callers are waited for hold no more than half of the places together. Beyond that the others come first:
//! such requests lend theirs as soon as they have to be waited for, and such answers give theirs back with their head.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::permit::Outcome;
use tidegate_core::{Criticality, Moment};
use tidegate_tower::Bulkhead;
use tidegate_tower::bulkhead::{Linger, Place};

/// After so many milliseconds an answer is a stream. Below the length of a window of the limit, which would otherwise
/// take what it is told for the sign of a clock that goes back.
const STREAMS_AFTER: u64 = 500;

/// A place that may be held for too long.
#[derive(Debug)]
enum Held {
    /// Its answer has begun.
    Begun { place: Place, head: Moment, outcome: Outcome, _linger: Linger },
    /// The body of its request is still coming.
    Upload { place: Place, again: Again, linger: Option<Linger>, is_waited_for: bool },
    /// So it is, and the place is lent to others.
    Lent(Again),
    /// The body of its request has come, and the service is at work.
    Served(Place),
    /// The body of its request has come, and it waits for a connection.
    ServedLater,
    /// The body of its request has broken off.
    BrokenOff,
}

/// Where a request takes a place again that it has lent.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) door: Arc<Bulkhead>,
    pub(crate) criticality: Criticality,
}

/// A place as both see it who may end it.
type Shared = Arc<Mutex<Option<Held>>>;

/// Held by an answer's body; the place comes back when it is dropped, if not before.
#[derive(Debug)]
pub(crate) struct Stay(Shared);

impl Drop for Stay {
    fn drop(&mut self) {
        // A place comes back while nothing is locked: it goes to the next, who may be anybody.
        let held = lock(&self.0).take();
        match held {
            Some(Held::Begun { place, head, outcome, .. }) => place.complete(head, outcome),
            Some(Held::Upload { place, .. }) => place.undo(),
            Some(Held::Lent(_) | Held::Served(_) | Held::ServedLater | Held::BrokenOff) | None => {}
        }
    }
}

/// It has been held for too long.
fn outstays(shared: &Mutex<Option<Held>>) {
    let mut held = lock(shared);
    match held.take() {
        Some(Held::Begun { place, head, outcome, .. }) => {
            drop(held);
            place.complete(head, outcome);
        }
        Some(Held::Upload { place, again, .. }) => {
            *held = Some(Held::Lent(again));
            drop(held);
            place.undo();
        }
        other @ (Some(Held::Lent(_) | Held::Served(_) | Held::ServedLater | Held::BrokenOff) | None) => {
            *held = other
        }
    }
}

impl Stay {
    /// That of a request whose body is still coming, and which has no place.
    pub(crate) fn without_place() -> Self {
        Self(Arc::default())
    }

    /// Lends the place of a request that waits for something else than its caller; gives what is lent.
    pub(crate) fn lend(&self) -> Option<Place> {
        let mut held = lock(&self.0);
        match held.take()? {
            Held::Upload { place, again, .. } => {
                *held = Some(Held::Lent(again));
                Some(place)
            }
            Held::Served(place) => {
                *held = Some(Held::ServedLater);
                Some(place)
            }
            other @ (Held::Begun { .. } | Held::Lent(_) | Held::ServedLater | Held::BrokenOff) => {
                *held = Some(other);
                None
            }
        }
    }

    /// It waits no more. While its body is still coming, it takes a place when that has come.
    pub(crate) fn take_again(&self, door: &Arc<Bulkhead>, criticality: Criticality) {
        let mut held = lock(&self.0);
        if matches!(*held, Some(Held::ServedLater)) {
            *held = Some(Held::Served(door.enter_anyway(criticality)));
        }
    }

    /// The place of a request that is answered, if it is still held.
    pub(crate) fn answered(self) -> Option<Place> {
        match lock(&self.0).take()? {
            Held::Begun { place, .. } | Held::Upload { place, .. } | Held::Served(place) => Some(place),
            Held::Lent(_) | Held::ServedLater | Held::BrokenOff => None,
        }
    }

    /// The place of a request that gets no answer, if the service was at work. While the body is still coming, nobody knows
    /// how fast the service is.
    pub(crate) fn unanswered(self) -> Option<Place> {
        let held = lock(&self.0).take()?;
        match held {
            Held::Upload { place, .. } => {
                place.undo();
                None
            }
            Held::Begun { place, .. } | Held::Served(place) => Some(place),
            Held::Lent(_) | Held::ServedLater | Held::BrokenOff => None,
        }
    }

    /// Who is told how the body of the request comes.
    pub(crate) fn arrival(&self) -> Arrival {
        Arrival(Arc::clone(&self.0))
    }
}

/// Told how the body of a request comes. Until then its place is held as any other: what has not been asked for may all be
/// here already, and wait for a connection to be made.
#[derive(Debug)]
pub(crate) struct Arrival(Shared);

impl Arrival {
    /// It was asked for, and the caller has not sent it yet.
    pub(crate) fn is_waited_for(&self) {
        let mut held = lock(&self.0);
        match held.take() {
            Some(Held::Upload { place, again, linger: None, .. }) => {
                *held = Some(Held::Lent(again));
                // Its place goes to the next, not while it is locked.
                drop(held);
                place.undo();
            }
            Some(Held::Upload { place, again, linger, .. }) => {
                *held = Some(Held::Upload { place, again, linger, is_waited_for: true });
            }
            other @ (Some(
                Held::Begun { .. } | Held::Lent(_) | Held::Served(_) | Held::ServedLater | Held::BrokenOff,
            )
            | None) => {
                *held = other;
            }
        }
    }

    pub(crate) fn has_come(self) {
        let mut held = lock(&self.0);
        *held = match held.take() {
            Some(Held::Upload { mut place, again, .. }) => {
                again.door.begin(&mut place);
                Some(Held::Served(place))
            }
            Some(Held::Lent(Again { door, criticality })) => {
                Some(Held::Served(door.enter_anyway(criticality)))
            }
            other @ (Some(Held::Begun { .. } | Held::Served(_) | Held::ServedLater | Held::BrokenOff)
            | None) => other,
        };
    }

    /// Whether the body of the request has broken off.
    pub(crate) fn is_broken_off(&self) -> bool {
        matches!(*lock(&self.0), Some(Held::BrokenOff))
    }

    pub(crate) fn has_broken_off(self) {
        let before = lock(&self.0).replace(Held::BrokenOff);
        // Not while it is locked: its place goes to the next. No work was done in it.
        if let Some(Held::Upload { place, .. }) = before {
            place.undo();
        }
    }
}

/// The places that may be held for too long, as a worker looks after them.
#[derive(Debug, Default)]
pub(crate) struct Stays(Mutex<Vec<(u64, Shared)>>);

impl Stays {
    /// Keeps the place of an answer whose head came then and said so much of how the work ended.
    pub(crate) fn keep(&self, now: u64, place: Place, ending: (Moment, Outcome), linger: Linger) -> Stay {
        let (head, outcome) = ending;
        self.hold(now, Held::Begun { place, head, outcome, _linger: linger })
    }

    /// Keeps the place of a request whose body is still coming; without leave to linger only until it has to be waited for.
    pub(crate) fn upload(&self, now: u64, place: Place, again: Again) -> Stay {
        let linger = again.door.linger();
        self.hold(now, Held::Upload { place, again, linger, is_waited_for: false })
    }

    fn hold(&self, now: u64, held: Held) -> Stay {
        let held = Arc::new(Mutex::new(Some(held)));
        lock(&self.0).push((now, Arc::clone(&held)));
        Stay(held)
    }

    /// Ends those that have been held for too long, and forgets those that have ended.
    pub(crate) fn end_old(&self, now: u64) {
        let old: Vec<_> = {
            let mut stays = lock(&self.0);
            // What only we know of has ended, and what is served is not held for too long.
            stays.retain(|(_, held)| Arc::strong_count(held) > 1 && !is_served(held));
            let is_old = |since| now.saturating_sub(since) >= STREAMS_AFTER;
            stays.extract_if(.., |(since, held)| is_old(*since) && is_waited_for(held)).collect()
        };
        old.iter().for_each(|(_, held)| outstays(held));
    }
}

fn is_served(held: &Mutex<Option<Held>>) -> bool {
    matches!(*lock(held), Some(Held::Served(_)))
}

/// Whether it waits for its caller.
fn is_waited_for(held: &Mutex<Option<Held>>) -> bool {
    !matches!(*lock(held), Some(Held::Upload { is_waited_for: false, .. }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
