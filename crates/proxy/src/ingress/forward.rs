//! A request that was admitted, on its way to the upstream and back.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body::Body;
use tidegate_core::{Moment, Refusal};
use tidegate_policy::Admitted;
use tidegate_policy::policy::{Route, UpstreamProtocol};
use tidegate_tower::respond::{Speech, Trouble};
use tidegate_tower::{Admission, Clock};

use super::answer::{AnswerBody, Ticket};
use super::heard::Heard;
use super::unbroken::{Sent, Unbroken, linger};
use super::visit::{Hold, Visit};
use super::way::Way;
use crate::alone::Patience;
use crate::client;
use crate::connection::Caller;
use crate::connection::http1::body::{BrokenOff, CallerBody};
use crate::criticality;
use crate::head::{self, Forwards};
use crate::request_id;
use crate::settings::Settings;
use crate::stay::Again;
use crate::upstream::{
    BodyFailure, CallFailure, ClientShare, Exchange, Patient, UpstreamBody, UpstreamError,
};

/// The body of the request ended too soon.
const BROKEN_OFF: Trouble = Trouble::Unclear("the request broke off");

pub(super) struct Forward {
    pub(super) settings: Arc<Settings>,
    pub(super) speech: Speech,
    pub(super) admission: Admission,
    pub(super) ticket: Ticket,
    pub(super) way: Way,
    /// When it was decided about, or had waited.
    pub(super) ready: Moment,
    pub(super) request: Request<CallerBody>,
}

/// Why a request cannot be sent on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unready {
    /// Its upstream has no room for it.
    Refused(Refusal),
    /// Its body ended too soon.
    BrokenOff,
}

/// What is left of a request once it has been sent on.
struct Passed {
    settings: Arc<Settings>,
    speech: Speech,
    admission: Admission,
    ticket: Ticket,
}

impl Forward {
    /// Waits as long as its rules say, then for its body if that is short, and then for its place.
    pub(super) async fn wait(&mut self) -> Result<(), Unready> {
        let wait = self.admission.wait();
        if !wait.is_zero() {
            Box::pin(tokio::time::sleep(wait)).await;
            self.ready = self.settings.clock.moment();
        }
        if !self.way.is_clear() {
            if is_gathered(&self.request) {
                Box::pin(self.request.body_mut().gather()).await.map_err(|BrokenOff| Unready::BrokenOff)?;
            }
            let way = std::mem::replace(&mut self.way, Way::Free);
            let clock = &self.settings.clock;
            self.way = Box::pin(way.place(|| clock.moment())).await.map_err(Unready::Refused)?;
            self.ready = clock.moment();
        }
        self.ticket.goes_on();
        Ok(())
    }

    /// The upstream has no room for it.
    pub(super) fn turned_away(self: Box<Self>, refusal: Refusal) -> Response<AnswerBody> {
        let Self { settings, speech, admission, ticket, .. } = *self;
        Passed { settings, speech, admission, ticket }.turned_away(refusal)
    }

    /// Its body ended too soon.
    pub(super) fn broken_off(self: Box<Self>) -> Response<AnswerBody> {
        let Self { settings, speech, admission, ticket, .. } = *self;
        Passed { settings, speech, admission, ticket }.trouble(BROKEN_OFF)
    }

    /// Asks the upstream.
    pub(super) async fn go(self: Box<Self>) -> Response<AnswerBody> {
        let Self { settings, speech, admission, ticket, way, mut ready, mut request } = *self;
        let place = way.taken();
        let sent = Passed { settings, speech, admission, ticket };
        let Some((route, upstream)) = sent.route() else { return sent.trouble(Trouble::NoRoute) };
        if let Forwards::EndsHere = head::count_forwards(&mut request) {
            return sent.answer(Response::new(UpstreamBody::text(Bytes::new())));
        }
        let caller = sent.ticket.caller();
        let is_upgrade = may_upgrade(route, &request);
        let client = share(caller, &sent.settings, request.headers());
        if is_upgrade {
            head::let_upgrade(&mut request);
        }
        let patience =
            (request.version() == Version::HTTP_2).then(|| caller.listener.spec().body_idle_timeout);
        head::send_on(&mut request, &caller.hop, sent.settings.server.client_address);
        let found = sent.admission.admitted().map(Admitted::criticality);
        let told = found.filter(|_| sent.settings.tells_criticality);
        let id = sent.admission.admitted().map(Admitted::id);
        id.into_iter().for_each(|id| request_id::tell(request.headers_mut(), caller.hop.is_trusted, id));
        let said = &sent.settings.meant.said_members;
        criticality::tell(request.headers_mut(), told, (caller.hop.is_trusted, said));
        let (worker, settings) = (Arc::clone(&caller.worker), Arc::clone(&sent.settings));
        let Some(asked) = settings.upstreams.get(upstream) else { return sent.trouble(Trouble::NoRoute) };
        let door = asked.door(worker.number);
        let alone = Patience::of(&sent.admission, &asked.spec, door.grace());
        let upload = (!request.body().has_come()).then(|| Exchange::upload(worker.ticks(), client));
        let hold = if upload.is_none() {
            place.map_or(Hold::Nothing, Hold::Place)
        } else {
            let again = found.map(|criticality| Again { door: Arc::clone(door), criticality });
            Hold::upload(place.zip(again), &worker)
        };
        let mut request = request.map(|body| {
            let meant = upload.is_some().then(|| Arc::clone(&settings.meant));
            Patient::new(body, patience).telling(hold.arrival()).trailing(meant)
        });
        if upload.is_some() && begins_first(asked.spec.protocol, sent.speech) {
            match Box::pin(request.body_mut().begun()).await {
                Ok(()) => ready = settings.clock.moment(),
                Err(BodyFailure::Paused) => return sent.trouble(Trouble::Stalled),
                Err(BodyFailure::Broken(_) | BodyFailure::Stalled) => return sent.trouble(BROKEN_OFF),
            }
        }
        let request = request.map(|body| sent.admission.counted(body.of_exchange(upload.clone())));
        let line = sent.ticket.line().cloned();
        let visit = Visit {
            worker,
            settings,
            upstream,
            hold,
            began: ready,
            line,
            request,
            client,
            upload,
            criticality: found,
        };
        let Passed { settings, speech, admission, ticket } = sent;
        let Sent { answered, admission, .. } = Unbroken::new(Sent::on(visit, admission, alone), alone).await;
        let sent = Passed { settings, speech, admission, ticket };
        match answered {
            Ok(response) => sent.answered(response, alone, is_upgrade),
            Err(failure) => sent.failed(failure, alone),
        }
    }
}

