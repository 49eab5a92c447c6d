//! How much of the machine's time went to others.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// A stretch of time, from its beginning on.
#[derive(Debug)]
pub struct Stretch {
    began: Instant,
    stolen: Duration,
}

impl Stretch {
    pub fn begin() -> Self {
        Self { began: Instant::now(), stolen: stolen() }
    }

    pub fn length(&self) -> Duration {
        self.began.elapsed()
    }

    /// The share of all cores' time that a hypervisor has given to others since then, although there was work to do.
    pub fn stolen(&self) -> f64 {
        let cores = thread::available_parallelism().unwrap().get();
        (stolen() - self.stolen).div_duration_f64(self.began.elapsed()) / cores as f64
    }
}

/// What it has given to others since the machine was started.
fn stolen() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap();
    // User, nice, system, idle, iowait, irq, softirq, steal: in hundredths of a second.
    let ticks: u64 = all.split_whitespace().nth(7).unwrap().parse().unwrap();
    Duration::from_millis(ticks * 10)
}
