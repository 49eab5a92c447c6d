//! Bodies on their way between caller and upstream.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use pin_project_lite::pin_project;
use tidegate_tower::identify::has_blanks;
use tokio::time::{Sleep, sleep, timeout};

use super::endpoint::InFlight;
use super::exchange::Exchange;
use super::http1::Stream;
use super::lane::{Held, Many};
use super::places::Place;
use super::{Call, RequestBody};
use crate::head::fields::Meant;
use crate::http1::chunks::{drop_where, is_forbidden};
use crate::stay::{Arrival, Stay};

/// For how long the first byte of a body of unknown length is waited for.
const SPEAKS_FIRST: Duration = Duration::from_millis(500);

/// For so long after its head a body may be here and not have been read yet: both come in one packet, and HTTP/2 hands
/// the head on first. Were it taken for one that is waited for, its place would be lent, and taken again beyond the limit.
const HEAD_START: Duration = Duration::from_millis(10);

pin_project! {
    /// A body that may not pause for longer than its patience.
    #[derive(Debug)]
    pub(crate) struct Patient<B> {
        #[pin]
        body: Option<B>,
        patience: Option<Duration>,
        // There only while nothing comes: most bodies are here at once, and need no timer.
        pause: Option<Pin<Box<Sleep>>>,
        // Told how it comes.
        arrival: Option<Arrival>,
        // What must not stand among a request's trailers.
        meant: Option<Arc<Meant>>,
        // The same, while it keeps a connection waiting.
        exchange: Option<Arc<Exchange>>,
        // What came first, if that was waited for.
        first: Option<Frame<Bytes>>,
        // While it may be here and not have been read yet.
        has_head_start: bool,
    }
}

impl<B> Patient<B> {
    pub(crate) const fn new(body: B, patience: Option<Duration>) -> Self {
        Self {
            body: Some(body),
            patience,
            pause: None,
            arrival: None,
            meant: None,
            exchange: None,
            first: None,
            has_head_start: false,
        }
    }

    /// The same, telling somebody how it comes, if anybody wants to know.
    pub(crate) fn telling(self, arrival: Option<Arrival>) -> Self {
        Self { arrival, ..self }
    }

    /// The same without trailers that could be taken for what a policy looks for in heads.
    pub(crate) fn trailing(self, meant: Option<Arc<Meant>>) -> Self {
        Self { meant, ..self }
    }

    /// The same as part of an exchange.
    pub(crate) fn of_exchange(self, exchange: Option<Arc<Exchange>>) -> Self {
        Self { exchange, ..self }
    }

    /// Nothing.
    pub(crate) const fn empty() -> Self {
        Self {
            body: None,
            patience: None,
            pause: None,
            arrival: None,
            meant: None,
            exchange: None,
            first: None,
            has_head_start: false,
        }
    }
}

impl<B> Patient<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Waits until the first byte has come, or the end. Not for long where the length is not known: such a body may be one
    /// side of a conversation that the service begins.
    pub(crate) async fn begun(&mut self) -> Result<(), BodyFailure> {
        self.has_head_start = true;
        let begun = timeout(HEAD_START, self.begins()).await;
        self.has_head_start = false;
        if let Ok(begun) = begun {
            return begun;
        }
        if self.size_hint().exact().is_some() {
            return self.begins().await;
        }
        timeout(SPEAKS_FIRST, self.begins()).await.unwrap_or(Ok(()))
    }

    async fn begins(&mut self) -> Result<(), BodyFailure> {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await {
            let frame = frame?;
            if frame.data_ref().is_none_or(|data| !data.is_empty()) {
                self.first = Some(frame);
                break;
            }
        }
        Ok(())
    }
}

