//! A steady rate that starts slowly after idleness.
//!
//! A service that has been idle has cold caches and closed connections. The full rate at once is
//! exactly what it cannot serve yet. So idleness must make the next requests *slower*, the opposite of a
//! token bucket, where it makes them faster.
//!
//! We keep a store of permits that fills while nobody comes, and let the price of a permit depend on the
//! store. A price is a length of time: at the full rate it is `s`, the time in which the quota grants one
//! unit. Up to a threshold, permits from the store cost `s` too. Above it the price rises along a
//! straight line to `c·s` for the last one, `c` being the cold factor:
//!
//! ```text
//! price
//!  c·s ┤                    ╱      threshold = W / 2s
//!      │                 ╱  │      full      = threshold + 2W / (s + c·s)
//!    s ┤──────────────╱     │
//!      │              │  W  │      the area under the line is time: the part above the
//!    0 ┼──────────────┼─────┤      threshold is exactly W, the warm-up
//!      0          threshold full   permits in the store
//! ```
//!
//! The store empties as requests come, so the price falls as we warm up, and from a full store it takes
//! the time W to reach the full rate. An idle store fills in W. A request does not pay its own price: it
//! is granted once what *earlier* ones owe has passed, and the next one waits for it. A large request
//! is thus granted at once and pays afterwards, but only up to `max_wait`, beyond which the next is refused.
//!
//! Whatever one request may cost, everybody after it waits for. So it costs at most what a full store holds and the
//! quota grants within `max_wait`, or one amount of the quota if that is more; what is above is refused for
//! ever. The price of that from cold is the **extent**. A true cost above its estimate is owed without having been asked
//! for, up to eight extents in all, and so no key is locked out for longer.
//!
//! 2 a second, W = 4 s, c = 3: s = 500 ms, threshold 4, full 8. Requests of one, from cold:
//!
//! | request     | 1       | 2       | 3       | 4      | 5      | 6      |
//! |-------------|---------|---------|---------|--------|--------|--------|
//! | store after | 7       | 6       | 5       | 4      | 3      | 2      |
//! | its price   | 1375 ms | 1125 ms | 875 ms  | 625 ms | 500 ms | 500 ms |
//! | it waits    | 0       | 1375 ms | 1125 ms | 875 ms | 625 ms | 500 ms |
//!
//! The first four prices sum up to W. With a `max_wait` of 2 s a request costs at most 8 + 4 = 12, which from cold are
//! 6 s for the store and 2 s beyond it: the extent is 8 s, and no key owes more than 64 s.
//!
//! To make that exact whatever the sizes of the requests, we never compute the price of a request alone. `worth(level)` is
//! the area from nothing up to a level of the store, rounded once; a price is the difference of two of those, and in a sum of
//! differences what lies between cancels. When the store is empty the level goes on below zero, along the line of `s`.
//!
//! Limits: the store says how long nobody came, not how warm the service is. Source: Guava's
//! `SmoothWarmingUp`, which computes the same in floating point.

use std::time::Duration;

use super::fixed_window::refuse_burst;
use super::window::Place;
use super::{Algorithm, Marks};
use crate::units::{Cost, Invalid, LONGEST, Moment, Quota, nanos_of};
use crate::verdict::{Charge, Reason, Retry, Usage, Verdict};

mod cold_factor;
mod store;

pub use cold_factor::ColdFactor;
use store::Store;

/// A steady rate that starts slowly after idleness, and lets requests wait for their turn.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::rate::{Algorithm, ColdFactor, WarmUp};
/// use tidegate_core::{Cost, Moment, Quota};
///
/// let quota = Quota::per_second(Cost::of(2))?;
/// let rule = WarmUp::new(quota, Duration::from_secs(4), ColdFactor::THREE, Duration::from_secs(2))?;
/// let mut state = rule.fresh(Moment::ORIGIN);
/// let mut wait = || rule.decide(&mut state, Moment::ORIGIN, Cost::ONE).admitted().map(|charge| charge.wait());
/// assert_eq!(wait(), Some(Duration::ZERO));
/// assert_eq!(wait(), Some(Duration::from_millis(1_375)));
/// assert_eq!(wait(), None); // it would have to wait 2.5 s
/// # Ok::<(), tidegate_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUp {
    store: Store,
    max_wait: Duration,
    /// The most that one request may cost.
    largest: Cost,
    /// The most nanoseconds that a key can owe, debts included.
    most_owed: u64,
}

/// How many extents a key can owe, as in the due family: an estimate may be wrong by seven of them.
const DEBT: u64 = 8;

impl WarmUp {
    /// The quota's rate, reached after `warm_up`; from cold, permits cost `cold_factor` times as much.
    /// Requests that would wait longer than `max_wait` are refused.
    ///
    /// # Errors
    /// When the quota names a burst, or the warm-up is zero, longer than 400 days, too short for the quota
    /// to grant anything in it, or so long that what it grants is beyond counting.
    pub fn new(
        quota: Quota,
        warm_up: Duration,
        cold_factor: ColdFactor,
        max_wait: Duration,
    ) -> Result<Self, Invalid> {
        refuse_burst(&quota)?;
        let store = Store::new(&quota, warm_up, cold_factor)?;
        let waiting = store.granted_in(nanos_of(max_wait.min(LONGEST)));
        let largest = store.amount().max(store.capacity().plus(waiting));
        let most_owed = store.price(store.full(), largest).saturating_mul(DEBT);
        Ok(Self { store, max_wait, largest, most_owed })
    }

