//! A request that was admitted, on its way to the upstream and back.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use tidegate_policy::Admitted;
use tidegate_policy::policy::Route;
use tidegate_tower::Admission;
use tidegate_tower::respond::{Speech, Trouble};

use super::answer::{AnswerBody, Ticket};
use crate::head::{self, Forwards};
use crate::settings::Settings;
use crate::upgrade;
use crate::upstream::{CallFailure, Patient, UpstreamBody};

pub(super) struct Forward {
    pub(super) settings: Arc<Settings>,
    pub(super) speech: Speech,
    pub(super) admission: Admission,
    pub(super) ticket: Ticket,
    pub(super) request: Request<Incoming>,
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
        let Self { settings, speech, admission, ticket, mut request } = *self;
        let sent = Sent { settings, speech, admission, ticket };
        let Some((route, upstream)) = sent.route() else { return sent.trouble(Trouble::NoRoute) };
        if let Forwards::EndsHere = head::count_forwards(&mut request) {
            return sent.answer(Response::new(UpstreamBody::text(Bytes::new())));
        }
        let caller = sent.ticket.caller();
        let is_upgrade = may_upgrade(route, &request);
        let upgrading = is_upgrade.then(|| hyper::upgrade::on(&mut request));
        let patience =
            (request.version() == Version::HTTP_2).then(|| caller.listener.spec().body_idle_timeout);
        head::send_on(&mut request, &caller.hop, sent.settings.server.client_address, is_upgrade);
        let request = request.map(|body| sent.admission.counted(Patient::new(body, patience)));
        let now = caller.worker.ticks().now();
        match upstream.call(caller.worker.number, now, request).await {
            Ok(mut response) => {
                let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
                if is_upgraded {
                    // An upstream that turns to another protocol without being asked is none.
                    let (Some(from), Some(to)) = (upgrading, response.body_mut().take_turned()) else {
                        return sent.trouble(Trouble::Unreachable);
                    };
                    upgrade::join(from, to, caller);
                }
                head::send_back(&mut response, is_upgraded);
                sent.answer(response)
            }
            Err(CallFailure::Unconnected | CallFailure::Broken) => sent.trouble(Trouble::Unreachable),
            Err(CallFailure::Silent) => sent.trouble(Trouble::Silent),
            Err(CallFailure::Busy) => sent.trouble(Trouble::Busy),
        }
    }
}

impl Sent {
    /// The route it took and the upstream behind it.
    fn route(&self) -> Option<(&Route, &Arc<crate::upstream::Upstream>)> {
        let route = self.admission.admitted().and_then(Admitted::route)?;
        Some((route, self.settings.upstream(route.upstream.as_deref()?)?))
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
fn may_upgrade(route: &Route, request: &Request<Incoming>) -> bool {
    if route.upgrades.is_empty() || request.method() != Method::GET {
        return false;
    }
    head::upgrade_of(request.headers()).is_some_and(|wanted| route.upgrades.contains(&wanted))
}
