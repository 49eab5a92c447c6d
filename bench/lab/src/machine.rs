//! How quiet the machine was: processor time of the whole machine less what we used ourselves.

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::{SysconfVar, sysconf};

use crate::process::Program;

const NO_LINE: &str = "/proc/stat has no line for all cores";

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
        let ticks = sysconf(SysconfVar::CLK_TCK)?.ok_or("the kernel has no clock tick")?;
        let stat = fs::read_to_string("/proc/stat")?;
        let busy = busy_ticks(&stat).ok_or(NO_LINE)?;
        let busy = Duration::from_secs_f64(busy as f64 / ticks as f64);
        Ok(Self { at: Instant::now(), busy, ours })
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

/// What a hypervisor has taken from all cores together since the machine was started, in ticks of the kernel's clock.
pub fn stolen_ticks() -> Result<u64, Box<dyn Error>> {
    let [.., stolen] = fields(&fs::read_to_string("/proc/stat")?).ok_or(NO_LINE)?;
    Ok(stolen)
}

fn busy_ticks(stat: &str) -> Option<u64> {
    let [user, nice, system, _idle, _iowait, irq, softirq, stolen] = fields(stat)?;
    Some(user + nice + system + irq + softirq + stolen)
}

/// User, nice, system, idle, iowait, irq, softirq and steal; guests are in the first two.
fn fields(stat: &str) -> Option<[u64; 8]> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    fields.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_everything_but_idle_and_waiting_for_disks() {
        let stat = "cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 9 9 9 9 9 9 9 9 9 9\n";
        assert_eq!(busy_ticks(stat), Some(1 + 2 + 4 + 8 + 16 + 32));
        assert_eq!(busy_ticks("cpu  1 2 3\n"), None);
    }
}
