//! The services behind the gateway: which endpoint is asked, over which connection.
//!
//! Every worker keeps its own connections (a *lane* to each endpoint), so that no request waits for another worker's
//! lock; the number of connections to an endpoint is bounded over all of them. Of two endpoints drawn by chance the
//! one with less to do is asked: with the load as the product of requests in flight and smoothed latency, slow
//! endpoints get less without everybody running to the fastest.

mod body;
mod connect;
mod endpoint;
mod error;
mod exchange;
mod http1;
mod lane;
mod latency;
pub(crate) mod orca;
mod places;
mod reach;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::{Method, Request, Response};
use hyper::body::Body;
use tidegate_core::Moment;
use tidegate_core::permit::Outcome;
use tidegate_policy::policy;
use tidegate_tower::Bulkhead;
use tokio::time::timeout_at;

pub(crate) use self::body::{BodyFailure, Patient, Turned, UpstreamBody};
pub(crate) use self::connect::Connector;
use self::endpoint::{Endpoint, InFlight};
pub use self::error::UpstreamError;
pub(crate) use self::exchange::Exchange;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::http1::written;
use self::lane::{SendFailure, Wanted};
use self::latency::Latencies;
pub(crate) use self::places::ClientShare;
use crate::chance;
use crate::connection::http1::body::CallerBody;
use crate::figures::Durations;
use crate::ticks::Ticks;

/// What is sent to an upstream.
pub(crate) type RequestBody = tidegate_tower::body::CountedBody<Patient<CallerBody>>;

/// What a request holds of its upstream, which it lends to others while it waits for a connection.
pub(crate) trait Lend: Sync {
    fn lend(&self);
    fn take_again(&self);
}

/// Who asks an upstream.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) worker: usize,
    pub(crate) ticks: &'a Arc<Ticks>,
    pub(crate) client: ClientShare,
    /// How the body of the request comes, if it is still coming.
    pub(crate) upload: Option<&'a Arc<Exchange>>,
    /// The place it has.
    pub(crate) place: Option<&'a dyn Lend>,
}

/// Why an upstream gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It could not be connected to.
    Unconnected(UpstreamError),
    /// The connection broke before an answer.
    Broken(UpstreamError),
    /// It did not answer in time.
    Silent,
    /// All connections that may be held are in use.
    Busy,
    /// The body of the request broke off.
    CallerGone,
    /// The body of the request was waited for too long, and others needed the connection.
    Stalled,
}

impl CallFailure {
    /// What it says about how much the upstream bears; nothing if it was not asked, or not to the end.
    pub(crate) const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Unconnected(_) | Self::Broken(_) => Some(Outcome::Failed),
            Self::Silent => Some(Outcome::Overloaded),
            Self::Busy | Self::CallerGone | Self::Stalled => None,
        }
    }

    /// The same in the words of records.
    pub(crate) const fn error(self) -> UpstreamError {
        match self {
            Self::Unconnected(error) | Self::Broken(error) => error,
            Self::Silent => UpstreamError::Silent,
            Self::Busy => UpstreamError::Busy,
            Self::CallerGone => UpstreamError::BrokenOff,
            Self::Stalled => UpstreamError::Stalled,
        }
    }
}

/// How an upstream was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Called {
    /// The position of the endpoint that was asked last.
    pub(crate) endpoint: Option<usize>,
    /// How often one was asked.
    pub(crate) attempts: u32,
}

/// How attempts ended, for the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// It answered below 500.
    Ok,
    /// It answered 500 or above.
    Error,
    /// It could not be connected to.
    ConnectFailure,
    /// The connection broke before an answer.
    Reset,
    /// It did not answer in time.
    Timeout,
    /// No connection was free.
    Busy,
    /// The body of the request broke off.
    CallerGone,
}

impl AttemptOutcome {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ok,
        Self::Error,
        Self::ConnectFailure,
        Self::Reset,
        Self::Timeout,
        Self::Busy,
        Self::CallerGone,
    ];

    /// What it is called in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::ConnectFailure => "connect_failure",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::CallerGone => "caller_gone",
        }
    }
}

/// An upstream, over all workers.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) spec: Arc<policy::Upstream>,
    endpoints: Vec<Arc<Endpoint>>,
    /// What stands before it, an entrance for each worker.
    doors: Vec<Arc<Bulkhead>>,
    /// By worker, since every request counts here.
    attempts: Arc<[Attempts]>,
    latencies: Latencies,
}

/// How one worker's attempts ended, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Attempts([AtomicU64; AttemptOutcome::ALL.len()]);

