//! Our adaptive limit of what is in flight: take a place, give it back.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::concurrency::{Adaptive, Bounds, Controller, LimitAlgorithm, Objective, Windowing};
use tidegate_core::permit::{Outcome, Permit};
use tidegate_core::{Criticality, Invalid, Moment};

use super::driven::Mechanism;
use super::{NAME, now};
use crate::contender::{Contender, Slice};
use crate::contenders::clock::Quanta;
use crate::start::Start;

/// Takes a place and gives it back at once, with a permit that borrows the limiter.
pub(crate) struct Borrowed(Adaptive);

/// The same with a permit that owns a share of the limiter, as one does that travels into a future.
pub(crate) struct Owned(Arc<Adaptive>);

/// Takes places, and gives them back while nobody looks at the watch.
pub(crate) struct Admissions {
    limiter: Adaptive,
    clock: Quanta,
}

/// All places are taken.
pub(crate) struct Full {
    limiter: Arc<Adaptive>,
    _place: Permit,
}

const LEVEL: Criticality = Criticality::Critical;

/// Places taken before they are given back: so many that starting and stopping the watch does not count.
pub(crate) const AT_ONCE: usize = 1_000;

impl Borrowed {
    /// Starts with 20 places and never has less than two, so that two threads always find one.
    pub(crate) fn free(algorithm: impl LimitAlgorithm + 'static) -> Result<Self, Invalid> {
        Ok(Self(limiter(algorithm, Bounds::new(2..=400)?)?))
    }

    /// Starts with the one place that a single thread uses. A limit in full use moves, one with room rests.
    pub(crate) fn moving(algorithm: impl LimitAlgorithm + 'static) -> Result<Self, Invalid> {
        Ok(Self(limiter(algorithm, Bounds::new(1..=400)?.starting_at(1)?)?))
    }
}

impl Owned {
    pub(crate) fn free(algorithm: impl LimitAlgorithm + 'static) -> Result<Self, Invalid> {
        Ok(Self(Arc::new(limiter(algorithm, Bounds::new(2..=400)?)?)))
    }
}

impl Full {
    pub(crate) fn new(algorithm: impl LimitAlgorithm + 'static) -> Result<Self, Box<dyn Error>> {
        let limiter = Arc::new(limiter(algorithm, Bounds::exactly(1)?)?);
        let place = limiter.admit_shared(now(), LEVEL).admitted().ok_or("tidegate refused its only place")?;
        Ok(Self { limiter, _place: place })
    }
}

impl Mechanism for Borrowed {
    #[inline]
    fn serve(&self, mut clock: impl FnMut() -> Moment) -> bool {
        let permit = self.0.admit(clock(), LEVEL).admitted();
        permit.map(|permit| permit.complete(clock(), Outcome::Ok)).is_some()
    }
}

impl Mechanism for Owned {
    #[inline]
    fn serve(&self, mut clock: impl FnMut() -> Moment) -> bool {
        let permit = self.0.admit_shared(clock(), LEVEL).admitted();
        permit.map(|permit| permit.complete(clock(), Outcome::Ok)).is_some()
    }
}

impl Mechanism for Full {
    #[inline]
    fn serve(&self, mut clock: impl FnMut() -> Moment) -> bool {
        self.limiter.admit(clock(), LEVEL).is_admit()
    }
}

impl Admissions {
    /// With room for two threads.
    pub(crate) fn free(algorithm: impl LimitAlgorithm + 'static) -> Result<Self, Invalid> {
        let bounds = Bounds::new(2_500..=2_600)?.starting_at(2_500)?;
        Ok(Self { limiter: limiter(algorithm, bounds)?, clock: Quanta::default() })
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(self.clock.nanos())
    }
}

impl Contender for Admissions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        let mut slice = Slice::default();
        let mut permits = Vec::with_capacity(AT_ONCE);
        start.wait();
        for ids in ids.chunks(AT_ONCE) {
            let watch = start.watch();
            permits.extend(ids.iter().filter_map(|_| self.limiter.admit(self.now(), LEVEL).admitted()));
            slice.elapsed += watch.elapsed();
            slice.admitted += permits.len();
            permits.drain(..).for_each(|permit| permit.complete(self.now(), Outcome::Ok));
        }
        slice
    }
}

fn limiter(algorithm: impl LimitAlgorithm + 'static, bounds: Bounds) -> Result<Adaptive, Invalid> {
    let objective = Objective::half_of(Duration::from_secs(5))?;
    Ok(Adaptive::new(Controller::new(algorithm, bounds, objective), Windowing::default(), now()))
}
