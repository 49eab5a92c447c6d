//! A time-out shared by threads.
//!
//! Reading it is one load. Recording takes a short mutex: a count in a table, and once an interval a walk
//! through it. Ordering: relaxed, since the word is the whole message.

use std::time::Duration;

use super::{AdaptiveTimeout, Sample, TimeoutRule};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::units::{Moment, nanos_of};

/// A time-out that follows the response times, shared by threads.
///
/// ```
/// use tidegate_core::Moment;
/// use tidegate_core::timeout::{Sample, SharedTimeout, TimeoutRule};
///
/// let timeout = SharedTimeout::new(TimeoutRule::default(), Moment::ORIGIN);
/// let given = timeout.timeout();
/// timeout.record(Moment::ORIGIN, Sample::TimedOut(given));
/// ```
#[derive(Debug)]
pub struct SharedTimeout {
    nanos: AtomicU64,
    machine: Mutex<AdaptiveTimeout>,
}

impl SharedTimeout {
    /// A time-out that has seen nothing: its ceiling.
    #[must_use]
    pub fn new(rule: TimeoutRule, now: Moment) -> Self {
        let machine = AdaptiveTimeout::new(rule, now);
        Self { nanos: AtomicU64::new(nanos_of(machine.timeout())), machine: Mutex::new(machine) }
    }

    /// How long to wait for an answer.
    #[inline]
    pub fn timeout(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    /// Learns how long an attempt took that ended at `now`.
    pub fn record(&self, now: Moment, sample: Sample) {
        let mut machine = lock(&self.machine);
        machine.record(now, sample);
        self.nanos.store(nanos_of(machine.timeout()), Ordering::Relaxed);
    }

    /// Stops learning: the breaker is not closed, or requests are being shed.
    pub fn freeze(&self) {
        lock(&self.machine).freeze();
    }

    /// Learns again, from attempts that begin at `now` or later.
    pub fn thaw(&self, now: Moment) {
        lock(&self.machine).thaw(now);
    }
}
