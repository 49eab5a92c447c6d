//! The clock alone, to know how much of a decision is only reading it.

use std::hint::black_box;

use crate::contender::{Contender, Slice, timed};
use crate::start::Start;

/// The clock of governor as shipped, read the way governor reads it. Ours is told this reading too.
#[derive(Default)]
pub(crate) struct Quanta(quanta::Clock);

impl Quanta {
    /// Nanoseconds since the clock's own origin.
    pub(crate) fn nanos(&self) -> u64 {
        self.0.delta_as_nanos(0, self.0.raw())
    }
}

/// Two readings: when a request comes, and when it ends.
#[derive(Default)]
pub(crate) struct Twice(Quanta);

/// The head of its column.
pub(crate) const NAME: &str = "clock alone";

impl Contender for Quanta {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decides(&self) -> bool {
        false
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |&id| self.nanos() > id)
    }
}

impl Contender for Twice {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decides(&self) -> bool {
        false
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |_| black_box(self.0.nanos()) < self.0.nanos())
    }
}
