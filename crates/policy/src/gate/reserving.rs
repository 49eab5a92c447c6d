//! A share of the places kept for what matters, of a capacity that may move.
//!
//! The arithmetic is that of [`Reserve`](tidegate_core::shed::Reserve); the places are those of a rule that counts what
//! is in flight, with one key for everybody, so they come back as those do. What is new is that the capacity may be
//! an upstream's limit, which moves: it is told every half a second and read with every request, together with what
//! is open to anybody, from one word.
//!
//! Only who is below the level is refused. The others are counted, so that they take places from those below, and let
//! through however many they are: the upstream has a limit of its own, and a queue in which they may wait.
//!
//! | limit told | a fifth kept | 85 in flight: sheddable | critical |
//! |---|---|---|---|
//! | 100 | 80 open | refused | admitted |
//! | 120 | 96 open | admitted | admitted |
//! | 60 | 48 open | refused, until 38 have ended | admitted, and waits at the upstream |
//!
//! A limit so small that the share would be all of it leaves one place open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::keyed::{ForeseenPlace, InFlightTable, Key, Place};
use tidegate_core::shed;
use tidegate_core::{Criticality, Reason, Refusal, Retry, Verdict};

use crate::policy::{Capacity, Concurrency, Reserve};

/// The limits of upstreams, by name, as they were told last.
pub(crate) type ToldLimits = Vec<(Arc<str>, u32)>;

/// What a reserve says to those it refuses. Nobody knows when a place will be free.
const RESERVED: Refusal = Refusal { reason: Reason::Reserved, retry: Retry::After(Duration::ZERO) };

/// The places of one reserve rule.
#[derive(Debug)]
pub(crate) struct Reserved {
    table: Arc<InFlightTable>,
    spec: Reserve,
    /// The capacity in the upper half, what is open to anybody in the lower. It publishes nothing but itself, so
    /// relaxed ordering is enough.
    word: AtomicU64,
}

impl Reserved {
    /// The places in `table`.
    pub(crate) fn new(table: Arc<InFlightTable>, spec: &Reserve, told: &[(Arc<str>, u32)]) -> Self {
        let capacity = match &spec.capacity {
            Capacity::Places(places) => *places,
            Capacity::Upstream(name) => limit_of(told, name).unwrap_or_else(|| Concurrency::default().max),
        };
        let reserved = Self { table, spec: spec.clone(), word: AtomicU64::new(0) };
        reserved.resize(capacity);
        reserved
    }

    /// Takes in the limits of upstreams, if its capacity is one of them.
    pub(crate) fn follow(&self, told: &[(Arc<str>, u32)]) {
        if let Capacity::Upstream(name) = &self.spec.capacity
            && let Some(limit) = limit_of(told, name)
        {
            self.resize(limit);
        }
    }

    fn resize(&self, capacity: u32) {
        let capacity = capacity.max(1);
        let open = shed::Reserve::new(capacity, self.spec.kept)
            .map_or(1, |reserve| u32::try_from(reserve.ceiling(Criticality::Sheddable)).unwrap_or(capacity));
        self.word.store(u64::from(capacity) << 32 | u64::from(open), Ordering::Relaxed);
    }

    /// How many places there are, and how many of them are open to anybody.
    pub(crate) fn room(&self) -> Room {
        let word = self.word.load(Ordering::Relaxed);
        Room { capacity: upper(word), open: upper(word << 32) }
    }

    /// How many places a request of this criticality may find taken.
    fn ceiling(&self, criticality: Criticality) -> u32 {
        if criticality < self.spec.level { self.room().open } else { u32::MAX }
    }

    /// From which criticality on nobody is refused.
    pub(crate) const fn level(&self) -> Criticality {
        self.spec.level
    }

    pub(crate) fn in_flight(&self, key: Key) -> u32 {
        self.table.in_flight(key)
    }

    pub(crate) fn touch(&self, key: Key) {
        self.table.touch(key);
    }

    pub(crate) fn peek(&self, key: Key, criticality: Criticality) -> Option<Refusal> {
        self.table.peek(key, self.ceiling(criticality)).refusal().map(|_| RESERVED)
    }

    pub(crate) fn foresee(&self, key: Key, criticality: Criticality) -> Option<Verdict<ForeseenPlace<'_>>> {
        self.table.foresee(key, self.ceiling(criticality)).map(in_own_words)
    }

    pub(crate) fn take(&self, key: Key, criticality: Criticality) -> Verdict<Place> {
        in_own_words(self.table.take(key, self.ceiling(criticality)))
    }
}

/// How many places there are, and how many of them are open to anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) capacity: u32,
    pub(crate) open: u32,
}

fn in_own_words<T>(verdict: Verdict<T>) -> Verdict<T> {
    match verdict {
        Verdict::Admit(taken) => Verdict::Admit(taken),
        Verdict::Refuse(_) => Verdict::Refuse(RESERVED),
    }
}

const fn upper(word: u64) -> u32 {
    (word >> 32) as u32
}

fn limit_of(told: &[(Arc<str>, u32)], upstream: &str) -> Option<u32> {
    told.iter().find(|(name, _)| **name == *upstream).map(|(_, limit)| *limit)
}

#[cfg(test)]
mod tests {
    use tidegate_core::Ratio;
    use tidegate_core::keyed::MaxKeys;

    use super::*;

    fn reserved(capacity: Capacity, told: &[(Arc<str>, u32)]) -> Reserved {
        let table = Arc::new(InFlightTable::new(MaxKeys::new(1).unwrap(), 7));
        let spec = Reserve { capacity, level: Criticality::Critical, kept: Ratio::new(0.2).unwrap() };
        Reserved::new(table, &spec, told)
    }

    #[test]
    fn a_moving_limit_opens_and_closes_places_as_in_the_example() {
        let orders = || Capacity::Upstream("orders".into());
        let places = reserved(orders(), &[("orders".into(), 1_000)]);
        assert_eq!(places.room(), Room { capacity: 1_000, open: 800 });
        let key = places.table.key(&());
        let _held: Vec<_> =
            (0..85).map(|_| places.take(key, Criticality::Critical).admitted().unwrap()).collect();
        for (limit, sheddable) in [(100, Some(Reason::Reserved)), (120, None), (60, Some(Reason::Reserved))] {
            places.follow(&[("other".into(), 7), ("orders".into(), limit)]);
            let answer = |level| places.peek(key, level).map(|refusal| refusal.reason);
            assert_eq!(answer(Criticality::SheddablePlus), sheddable, "{limit}");
            assert_eq!(answer(Criticality::CriticalPlus), None, "{limit}");
        }
        places.follow(&[]);
        assert_eq!(places.room(), Room { capacity: 60, open: 48 }, "what is not told stays");
        assert_eq!(reserved(orders(), &[("orders".into(), 30)]).room(), Room { capacity: 30, open: 24 });
    }

    #[test]
    fn one_place_stays_open_however_small_the_limit() {
        for limit in [0, 1] {
            let places = reserved(Capacity::Places(limit), &[]);
            assert_eq!(places.room(), Room { capacity: 1, open: 1 });
        }
    }
}
