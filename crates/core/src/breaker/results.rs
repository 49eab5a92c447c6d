//! The results that count while a breaker is closed.

use super::rule::Window;
use crate::tally::Tally;
use crate::units::Moment;

/// A window over time is ten buckets: it forgets a tenth at a time.
const BUCKETS: usize = 10;

/// One result, as the window sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) is_failure: bool,
    pub(super) is_slow: bool,
}

/// What the window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Results in the window.
    pub requests: u64,
    /// Those that were failures.
    pub failures: u64,
    /// Those that were slow.
    pub slow: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Results {
    Last { marks: Box<[Mark]>, next: usize, counts: Counts },
    Over(Tally<3>),
}

impl Results {
    pub(super) fn new(window: Window, now: Moment) -> Self {
        match window {
            Window::Last(results) => {
                let mark = Mark { is_failure: false, is_slow: false };
                let results = usize::try_from(results).unwrap_or(1).max(1);
                Self::Last { marks: vec![mark; results].into(), next: 0, counts: Counts::default() }
            }
            Window::Over(window) => Self::Over(Tally::new(window, BUCKETS, now)),
        }
    }

    /// Counts a result; returns what the window then holds.
    pub(super) fn add(&mut self, now: Moment, mark: Mark) -> Counts {
        match self {
            Self::Last { marks, next, counts } => {
                if counts.requests == u64::try_from(marks.len()).unwrap_or(u64::MAX) {
                    counts.subtract(marks[*next]);
                }
                counts.add(mark);
                marks[*next] = mark;
                *next = (*next + 1) % marks.len();
                *counts
            }
            Self::Over(tally) => {
                Counts::of(tally.add(now, [1, u64::from(mark.is_failure), u64::from(mark.is_slow)]))
            }
        }
    }

    pub(super) fn counts(&mut self, now: Moment) -> Counts {
        match self {
            Self::Last { counts, .. } => *counts,
            Self::Over(tally) => Counts::of(tally.sums(now)),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Last { next, counts, .. } => (*next, *counts) = (0, Counts::default()),
            Self::Over(tally) => tally.clear(),
        }
    }
}

impl Counts {
    const fn of([requests, failures, slow]: [u64; 3]) -> Self {
        Self { requests, failures, slow }
    }

    fn add(&mut self, mark: Mark) {
        self.requests += 1;
        self.failures += u64::from(mark.is_failure);
        self.slow += u64::from(mark.is_slow);
    }

    fn subtract(&mut self, mark: Mark) {
        self.requests -= 1;
        self.failures -= u64::from(mark.is_failure);
        self.slow -= u64::from(mark.is_slow);
    }
}
