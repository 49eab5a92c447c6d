//! What a contender is: something that decides on a slice of ids and tells how long it took.

use std::hint::black_box;
use std::time::Duration;

use crate::start::Start;

/// One rate limiter with its keys already in place.
pub(crate) trait Contender: Send + Sync {
    /// As the head of its column.
    fn name(&self) -> &'static str;

    /// The most decisions of a slice it makes, so that the slow ones do not take the whole run.
    fn most_decisions(&self) -> usize {
        usize::MAX
    }

    /// Whether its answers mean anything; the bare clock's do not.
    fn decides(&self) -> bool {
        true
    }

    /// Decides on `ids` in order while other threads do the same with others.
    fn shared(&self, ids: &[u64], start: &Start) -> Slice;

    /// Decides on `ids` in order, with nobody else about.
    fn alone(&mut self, ids: &[u64], start: &Start) -> Slice {
        self.shared(ids, start)
    }
}

/// What a slice of decisions came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice {
    /// The time of the decisions alone.
    pub(crate) elapsed: Duration,
    /// How many of them were a yes.
    pub(crate) admitted: usize,
}

/// Times one decision after the other; `decide` says whether it was a yes.
pub(crate) fn timed<T>(items: &[T], start: &Start, mut decide: impl FnMut(&T) -> bool) -> Slice {
    start.wait();
    let mut admitted = 0;
    let watch = start.watch();
    for item in items {
        admitted += usize::from(black_box(decide(item)));
    }
    Slice { elapsed: watch.elapsed(), admitted }
}

/// What every decision of a run will be. Every contender gets the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The quota is so large that everybody passes.
    Admitting,
    /// The quota was spent before, and comes back too slowly to matter.
    Refusing,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Admitting => "admitting",
            Self::Refusing => "refusing",
        }
    }

    /// Units granted per [`window`](Self::window).
    pub(crate) fn amount(self) -> u32 {
        match self {
            Self::Admitting => 2,
            Self::Refusing => 10,
        }
    }

    pub(crate) fn window(self) -> Duration {
        match self {
            Self::Admitting => Duration::from_secs(1),
            Self::Refusing => Duration::from_secs(86_400),
        }
    }

    /// The most at once. When admitting it must exceed all decisions of a run on one key (58 million),
    /// and take less than 400 days to fill, which is where our quotas end.
    pub(crate) fn burst(self) -> u32 {
        match self {
            Self::Admitting => 60_000_000,
            Self::Refusing => 10,
        }
    }

    /// What every key takes before the timing begins. When admitting it is 500 seconds' worth, so
    /// that no key falls idle and is forgotten during the run.
    pub(crate) fn first_cost(self) -> u32 {
        match self {
            Self::Admitting => 1_000,
            Self::Refusing => 10,
        }
    }

    /// The yeses among this many decisions.
    pub(crate) fn admitted_of(self, decisions: usize) -> usize {
        match self {
            Self::Admitting => decisions,
            Self::Refusing => 0,
        }
    }
}
