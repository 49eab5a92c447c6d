//! What limiters with numbered windows share: where a moment falls, and one count per window.
//!
//! Windows are numbered, and a state remembers the number it has reached. A moment usually falls on
//! that number or after it. It may also fall before it, for one of two reasons that must not be mixed
//! up:
//!
//! - Two threads read the clock in one order and arrived in the other, around a boundary. The moment is
//!   a little *late*. It is counted in the window already reached; counting it in the window before, or
//!   going back to that one, would grant a quota anew at every such flip.
//! - The clock was *set back*. Waiting until the old time returns would lock the key out for an hour, so
//!   the state moves to the new number, and takes its counts along, so that nothing is granted anew.

use std::time::Duration;

use crate::units::{Cost, nanos_of};
use crate::verdict::{Reason, Retry, Usage, Verdict};

/// Where a moment falls, given the number a state has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At this number, which is the one reached or a later one.
    On(u64),
    /// A little behind: at the start of the number reached, which this is.
    Late(u64),
    /// Far behind: at this number, to which the state has to move.
    SetBack(u64),
}

impl Place {
    /// Places `now` for a state that has reached `seen`; up to `slack` behind is merely late.
    pub(super) const fn of(now: u64, seen: u64, slack: u64) -> Self {
        if now >= seen {
            Self::On(now)
        } else if seen - now <= slack {
            Self::Late(seen)
        } else {
            Self::SetBack(now)
        }
    }

    /// The number that counts as now.
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::On(number) | Self::Late(number) | Self::SetBack(number) => number,
        }
    }
}

/// What one key has consumed in the window it has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowCount {
    index: u64,
    count: Cost,
}

impl WindowCount {
    /// Nothing consumed in window `index`.
    pub(super) const fn new(index: u64) -> Self {
        Self { index, count: Cost::ZERO }
    }

    /// The window that counts.
    pub(super) const fn index(self) -> u64 {
        self.index
    }

    /// The count as it stands in window `index`: one window behind is late, more is a clock set back.
    pub(super) fn at(self, index: u64) -> Self {
        match Place::of(index, self.index, 1) {
            Place::On(index) if index > self.index => Self::new(index),
            Place::On(_) | Place::Late(_) => self,
            Place::SetBack(index) => self.moved(index),
        }
    }

    /// The same count in window `index`.
    pub(super) const fn moved(self, index: u64) -> Self {
        Self { index, ..self }
    }

    /// Whether `cost` fits under `limit` now; if not, it will when the window has ended.
    pub(super) fn check(self, limit: Cost, cost: Cost, until_end: Duration) -> Verdict<Duration> {
        if cost > limit {
            Verdict::refuse(Reason::CostAboveBurst, Retry::Never)
        } else if self.count > limit.minus(cost) {
            Verdict::refuse(Reason::QuotaSpent, Retry::After(until_end))
        } else {
            Verdict::Admit(Duration::ZERO)
        }
    }

    pub(super) const fn take(&mut self, cost: Cost) {
        self.count = self.count.plus(cost);
    }

    /// Corrects what a charge of window `mark` took. What an earlier window took is gone with it, but
    /// what it still owes is owed now.
    pub(super) fn correct(&mut self, mark: u64, taken: Cost, true_cost: Cost) {
        self.count = self.count.plus(true_cost.minus(taken));
        if mark == self.index {
            self.count = self.count.minus(taken.minus(true_cost));
        }
    }

    pub(super) fn usage(self, limit: Cost, until_end: Duration) -> Usage {
        let reset = if self.is_empty() { Duration::ZERO } else { until_end };
        Usage { limit, used: self.count, remaining: limit.minus(self.count), reset }
    }

    pub(super) fn is_empty(self) -> bool {
        self.count == Cost::ZERO
    }
}

/// A whole number of nanoseconds as a duration, saturating at 584 years.
pub(super) fn duration_of(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A duration in nanoseconds, for sums that must not overflow.
pub(super) fn wide_nanos(duration: Duration) -> u128 {
    u128::from(nanos_of(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_behind_is_late_and_further_behind_is_a_clock_set_back() {
        assert_eq!(Place::of(8, 7, 1), Place::On(8));
        assert_eq!(Place::of(7, 7, 1), Place::On(7));
        assert_eq!(Place::of(6, 7, 1), Place::Late(7));
        assert_eq!(Place::of(5, 7, 1), Place::SetBack(5));
    }

    #[test]
    fn a_count_ends_with_its_window_but_not_when_the_clock_goes_back() {
        let mut count = WindowCount::new(7);
        count.take(Cost::ONE);
        assert!(count.at(8).is_empty());
        assert_eq!(count.at(6), count);
        assert_eq!(count.at(3), count.moved(3));
    }
}
