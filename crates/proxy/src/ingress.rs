//! The walk of a request through the gateway.
//!
//! ```text
//! 1 head.rs        may it be read in two ways?                                  400, nothing is sent on
//!                  what was meant for us ends here; what is left is what will be sent on, and what rules see
//! 2 client.rs      for whom is it sent?                                         -> address
//! 3 the gate       all rules, one clock reading                                 refused: 429 or 503
//! 4 way.rs         a place at the upstream, at once or after a wait             refused: 503, or the route's cheaper answer
//! 5 forward.rs     a rule that shapes lets it wait
//! 6 head.rs        who was on the way is added
//! 7 upstream.rs    an endpoint, a connection, the answer's head                 502, 503, 504
//! 8 unbroken.rs    a caller that goes meanwhile leaves the upstream at work
//! 9 answer.rs      the answer goes back, the permit on its body
//! ```

mod answer;
mod forward;
pub(crate) mod heard;
mod line;
mod unbroken;
mod visit;
mod way;

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::Guard;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use tidegate_core::Refusal;
use tidegate_policy::policy::{AccessLog, DegradeWhen, Route};
use tidegate_policy::record::StandsFor;
use tidegate_policy::{Admitted, Attributes, Cause, Decision, DecisionId, Now, Record, Refused, Turned};
use tidegate_tower::bulkhead::Entering;
use tidegate_tower::identify::Unclear;
use tidegate_tower::respond::{Page, Speech, Trouble};
use tidegate_tower::{Admission, Clock};

pub(crate) use self::answer::AnswerBody;
use self::answer::{Noted, Ticket};
use self::forward::{Forward, Unready};
use self::heard::{Heard, Sending};
use self::line::{LogCondition, LogLine};
use self::way::{Undecided, Way};
use crate::chance;
use crate::client;
use crate::connection::Caller;
use crate::connection::http1::body::CallerBody;
use crate::connection::http1::{Asked, Begun, Unserved};
use crate::figures::RouteFigures;
use crate::head::{self, Hop, Outline, SentHost, Unfit};
use crate::listen::breach_log::Breach;
use crate::listen::protocol_errors::ProtocolError;
use crate::request_id;
use crate::settings::Settings;

/// What a refusal may be that goes out without becoming a response: over HTTP/1 a page, over HTTP/2 nothing is.
pub(crate) trait Written: Sized {
    fn of(settings: &Settings, now: Now, refused: &Refused, speech: Speech) -> Option<Self>;

    fn status(&self) -> StatusCode;

    /// The bytes of its body.
    fn length(&self) -> usize;
}

impl Written for Page {
    fn of(settings: &Settings, now: Now, refused: &Refused, speech: Speech) -> Option<Self> {
        settings.page(now, refused, speech)
    }

    fn status(&self) -> StatusCode {
        self.status()
    }

    fn length(&self) -> usize {
        self.body().len()
    }
}

impl Written for Infallible {
    fn of(_: &Settings, _: Now, _: &Refused, _: Speech) -> Option<Self> {
        None
    }

    fn status(&self) -> StatusCode {
        match *self {}
    }

    fn length(&self) -> usize {
        match *self {}
    }
}

/// An answer of ours.
enum Answer<P> {
    /// As it is written.
    Page(P),
    /// Boxed, so that everything on its way stays small.
    Response(Box<Response<AnswerBody>>),
}

/// What is said to be allowed where TRACE is not. Services may allow less, and more.
const ALLOWED: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Serves one request as it was read. Everything up to the decision happens at once, so that a refusal is no more than
/// an answer; only what is sent on has to wait for others.
pub(crate) fn serve(
    caller: &Arc<Caller>,
    asked: Asked<'_, '_>,
) -> Begun<impl Future<Output = Response<AnswerBody>> + Send + use<>, AnswerBody> {
    begun(match asked {
        Ok(request) => decide(caller, request),
        Err(unserved) => Err(unread(caller, unserved)),
    })
}

/// The same for one that comes whole.
pub(crate) fn serve_whole(
    caller: &Arc<Caller>,
    request: Request<CallerBody>,
) -> Begun<impl Future<Output = Response<AnswerBody>> + Send + use<>, AnswerBody, Infallible> {
    begun(decide(caller, request))
}

fn begun<P>(
    step: Result<Box<Forward>, Answer<P>>,
) -> Begun<impl Future<Output = Response<AnswerBody>> + Send + use<P>, AnswerBody, P> {
    match step {
        Ok(forward) => Begun::Serving(send_on(forward)),
        Err(Answer::Page(page)) => Begun::Refused(page),
        Err(Answer::Response(response)) => Begun::Answered(response),
    }
}