impl<B> Body for Patient<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = BodyFailure;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailure>>> {
        let this = self.project();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if this.exchange.as_ref().is_some_and(|exchange| exchange.is_ended()) {
            this.arrival.take().into_iter().for_each(Arrival::has_broken_off);
            return Poll::Ready(Some(Err(BodyFailure::Stalled)));
        }
        let Some(mut body) = this.body.as_pin_mut() else { return Poll::Ready(None) };
        if let Poll::Ready(mut frame) = body.as_mut().poll_frame(cx) {
            *this.pause = None;
            if let Some(Ok(frame)) = &mut frame
                && let Some(trailers) = frame.trailers_mut()
            {
                drop_trailers(trailers, this.meant.as_deref());
            }
            if let Some(exchange) = this.exchange {
                exchange.waits_no_more();
                let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
                exchange.moved(data.map_or(0, Bytes::len));
            }
            match &frame {
                Some(Err(_)) => this.arrival.take().into_iter().for_each(Arrival::has_broken_off),
                None => this.arrival.take().into_iter().for_each(Arrival::has_come),
                // Behind the last byte nothing can come but the end, which a caller may hold back.
                Some(Ok(_)) if body.is_end_stream() || body.size_hint().exact() == Some(0) => {
                    this.arrival.take().into_iter().for_each(Arrival::has_come);
                }
                Some(Ok(_)) => {}
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyFailure::Broken(error.into()))));
        }
        if let Some(arrival) = this.arrival
            && !*this.has_head_start
        {
            arrival.is_waited_for();
        }
        if let Some(exchange) = this.exchange {
            exchange.waits_for_upload(cx.waker());
        }
        let Some(patience) = *this.patience else { return Poll::Pending };
        let pause = this.pause.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(pause.as_mut().poll(cx));
        this.arrival.take().into_iter().for_each(Arrival::has_broken_off);
        Poll::Ready(Some(Err(BodyFailure::Paused)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let first = self.first.as_ref().and_then(Frame::data_ref).map_or(0, |data| data.len() as u64);
        let mut all = SizeHint::new();
        all.set_lower(rest.lower().saturating_add(first));
        if let Some(upper) = rest.upper() {
            all.set_upper(upper.saturating_add(first));
        }
        all
    }
}

/// Takes away trailers that must not follow a body; of a request, those too that mean something to the policy.
fn drop_trailers(trailers: &mut HeaderMap, meant: Option<&Meant>) {
    let may_trail = |name: &HeaderName| meant.is_none_or(|meant| meant.may_trail(name));
    drop_where(trailers, |name, value| is_forbidden(name) || has_blanks(value) || !may_trail(name));
}

/// Why a body ended too soon.
#[derive(Debug)]
pub(crate) enum BodyFailure {
    Broken(Box<dyn Error + Send + Sync>),
    Paused,
    Stalled,
}

impl fmt::Display for BodyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => write!(f, "the body broke off: {error}"),
            Self::Paused => f.write_str("the body paused for too long"),
            Self::Stalled => f.write_str("the body kept others waiting for too long"),
        }
    }
}

impl Error for BodyFailure {}

/// A request's body with nothing in it.
pub(super) fn nothing() -> RequestBody {
    RequestBody::uncounted(Patient::empty())
}

/// The body of an answer: an upstream's, with the connection it comes over, or a text of ours.
#[derive(Debug)]
pub(crate) struct UpstreamBody {
    source: Source,
    /// The place it holds at its upstream.
    stay: Option<Stay>,
}

#[derive(Debug)]
enum Source {
    /// All of it is here.
    Text(Bytes),
    One(OneBody),
    Many(Box<ManyBody>),
    /// Another protocol is spoken from here on.
    Turned(Option<Box<Held>>),
}

/// A body that is read from a connection of its own.
#[derive(Debug)]
struct OneBody {
    /// It has the connection, until it is ended for others.
    exchange: Arc<Exchange>,
    in_flight: InFlight,
    // There only while nothing comes.
    pause: Option<Pin<Box<Sleep>>>,
}

/// A body on a connection that it shares.
#[derive(Debug)]
struct ManyBody {
    body: Patient<Incoming>,
    _many: Many,
    _in_flight: InFlight,
}

/// A connection that has turned to another protocol.
#[derive(Debug)]
pub(crate) struct Turned {
    pub(crate) stream: Stream,
    /// What has been read already.
    pub(crate) unread: Bytes,
    _place: Place,
}

impl UpstreamBody {
    /// A text of ours.
    pub(crate) const fn text(text: Bytes) -> Self {
        Self { source: Source::Text(text), stay: None }
    }

