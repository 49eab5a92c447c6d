//! What has become of a run so far, for whoever watches it.
//!
//! A report is exact and comes at the end. These are counts that every thread adds to and anybody may read at
//! any time: the difference of two readings is what happened between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The requests of a class that have ended so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// With a 2xx.
    pub ok: u64,
    /// With 429 or 503.
    pub refused: u64,
    /// With another answer, with none, or without being sent.
    pub failed: u64,
    /// How long those with a 2xx took, added up.
    pub latency: Duration,
}

impl SoFar {
    /// How many have ended.
    #[must_use]
    pub const fn ended(&self) -> u64 {
        self.ok + self.refused + self.failed
    }

    /// What was added since an earlier reading.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            ok: self.ok.saturating_sub(earlier.ok),
            refused: self.refused.saturating_sub(earlier.refused),
            failed: self.failed.saturating_sub(earlier.failed),
            latency: self.latency.saturating_sub(earlier.latency),
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Ok(Duration),
    Refused,
    Failed,
}

/// Counts of every class that threads share.
#[derive(Clone, Debug)]
pub(crate) struct Live(Arc<[Counts]>);

#[derive(Debug, Default)]
struct Counts {
    ok: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
}

impl Live {
    pub(crate) fn new(classes: usize) -> Self {
        Self((0..classes).map(|_| Counts::default()).collect())
    }

    pub(crate) fn count(&self, class: usize, kind: Kind) {
        let Some(counts) = self.0.get(class) else { return };
        // Nothing else is published with the counts, so they need no order.
        match kind {
            Kind::Ok(latency) => {
                counts.ok.fetch_add(1, Ordering::Relaxed);
                counts.micros.fetch_add(crate::latencies::micros(latency), Ordering::Relaxed)
            }
            Kind::Refused => counts.refused.fetch_add(1, Ordering::Relaxed),
            Kind::Failed => counts.failed.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Class by class.
    pub(crate) fn so_far(&self) -> Vec<SoFar> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let classes = self.0.iter().map(|counts| SoFar {
            ok: read(&counts.ok),
            refused: read(&counts.refused),
            failed: read(&counts.failed),
            latency: Duration::from_micros(read(&counts.micros)),
        });
        classes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_readings_is_what_happened_between_them() {
        let live = Live::new(2);
        live.count(1, Kind::Ok(Duration::from_millis(3)));
        let before = live.so_far();
        live.count(1, Kind::Ok(Duration::from_millis(5)));
        live.count(1, Kind::Refused);
        live.clone().count(0, Kind::Failed);
        live.count(2, Kind::Failed);
        let now = live.so_far();
        let expected = SoFar { ok: 1, refused: 1, failed: 0, latency: Duration::from_millis(5) };
        assert_eq!(now[1].since(&before[1]), expected);
        assert_eq!((now[0].ended(), now[1].ended()), (1, 3));
    }
}