impl Passed {
    /// The route it took and the position of the upstream behind it.
    fn route(&self) -> Option<(&Route, usize)> {
        let route = self.admission.admitted().and_then(Admitted::route)?;
        Some((route, self.settings.position(route.upstream.as_deref()?)?))
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

    /// The upstream has answered.
    fn answered(
        self,
        mut response: Response<UpstreamBody>,
        alone: Patience,
        is_upgrade: bool,
    ) -> Response<AnswerBody> {
        let lasting = if response.body().is_whole() { None } else { alone.for_body(response.headers()) };
        let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let turned = response.body_mut().take_turned();
        // An upstream that turns to another protocol without being asked is none.
        if is_upgraded && (!is_upgrade || turned.is_none()) {
            return self.told(UpstreamError::BadAnswer, alone);
        }
        head::send_back(&mut response, is_upgraded);
        let mut response = self.answer(response);
        response.body_mut().lasts(lasting);
        response.body_mut().turn(turned);
        response
    }

    /// The upstream has not answered.
    fn failed(mut self, failure: CallFailure, alone: Patience) -> Response<AnswerBody> {
        if matches!(
            failure,
            CallFailure::Broken(_) | CallFailure::Silent | CallFailure::CallerGone | CallFailure::Stalled
        ) {
            self.admission.unheard();
        }
        self.told(failure.error(), alone)
    }

    /// The upstream gave no answer that could be handed on.
    fn told(self, error: UpstreamError, alone: Patience) -> Response<AnswerBody> {
        if let Some(line) = self.ticket.line() {
            line.failed(error);
        }
        match error {
            UpstreamError::Silent => self.trouble(Trouble::Silent),
            UpstreamError::Busy => self.trouble(Trouble::Busy),
            UpstreamError::BrokenOff => self.incomplete(BROKEN_OFF, alone),
            UpstreamError::Stalled => self.incomplete(Trouble::Stalled, alone),
            error => self.trouble(Trouble::Unreachable(error.unanswered())),
        }
    }

    /// The upstream was asked, and the rest of the request will not come.
    fn incomplete(self, trouble: Trouble, alone: Patience) -> Response<AnswerBody> {
        if !self.admission.holds_place() {
            return self.trouble(trouble);
        }
        let Self { settings, speech, admission, mut ticket } = self;
        let response = settings.respond.trouble(trouble, speech);
        ticket.status(response.status());
        linger(admission, alone);
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

/// Whether the body of a request is waited for before a place is: if it is short, still coming, and its caller does not
/// wait for our word to send it.
pub(super) fn is_gathered(request: &impl Heard) -> bool {
    request.body().is_short_and_coming() && !request.expects_word()
}

/// Whose share of an upstream's connections a request counts for. A trusted proxy that sends for itself has none.
fn share(caller: &Caller, settings: &Settings, headers: &HeaderMap) -> ClientShare {
    let server = &settings.server;
    if !caller.hop.is_trusted {
        return ClientShare::of(server, caller.hop.address);
    }
    match client::forwarded_for(server, caller.hop.address, headers) {
        address if server.trusts(address) => ClientShare::FREE,
        address => ClientShare::of(server, address),
    }
}

/// Whether the first byte of a body is waited for before a connection is asked for. Over HTTP/1 every request takes one
/// for itself. Over HTTP/2 it takes none from others, and a call of gRPC may have to be answered before it goes on.
fn begins_first(protocol: UpstreamProtocol, speech: Speech) -> bool {
    match protocol {
        UpstreamProtocol::Http1 => true,
        UpstreamProtocol::H2 => false,
        UpstreamProtocol::Auto => speech != Speech::Grpc,
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
    head::wanted_upgrade(request).is_some_and(|wanted| route.upgrades.iter().any(|allowed| allowed == wanted))
}
