//! Rate limiters: how much may pass per length of time.
//!
//! Each algorithm comes in two halves. The *rule* holds what the operator chose and never changes
//! (`TokenBucket`, `FixedWindow`, …). The *state* is what one key has consumed. A decision is a plain
//! step over both, given the moment and the cost:
//!
//! ```text
//! rule.decide(&mut state, now, cost) -> Verdict<Charge>
//! ```
//!
//! Kept apart, one rule serves a million states, one state can pass from an old rule to a new one
//! with what was consumed ([`Algorithm::carry`]), and threads are somebody else's concern
//! ([`shell`](crate::shell), [`keyed`](crate::keyed)).

mod calendar;
mod fixed_window;
mod leaky_bucket;
mod marks;
mod pace;
mod schedule;
mod sliding_log;
mod sliding_window;
mod smooth;
mod token_bucket;
mod warm_up;
mod window;

use std::fmt;
use std::time::Duration;

pub use calendar::{Calendar, Period, UtcOffset};
pub use fixed_window::FixedWindow;
pub use leaky_bucket::LeakyBucket;
pub use marks::Marks;
pub(crate) use schedule::{Correction, Reading, SLACK};
pub use schedule::{Due, DueRule, Schedule};
pub use sliding_log::{Log, SlidingLog};
pub use sliding_window::{BucketCounts, SlidingWindow};
pub use smooth::Smooth;
pub use token_bucket::TokenBucket;
pub use warm_up::{ColdFactor, WarmUp, Warmth};
pub use window::WindowCount;

use crate::units::{Cost, Time};
use crate::verdict::{Charge, Usage, Verdict};

/// The rule half of a rate limiter: pure steps over a state that somebody else keeps.
pub trait Algorithm: fmt::Debug {
    /// What it is told as "now": a [`Moment`](crate::Moment), or a [`WallTime`](crate::WallTime) where the
    /// calendar counts.
    type Time: Time;

    /// What one key has consumed.
    type State: fmt::Debug;

    /// The state of a key never seen before.
    fn fresh(&self, now: Self::Time) -> Self::State;

    /// Makes a state, whichever rule of this kind wrote it, what [`fresh`](Self::fresh) makes, and keeps its memory.
    fn renew(&self, state: &mut Self::State, now: Self::Time) {
        *state = self.fresh(now);
    }

    /// The most memory in bytes that one state takes from the heap, where it takes any. A fresh one has none yet.
    fn most_heap(&self) -> usize {
        0
    }

    /// What [`decide`](Self::decide) would answer, with the wait it would ask for; changes nothing.
    fn peek(&self, state: &Self::State, now: Self::Time, cost: Cost) -> Verdict<Duration>;

    /// Takes `cost` if it fits. A refusal changes nothing that a later answer could show.
    fn decide(&self, state: &mut Self::State, now: Self::Time, cost: Cost) -> Verdict<Charge>;

    /// Corrects a charge that took `taken` to `true_cost`. Called once a charge, by [`settle`](Self::settle).
    ///
    /// Giving back never gives more than was taken and has not been granted anew since; taking more
    /// may leave the key in debt, which later requests wait out.
    fn correct(
        &self,
        state: &mut Self::State,
        now: Self::Time,
        charge: &Charge,
        taken: Cost,
        true_cost: Cost,
    );

    /// How much is used, and when nothing will be.
    fn usage(&self, state: &Self::State, now: Self::Time) -> Usage;

    /// Whether the state answers every question as a fresh one would, so that it may be forgotten.
    fn is_idle(&self, state: &Self::State, now: Self::Time) -> bool;

    /// Re-expresses a state written under `before` so that this rule can go on with it: the units
    /// consumed stay consumed.
    fn carry(&self, before: &Self, state: &mut Self::State, now: Self::Time);

    /// What the marks of charges that `before` made will be to this rule once it has [carried](Self::carry) the
    /// state at `now`. By default nobody can tell.
    fn marks(&self, before: &Self, state: &Self::State, now: Self::Time) -> Marks {
        let _ = (before, state, now);
        Marks::LOST
    }

    /// Settles a charge to its true cost, smaller or larger than what was taken. Doing it twice
    /// changes nothing.
    fn settle(&self, state: &mut Self::State, now: Self::Time, charge: &mut Charge, true_cost: Cost) {
        if let Some(taken) = charge.close(true_cost) {
            self.correct(state, now, charge, taken, true_cost);
        }
    }

    /// Gives a charge back. Doing it twice changes nothing.
    fn refund(&self, state: &mut Self::State, now: Self::Time, charge: &mut Charge) {
        self.settle(state, now, charge, Cost::ZERO);
    }
}
