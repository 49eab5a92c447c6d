//! The right to one place in flight, and how admitted work ends.
//!
//! What is taken is a value that gives itself back. Futures get cancelled, callers go away, handlers
//! return early: a place that must be released by hand is lost in all three cases. So a [`Permit`] is
//! completed with what was learnt, or dropped, and the drop counts as [`Outcome::Abandoned`]: the place
//! returns, and nobody concludes that cancelled work is fast.
//!
//! Two places, three requests:
//!
//! | what happens          | in flight | answer |
//! |-----------------------|-----------|--------|
//! | first asks            | 1         | permit |
//! | second asks           | 2         | permit |
//! | third asks            | 2         | refused |
//! | second is cancelled   | 1         | counted as abandoned |
//! | third asks again      | 2         | permit |
//!
//! A permit that travels (into a future, with a response body) owns its limiter through an [`Arc`]. Where
//! the work ends before the borrow does, `Permit<&Limiter>` costs no reference count; on a limiter that
//! threads share, that count is one more line of memory they fight over.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::units::{Invalid, Moment};
use crate::verdict::{Reason, Retry, Verdict};

/// How admitted work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// It worked.
    Ok,
    /// It failed for a reason of its own.
    Failed,
    /// What it called said that it was overloaded.
    Overloaded,
    /// Nobody waited for it to end.
    Abandoned,
}

/// What a limiter of work in flight is told when a place comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took; unknown for what was abandoned, unless the work was done all the same.
    pub took: Option<Duration>,
    /// When the place was taken.
    pub taken: Moment,
    /// What the limiter noted on the permit when it gave it out.
    pub note: u64,
}

/// A limiter whose places come back by themselves.
pub trait Places: Send + Sync + fmt::Debug {
    /// One place comes back.
    fn give_back(&self, ended: Ended);

    /// One place comes back from somebody who turned out not to need it. Who learns nothing from abandoned work
    /// need not tell the two apart.
    fn undo(&self, ended: Ended) {
        self.give_back(ended);
    }
}

/// The right to one place in flight. Completed or dropped, it ends exactly once.
///
/// `H` is how it holds its limiter: shared by default, or borrowed.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once abandons its place"]
pub struct Permit<H = Arc<dyn Places>>
where
    H: Deref<Target: Places>,
{
    places: Option<H>,
    taken: Moment,
    note: u64,
}

impl Permit {
    /// The right to a place that the caller has just taken from `places`.
    pub fn new(places: Arc<dyn Places>, taken: Moment) -> Self {
        Self::noted(places, taken, 0)
    }
}

impl<H> Permit<H>
where
    H: Deref<Target: Places>,
{
    /// The right to a place just taken from `places`, which is handed `note` when the place comes back.
    pub fn noted(places: H, taken: Moment, note: u64) -> Self {
        Self { places: Some(places), taken, note }
    }

    /// The work begins only now: until now the place was held for something that says nothing of the work.
    pub fn begin(&mut self, now: Moment) {
        self.taken = now;
    }

    /// Ends the work with what was learnt. Completed as [`Outcome::Abandoned`], the work was done and nobody waited for it
    /// any more.
    pub fn complete(mut self, now: Moment, outcome: Outcome) {
        self.end(outcome, Some(now.since(self.taken)));
    }

    /// Gives the place back as if it had never been taken: no work began, so none ends, and nothing is learnt.
    pub fn undo(mut self) {
        if let Some(places) = self.places.take() {
            places.undo(Ended {
                outcome: Outcome::Abandoned,
                took: None,
                taken: self.taken,
                note: self.note,
            });
        }
    }

    fn end(&mut self, outcome: Outcome, took: Option<Duration>) {
        if let Some(places) = self.places.take() {
            places.give_back(Ended { outcome, took, taken: self.taken, note: self.note });
        }
    }
}

impl<H> Drop for Permit<H>
where
    H: Deref<Target: Places>,
{
    fn drop(&mut self) {
        self.end(Outcome::Abandoned, None);
    }
}

