//! How a request that may pass gets a place at its upstream.

use std::sync::Arc;

use http::HeaderMap;
use tidegate_core::{Criticality, Moment, Refusal};
use tidegate_policy::Who;
use tidegate_tower::Bulkhead;
use tidegate_tower::bulkhead::{Entered, Entering, Place, Waiting};

/// The number of an attempt, from 1; believed from trusted peers.
const ATTEMPT: &str = "x-envoy-attempt-count";

/// How a request gets to its upstream.
#[derive(Debug)]
pub(super) enum Way {
    /// Nothing stands before where it goes.
    Free,
    /// It has a place.
    Place(Place),
    /// It waits for one.
    Wait(Waiting),
    /// A rule lets it wait, or its body has not come; only then it asks for one.
    Later(Arc<Bulkhead>, Entering<Who>),
}

impl Way {
    /// Asks for a place for a request that was admitted.
    pub(super) fn find<W>(door: &Arc<Bulkhead>, now: Moment, entering: Entering<W>) -> Result<Self, Refusal>
    where
        W: Fn() -> Who,
    {
        match door.enter(now, entering) {
            Entered::Place(place) => Ok(Self::Place(place)),
            Entered::Wait(waiting) => Ok(Self::Wait(waiting)),
            Entered::Refuse(refusal) => Err(refusal),
        }
    }

    /// Whether it is known already that it goes on.
    pub(super) const fn is_clear(&self) -> bool {
        matches!(self, Self::Free | Self::Place(_))
    }

    /// Waits for the place; `now` is asked only if the request asks only then.
    pub(super) async fn place(self, now: impl FnOnce() -> Moment) -> Result<Self, Refusal> {
        match self {
            Self::Free | Self::Place(_) => Ok(self),
            Self::Wait(waiting) => waiting.await.map(Self::Place),
            Self::Later(door, Entering { criticality, who, attempt }) => {
                match Self::find(&door, now(), Entering { criticality, who: || who, attempt })? {
                    Self::Wait(waiting) => waiting.await.map(Self::Place),
                    found => Ok(found),
                }
            }
        }
    }

    /// The place it has, if it has one.
    pub(super) fn taken(self) -> Option<Place> {
        match self {
            Self::Place(place) => Some(place),
            Self::Free | Self::Wait(_) | Self::Later(..) => None,
        }
    }
}

/// Which attempt a request is, from 0, if it says so.
pub(super) fn attempt(headers: &HeaderMap) -> Option<u32> {
    let number: u32 = headers.get(ATTEMPT)?.to_str().ok()?.trim().parse().ok()?;
    number.checked_sub(1)
}

/// A request of which it is not known yet whether it goes on, and under what it will be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undecided {
    pub(super) listener: usize,
    pub(super) criticality: Criticality,
}
