//! A request that was admitted, until its answer is handed on.
//!
//! [`GateService`](crate::GateService) asks for one in `call` and turns the service's answer into the caller's with
//! it. A driver that is no tower service asks the gate itself and does the same by hand; whichever way it goes,
//! dropping an admission abandons the request.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Response, StatusCode};
use http_body::Body;
use tidegate_core::Refusal;
use tidegate_policy::policy::Settle;
use tidegate_policy::{Admitted, Gate, Refused, Turned};

use crate::body::{CountedBody, GuardedBody};
use crate::clock::Clock;
use crate::guard::{Ending, Guard};
use crate::respond::Respond;

/// A request that may pass, with what it holds.
#[derive(Debug)]
#[must_use = "a request whose admission is dropped is abandoned"]
pub struct Admission {
    guard: Guard,
    is_head: bool,
    respond: Arc<Respond>,
}

impl Admission {
    /// Holds what the gate said yes to, for a request with this method.
    pub fn new(admitted: Admitted, method: &Method, clock: Arc<dyn Clock>, respond: Arc<Respond>) -> Self {
        Self { guard: Guard::new(admitted, clock), is_head: method == Method::HEAD, respond }
    }

    /// Has somebody told how the request ended, once it has.
    pub fn tell(&mut self, ending: Arc<dyn Ending>) {
        self.guard.tell(ending);
    }

    /// What the gate said; none once it is over.
    #[must_use]
    pub fn admitted(&self) -> Option<&Admitted> {
        self.guard.admitted()
    }

    /// How long it must wait before it goes on. Zero unless a rule shapes.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.admitted().map_or(Duration::ZERO, Admitted::wait)
    }

    /// The service is asked from here on: who leaves now has cost something.
    pub const fn ask(&mut self) {
        self.guard.ask();
    }

    /// The service was asked and will not answer any more; the answer that follows is the driver's own.
    pub fn unheard(&mut self) {
        self.guard.unheard();
    }

    /// The service could not be asked after all, and nobody waits any more: what was charged stands.
    pub fn unasked(mut self) {
        self.guard.unasked();
    }

    /// Whether it holds a place among those that a rule allows in flight.
    #[must_use]
    pub fn holds_place(&self) -> bool {
        self.admitted().is_some_and(Admitted::holds_place)
    }

    /// Whether only the head of the answer tells what the request has cost.
    #[must_use]
    pub fn awaits_cost(&self) -> bool {
        let mut settles = self.admitted().into_iter().flat_map(Admitted::settles);
        settles.any(|settle| matches!(settle, Settle::ResponseHeader(_)))
    }

    /// The request's body, its bytes counted where a rule is settled by them.
    pub fn counted<B>(&self, body: B) -> CountedBody<B> {
        CountedBody::new(body, self.guard.received())
    }

    /// The service's answer, with our fields on its head and the permit on its body.
    pub fn answer<B: Body>(mut self, response: Response<B>) -> Response<GuardedBody<B>> {
        let (mut head, body) = response.into_parts();
        self.guard.head(head.status, &head.headers);
        if let Some(admitted) = self.guard.admitted() {
            self.respond.admitted(self.guard.clock(), admitted, &mut head.headers);
        }
        let is_bodiless =
            self.is_head || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = if is_bodiless {
            GuardedBody::unsent(body, self.guard)
        } else {
            GuardedBody::served(body, self.guard)
        };
        Response::from_parts(head, body)
    }

    /// The upstream has no room for it: whatever it took comes back, and the gate that admitted it makes a refusal of
    /// it.
    ///
    /// # Panics
    /// Never: an admission holds what was admitted until it is consumed.
    pub fn turn_away(self, gate: &Gate, upstream: &str, refusal: Refusal) -> Refused {
        let now = self.guard.clock().now();
        let admitted =
            self.guard.release().expect("an admission holds what was admitted until it is consumed");
        gate.turn_away(now, admitted, Turned { upstream, refusal })
    }

    /// The service broke before it answered.
    pub fn fail(self) {
        self.guard.fail();
    }
}
