//! Where the threads of a slice meet before the timing, where they run, and how they are timed.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

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

/// A core that a thread can be kept on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core(usize);

impl Core {
    /// The cores we may use.
    pub(crate) fn all() -> Result<Vec<Self>, Errno> {
        let allowed = sched_getaffinity(Pid::from_raw(0))?;
        Ok((0..CpuSet::count()).filter(|&core| allowed.is_set(core) == Ok(true)).map(Self).collect())
    }

    /// Keeps the calling thread here.
    pub(crate) fn pin(self) -> Result<(), Errno> {
        let mut set = CpuSet::new();
        set.set(self.0)?;
        sched_setaffinity(Pid::from_raw(0), &set)
    }
}