    /// What comes over a connection. Where all of it is here already, others may use the connection at once.
    pub(super) fn one(mut held: Box<Held>, in_flight: InFlight, call: &Call<'_>) -> Self {
        match held.connection.take_whole() {
            Some(whole) => {
                in_flight.give_back(held);
                Self::text(whole)
            }
            None => {
                let exchange = Exchange::answer(call.ticks, call.client, held);
                in_flight.endpoint.places.exchanges.add(&exchange);
                Self { source: Source::One(OneBody { exchange, in_flight, pause: None }), stay: None }
            }
        }
    }

    pub(super) fn many(body: Incoming, many: Many, in_flight: InFlight) -> Self {
        if body.is_end_stream() {
            return Self::text(Bytes::new());
        }
        let body = Patient::new(body, in_flight.endpoint.upstream.timeout);
        let source = Source::Many(Box::new(ManyBody { body, _many: many, _in_flight: in_flight }));
        Self { source, stay: None }
    }

    pub(super) const fn turned(held: Box<Held>) -> Self {
        Self { source: Source::Turned(Some(held)), stay: None }
    }

    /// The connection, if it has turned to another protocol.
    pub(crate) fn take_turned(&mut self) -> Option<Turned> {
        let Source::Turned(held) = &mut self.source else { return None };
        let Held { connection, place } = *held.take()?;
        let (stream, unread) = connection.into_parts();
        Some(Turned { stream, unread, _place: place })
    }

    /// Whether nothing more has to come of it, or nothing that is a body.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self.source, Source::Text(_) | Source::Turned(_))
    }

    /// Holds a place until it has come to its end.
    pub(crate) fn keep(&mut self, stay: Stay) {
        self.stay = Some(stay);
    }

    /// Nothing more comes of it; ends what depended on it.
    fn end(&mut self) {
        self.stay = None;
        if let Source::One(OneBody { exchange, in_flight, .. }) =
            std::mem::replace(&mut self.source, Source::Text(Bytes::new()))
            && let Some(held) = exchange.take_connection()
        {
            in_flight.give_back(held);
        }
    }
}

impl OneBody {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFailure>>> {
        self.exchange.waits_no_more();
        let polled = self.exchange.with_connection(|connection| connection.poll_frame(cx));
        let Some(polled) = polled else { return Poll::Ready(Some(Err(BodyFailure::Stalled))) };
        if let Poll::Ready(frame) = polled {
            self.pause = None;
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            self.exchange.moved(data.map_or(0, Bytes::len));
            self.exchange.waits();
            return Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyFailure::Broken(error.into()))));
        }
        let Some(patience) = self.in_flight.endpoint.upstream.timeout else { return Poll::Pending };
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(patience)));
        pause.as_mut().poll(cx).map(|()| Some(Err(BodyFailure::Paused)))
    }

    /// Whether the whole answer has been read. One that was ended before has not.
    fn has_ended(&self) -> bool {
        self.exchange.with_connection(|connection| connection.has_ended()).unwrap_or(false)
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BodyFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailure>>> {
        let (frame, has_ended) = match &mut self.source {
            Source::Text(text) if text.is_empty() => return Poll::Ready(None),
            Source::Text(text) => return Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
            Source::Turned(_) => return Poll::Ready(None),
            Source::One(one) => (one.poll_frame(cx), one.has_ended()),
            Source::Many(many) => (Pin::new(&mut many.body).poll_frame(cx), many.body.is_end_stream()),
        };
        match &frame {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(_))) if !has_ended => {}
            Poll::Ready(None | Some(Ok(_) | Err(_))) => self.end(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Text(text) => text.is_empty(),
            Source::One(one) => one.has_ended(),
            Source::Many(many) => many.body.is_end_stream(),
            Source::Turned(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Text(text) => SizeHint::with_exact(text.len() as u64),
            Source::One(one) => {
                one.exchange.with_connection(|connection| connection.size_hint()).unwrap_or_default()
            }
            Source::Many(many) => many.body.size_hint(),
            Source::Turned(_) => SizeHint::with_exact(0),
        }
    }
}
