//! The services behind the gateway: which endpoint is asked, over which connection.
//!
//! Every worker keeps its own connections (a *lane* to each endpoint), so that no request waits for another worker's
//! lock; the number of connections to an endpoint is bounded over all of them. Of two endpoints drawn by chance the
//! one with less to do is asked: with the load as the product of requests in flight and smoothed latency, slow
//! endpoints get less without everybody running to the fastest.

mod body;
mod connect;
mod endpoint;
mod lane;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::{Method, Request, Response};
use hyper::body::{Body, Incoming};
use tidegate_policy::policy;
use tokio::time::timeout_at;

pub(crate) use self::body::{Patient, UpstreamBody};
pub(crate) use self::connect::Connector;
use self::endpoint::{Endpoint, InFlight};
use self::lane::Line;
use crate::chance;

/// What is sent to an upstream.
pub(crate) type RequestBody = tidegate_tower::body::CountedBody<Patient<Incoming>>;

/// Why an upstream gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It could not be connected to.
    Unconnected,
    /// The connection broke before an answer.
    Broken,
    /// It did not answer in time.
    Silent,
    /// All connections that may be held are in use.
    Busy,
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
}

impl AttemptOutcome {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Ok, Self::Error, Self::ConnectFailure, Self::Reset, Self::Timeout, Self::Busy];

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
        }
    }
}

/// An upstream, over all workers.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) spec: Arc<policy::Upstream>,
    endpoints: Vec<Arc<Endpoint>>,
    attempts: [AtomicU64; AttemptOutcome::ALL.len()],
}

impl Upstream {
    pub(crate) fn new(spec: &Arc<policy::Upstream>, workers: usize, connector: &Connector) -> Self {
        let endpoint = |endpoint| Arc::new(Endpoint::new(spec, endpoint, workers, connector.clone()));
        Self {
            spec: Arc::clone(spec),
            endpoints: spec.endpoints.iter().map(endpoint).collect(),
            attempts: Default::default(),
        }
    }

    /// Asks it.
    pub(crate) async fn call(
        &self,
        worker: usize,
        now: u64,
        request: Request<RequestBody>,
    ) -> Result<Response<UpstreamBody>, CallFailure> {
        let answered = match self.spec.timeout {
            None => self.attempt(worker, now, request).await,
            Some(limit) => {
                let deadline = tokio::time::Instant::now() + limit;
                let answered = timeout_at(deadline, self.attempt(worker, now, request)).await;
                answered.unwrap_or(Err(CallFailure::Silent))
            }
        };
        let outcome = match &answered {
            Ok(response) if response.status().is_server_error() => AttemptOutcome::Error,
            Ok(_) => AttemptOutcome::Ok,
            Err(CallFailure::Unconnected) => AttemptOutcome::ConnectFailure,
            Err(CallFailure::Broken) => AttemptOutcome::Reset,
            Err(CallFailure::Silent) => AttemptOutcome::Timeout,
            Err(CallFailure::Busy) => AttemptOutcome::Busy,
        };
        self.attempts[outcome as usize].fetch_add(1, Ordering::Relaxed);
        answered
    }

    /// Asks one endpoint, and another one if nothing could have reached the first.
    async fn attempt(
        &self,
        worker: usize,
        now: u64,
        mut request: Request<RequestBody>,
    ) -> Result<Response<UpstreamBody>, CallFailure> {
        let mut failed: Option<&Arc<Endpoint>> = None;
        loop {
            let Some(endpoint) = self.choose(now, failed) else { return Err(CallFailure::Unconnected) };
            let in_flight = InFlight::new(endpoint);
            match self.ask(endpoint, worker, now, request).await {
                Ok(response) => {
                    endpoint.is_well();
                    return Ok(response.map(|body| body.counted(in_flight)));
                }
                Err(Unasked { failure, request: given_back }) => {
                    if failure == CallFailure::Unconnected {
                        endpoint.is_unwell(now);
                    }
                    match given_back {
                        Some(again) if failure == CallFailure::Unconnected && failed.is_none() => {
                            request = *again;
                            failed = Some(endpoint);
                        }
                        Some(_) | None => return Err(failure),
                    }
                }
            }
        }
    }

    async fn ask(
        &self,
        endpoint: &Arc<Endpoint>,
        worker: usize,
        now: u64,
        mut request: Request<RequestBody>,
    ) -> Result<Response<UpstreamBody>, Unasked> {
        loop {
            let mut line = match endpoint.line(worker, now).await {
                Ok(line) => line,
                Err(failure) => return Err(Unasked { failure, request: Some(Box::new(request)) }),
            };
            // A connection that nobody has used for a while may have been closed from the other side just now.
            let spare = line.may_be_stale(now).then(|| spare(&request)).flatten();
            let is_fresh = line.is_fresh();
            // Connecting says nothing about how fast it answers.
            let began = (self.endpoints.len() > 1).then(Instant::now);
            match line.send(request).await {
                Ok(response) => {
                    if let Some(began) = began {
                        endpoint.took(now, began.elapsed());
                    }
                    return Ok(response.map(|body| UpstreamBody::new(body, line, self.spec.timeout)));
                }
                Err((Some(unsent), _)) if !is_fresh => request = *unsent,
                Err((given_back, failure)) => match spare {
                    Some(again) => request = again,
                    None => return Err(Unasked { failure, request: given_back }),
                },
            }
        }
    }

    /// The less loaded of two that are drawn; never the one that has just failed, unless there is no other.
    fn choose(&self, now: u64, failed: Option<&Arc<Endpoint>>) -> Option<&Arc<Endpoint>> {
        if let [only] = self.endpoints.as_slice() {
            return if failed.is_some() { None } else { Some(only) };
        }
        let is_other = |endpoint: &&Arc<Endpoint>| failed.is_none_or(|failed| !Arc::ptr_eq(failed, endpoint));
        let well: Vec<_> = self.endpoints.iter().filter(is_other).filter(|one| one.is_up(now)).collect();
        let drawn = if well.is_empty() { self.endpoints.iter().filter(is_other).collect() } else { well };
        let count = drawn.len();
        if count <= 1 {
            return drawn.first().copied();
        }
        let roll = chance::roll();
        let first = (roll as usize) % count;
        let second = (first + 1 + ((roll >> 32) as usize) % (count - 1)) % count;
        let (first, second) = (drawn.get(first)?, drawn.get(second)?);
        Some(if second.load(now) < first.load(now) { second } else { first })
    }

    /// Closes what has been idle for too long.
    pub(crate) fn look_after(&self, worker: usize, now: u64) {
        for endpoint in &self.endpoints {
            endpoint.look_after(worker, now);
        }
    }

    /// How many attempts ended in each way.
    pub(crate) fn attempts(&self) -> [u64; AttemptOutcome::ALL.len()] {
        self.attempts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    pub(crate) fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }
}

/// A request that was not answered, and is given back if nothing of it was sent.
struct Unasked {
    failure: CallFailure,
    request: Option<Box<Request<RequestBody>>>,
}

/// A second copy of a request that may be sent twice: it changes nothing, and there is no body to copy.
fn spare(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_safe || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(tidegate_tower::body::CountedBody::uncounted(Patient::empty()));
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    *copy.version_mut() = request.version();
    Some(copy)
}