async fn send_on(mut forward: Box<Forward>) -> Response<AnswerBody> {
    match forward.wait().await {
        Ok(()) => forward.go().await,
        Err(Unready::Refused(refusal)) => forward.turned_away(refusal),
        Err(Unready::BrokenOff) => forward.broken_off(),
    }
}

fn decide<P: Written>(caller: &Arc<Caller>, request: impl Heard) -> Result<Box<Forward>, Answer<P>> {
    let worker = &caller.worker;
    let is_timed = worker.shared.overhead.is_next(worker.number);
    let walk = Walk::new(caller, request.speech());
    let began = walk.now.moment;
    let step = walk.go(request);
    if is_timed {
        let took = worker.shared.clock.moment().since(began);
        worker.shared.overhead.decided_in(worker.number, took);
    }
    step
}

/// The answer to what could not be read as a request.
fn unread<P>(caller: &Arc<Caller>, why: Unserved) -> Answer<P> {
    let walk = Walk::new(caller, Speech::Http);
    caller.watch.begin();
    match why {
        Unserved::Unclear(what) => walk.unsound(what, None),
        Unserved::TooLarge => {
            walk.bare(ProtocolError::HeadTooLarge, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        }
        Unserved::TooLong => walk.bare(ProtocolError::TargetTooLong, StatusCode::URI_TOO_LONG),
    }
}

/// A request that is being decided about.
struct Walk<'a> {
    caller: &'a Arc<Caller>,
    settings: Guard<Arc<Settings>>,
    speech: Speech,
    now: Now,
}

impl<'a> Walk<'a> {
    fn new(caller: &'a Arc<Caller>, speech: Speech) -> Self {
        let settings = caller.worker.settings();
        let now = caller.worker.now();
        Self { caller, settings, speech, now }
    }

    /// What is sent on, or the answer.
    fn go<P: Written>(self, mut request: impl Heard) -> Result<Box<Forward>, Answer<P>> {
        self.caller.watch.begin();
        let host = match head::check(&request) {
            Ok(SentHost::Nowhere) if self.settings.identify.looks_at_hosts() => {
                return Err(self.unsound("the request names no host", Some(&request)));
            }
            Ok(host) => host,
            Err(Unfit::Unclear(what)) => return Err(self.unsound(what, Some(&request))),
            Err(Unfit::Trace) => return Err(self.untraced()),
        };
        // Over HTTP/1 the parser has counted them.
        if request.fields() > self.caller.listener.spec().max_headers {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(self.bare(ProtocolError::HeadTooLarge, status));
        }
        if let Err(unclear) = request.arrange(host, self.sending()) {
            return Err(self.unclear(unclear, &request));
        }
        let Hop { address, is_trusted, .. } = self.caller.hop;
        if !is_trusted {
            return self.pass(request, address, None);
        }
        let request = request.whole(self.sending()).map_err(|what| self.unsound(what, None))?;
        let client = client::forwarded_for(&self.settings.server, address, request.headers());
        let attempt = way::attempt(request.headers());
        self.pass(request, client, attempt)
    }

