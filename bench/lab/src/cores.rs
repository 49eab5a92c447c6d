//! Who runs where: a core for what is measured, another for everything that makes it work.

use std::error::Error;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A core that a thread can be kept on; programs it starts stay there too.
#[derive(Clone, Copy, Debug)]
pub struct Core(usize);

/// Who runs where.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// The contender whose turn it is, alone.
    pub gateway: Core,
    /// The load, the upstream and this program.
    pub load: Core,
}

impl Cores {
    /// The first two cores that we may use.
    pub fn first() -> Result<Self, Box<dyn Error>> {
        match Core::all()?[..] {
            [gateway, load, ..] => Ok(Self { gateway, load }),
            _ => Err("gateway and load need a core each, and there is only one".into()),
        }
    }

    /// Lets the calling thread run on both.
    pub fn release(self) -> Result<(), Errno> {
        stay_on(&[self.gateway, self.load])
    }
}

impl Core {
    /// The cores we may use.
    pub fn all() -> Result<Vec<Self>, Errno> {
        let allowed = sched_getaffinity(Pid::from_raw(0))?;
        Ok((0..CpuSet::count()).filter(|&core| allowed.is_set(core) == Ok(true)).map(Self).collect())
    }

    /// Keeps the calling thread here.
    pub fn pin(self) -> Result<(), Errno> {
        stay_on(&[self])
    }
}

fn stay_on(cores: &[Core]) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(core.0)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}
