//! The pingora-limits crate: a rate estimator with a fixed number of counters.

use pingora_limits::rate::Rate;

use crate::contender::{Contender, Mode, Slice, timed};
use crate::start::Start;
use crate::stream::id;

/// Counts in four rows of 1 024 counters however many keys there are, so keys share counters and an
/// answer may be a no for a key that asked for nothing. It is here for the price, not for the answer.
pub(crate) struct Estimator {
    rate: Rate,
    most: isize,
}

impl Estimator {
    pub(crate) fn filled(keys: usize, mode: Mode) -> Self {
        let number = |number: u32| isize::try_from(number).unwrap_or(isize::MAX);
        let rate = Rate::new(mode.window() * (mode.burst() / mode.amount()));
        for index in 0..keys {
            rate.observe(&id(index), number(mode.first_cost()));
        }
        Self { rate, most: number(mode.burst()) }
    }
}

impl Contender for Estimator {
    fn name(&self) -> &'static str {
        "pingora-limits (estimates)"
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |id| self.rate.observe(id, 1) <= self.most)
    }
}