/// At most so many requests in flight: the plain limiter of concurrency.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_core::Moment;
/// use tidegate_core::permit::{InFlight, Outcome};
///
/// let places = Arc::new(InFlight::new(1)?);
/// let now = Moment::ORIGIN;
/// let permit = places.admit(now).admitted().expect("one place is free");
/// assert!(!places.admit(now).is_admit());
/// permit.complete(now, Outcome::Ok);
/// assert_eq!(places.in_flight(), 0);
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct InFlight {
    limit: u64,
    taken: AtomicU64,
    ended: [AtomicU64; 4],
}

impl InFlight {
    /// A limiter with this many places.
    ///
    /// # Errors
    /// When there would be no place at all.
    pub fn new(limit: u32) -> Result<Self, Invalid> {
        if limit == 0 {
            return Err(Invalid::new("limit", limit, "at least 1"));
        }
        let ended = [(); 4].map(|()| AtomicU64::new(0));
        Ok(Self { limit: u64::from(limit), taken: AtomicU64::new(0), ended })
    }

    /// Takes a place if one is free. Nobody knows when one will be, so a refusal names no time to wait.
    pub fn admit(self: &Arc<Self>, now: Moment) -> Verdict<Permit> {
        // Taken and checked in one step: checking first and taking later admits too many under load.
        // Relaxed: the count guards itself and publishes nothing else.
        let free = |taken| (taken < self.limit).then_some(taken + 1);
        if self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).is_err() {
            return Verdict::refuse(Reason::LimitReached, Retry::After(Duration::ZERO));
        }
        Verdict::Admit(Permit::new(Arc::<Self>::clone(self), now))
    }

    /// How many places are taken.
    pub fn in_flight(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many permits ended so.
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.ended[outcome as usize].load(Ordering::Relaxed)
    }
}

impl Places for InFlight {
    fn give_back(&self, ended: Ended) {
        self.ended[ended.outcome as usize].fetch_add(1, Ordering::Relaxed);
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    fn undo(&self, _: Ended) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::ORIGIN;

    #[test]
    fn an_abandoned_permit_frees_its_place_as_in_the_example() {
        let places = Arc::new(InFlight::new(2).unwrap());
        let _first = places.admit(NOW).admitted().unwrap();
        let second = places.admit(NOW).admitted().unwrap();
        assert_eq!(places.admit(NOW).refusal().unwrap().reason, Reason::LimitReached);
        drop(second);
        assert_eq!((places.in_flight(), places.ended(Outcome::Abandoned)), (1, 1));
        let _third = places.admit(NOW).admitted().unwrap();
        assert_eq!(places.in_flight(), 2);
    }

    #[derive(Debug, Default)]
    struct Listening(std::sync::Mutex<Option<Ended>>);

    impl Places for Listening {
        fn give_back(&self, ended: Ended) {
            *self.0.lock().unwrap() = Some(ended);
        }
    }

    #[test]
    fn work_takes_the_time_since_it_began() {
        let places = Arc::new(Listening::default());
        let at = |millis| NOW.plus(Duration::from_millis(millis));
        let mut permit = Permit::new(Arc::<Listening>::clone(&places), at(0));
        permit.begin(at(300));
        permit.complete(at(310), Outcome::Ok);
        let ended = places.0.lock().unwrap().take().unwrap();
        assert_eq!((ended.took, ended.taken), (Some(Duration::from_millis(10)), at(300)));
    }

    #[test]
    fn a_completed_permit_ends_once_and_says_how() {
        let places = Arc::new(InFlight::new(1).unwrap());
        places.admit(NOW).admitted().unwrap().complete(NOW, Outcome::Overloaded);
        let ends = [Outcome::Ok, Outcome::Failed, Outcome::Overloaded, Outcome::Abandoned];
        assert_eq!(ends.map(|outcome| places.ended(outcome)), [0, 0, 1, 0]);
        places.admit(NOW).admitted().unwrap().undo();
        assert_eq!(places.in_flight(), 0);
        assert_eq!(
            ends.map(|outcome| places.ended(outcome)),
            [0, 0, 1, 0],
            "nothing began, so nothing ended"
        );
        assert_eq!(InFlight::new(0).unwrap_err().field, "limit");
    }
}
