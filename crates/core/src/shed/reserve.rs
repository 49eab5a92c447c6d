//! A share of the places kept for critical requests.
//!
//! Shedding by signals answers trouble that is there. A reserve keeps some of it from coming: of all places,
//! a fifth, say, is never given to a request that could be shed, so a burst of batch work meets its bound
//! while a caller who matters still finds a place at once, without any controller having noticed anything.
//!
//! The simplest reserve bounds the sheddable requests to 80 of 100 places of their own. Then 60 critical
//! and 40 sheddable fill the service, a critical request is refused, and the next place that comes free
//! may go to a sheddable one: a level is refused while a lower one passes. So what counts is how many
//! places are taken *by anybody*: above 80, only critical requests get one.
//!
//! 100 places, a fifth kept:
//!
//! | taken   | sheddable, sheddable_plus | critical, critical_plus |
//! |---------|---------------------------|-------------------------|
//! | 0–79    | admitted                  | admitted                |
//! | 80–99   | refused: `reserved`       | admitted                |
//! | 100     | refused: `reserved`       | refused: `limit_reached`|
//!
//! What is critical enough is for the operator to say; without a word it is what users see fail.
//!
//! The share is taken in whole places, rounded up and never in floating point: 0.07 of 100 are 7, where
//! floating point makes it 7.000000000000001 and so 8. The price of a reserve is that it stands empty in
//! quiet times; keep it as small as the largest burst of critical work.
//!
//! Source: Stripe's fleet usage load shedder; trunk reservation in telephone networks.

use std::sync::Arc;
use std::time::Duration;

use crate::permit::{Ended, Permit, Places};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Criticality, Invalid, Moment, Ratio};
use crate::verdict::{Reason, Retry, Verdict};

/// How many places there are, and how many of them anybody may take. For one service or, with counts from
/// all of them, for a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    capacity: u64,
    open: u64,
    level: Criticality,
}

const MILLION: u64 = 1_000_000;

impl Reserve {
    /// Of `capacity` places, the share `kept`, rounded up, for critical requests.
    ///
    /// # Errors
    /// When nothing would be kept, or nothing left for the others.
    pub fn new(capacity: u32, kept: Ratio) -> Result<Self, Invalid> {
        let capacity = u64::from(capacity);
        let places = (capacity * millionths(kept)).div_ceil(MILLION);
        if places == 0 {
            return Err(Invalid::new("kept", kept.value(), "above 0 of at least one place"));
        }
        if places >= capacity {
            return Err(Invalid::new(
                "kept",
                kept.value(),
                "so little that one place is left for the others",
            ));
        }
        Ok(Self { capacity, open: capacity - places, level: Criticality::Critical })
    }

    /// The same, kept for requests of this criticality and above.
    #[must_use]
    pub const fn kept_for(self, level: Criticality) -> Self {
        Self { level, ..self }
    }

    /// How many places may be taken before a request of this criticality gets none.
    #[must_use]
    pub const fn ceiling(&self, criticality: Criticality) -> u64 {
        if self.is_kept_from(criticality) { self.open } else { self.capacity }
    }

    /// Whether a request of this criticality gets a place when so many are taken.
    pub const fn decide(&self, criticality: Criticality, taken: u64) -> Verdict<()> {
        if taken < self.ceiling(criticality) {
            return Verdict::Admit(());
        }
        let reason = if self.is_kept_from(criticality) { Reason::Reserved } else { Reason::LimitReached };
        Verdict::refuse(reason, Retry::After(Duration::ZERO))
    }

    const fn is_kept_from(&self, criticality: Criticality) -> bool {
        criticality.index() < self.level.index()
    }
}

/// The share to six decimals, which is what people write.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to a million")]
fn millionths(share: Ratio) -> u64 {
    (share.value() * 1e6).round() as u64
}