    fn sending(&self) -> Sending<'_> {
        let Settings { identify, meant, server, .. } = &**self.settings;
        Sending { hop: &self.caller.hop, identify, meant, says: server.client_address }
    }

    /// The same for a request of which it is known for whom it is sent, and which attempt it is.
    fn pass<P: Written>(
        self,
        request: impl Heard,
        client: IpAddr,
        attempt: Option<u32>,
    ) -> Result<Box<Forward>, Answer<P>> {
        let ask = |attributes: &Attributes<'_>| self.ask(attributes, &request, attempt);
        let (admission, ticket, way) = match request.identified(client, self.sending(), ask) {
            Ok(Ok(asked)) => asked,
            Ok(Err(answer)) => {
                request.end();
                return Err(answer);
            }
            Err(unclear) => return Err(self.unclear(unclear, &request)),
        };
        let request = request.whole(self.sending()).map_err(|what| self.unsound(what, None))?;
        let settings = Guard::into_inner(self.settings);
        let ready = self.now.moment;
        Ok(Box::new(Forward { settings, speech: self.speech, admission, ticket, way, ready, request }))
    }

    /// A request that must not be sent on, and after which nothing on its connection can be trusted.
    fn unsound<P>(&self, what: &'static str, request: Option<&dyn Outline>) -> Answer<P> {
        let mut response = self.settings.respond.trouble(Trouble::Unclear(what), self.speech);
        self.breached(ProtocolError::Malformed, response.status(), (Some(what), request));
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        self.answer(response, None)
    }

    /// A request whose head can be read in two ways by others.
    fn unclear<P>(&self, unclear: Unclear, request: &dyn Outline) -> Answer<P> {
        let response = self.settings.respond.unclear(unclear, self.speech);
        self.breached(ProtocolError::Malformed, response.status(), (Some(unclear.what), Some(request)));
        self.answer(response, None)
    }

    /// A request that would have been sent back with all it carries, and with what was added on the way.
    fn untraced<P>(&self) -> Answer<P> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(ALLOWED));
        self.answer(response, None)
    }

    /// An answer that is no more than its status.
    fn bare<P>(&self, error: ProtocolError, status: StatusCode) -> Answer<P> {
        self.breached(error, status, (None, None));
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = status;
        self.answer(response, None)
    }

    /// Counts and logs what is no request, or none that can be read in one way only.
    fn breached(
        &self,
        error: ProtocolError,
        status: StatusCode,
        (what, request): (Option<&'static str>, Option<&dyn Outline>),
    ) {
        let Caller { worker, listener, hop, .. } = &**self.caller;
        worker.breached(listener, Breach { error, what, client: hop.address, status: Some(status), request });
    }

    fn answer<P>(&self, response: Response<Bytes>, noted: Option<Noted>) -> Answer<P> {
        let mut ticket = Ticket::new(Arc::clone(self.caller), noted);
        ticket.status(response.status());
        Answer::Response(Box::new(response.map(|text| AnswerBody::text(text, ticket))))
    }

    /// Asks the gate, and then for a place at the upstream.
    fn ask<P: Written>(
        &self,
        attributes: &Attributes<'_>,
        request: &impl Heard,
        attempt: Option<u32>,
    ) -> Result<(Admission, Ticket, Way), Answer<P>> {
        let gate = &self.caller.worker.shared.gate;
        let decision = gate.decide(self.now, attributes);
        let mut admitted = match decision {
            Decision::Admit(admitted) => admitted,
            // Looked at where it is: a refusal is half a thousand bytes.
            Decision::Refuse(ref refused) => {
                if matches!(refused.cause, Cause::Reserve | Cause::Shed) {
                    self.held_back(Some(refused.route()));
                }
                return Err(self.refused(refused, attributes));
            }
        };
        let figures = match admitted.route() {
            Some(route) => self.settings.route(&route.name),
            None => &self.settings.no_route,
        };
        if let Some(answer) = admitted.route().and_then(|route| self.switched(route)) {
            self.held_back(admitted.route());
            figures.decided(self.caller.listener.number, admitted.criticality(), true);
            figures.degraded(DegradeWhen::Switched);
            let noted = self.noted(figures, self.line_of_admitted(&admitted, attributes, true), None);
            admitted.refund(self.now);
            return Err(self.answer(answer, Some(noted)));
        }
        let way = match self.way(&admitted, attributes, forward::is_gathered(request), attempt) {
            Ok(way) => way,
            Err((upstream, refusal)) => {
                let refused = gate.turn_away(self.now, admitted, Turned { upstream, refusal });
                return Err(self.refused(&refused, attributes));
            }
        };
        let undecided =
            Undecided { listener: self.caller.listener.number, criticality: admitted.criticality() };
        let undecided = if way.is_clear() {
            figures.decided(undecided.listener, undecided.criticality, true);
            None
        } else {
            gate.keep_note(&mut admitted);
            Some(undecided)
        };
        let line = self.line_of_admitted(&admitted, attributes, undecided.is_none());
        let noted = self.noted(figures, line.clone(), undecided);
        let (clock, respond) = (Arc::clone(&self.settings.clock), Arc::clone(&self.settings.respond));
        let mut admission = Admission::new(admitted, request.method(), clock, respond);
        if let Some(line) = line {
            admission.tell(line);
        }
        Ok((admission, Ticket::new(Arc::clone(self.caller), Some(noted)), way))
    }

    /// Tells the upstream's entrance of a request that was answered here to spare it.
    fn held_back(&self, route: Option<&Route>) {
        let upstream = route.and_then(|route| route.upstream.as_deref());
        if let Some(upstream) = upstream.and_then(|name| self.settings.upstream(name)) {
            upstream.door(self.caller.worker.number).held_back();
        }
    }

    /// The answer to a request that may not pass.
    fn refused<P: Written>(&self, refused: &Refused, attributes: &Attributes<'_>) -> Answer<P> {
        let figures = self.settings.route(&refused.route().name);
        figures.decided(self.caller.listener.number, refused.criticality, false);
        let line = self.line_of_refused(refused, attributes);
        if let Some(page) = P::of(&self.settings, self.now, refused, self.speech) {
            self.answered_at_once(figures, &page, line);
            return Answer::Page(page);
        }
        let noted = self.noted(figures, line, None);
        let response = self.settings.refused(self.now, refused, self.speech);
        self.answer(response, Some(noted))
    }

    /// Notes an answer that is written already, so that nothing is left to be noted when it ends.
    fn answered_at_once(&self, figures: &RouteFigures, page: &impl Written, line: Option<Arc<LogLine>>) {
        let status = page.status().as_u16();
        self.caller.watch.end();
        figures.answered_at_once(status);
        if let Some(line) = line {
            line.sent(page.length());
            line.answered(status, self.caller.worker.shared.clock.moment().since(self.now.moment));
        }
    }

    /// The cheaper answer of a route, while an operator wants all of its requests to get it.
    fn switched(&self, route: &Route) -> Option<Response<Bytes>> {
        let degraded = self.settings.degraded(route)?;
        let is_on = self.caller.worker.shared.switches.is_on(&route.name, self.now.moment);
        is_on.then(|| degraded.switched())
    }

    /// How a request that may pass gets to its upstream; or who has no room for it, and why.
    fn way(
        &self,
        admitted: &Admitted,
        attributes: &Attributes<'_>,
        is_gathered: bool,
        attempt: Option<u32>,
    ) -> Result<Way, (&str, Refusal)> {
        let route = admitted.route().filter(|route| !route.is_exempt);
        let upstream = route.and_then(|route| self.settings.upstream(route.upstream.as_deref()?));
        let Some(upstream) = upstream else { return Ok(Way::Free) };
        let worker = &self.caller.worker;
        let (door, criticality) = (upstream.door(worker.number), admitted.criticality());
        let who = || worker.shared.gate.who(self.now, attributes);
        if !admitted.wait().is_zero() || is_gathered {
            return Ok(Way::Later(Arc::clone(door), Entering { criticality, who: who(), attempt }));
        }
        Way::find(door, self.now.moment, Entering { criticality, who, attempt })
            .map_err(|refusal| (upstream.spec.name.as_str(), refusal))
    }

    fn noted(
        &self,
        figures: &Arc<RouteFigures>,
        line: Option<Arc<LogLine>>,
        undecided: Option<Undecided>,
    ) -> Noted {
        figures.begin();
        Noted::new(Arc::clone(figures), self.now, line, undecided)
    }

    /// The line of a refusal in the access log, where it is to have one.
    fn line_of_refused(&self, refused: &Refused, attributes: &Attributes<'_>) -> Option<Arc<LogLine>> {
        let condition = condition(self.settings.access_log.as_ref()?, false);
        let is_logged = condition.always.refused || condition.drawn.is_some();
        is_logged.then(|| self.line(condition, refused.id, attributes, refused.record(attributes)))
    }

    /// The line of a request that may pass, where it may have one; it may still be refused unless it `is_clear`.
    fn line_of_admitted(
        &self,
        admitted: &Admitted,
        attributes: &Attributes<'_>,
        is_clear: bool,
    ) -> Option<Arc<LogLine>> {
        let log = self.settings.access_log.as_ref()?;
        let is_shadow_refused = admitted.shadow_refusals().next().is_some();
        let condition = condition(log, is_shadow_refused);
        let may_be_met = condition.may_be_met(is_clear);
        may_be_met.then(|| self.line(condition, admitted.id(), attributes, admitted.record(attributes)))
    }

    fn line(
        &self,
        condition: LogCondition,
        id: DecisionId,
        attributes: &Attributes<'_>,
        mut record: Record,
    ) -> Arc<LogLine> {
        let caller = self.caller;
        record.request_id = Some(request_id::of(attributes.headers, caller.hop.is_trusted, id));
        record.listener = Some(caller.listener.spec().name.clone());
        LogLine::new(&caller.worker.shared, condition, record)
    }
}

/// When a request is logged.
fn condition(log: &AccessLog, is_shadow_refused: bool) -> LogCondition {
    let share = log.sample_accepted;
    let drawn = is_drawn(share).then(|| StandsFor::of_share(share));
    LogCondition { always: log.always, is_shadow_refused, drawn }
}

/// Whether chance takes one of this share, in millionths.
fn is_drawn(share: u32) -> bool {
    share > 0 && chance::roll() % 1_000_000 < u64::from(share)
}
