//! A mechanism of ours with its driver: somebody who reads a clock, or only pretends to.

use std::time::Duration;

use tidegate_core::Moment;

use super::{NAME, TOLD};
use crate::contender::{Contender, Slice, timed};
use crate::contenders::clock::Quanta;
use crate::start::Start;

/// What decides over one request, from its arrival to its end if the mechanism wants to know the end.
pub(crate) trait Mechanism: Send + Sync {
    /// Whether a request passes. Reads `clock` as often as the mechanism wants a moment.
    fn serve(&self, clock: impl FnMut() -> Moment) -> bool;
}

/// A mechanism whose driver reads the clock of all other measurements.
pub(crate) struct Reading<M> {
    mechanism: M,
    clock: Quanta,
}

impl<M> Reading<M> {
    pub(crate) fn new(mechanism: M) -> Self {
        Self { mechanism, clock: Quanta::default() }
    }
}

impl<M: Mechanism> Contender for Reading<M> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        timed(ids, start, |_| self.mechanism.serve(|| Moment::from_nanos(self.clock.nanos())))
    }
}

/// A mechanism told moments that nobody read from a clock: what it costs by itself.
pub(crate) struct Told<M> {
    mechanism: M,
    clock: Quanta,
    /// From one moment to the next.
    step: u64,
}

/// Less than any decision takes, so that the told time never runs ahead of the clock, and the next slice
/// does not begin in the past of this one.
const SHORT: u64 = 2;

impl<M> Told<M> {
    pub(crate) fn new(mechanism: M) -> Self {
        Self { mechanism, clock: Quanta::default(), step: SHORT }
    }

    /// With steps so long that the windows of the mechanism open and close on the way.
    pub(crate) fn stepping(mechanism: M, step: Duration) -> Self {
        let step = u64::try_from(step.as_nanos()).unwrap_or(SHORT);
        Self { step, ..Self::new(mechanism) }
    }
}

impl<M: Mechanism> Contender for Told<M> {
    fn name(&self) -> &'static str {
        TOLD
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        let mut now = self.clock.nanos();
        timed(ids, start, |_| {
            self.mechanism.serve(|| {
                now += self.step;
                Moment::from_nanos(now)
            })
        })
    }
}