/// Places in flight with a reserve, shared by threads.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_core::shed::{Reserve, ReservedPlaces};
/// use tidegate_core::{Criticality, Moment, Ratio};
///
/// let places = Arc::new(ReservedPlaces::new(Reserve::new(2, Ratio::new(0.5)?)?));
/// let now = Moment::ORIGIN;
/// let _batch = places.admit(Criticality::Sheddable, now).admitted().expect("one is open");
/// assert!(!places.admit(Criticality::Sheddable, now).is_admit());
/// assert!(places.admit(Criticality::Critical, now).is_admit());
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Debug)]
pub struct ReservedPlaces {
    reserve: Reserve,
    taken: AtomicU64,
}

impl ReservedPlaces {
    /// All places free.
    #[must_use]
    pub fn new(reserve: Reserve) -> Self {
        Self { reserve, taken: AtomicU64::new(0) }
    }

    /// Takes a place if this criticality may have one.
    pub fn admit(self: &Arc<Self>, criticality: Criticality, now: Moment) -> Verdict<Permit> {
        // Taken and checked in one step; relaxed, since the count guards itself and publishes nothing else.
        let ceiling = self.reserve.ceiling(criticality);
        let free = |taken| (taken < ceiling).then_some(taken + 1);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free) {
            Ok(_) => Verdict::Admit(Permit::new(Arc::<Self>::clone(self), now)),
            Err(taken) => self.reserve.decide(criticality, taken).map(|()| unreachable!("it was refused")),
        }
    }

    /// How many places are taken.
    pub fn in_flight(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Places for ReservedPlaces {
    fn give_back(&self, _ended: Ended) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(capacity: u32, kept: f64) -> Result<Reserve, Invalid> {
        Reserve::new(capacity, Ratio::new(kept).unwrap())
    }

    #[test]
    fn places_are_given_as_in_the_example() {
        let reserve = reserve(100, 0.2).unwrap();
        let answer = |level, taken| reserve.decide(level, taken).refusal().map(|refusal| refusal.reason);
        for level in Criticality::ALL {
            assert_eq!(answer(level, 79), None);
            let is_critical = level >= Criticality::Critical;
            assert_eq!(answer(level, 80), (!is_critical).then_some(Reason::Reserved));
            let full = if is_critical { Reason::LimitReached } else { Reason::Reserved };
            assert_eq!((answer(level, 99).is_some(), answer(level, 100)), (!is_critical, Some(full)));
        }
    }

    #[test]
    fn places_are_kept_for_the_level_that_is_said_and_above() {
        let reserve = reserve(100, 0.2).unwrap();
        let ceilings = |level| Criticality::ALL.map(|asked| reserve.kept_for(level).ceiling(asked));
        assert_eq!(ceilings(Criticality::SheddablePlus), [80, 100, 100, 100]);
        assert_eq!(ceilings(Criticality::CriticalPlus), [80, 80, 80, 100]);
    }

    #[test]
    fn shares_are_whole_places_rounded_up() {
        let open = |capacity, kept| reserve(capacity, kept).unwrap().ceiling(Criticality::Sheddable);
        assert_eq!([open(100, 0.07), open(100, 0.29), open(3, 0.1), open(10, 0.101)], [93, 71, 2, 8]);
        assert_eq!(open(u32::MAX, 0.2), 3_435_973_836);
    }

    #[test]
    fn a_reserve_of_nothing_or_of_everything_is_refused() {
        for (capacity, kept) in [(100, 0.0), (100, 1.0), (1, 0.5), (0, 0.5)] {
            assert_eq!(reserve(capacity, kept).unwrap_err().field, "kept");
        }
    }

    #[test]
    fn a_place_comes_back_whoever_had_it() {
        let places = Arc::new(ReservedPlaces::new(reserve(2, 0.5).unwrap()));
        let critical = places.admit(Criticality::Critical, Moment::ORIGIN).admitted().unwrap();
        let refusal = places.admit(Criticality::SheddablePlus, Moment::ORIGIN).refusal().unwrap();
        assert_eq!(refusal.reason, Reason::Reserved);
        drop(critical);
        assert!(places.admit(Criticality::SheddablePlus, Moment::ORIGIN).is_admit());
        assert_eq!(places.in_flight(), 0);
    }
}