impl Upstream {
    pub(crate) fn new(
        spec: &Arc<policy::Upstream>,
        bulkhead: Bulkhead,
        workers: usize,
        connector: &Connector,
    ) -> Self {
        let doors = (0..workers).map(|_| Arc::new(bulkhead.entrance())).collect();
        let attempts = (0..workers).map(|_| Attempts::default()).collect();
        let counted = (attempts, Latencies::new(workers));
        Self::behind(doors, counted, spec, connector)
    }

    /// The same upstream after a change: behind the same doors, and counting on.
    pub(crate) fn changed(&self, spec: &Arc<policy::Upstream>, connector: &Connector) -> Self {
        let counted = (Arc::clone(&self.attempts), self.latencies.clone());
        Self::behind(self.doors.clone(), counted, spec, connector)
    }

    fn behind(
        doors: Vec<Arc<Bulkhead>>,
        (attempts, latencies): (Arc<[Attempts]>, Latencies),
        spec: &Arc<policy::Upstream>,
        connector: &Connector,
    ) -> Self {
        let endpoint = |endpoint| Arc::new(Endpoint::new(spec, endpoint, doors.len(), connector.clone()));
        let endpoints = spec.endpoints.iter().map(endpoint).collect();
        Self { spec: Arc::clone(spec), endpoints, doors, attempts, latencies }
    }

    /// A worker's entrance to what stands before it; every worker has one.
    pub(crate) fn door(&self, worker: usize) -> &Arc<Bulkhead> {
        &self.doors[worker % self.doors.len()]
    }

    /// Asks it. When there is no answer, `is_caller_gone` says whether that is the caller's doing.
    pub(crate) async fn call(
        &self,
        call: Call<'_>,
        request: Request<RequestBody>,
        called: &mut Called,
        is_caller_gone: impl Fn() -> bool,
    ) -> Result<Response<UpstreamBody>, CallFailure> {
        let answered = match self.spec.timeout {
            None => self.attempt(&call, request, called).await,
            Some(limit) => {
                let deadline = tokio::time::Instant::now() + limit;
                let answered = timeout_at(deadline, self.attempt(&call, request, called)).await;
                answered.unwrap_or(Err(CallFailure::Silent))
            }
        };
        let answered = answered.map_err(|failure| match call.upload {
            Some(upload) if upload.is_ended() => CallFailure::Stalled,
            _ if is_caller_gone() => CallFailure::CallerGone,
            _ => failure,
        });
        if let Err(failure) = &answered {
            self.note_error(*called, failure.error(), call.ticks);
        }
        let outcome = match &answered {
            Ok(response) if response.status().is_server_error() => AttemptOutcome::Error,
            Ok(_) => AttemptOutcome::Ok,
            Err(CallFailure::Unconnected(_)) => AttemptOutcome::ConnectFailure,
            Err(CallFailure::Broken(_)) => AttemptOutcome::Reset,
            Err(CallFailure::Silent) => AttemptOutcome::Timeout,
            Err(CallFailure::Busy) => AttemptOutcome::Busy,
            Err(CallFailure::CallerGone | CallFailure::Stalled) => AttemptOutcome::CallerGone,
        };
        if let Some(Attempts(counts)) = self.attempts.get(call.worker) {
            counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
        }
        answered
    }

    /// Remembers what went wrong at the endpoint that was asked last, if it was the endpoint's doing.
    fn note_error(&self, called: Called, error: UpstreamError, ticks: &Ticks) {
        let is_its =
            !matches!(error, UpstreamError::Busy | UpstreamError::BrokenOff | UpstreamError::Stalled);
        if let Some(endpoint) = called.endpoint.and_then(|at| self.endpoints.get(at)).filter(|_| is_its) {
            endpoint.last_error.note(error, ticks.second());
        }
    }

