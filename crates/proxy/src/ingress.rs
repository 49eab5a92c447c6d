//! The walk of a request through the gateway.
//!
//! ```text
//! 1 head.rs        may it be read in two ways?                                  400, nothing is sent on
//! 2 client.rs      for whom is it sent?                                         -> Peer
//! 3 the gate       all rules, one clock reading                                 refused: 429 or 503
//! 4                a rule that shapes lets it wait
//! 5 head.rs        what was meant for us ends here; who was on the way is added
//! 6 upstream.rs    an endpoint, a connection, the answer's head                 502, 503, 504
//! 7                the answer goes back, the permit on its body
//! ```

mod answer;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use tidegate_policy::policy::Route;
use tidegate_policy::{Admitted, Decision, Now, Record, Refused};
use tidegate_tower::respond::{Speech, Trouble};
use tidegate_tower::{Admission, Clock, Peer};

pub(crate) use self::answer::AnswerBody;
use self::answer::{Logged, Noted, Ticket};
use crate::chance;
use crate::client;
use crate::connection::Caller;
use crate::head::{self, Forwards, Hop};
use crate::settings::Settings;
use crate::upgrade;
use crate::upstream::{CallFailure, Patient, RequestBody, Upstream, UpstreamBody};

/// Serves one request.
pub(crate) async fn serve(
    caller: Arc<Caller>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    let walk = Walk::new(caller, &request);
    Ok(walk.go(request).await)
}

struct Walk {
    caller: Arc<Caller>,
    settings: Arc<Settings>,
    speech: Speech,
    now: Now,
}

impl Walk {
    fn new(caller: Arc<Caller>, request: &Request<Incoming>) -> Self {
        let settings = caller.worker.shared.settings.load_full();
        let speech = Speech::of(request.headers());
        let now = caller.worker.shared.clock.now();
        Self { caller, settings, speech, now }
    }

    async fn go(self, mut request: Request<Incoming>) -> Response<AnswerBody> {
        let flaw = self.caller.watch.begin();
        let checked = flaw.map_or_else(|| head::check(&request), Err);
        if let Err(what) = checked {
            return self.unsound(what);
        }
        self.drop_aliases(&mut request);
        let decision = match self.decide(&request) {
            Ok(decision) => decision,
            Err(response) => return response,
        };
        let (admission, ticket) = decision;
        self.forward(admission, ticket, request).await
    }

    /// A request that must not be sent on, and after which nothing on its connection can be trusted.
    fn unsound(&self, what: &'static str) -> Response<AnswerBody> {
        let mut response = self.settings.respond.trouble(Trouble::Unclear(what), self.speech);
        response.headers_mut().insert(http::header::CONNECTION, http::HeaderValue::from_static("close"));
        let ticket = Ticket::new(Arc::clone(&self.caller), None);
        response.map(|text| AnswerBody::text(text, ticket))
    }

    /// Takes away fields that a service could mistake for the key of a rule.
    fn drop_aliases(&self, request: &mut Request<Incoming>) {
        if !self.settings.has_dashed_keys() {
            return;
        }
        let aliases: Vec<HeaderName> =
            request.headers().keys().filter(|name| self.settings.is_alias(name)).cloned().collect();
        for alias in aliases {
            request.headers_mut().remove(alias);
        }
    }

    /// Asks the gate.
    fn decide(&self, request: &Request<Incoming>) -> Result<(Admission, Ticket), Response<AnswerBody>> {
        let shared = &self.caller.worker.shared;
        let peer = self.peer(request);
        let mut record = None;
        let decision = self.settings.identify.identify_from(Some(peer), request, |attributes| {
            let decision = shared.gate.decide(self.now, attributes);
            record =
                self.record(&decision, |admitted| admitted.record(attributes), |no| no.record(attributes));
            decision
        });
        match decision {
            Ok(Decision::Admit(admitted)) => {
                let figures = match admitted.route() {
                    Some(route) => self.settings.route(&route.name),
                    None => &self.settings.no_route,
                };
                let (worker, listener) = (self.caller.worker.number, self.caller.listener.number);
                figures.decided(worker, listener, admitted.criticality(), true);
                let ticket = Ticket::new(
                    Arc::clone(&self.caller),
                    Some(Noted::new(figures.begin(worker), self.now, record)),
                );
                let (clock, respond) = (Arc::clone(&shared.shown_clock), Arc::clone(&self.settings.respond));
                Ok((Admission::new(admitted, request.method(), clock, respond), ticket))
            }
            Ok(Decision::Refuse(refused)) => Err(self.refuse(&refused, record)),
            Err(unclear) => {
                let response = self.settings.respond.unclear(unclear, self.speech);
                let ticket = Ticket::new(Arc::clone(&self.caller), None);
                Err(response.map(|text| AnswerBody::text(text, ticket)))
            }
        }
    }

    fn refuse(&self, refused: &Refused, record: Option<(Box<Record>, Logged)>) -> Response<AnswerBody> {
        let (worker, listener) = (self.caller.worker.number, self.caller.listener.number);
        let figures = self.settings.route(&refused.route().name);
        figures.decided(worker, listener, refused.criticality, false);
        let mut ticket =
            Ticket::new(Arc::clone(&self.caller), Some(Noted::new(figures.begin(worker), self.now, record)));
        let response = self.settings.respond.refused(self.now, refused, self.speech);
        ticket.status(response.status());
        response.map(|text| AnswerBody::text(text, ticket))
    }

