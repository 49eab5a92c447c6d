//! The two cores: one for the gateway that is measured, one for everything that makes it work.

use std::error::Error;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A core that a thread can be kept on; programs it starts stay there too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core(usize);

/// Who runs where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    /// The contender whose turn it is, alone.
    pub(crate) gateway: Core,
    /// The load, the upstream and this program.
    pub(crate) load: Core,
}

impl Cores {
    /// The first two cores that we may use.
    pub(crate) fn first() -> Result<Self, Box<dyn Error>> {
        let allowed = sched_getaffinity(Pid::from_raw(0))?;
        let mut cores = (0..CpuSet::count()).filter(|&core| allowed.is_set(core) == Ok(true)).map(Core);
        match (cores.next(), cores.next()) {
            (Some(gateway), Some(load)) => Ok(Self { gateway, load }),
            _ => Err("gateway and load need a core each, and there is only one".into()),
        }
    }

    /// Lets the calling thread run on both.
    #[allow(dead_code, reason = "where there is always a gateway, nobody else may have its core")]
    pub(crate) fn release(self) -> Result<(), Errno> {
        let mut set = CpuSet::new();
        set.set(self.gateway.0)?;
        set.set(self.load.0)?;
        sched_setaffinity(Pid::from_raw(0), &set)
    }
}

impl Core {
    /// Keeps the calling thread here.
    pub(crate) fn pin(self) -> Result<(), Errno> {
        let mut set = CpuSet::new();
        set.set(self.0)?;
        sched_setaffinity(Pid::from_raw(0), &set)
    }
}