    /// Asks one endpoint, and another one if the first could not be connected to.
    async fn attempt(
        &self,
        call: &Call<'_>,
        mut request: Request<RequestBody>,
        called: &mut Called,
    ) -> Result<Response<UpstreamBody>, CallFailure> {
        let mut failed: Option<&Arc<Endpoint>> = None;
        let mut error = UpstreamError::ConnectFailed;
        loop {
            let chosen = self.choose(call.ticks.now(), failed);
            let Some(endpoint) = chosen else { return Err(CallFailure::Unconnected(error)) };
            called.endpoint = self.endpoints.iter().position(|known| Arc::ptr_eq(known, endpoint));
            match self.ask(endpoint, call, &mut request, called).await {
                Ok(response) => {
                    endpoint.reach.mark_connected();
                    return Ok(response);
                }
                Err(CallFailure::Unconnected(why)) => {
                    error = why;
                    endpoint.last_error.note(why, call.ticks.second());
                    if failed.replace(endpoint).is_some() {
                        return Err(CallFailure::Unconnected(error));
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Asks an endpoint over a connection that is free, and over another if that turns out to be closed.
    async fn ask(
        &self,
        endpoint: &Arc<Endpoint>,
        call: &Call<'_>,
        request: &mut Request<RequestBody>,
        called: &mut Called,
    ) -> Result<Response<UpstreamBody>, CallFailure> {
        // Asked before it is sent, since it loses its body on the way.
        let may_repeat = may_be_sent_twice(request);
        let mut wanted = Wanted::Any;
        loop {
            called.attempts += 1;
            let in_flight = InFlight::new(endpoint, call.worker, call.ticks.now());
            let line = endpoint.line(call, wanted).await?;
            let is_fresh = line.is_fresh();
            // Connecting says nothing about how fast it answers.
            let timing = (self.endpoints.len() > 1).then(|| Timing::begin(endpoint, call.ticks));
            match line.send(request, in_flight, call).await {
                Ok(response) => {
                    timing.into_iter().for_each(Timing::answered);
                    return Ok(response);
                }
                Err(SendFailure::Unsent) if !is_fresh => {}
                // The others in the pool may be as stale: a service that closes one often closes all.
                Err(SendFailure::Stale) if may_repeat && wanted == Wanted::Any => wanted = Wanted::Fresh,
                Err(SendFailure::Unsent | SendFailure::Stale) => {
                    return Err(CallFailure::Broken(UpstreamError::Reset));
                }
                Err(SendFailure::Broken(error)) => return Err(CallFailure::Broken(error)),
            }
        }
    }

    /// The less loaded of two that are drawn from those that stand best; never the one that has just failed.
    fn choose(&self, now: u64, failed: Option<&Arc<Endpoint>>) -> Option<&Arc<Endpoint>> {
        if let [only] = self.endpoints.as_slice() {
            return if failed.is_some() { None } else { Some(only) };
        }
        let others =
            || self.endpoints.iter().filter(|one| failed.is_none_or(|failed| !Arc::ptr_eq(failed, one)));
        let best = others().map(|one| one.reach.standing()).min()?;
        let drawn = || others().filter(|one| one.reach.standing() == best);
        let count = drawn().count();
        // What stands well may fall while it is counted.
        if count <= 1 {
            return drawn().next().or_else(|| others().next());
        }
        let roll = chance::roll();
        let first = below(roll, count);
        let second = (first + 1 + below(roll >> 32, count - 1)) % count;
        let first = drawn().nth(first).or_else(|| others().next())?;
        let second = drawn().nth(second).unwrap_or(first);
        Some(if second.has_less_to_do(first, now) { second } else { first })
    }

    /// Closes what has been idle for too long, tries again what failed, and lets the edge move.
    pub(crate) fn look_after(&self, worker: usize, ticks: &Arc<Ticks>, moment: Moment) {
        self.door(worker).look(moment);
        for endpoint in &self.endpoints {
            endpoint.look_after(worker, ticks.now());
            // A request that has no other endpoint tries it anyway.
            if self.endpoints.len() > 1 {
                endpoint.try_again(worker, ticks);
            }
        }
    }

    /// How many attempts ended in each way.
    pub(crate) fn attempts(&self) -> [u64; AttemptOutcome::ALL.len()] {
        let mut sums = [0; AttemptOutcome::ALL.len()];
        for Attempts(counts) in &*self.attempts {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count.load(Ordering::Relaxed));
        }
        sums
    }

    /// An answer's head came after so long.
    pub(crate) fn took(&self, worker: usize, time: Duration) {
        self.latencies.took(worker, time);
    }

    /// How long it took until answers' heads came.
    pub(crate) fn latency(&self) -> Durations {
        self.latencies.sum()
    }

    pub(crate) fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }
}

/// How long an endpoint takes to answer. Dropped without an answer, it says that there was none for so long.
struct Timing<'a> {
    endpoint: &'a Endpoint,
    ticks: &'a Ticks,
    began: Instant,
    has_answered: bool,
}

impl<'a> Timing<'a> {
    fn begin(endpoint: &'a Endpoint, ticks: &'a Ticks) -> Self {
        Self { endpoint, ticks, began: Instant::now(), has_answered: false }
    }

    fn answered(mut self) {
        self.has_answered = true;
    }
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        let (now, took) = (self.ticks.now(), self.began.elapsed());
        if self.has_answered {
            self.endpoint.took(now, took);
        } else {
            self.endpoint.gave_nothing(now, took);
        }
    }
}

/// A number below the count, by chance.
fn below(roll: u64, count: usize) -> usize {
    usize::try_from(roll % count as u64).unwrap_or_default()
}

/// Whether it changes nothing if a request is sent twice, and there is no body that would be gone by then.
fn may_be_sent_twice(request: &Request<RequestBody>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        && request.body().is_end_stream()
}
