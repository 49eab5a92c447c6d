//! The tower-resilience crates: layers around a service, with no way to ask them without a call.
//!
//! So they are put around a service that is always ready and answers at once, and polled until they are
//! done, with nobody to wake. Every thread has its own clone, as a server gives one to each connection; the
//! clones share their state.

use std::error::Error;
use std::future::{Future, Ready, ready};
use std::hint::spin_loop;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tower_resilience_adaptive::{AdaptiveService, ConcurrencyAlgorithm};
use tower_resilience_circuitbreaker::{CircuitBreaker, CircuitBreakerLayer, DefaultClassifier};
use tower_service::Service;

use super::HOUR;
use crate::contender::{Contender, Slice, timed};
use crate::start::Start;

/// The head of its column.
pub(crate) const NAME: &str = "tower-resilience";

/// Few, for two threads of it are slow.
const MOST_DECISIONS: usize = 20_000;

/// A request that says how it wants to be answered.
type Answer = Result<(), ()>;

/// Answers as it is asked to.
#[derive(Clone)]
struct Echo;

impl Service<Answer> for Echo {
    type Response = ();
    type Error = ();
    type Future = Ready<Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Answer> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, answer: Answer) -> Self::Future {
        ready(answer)
    }
}

/// tower-resilience-adaptive: a place is taken by `poll_ready` and given back when the answer is there.
pub(crate) struct Places<A>(AdaptiveService<Echo, A>);

impl<A: ConcurrencyAlgorithm> Places<A> {
    /// With an algorithm that leaves at least two places, so that two threads always find one.
    pub(crate) fn free(algorithm: A) -> Self {
        Self(AdaptiveService::new(Echo, Arc::new(algorithm)))
    }
}

impl<A: ConcurrencyAlgorithm + 'static> Contender for Places<A> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn most_decisions(&self) -> usize {
        MOST_DECISIONS
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        let mut service = self.0.clone();
        timed(ids, start, |_| serve(&mut service, Ok(())))
    }
}

/// tower-resilience-circuitbreaker: a half of the last 100 results.
pub(crate) struct Breaker(CircuitBreaker<Echo, DefaultClassifier>);

impl Breaker {
    pub(crate) fn closed() -> Result<Self, Box<dyn Error>> {
        let layer = CircuitBreakerLayer::builder().wait_duration_in_open(HOUR).build()?;
        Ok(Self(layer.layer_fn(Echo)))
    }

    /// One that opened just now, for an hour. Only for a thread alone: when two ask an open one at once,
    /// it puts one of them to sleep on a timer, and that takes an asynchronous runtime.
    pub(crate) fn open() -> Result<Self, Box<dyn Error>> {
        let mut breaker = Self::closed()?;
        for _ in 0..1_000 {
            serve(&mut breaker.0, Err(()));
        }
        if !breaker.0.is_open() {
            return Err("failures did not open tower-resilience's breaker".into());
        }
        Ok(breaker)
    }
}

impl Contender for Breaker {
    fn name(&self) -> &'static str {
        NAME
    }

    fn most_decisions(&self) -> usize {
        MOST_DECISIONS
    }

    fn shared(&self, ids: &[u64], start: &Start) -> Slice {
        let mut service = self.0.clone();
        timed(ids, start, |_| serve(&mut service, Ok(())))
    }
}

/// One call from readiness to answer. A thread that finds the state locked asks again until it is free.
#[inline]
fn serve(service: &mut impl Service<Answer>, answer: Answer) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match service.poll_ready(&mut context) {
            Poll::Ready(Ok(())) => break,
            Poll::Ready(Err(_)) => return false,
            Poll::Pending => spin_loop(),
        }
    }
    let mut call = pin!(service.call(answer));
    loop {
        match call.as_mut().poll(&mut context) {
            Poll::Ready(answered) => return answered.is_ok(),
            Poll::Pending => spin_loop(),
        }
    }
}
