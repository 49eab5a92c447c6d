//! Time for limits that need no precision.
//!
//! A connection that has been idle for 75 seconds may live a quarter of a second longer. So its reads and writes
//! do not look at a clock: they copy the tick that its worker renews a few times a second, and the worker compares.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Milliseconds since a worker began. Relaxed throughout: a tick is an instant, it guards nothing.
#[derive(Debug)]
pub(crate) struct Ticks {
    began: Instant,
    now: AtomicU64,
}

impl Ticks {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), now: AtomicU64::new(0) }
    }

    /// The tick of this moment, as it was last renewed.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Looks at the clock.
    pub(crate) fn renew(&self) -> u64 {
        let now = millis(self.began.elapsed());
        self.now.store(now, Ordering::Relaxed);
        now
    }
}

/// A length of time in ticks, at least one.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX).max(1)
}