    /// The line of a decision in the access log, where it may have one.
    fn record(
        &self,
        decision: &Decision,
        admitted: impl FnOnce(&Admitted) -> Record,
        refused: impl FnOnce(&Refused) -> Record,
    ) -> Option<(Box<Record>, Logged)> {
        let log = self.settings.access_log.as_ref()?;
        let is_sampled = || chance::roll() % 1_000_000 < u64::from(log.sample_accepted);
        match decision {
            Decision::Refuse(no) => {
                (log.always.refused || is_sampled()).then(|| (Box::new(refused(no)), Logged::Always))
            }
            Decision::Admit(yes) => {
                let is_shadow = log.always.shadow && yes.shadow_refusals().next().is_some();
                let logged = if is_shadow || is_sampled() { Logged::Always } else { Logged::IfFailed };
                (logged == Logged::Always || log.always.failed).then(|| (Box::new(admitted(yes)), logged))
            }
        }
    }

    /// For whom the request is sent.
    fn peer(&self, request: &Request<Incoming>) -> Peer {
        let address = self.caller.peer.ip().to_canonical();
        if !self.caller.is_trusted {
            return Peer::new(address);
        }
        Peer::new(client::forwarded_for(&self.settings.server, address, request.headers())).trusted()
    }

    async fn forward(
        &self,
        admission: Admission,
        mut ticket: Ticket,
        mut request: Request<Incoming>,
    ) -> Response<AnswerBody> {
        let wait = admission.wait();
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let route = admission.admitted().and_then(Admitted::route);
        let Some(route) = route else { return self.trouble(Trouble::NoRoute, admission, ticket) };
        let Some(upstream) = route.upstream.as_deref().and_then(|name| self.settings.upstream(name)) else {
            return self.trouble(Trouble::NoRoute, admission, ticket);
        };
        if let Forwards::EndsHere = head::count_forwards(&request.method().clone(), request.headers_mut()) {
            return answer(Response::new(UpstreamBody::text(Bytes::new())), admission, ticket);
        }
        let upgrade = self.upgrade(route, &request);
        let upgrading = upgrade.then(|| hyper::upgrade::on(&mut request));
        head::send_on(&mut request, &self.hop(), upgrade);
        let is_h2 = request.version() == Version::HTTP_2;
        let patience = is_h2.then(|| self.caller.listener.spec().body_idle_timeout);
        let request = request.map(|body| admission.counted(Patient::new(body, patience)));
        let upstream = Arc::clone(upstream);
        let answered = self.call(&upstream, request).await;
        match answered {
            Ok(mut response) => {
                let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
                if is_upgraded {
                    match upgrading {
                        Some(from) => upgrade::join(from, hyper::upgrade::on(&mut response), &self.caller),
                        // Nobody asked it to.
                        None => return self.trouble(Trouble::Unreachable, admission, ticket),
                    }
                }
                let version = response.version();
                head::send_back(response.headers_mut(), version, is_upgraded);
                *response.version_mut() = Version::HTTP_11;
                ticket.status(response.status());
                answer(response, admission, ticket)
            }
            Err(failure) => {
                let trouble = match failure {
                    CallFailure::Unconnected | CallFailure::Broken => Trouble::Unreachable,
                    CallFailure::Silent => Trouble::Silent,
                    CallFailure::Busy => Trouble::Busy,
                };
                self.trouble(trouble, admission, ticket)
            }
        }
    }

    async fn call(
        &self,
        upstream: &Upstream,
        request: Request<RequestBody>,
    ) -> Result<Response<UpstreamBody>, CallFailure> {
        let worker = &self.caller.worker;
        upstream.call(worker.number, worker.ticks().now(), request).await
    }

    /// Whether the request may turn to another protocol.
    fn upgrade(&self, route: &Route, request: &Request<Incoming>) -> bool {
        if route.upgrades.is_empty() || request.method() != Method::GET {
            return false;
        }
        head::upgrade_of(request.headers()).is_some_and(|wanted| route.upgrades.contains(&wanted))
    }

    fn hop(&self) -> Hop {
        let peer: IpAddr = self.caller.peer.ip().to_canonical();
        Hop {
            peer,
            is_trusted: self.caller.is_trusted,
            is_tls: self.caller.is_tls,
            says: self.settings.server.client_address,
        }
    }

    /// An answer of ours to a request that was admitted.
    fn trouble(&self, trouble: Trouble, admission: Admission, mut ticket: Ticket) -> Response<AnswerBody> {
        let response = self.settings.respond.trouble(trouble, self.speech);
        ticket.status(response.status());
        answer(response.map(UpstreamBody::text), admission, ticket)
    }
}

fn answer(response: Response<UpstreamBody>, admission: Admission, ticket: Ticket) -> Response<AnswerBody> {
    admission.answer(response).map(|body| AnswerBody::served(body, ticket))
}
