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

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::Moment;
use tidegate_core::permit::Outcome;
use tidegate_tower::bulkhead::Place;

/// After so many milliseconds an answer is a stream. Below the length of a window of the limit, which would otherwise
/// take what it is told for the sign of a clock that goes back.
const STREAMS_AFTER: u64 = 500;

/// A place whose answer has begun.
#[derive(Debug)]
struct Begun {
    place: Place,
    head: Moment,
    outcome: Outcome,
}

/// A place as both see it who may end it.
type Shared = Arc<Mutex<Option<Begun>>>;

/// Held by an answer's body; the place comes back when it is dropped, if not before.
#[derive(Debug)]
pub(crate) struct Stay(Shared);

impl Drop for Stay {
    fn drop(&mut self) {
        end(&self.0);
    }
}

fn end(begun: &Mutex<Option<Begun>>) {
    // Not while it is locked: a place that comes back goes to the next, who may be anybody.
    let begun = begun.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Begun { place, head, outcome }) = begun {
        place.complete(head, outcome);
    }
}

/// The places of answers whose end has not come, as a worker looks after them.
#[derive(Debug, Default)]
pub(crate) struct Stays(Mutex<Vec<(u64, Shared)>>);

impl Stays {
    /// Keeps the place of an answer whose head came at `head`.
    pub(crate) fn keep(&self, now: u64, place: Place, head: Moment, outcome: Outcome) -> Stay {
        let begun = Arc::new(Mutex::new(Some(Begun { place, head, outcome })));
        self.lock().push((now, Arc::clone(&begun)));
        Stay(begun)
    }

    /// Ends those that have become streams, and forgets those that have ended.
    pub(crate) fn end_old(&self, now: u64) {
        let old: Vec<_> = {
            let mut stays = self.lock();
            // What only we know of has ended.
            stays.retain(|(_, begun)| Arc::strong_count(begun) > 1);
            stays.extract_if(.., |(since, _)| now.saturating_sub(*since) >= STREAMS_AFTER).collect()
        };
        old.iter().for_each(|(_, begun)| end(begun));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Shared)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
