//! How long an upstream takes until the head of its answer, of all that it answered.
//!
//! What gives no answer has no such time: it is counted among the attempts by how it ended. Work whose caller has gone is
//! counted like any other.

use std::sync::Arc;
use std::time::Duration;

use crate::figures::{Buckets, Durations};

/// The times of an upstream, by worker.
#[derive(Clone, Debug)]
pub(super) struct Latencies(Arc<[Stripe]>);

/// One worker's, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(Buckets);

impl Latencies {
    pub(super) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Stripe::default()).collect())
    }

    /// An answer's head came after so long.
    pub(super) fn took(&self, worker: usize, time: Duration) {
        if let Some(Stripe(buckets)) = self.0.get(worker) {
            buckets.add(time);
        }
    }

    pub(super) fn sum(&self) -> Durations {
        let mut sum = Durations::default();
        self.0.iter().for_each(|Stripe(buckets)| buckets.add_to(&mut sum));
        sum
    }
}
