//! How quiet the machine was: processor time of the whole machine less what we used ourselves.

use std::error::Error;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use tidegate_load::machine::CoreTime;

use crate::process::Program;

/// A reading of both clocks.
pub struct Reading {
    at: Instant,
    /// Of all cores: everything but idling and waiting for disks; what a hypervisor took is in it.
    busy: Duration,
    /// Of this program, of those it waits for, and of those that still run.
    ours: Duration,
}

impl Reading {
    /// Reads them; `running` are the programs of ours that still run.
    pub fn now<'a>(running: impl Iterator<Item = &'a Program>) -> Result<Self, Box<dyn Error>> {
        let mut ours = used(UsageWho::RUSAGE_SELF)? + used(UsageWho::RUSAGE_CHILDREN)?;
        for program in running {
            ours += program.processor_time()?;
        }
        Ok(Self { at: Instant::now(), busy: CoreTime::so_far()?.busy, ours })
    }

    /// How many cores other programs kept busy since `earlier`, on average.
    pub fn others_since(&self, earlier: &Self) -> f64 {
        let busy = self.busy.saturating_sub(earlier.busy);
        let ours = self.ours.saturating_sub(earlier.ours);
        busy.saturating_sub(ours).as_secs_f64() / (self.at - earlier.at).as_secs_f64()
    }
}

fn used(who: UsageWho) -> Result<Duration, Box<dyn Error>> {
    let usage = getrusage(who)?;
    let span = |time: TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(u64::try_from(micros).unwrap_or_default())
    };
    Ok(span(usage.user_time()) + span(usage.system_time()))
}
