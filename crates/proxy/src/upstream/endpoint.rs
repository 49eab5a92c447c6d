//! One endpoint, over all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_policy::policy;

use super::CallFailure;
use super::connect::Connector;
use super::lane::{Lane, Line, Places, Wanted};

/// How long an endpoint that cannot be connected to is passed over, in milliseconds.
const PASSED_OVER: u64 = 1_000;

/// How much of the smoothed latency stays with each answer: seven eighths.
const KEPT_EIGHTHS: u64 = 7;

/// After so many milliseconds without an answer the latency counts half: what was slow once is asked again.
const HALVED_AFTER: u64 = 1_000;

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) spec: policy::Endpoint,
    pub(crate) upstream: Arc<policy::Upstream>,
    pub(super) connector: Connector,
    /// By worker.
    lanes: Vec<Lane>,
    pub(super) places: Arc<Places>,
    in_flight: AtomicUsize,
    /// Smoothed time to the head of an answer, in microseconds.
    latency: AtomicU64,
    /// When it was last measured, in ticks.
    measured: AtomicU64,
    unwell_until: AtomicU64,
    pub(crate) failures: AtomicU64,
}

impl Endpoint {
    pub(super) fn new(
        upstream: &Arc<policy::Upstream>,
        spec: &policy::Endpoint,
        workers: usize,
        connector: Connector,
    ) -> Self {
        Self {
            spec: spec.clone(),
            upstream: Arc::clone(upstream),
            connector,
            lanes: (0..workers).map(|_| Lane::default()).collect(),
            places: Arc::new(Places::new(upstream.max_connections)),
            in_flight: AtomicUsize::new(0),
            latency: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            unwell_until: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// A connection over which one request can be sent.
    pub(super) async fn line(&self, worker: usize, now: u64, wanted: Wanted) -> Result<Line, CallFailure> {
        Lane::line(self, worker, now, wanted).await
    }

    /// The lane of a worker; every worker has one.
    pub(super) fn lane(&self, worker: usize) -> &Lane {
        &self.lanes[worker % self.lanes.len()]
    }

    pub(super) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// How much it has to do: requests in flight, the next one included, times their length.
    pub(super) fn load(&self, now: u64) -> u64 {
        let in_flight = self.in_flight.load(Ordering::Relaxed) as u64 + 1;
        in_flight.saturating_mul(self.latency(now).max(1))
    }

    /// The smoothed latency, fading while nobody measures it.
    fn latency(&self, now: u64) -> u64 {
        let age = now.saturating_sub(self.measured.load(Ordering::Relaxed)) / HALVED_AFTER;
        self.latency.load(Ordering::Relaxed) >> age.min(63)
    }

    /// An answer's head came after so long.
    pub(super) fn took(&self, now: u64, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 8).min(u64::MAX >> 8);
        // Two workers may overwrite each other's; the next answers correct it.
        let smoothed = match self.latency(now) {
            0 => micros,
            before => (before * KEPT_EIGHTHS + micros) / (KEPT_EIGHTHS + 1),
        };
        self.latency.store(smoothed.max(1), Ordering::Relaxed);
        self.measured.store(now, Ordering::Relaxed);
    }

    pub(super) fn is_up(&self, now: u64) -> bool {
        self.unwell_until.load(Ordering::Relaxed) <= now
    }

    pub(super) fn is_well(&self) {
        if self.unwell_until.load(Ordering::Relaxed) != 0 {
            self.unwell_until.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn is_unwell(&self, now: u64) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.unwell_until.store(now + PASSED_OVER, Ordering::Relaxed);
    }

    pub(super) fn look_after(&self, worker: usize, now: u64) {
        self.lane(worker).look_after(now, self.upstream.idle_timeout);
    }

    /// Connections and requests in flight.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.places.taken(), self.in_flight.load(Ordering::Relaxed))
    }
}

/// A request on its way to an endpoint, for a worker.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) worker: usize,
}

impl InFlight {
    pub(super) fn new(endpoint: &Arc<Endpoint>, worker: usize) -> Self {
        endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
        Self { endpoint: Arc::clone(endpoint), worker }
    }

    /// The worker's lane to the endpoint.
    pub(super) fn lane(&self) -> &Lane {
        self.endpoint.lane(self.worker)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.endpoint.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        let spec = policy::Endpoint::new(false, "a", None);
        let upstream = policy::Upstream::new("a", vec![spec.clone()]);
        Endpoint::new(&Arc::new(upstream), &spec, 1, Connector::new(false))
    }

    #[test]
    fn what_was_slow_once_is_forgiven_in_time() {
        let endpoint = endpoint();
        endpoint.took(5_000, Duration::from_micros(800));
        assert_eq!(
            [5_000, 5_999, 6_000, 7_000, 100_000].map(|now| endpoint.load(now)),
            [800, 800, 400, 200, 1]
        );
        endpoint.took(6_000, Duration::from_micros(1_200));
        assert_eq!(endpoint.load(6_000), 500, "seven eighths of what is left, and an eighth of the news");
    }
}
