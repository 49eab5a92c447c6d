//! Ours: the keyed table and the single counter, both with a token bucket; the adaptive mechanisms in files of
//! their own.

use std::error::Error;

use tidegate_core::keyed::{DueTable, MaxKeys};
use tidegate_core::rate::TokenBucket;
use tidegate_core::shell::{AtomicDue, Enrolled, Fine, Packed};
use tidegate_core::{Cost, Invalid, Moment, Quota};

use super::clock::Quanta;
use crate::contender::{Contender, Mode, Slice, timed};
use crate::start::Start;
use crate::stream::id;

pub(crate) mod breaker;
pub(crate) mod driven;
pub(crate) mod places;
pub(crate) mod retry;
pub(crate) mod shed;
pub(crate) mod throttle;

/// The head of our column.
pub(crate) const NAME: &str = "tidegate";
/// Ours without touching the key's counter before the clock is read.
pub(crate) const UNTOUCHED: &str = "tidegate, not touched";
/// Ours without a clock.
pub(crate) const TOLD: &str = "tidegate, told the moment";
/// Ours without keys.
pub(crate) const UNKEYED: &str = "tidegate, not keyed";

/// Any number will do here; a driver draws it at random, so that nobody can choose colliding keys.
const SEED: u64 = 0x5EED;

/// One key in so many may meet a stranger in its slot, who has spent the quota before it. The table keeps a
/// tag of its keys; it promises one in four million, and this leaves room for chance.
const SHARING: u64 = 500_000;

/// One key in so many may find no slot in a table sized for exactly its keys, and one in any table. About one
/// in a million does: of two thousand tables of 10 000 keys with different seeds, nine lack a slot.
const CROWDED_OUT: u64 = 250_000;

/// A table of keys with its driver's clock: one reading for each decision, after the counter was asked for.
pub(crate) struct Keyed {
    table: DueTable,
    rule: Enrolled<Packed>,
    clock: Quanta,
}

impl Keyed {
    /// A table sized for exactly these keys, with all of them in it.
    pub(crate) fn filled(keys: usize, mode: Mode) -> Result<Self, Box<dyn Error>> {
        Self::with_room(keys, keys, mode)
    }

    /// A table sized for `room` keys with the first `keys` in it.
    pub(crate) fn with_room(room: usize, keys: usize, mode: Mode) -> Result<Self, Box<dyn Error>> {
        let clock = Quanta::default();
        let table = DueTable::new(MaxKeys::new(room)?, SEED);
        let rule = table.enrol(&TokenBucket::new(quota(mode)?))?;
        let keyed = Self { table, rule, clock };
        let cost = Cost::of(mode.first_cost());
        let refused: u64 =
            (0..keys).map(|index| u64::from(!keyed.decide(id(index), keyed.now(), cost))).sum();
        let overflowed = keyed.table.overflowed();
        let strangers = refused.saturating_sub(overflowed);
        if strangers > keys as u64 / SHARING || overflowed > (keys as u64 / CROWDED_OUT).max(1) {
            return Err(
                format!("tidegate: of {keys} keys {strangers} share, {overflowed} have no room").into()
            );
        }
        Ok(keyed)
    }

    #[inline]
    fn now(&self) -> Moment {
        Moment::from_nanos(self.clock.nanos())
    }

    #[inline]
    fn decide(&self, id: u64, now: Moment, cost: Cost) -> bool {
        self.table.decide(&self.rule, self.table.key(&id), now, cost).is_admit()
    }
}

impl Contender for Keyed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |&id| {
            let key = self.table.key(&id);
            self.table.touch(key);
            self.table.decide(&self.rule, key, self.now(), Cost::ONE).is_admit()
        })
    }
}

/// The same table, asked as soon as the clock is read.
pub(crate) struct Untouched(pub(crate) Keyed);

impl Contender for Untouched {
    fn name(&self) -> &'static str {
        UNTOUCHED
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |&id| self.0.decide(id, self.0.now(), Cost::ONE))
    }
}

/// The same table told moments that nobody read from a clock: what the decision alone costs.
pub(crate) struct Told(pub(crate) Keyed);

impl Contender for Told {
    fn name(&self) -> &'static str {
        TOLD
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        let mut now = self.0.now().nanos();
        timed(ids, start, |&id| {
            now += 50;
            self.0.decide(id, Moment::from_nanos(now), Cost::ONE)
        })
    }
}

/// One counter for everybody, with its driver's clock.
pub(crate) struct Unkeyed {
    limiter: AtomicDue,
    rule: Enrolled<Fine>,
    clock: Quanta,
}

impl Unkeyed {
    /// A counter from which the first cost is taken.
    pub(crate) fn spent(mode: Mode) -> Result<Self, Box<dyn Error>> {
        let clock = Quanta::default();
        let now = Moment::from_nanos(clock.nanos());
        let limiter = AtomicDue::new();
        let rule = limiter.enrol(&TokenBucket::new(quota(mode)?))?;
        if !limiter.decide(&rule, now, Cost::of(mode.first_cost())).is_admit() {
            return Err("tidegate refused the first cost".into());
        }
        Ok(Self { limiter, rule, clock })
    }
}

impl Contender for Unkeyed {
    fn name(&self) -> &'static str {
        UNKEYED
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |_| {
            self.limiter.decide(&self.rule, Moment::from_nanos(self.clock.nanos()), Cost::ONE).is_admit()
        })
    }
}

fn quota(mode: Mode) -> Result<Quota, Invalid> {
    Quota::new(Cost::of(mode.amount()), mode.window())?.with_burst(Cost::of(mode.burst()))
}

/// The moment that a clock of everybody's kind shows.
fn now() -> Moment {
    Moment::from_nanos(Quanta::default().nanos())
}