    /// The state as it stands at `now`.
    fn at(&self, state: &Warmth, now: Moment) -> Warmth {
        let mut state = *state;
        match Place::of(now.nanos(), state.seen, nanos_of(self.store.window())) {
            Place::On(now) => state.seen = now,
            Place::Late(_) => {}
            Place::SetBack(now) => {
                // What is owed and what is stored stay; only the clock they are read on moves.
                state.due = now.saturating_add(state.due - state.seen);
                state.seen = now;
            }
        }
        if state.seen > state.due {
            let stored = u64::try_from(state.level).unwrap_or(0);
            let (stored, rest) = self.store.filled(stored, state.rest, state.seen - state.due);
            (state.level, state.rest) = (i128::from(stored), rest);
            state.due = state.seen;
        }
        state
    }

    fn check(&self, state: &Warmth, now: Moment, cost: Cost) -> Verdict<Duration> {
        if cost > self.largest {
            return Verdict::refuse(Reason::CostAboveBurst, Retry::Never);
        }
        let wait = Duration::from_nanos(state.due - state.seen);
        if wait > self.max_wait {
            let late = Duration::from_nanos(state.seen.saturating_sub(now.nanos()));
            return Verdict::refuse(Reason::WaitTooLong, Retry::After(late + (wait - self.max_wait)));
        }
        Verdict::Admit(wait)
    }

    fn take(&self, state: &mut Warmth, cost: Cost) {
        let due = state.due.saturating_add(self.store.price(state.level, cost));
        state.due = due.min(state.seen.saturating_add(self.most_owed));
        state.level = self.store.lowered(state.level, cost);
    }
}

impl Algorithm for WarmUp {
    type Time = Moment;
    type State = Warmth;

    /// Cold: nobody has come for as long as anybody knows.
    fn fresh(&self, now: Moment) -> Warmth {
        Warmth { level: self.store.full(), rest: 0, due: now.nanos(), seen: now.nanos() }
    }

    fn peek(&self, state: &Warmth, now: Moment, cost: Cost) -> Verdict<Duration> {
        self.check(&self.at(state, now), now, cost)
    }

    fn decide(&self, state: &mut Warmth, now: Moment, cost: Cost) -> Verdict<Charge> {
        *state = self.at(state, now);
        self.check(state, now, cost).map(|wait| {
            self.take(state, cost);
            Charge::new(cost, state.due).with_wait(wait)
        })
    }

    /// A smaller cost gives back as much of its price as is still owed, and puts the permits of that
    /// part back into the store.
    fn correct(&self, state: &mut Warmth, now: Moment, charge: &Charge, taken: Cost, true_cost: Cost) {
        *state = self.at(state, now);
        self.take(state, true_cost.minus(taken));
        let (raised, price) = self.store.raised(state.level, taken.minus(true_cost));
        let owed = state.due.min(charge.mark).saturating_sub(state.seen);
        let given = price.min(owed);
        state.due -= given;
        if given == price {
            state.level = raised;
        } else {
            let part = (raised - state.level).saturating_mul(i128::from(given)) / i128::from(price);
            state.level += part;
        }
    }

    fn usage(&self, state: &Warmth, now: Moment) -> Usage {
        let state = self.at(state, now);
        let owed = state.due - state.seen;
        let late = state.seen.saturating_sub(now.nanos());
        let reset = if owed == 0 { 0 } else { owed.saturating_add(late) };
        let (limit, used) = (self.store.amount(), self.store.units_in(owed));
        let is_open = Duration::from_nanos(owed) <= self.max_wait;
        let remaining = if is_open { limit.minus(used) } else { Cost::ZERO };
        Usage { limit, used, remaining, reset: Duration::from_nanos(reset) }
    }

    fn is_idle(&self, state: &Warmth, now: Moment) -> bool {
        self.at(state, now) == self.fresh(now)
    }

    /// What is owed stays the same in units, and the store stays as full as it was.
    fn carry(&self, before: &Self, state: &mut Warmth, now: Moment) {
        *state = before.at(state, now);
        if self.store != before.store {
            let owed = before.store.units_in(state.due - state.seen);
            state.level = self.store.as_full_as(&before.store, state.level);
            state.rest = 0;
            let owed = self.store.steady_price(owed).min(self.most_owed);
            state.due = state.seen.saturating_add(owed);
        }
    }

    /// A mark is a moment on the line of prices. Another line puts it elsewhere, and what others owe may lie there.
    fn marks(&self, before: &Self, _: &Warmth, _: Moment) -> Marks {
        if self.store == before.store { Marks::SAME } else { Marks::LOST }
    }
}

/// How warm one key is, and what it owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warmth {
    /// Millionths of a unit in the store; below zero, those granted since it was empty.
    level: i128,
    /// What the filling of the store has earned of the next millionth.
    rest: u64,
    /// Nanoseconds: when everything granted so far has been paid for. Never before `seen`.
    due: u64,
    /// Nanoseconds: the latest moment seen.
    seen: u64,
}

#[cfg(test)]
mod tests;
