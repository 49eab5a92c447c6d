//! What a process uses, as the system tells it.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::gateway::support::Gateway;

pub const KIB: u64 = 1024;
pub const MIB: u64 = 1024 * KIB;

/// The memory a gateway holds now.
pub fn memory(gateway: &Gateway) -> u64 {
    status(gateway, "VmRSS:")
}

/// The most memory it ever held.
pub fn peak_memory(gateway: &Gateway) -> u64 {
    status(gateway, "VmHWM:")
}

fn status(gateway: &Gateway, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib * KIB
}

/// The processor time it has used.
pub fn processor_time(gateway: &Gateway) -> Duration {
    processor_time_of(gateway.pid())
}

/// The processor time that a process has used.
pub fn processor_time_of(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name of the program stands in parentheses and may hold anything; behind it the state is the third field.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = |field: usize| -> u64 { fields.split(' ').nth(field - 3).unwrap().parse().unwrap() };
    // User and system time are fields 14 and 15, in hundredths of a second.
    Duration::from_millis((ticks(14) + ticks(15)) * 10)
}

/// How much more memory a gateway may hold than at some moment.
#[derive(Debug)]
pub struct Bound {
    before: u64,
    growth: u64,
}

impl Bound {
    pub fn of(gateway: &Gateway, growth: u64) -> Self {
        Self { before: memory(gateway), growth }
    }

    /// Checks the most it ever held.
    #[track_caller]
    pub fn check(&self, gateway: &Gateway) -> u64 {
        let grown = peak_memory(gateway).saturating_sub(self.before);
        assert!(grown < self.growth, "memory grew by {} KiB from {} KiB", grown / KIB, self.before / KIB);
        grown
    }
}

/// Lets this process open as many files as a test needs.
pub fn need_files(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    assert!(most >= count, "this test needs {count} open files, and the system allows {most}");
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
}
