//! Where the threads of a slice meet before the timing, and how they are timed.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// The start of a slice.
pub(crate) struct Start(Option<Barrier>);

/// A running measurement.
///
/// A thread alone is measured by the time it was on the processor: the rest is somebody else's program.
/// Threads that wait for each other must be measured by the wall, for waiting is what they do to each other.
pub(crate) enum Watch {
    Processor(Duration),
    Wall(Instant),
}

impl Start {
    pub(crate) fn of(threads: usize) -> Self {
        Self((threads > 1).then(|| Barrier::new(threads)))
    }

    /// Waits for the others, once everything is prepared.
    pub(crate) fn wait(&self) {
        if let Some(barrier) = &self.0 {
            barrier.wait();
        }
    }

    pub(crate) fn watch(&self) -> Watch {
        if self.0.is_some() { Watch::Wall(Instant::now()) } else { Watch::Processor(processor_time()) }
    }
}

impl Watch {
    pub(crate) fn elapsed(&self) -> Duration {
        match self {
            Self::Processor(began) => processor_time().saturating_sub(*began),
            Self::Wall(began) => began.elapsed(),
        }
    }
}

fn processor_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock_gettime(clock).map(Duration::from).expect("every thread has a clock of its own")
}
