//! How much of the machine's time went to others.

use std::thread;
use std::time::{Duration, Instant};

use tidegate_load::machine::CoreTime;

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

fn stolen() -> Duration {
    CoreTime::so_far().unwrap().stolen
}
