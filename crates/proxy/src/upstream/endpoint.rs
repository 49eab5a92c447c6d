//! One endpoint, over all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_policy::policy;

use super::connect::Connector;
use super::error::LastError;
use super::lane::{Lane, Line, Wanted};
use super::places::{Place, Places};
use super::reach::Reachability;
use super::{Call, CallFailure};
use crate::ticks::Ticks;

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
    pub(super) reach: Reachability,
    in_flight: AtomicUsize,
    /// When requests in flight were last more than none, in ticks.
    busy_since: AtomicU64,
    /// Smoothed time to the head of an answer, in microseconds; 0 while it never answered.
    latency: AtomicU64,
    /// When it was last measured, in ticks.
    measured: AtomicU64,
    /// Connections that could not be made.
    pub(crate) failures: AtomicU64,
    pub(crate) last_error: LastError,
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
            reach: Reachability::default(),
            in_flight: AtomicUsize::new(0),
            busy_since: AtomicU64::new(0),
            latency: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            last_error: LastError::default(),
        }
    }

    /// A connection over which one request can be sent.
    pub(super) async fn line(&self, call: &Call<'_>, wanted: Wanted) -> Result<Line, CallFailure> {
        Lane::line(self, call, wanted).await
    }

    /// Tries in the background whether it can be connected to again, if it is time for that.
    pub(super) fn try_again(self: &Arc<Self>, worker: usize, ticks: &Arc<Ticks>) {
        if self.reach.take_try(ticks.now())
            && let Some(place) = Place::take(&self.places)
        {
            tokio::spawn(Lane::try_again(Arc::clone(self), worker, place, Arc::clone(ticks)));
        }
    }

    /// The lane of a worker; every worker has one.
    pub(super) fn lane(&self, worker: usize) -> &Lane {
        &self.lanes[worker % self.lanes.len()]
    }

    pub(super) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Whether it has less to do than another: requests in flight, the next one included, times their length. Of equals,
    /// one that never answered comes first, to be known.
    pub(super) fn has_less_to_do(&self, other: &Self, now: u64) -> bool {
        let (own, others) = (self.pace(now), other.pace(now));
        let (own_load, others_load) = (self.load(own.beside(others)), other.load(others.beside(own)));
        own_load < others_load || own_load == others_load && own.last == 0
    }

    fn load(&self, latency: u64) -> u64 {
        (self.in_flight.load(Ordering::Relaxed) as u64 + 1).saturating_mul(latency)
    }

    /// How fast it is. While it owes answers and gives none, it is as slow at least as it has been silent.
    fn pace(&self, now: u64) -> Pace {
        let (measured, latency) =
            (self.measured.load(Ordering::Relaxed), self.latency.load(Ordering::Relaxed));
        let silent = if self.in_flight.load(Ordering::Relaxed) == 0 {
            0
        } else {
            now.saturating_sub(measured.max(self.busy_since.load(Ordering::Relaxed))).saturating_mul(1_000)
        };
        if silent > latency {
            return Pace { last: silent, faded: silent };
        }
        Pace { last: latency, faded: faded(latency, now.saturating_sub(measured)) }
    }

    /// The head of an answer took so long, or there was none for so long.
    pub(super) fn took(&self, now: u64, time: Duration) {
        let micros = micros(time);
        let age = now.saturating_sub(self.measured.load(Ordering::Relaxed));
        // Two workers may overwrite each other's; the next answers correct it.
        let smoothed = match faded(self.latency.load(Ordering::Relaxed), age) {
            0 => micros,
            before => (before * KEPT_EIGHTHS + micros) / (KEPT_EIGHTHS + 1),
        };
        self.latency.store(smoothed.max(1), Ordering::Relaxed);
        self.measured.store(now, Ordering::Relaxed);
    }

    /// There was no answer for so long, which tells something only if answers come sooner.
    pub(super) fn gave_nothing(&self, now: u64, time: Duration) {
        if micros(time) > self.pace(now).faded {
            self.took(now, time);
        }
    }

    /// Closes what has been idle for too long.
    pub(super) fn look_after(&self, worker: usize, now: u64) {
        self.lane(worker).look_after(now, self.upstream.idle_timeout);
    }

    /// Connections and requests in flight.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.places.taken(), self.in_flight.load(Ordering::Relaxed))
    }
}

/// How fast an endpoint is, in microseconds; 0 if it never answered.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// As it was measured last.
    last: u64,
    /// The same after some time in which nothing was measured.
    faded: u64,
}

impl Pace {
    /// What it counts in comparison with another. An endpoint that never answered, or not for a while, is taken for as
    /// fast as the other, not for faster: what is slow or dead would win every pair.
    fn beside(self, other: Self) -> u64 {
        match self.last {
            0 => other.last,
            last => self.faded.max(last.min(other.last)),
        }
        .max(1)
    }
}

/// What is left of a latency that was measured so many milliseconds ago.
fn faded(latency: u64, age: u64) -> u64 {
    latency >> (age / HALVED_AFTER).min(63)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(u64::MAX >> 8)
}

/// A request on its way to an endpoint, for a worker.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) worker: usize,
}

impl InFlight {
    pub(super) fn new(endpoint: &Arc<Endpoint>, worker: usize, now: u64) -> Self {
        if endpoint.in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            endpoint.busy_since.store(now, Ordering::Relaxed);
        }
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

    /// What it counts beside an endpoint that answers in 100 microseconds.
    fn counts(endpoint: &Endpoint, now: u64) -> u64 {
        endpoint.pace(now).beside(Pace { last: 100, faded: 100 })
    }

    #[test]
    fn what_was_slow_once_is_forgiven_in_time_and_not_preferred() {
        let endpoint = endpoint();
        endpoint.took(5_000, Duration::from_micros(800));
        assert_eq!(
            [5_000, 5_999, 6_000, 7_000, 100_000].map(|now| counts(&endpoint, now)),
            [800, 800, 400, 200, 100]
        );
        endpoint.took(6_000, Duration::from_micros(1_200));
        assert_eq!(counts(&endpoint, 6_000), 500, "seven eighths of what is left, and an eighth of the news");
    }

    #[test]
    fn what_never_answered_is_no_better_than_what_did() {
        let endpoint = Arc::new(endpoint());
        assert_eq!(counts(&endpoint, 0), 100);
        let _waiting = InFlight::new(&endpoint, 0, 1_000);
        assert_eq!([1_000, 1_250, 3_000].map(|now| counts(&endpoint, now)), [100, 250_000, 2_000_000]);
        endpoint.gave_nothing(61_000, Duration::from_secs(60));
        assert_eq!(counts(&endpoint, 61_000), 60_000_000, "it is known to be slow");
    }
}
