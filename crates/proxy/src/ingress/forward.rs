//! A request that was admitted, on its way to the upstream and back.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body;
use tidegate_core::Refusal;
use tidegate_policy::Admitted;
use tidegate_policy::policy::Route;
use tidegate_tower::bulkhead::{self, Place};
use tidegate_tower::respond::{Speech, Trouble};
use tidegate_tower::{Admission, Bulkhead, Clock};

use super::answer::{AnswerBody, Ticket};
use super::way::Way;
use crate::connection::http1::body::CallerBody;
use crate::criticality;
use crate::head::{self, Forwards};
use crate::settings::Settings;
use crate::upstream::{CallFailure, Patient, UpstreamBody, orca};

pub(super) struct Forward {
    pub(super) settings: Arc<Settings>,
    pub(super) speech: Speech,
    pub(super) admission: Admission,
    pub(super) ticket: Ticket,
    pub(super) way: Way,
    pub(super) request: Request<CallerBody>,
}

/// What is left of a request once it has been sent on.
struct Sent {
    settings: Arc<Settings>,
    speech: Speech,
    admission: Admission,
    ticket: Ticket,
}

impl Forward {
    pub(super) async fn go(self: Box<Self>) -> Response<AnswerBody> {
        let wait = self.admission.wait();
        if !wait.is_zero() {
            Box::pin(tokio::time::sleep(wait)).await;
        }
        let Self { settings, speech, admission, ticket, way, mut request } = *self;
        let mut sent = Sent { settings, speech, admission, ticket };
        let clock = Arc::clone(&sent.settings.clock);
        let place = match way.place(|| clock.moment()).await {
            Ok(place) => place,
            Err(refusal) => return sent.turned_away(refusal),
        };
        sent.ticket.goes_on();
        let Some((route, upstream)) = sent.route() else { return sent.trouble(Trouble::NoRoute) };
        if let Forwards::EndsHere = head::count_forwards(&mut request) {
            return sent.answer(Response::new(UpstreamBody::text(Bytes::new())));
        }
        let caller = sent.ticket.caller();
        let is_upgrade = may_upgrade(route, &request);
        let patience =
            (request.version() == Version::HTTP_2).then(|| caller.listener.spec().body_idle_timeout);
        head::send_on(&mut request, &caller.hop, sent.settings.server.client_address, is_upgrade);
        let found = sent.admission.admitted().map(Admitted::criticality);
        let found = found.filter(|_| sent.settings.tells_criticality);
        criticality::tell(request.headers_mut(), found, caller.hop.is_trusted);
        let request = request.map(|body| sent.admission.counted(Patient::new(body, patience)));
        let now = caller.worker.ticks().now();
        match upstream.call(caller.worker.number, now, request).await {
            Ok(mut response) => {
                sent.served(place, upstream.door(caller.worker.number), &mut response);
                let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
                let turned = response.body_mut().take_turned();
                // An upstream that turns to another protocol without being asked is none.
                if is_upgraded && (!is_upgrade || turned.is_none()) {
                    return sent.trouble(Trouble::Unreachable);
                }
                head::send_back(&mut response, is_upgraded);
                let mut response = sent.answer(response);
                response.body_mut().turn(turned);
                response
            }
            Err(failure) => {
                if let (Some(place), Some(outcome)) = (place, failure.outcome()) {
                    place.complete(clock.moment(), outcome);
                }
                sent.trouble(match failure {
                    CallFailure::Unconnected | CallFailure::Broken => Trouble::Unreachable,
                    CallFailure::Silent => Trouble::Silent,
                    CallFailure::Busy => Trouble::Busy,
                })
            }
        }
    }
}

impl Sent {
    /// The route it took and the upstream behind it.
    fn route(&self) -> Option<(&Route, &Arc<crate::upstream::Upstream>)> {
        let route = self.admission.admitted().and_then(Admitted::route)?;
        Some((route, self.settings.upstream(route.upstream.as_deref()?)?))
    }

    /// The head of an answer has come: says what was learnt of the upstream, and for how long it is busy with it.
    fn served(&self, place: Option<Place>, door: &Bulkhead, response: &mut Response<UpstreamBody>) {
        let Some(place) = place else { return };
        let worker = &self.ticket.caller().worker;
        let now = self.settings.clock.moment();
        if let Some(utilization) = orca::utilization(response.headers()) {
            door.tell_utilization(now, utilization);
        }
        for (name, signal) in &self.settings.told_signals {
            let value =
                response.headers().get(name).and_then(|value| value.to_str().ok()?.trim().parse().ok());
            if let Some(value) = value {
                worker.shared.signals.tell(signal, now, value);
            }
        }
        let outcome = bulkhead::outcome(response);
        if response.body().is_whole() {
            place.complete(now, outcome);
        } else {
            let stay = worker.stays.keep(worker.ticks().now(), place, now, outcome);
            response.body_mut().keep(stay);
        }
    }

    /// The upstream has no room for it.
    fn turned_away(self, refusal: Refusal) -> Response<AnswerBody> {
        let Self { settings, speech, admission, mut ticket } = self;
        let shared = &ticket.caller().worker.shared;
        let route = admission.admitted().and_then(Admitted::route);
        let upstream = route.and_then(|route| route.upstream.clone()).unwrap_or_default();
        let refused = admission.turn_away(&shared.gate, &upstream, refusal);
        let response = settings.refused(shared.clock.now(), &refused, speech);
        ticket.turned_away(&refused);
        ticket.status(response.status());
        response.map(|text| AnswerBody::text(text, ticket))
    }

    /// An answer of ours.
    fn trouble(self, trouble: Trouble) -> Response<AnswerBody> {
        let response = self.settings.respond.trouble(trouble, self.speech);
        self.answer(response.map(UpstreamBody::text))
    }

    fn answer(self, response: Response<UpstreamBody>) -> Response<AnswerBody> {
        let Self { admission, mut ticket, .. } = self;
        ticket.status(response.status());
        admission.answer(response).map(|body| AnswerBody::served(body, ticket))
    }
}

/// Whether the request may turn to another protocol.
fn may_upgrade(route: &Route, request: &Request<CallerBody>) -> bool {
    let is_plain = request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && request.body().is_end_stream();
    if route.upgrades.is_empty() || !is_plain {
        return false;
    }
    head::upgrade_of(request.headers()).is_some_and(|wanted| route.upgrades.contains(&wanted))
}
