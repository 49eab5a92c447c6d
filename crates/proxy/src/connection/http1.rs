//! One HTTP/1 connection from a caller, as the side that answers.
//!
//! The connection's task does everything: it reads a request's head, polls whoever answers it, feeds the request's
//! body to whoever wants it, and writes the answer. No channel, no second task, no second look at the bytes
//! ([why](../../../../docs/adr/0008-our-own-http1-server.md)).
//!
//! ```text
//! Reading ──head──> Serving ──answer's head──> Answering ──> Reading, if both sides agree where the request ended
//!    │                 │ └ the caller goes away: what serves it is dropped       └──> Clearing: the rest of a body
//!    └──unclear──> Serving, the refusal                                          └──> Closing ──> Lingering
//! ```
//!
//! Requests that come at once are answered one after another: the next is read when the answer before it is out.

mod answer;
pub(crate) mod body;
mod feed;
mod read;
mod scratch;
#[cfg(test)]
mod tests;
mod write;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body;
use tidegate_tower::respond::Page;
use tokio::io::{AsyncRead, AsyncWrite};

use self::body::{CallerBody, Feeder, pipe};
use self::feed::Failed;
pub(crate) use self::read::{Head, Limits, STAR, Unserved, check_signs, may_be_ended};
use self::read::{Manner, find_head};
use self::scratch::Input;
pub(crate) use self::scratch::keep_fields;
use super::watch::{Awaited, Watch};
use crate::head::SentHost;
use crate::http1::Flaw;
use crate::http1::outgoing::Outgoing;
use crate::http1::rest::Rest;
use crate::listen::left::Leaves;

/// A request, or why there is none to be served.
pub(crate) type Asked<'a, 'b> = Result<RawRequest<'a, 'b>, Unserved>;

/// A request whose head lies where it was read.
#[derive(Debug)]
pub(crate) struct RawRequest<'a, 'b> {
    pub(crate) head: &'a mut Head<'b>,
    pub(crate) body: CallerBody,
    /// The host it is sent on with.
    pub(crate) host: SentHost,
}

impl RawRequest<'_, '_> {
    /// The same with memory of its own, and the host to send it on with.
    pub(crate) fn whole(self) -> Result<(Request<CallerBody>, SentHost), Flaw> {
        Ok((self.head.request(self.body)?, self.host))
    }

    /// The host it is sent on with, and its port.
    pub(crate) fn authority(&self) -> Option<&[u8]> {
        match &self.host {
            SentHost::Written => self.head.host().map(|host| host.first),
            SentHost::Named(host) => Some(host.as_bytes()),
            SentHost::Nowhere => None,
        }
    }
}

/// The head of a request that is all there is of these bytes.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn parsed(bytes: &[u8]) -> Option<Head<'_>> {
    let limits = Limits { max_header_bytes: 64 * 1024, max_headers: 128 };
    let span = find_head(bytes, limits).ok()??;
    Head::read(bytes, span).ok()
}

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits for a head.
    Reading,
    /// It waits for the head of the answer.
    Serving,
    /// The answer goes out.
    Answering,
    /// The answer is out, and the rest of the request is read away.
    Clearing,
    /// It says that nothing more will come.
    Closing,
    /// It waits until its peer has seen that: if it went away before, what was sent last would be lost with what was
    /// not read.
    Lingering,
    Ended,
}

/// What becomes of a request: most that are refused are answered at once, and need no future that is moved about.
pub(crate) enum Begun<F, B, P = Page> {
    /// By a page of ours.
    Refused(P),
    Answered(Box<Response<B>>),
    Serving(F),
}

/// A connection that `serve` answers; `F` brings an answer whose body is `B`.
pub(crate) struct Connection<S, A, F, B> {
    stream: S,
    watch: Arc<Watch>,
    limits: Limits,
    serve: A,
    serving: Pin<Box<Option<F>>>,
    stage: Stage,
    /// How the request in hand is to be answered.
    manner: Manner,
    /// What was read and has not been given on.
    buffer: BytesMut,
    /// What of the request is still to come.
    rest: Rest,
    feeder: Option<Feeder>,
    cleared: u64,
    /// What is to be written, of which so much has been.
    out: Vec<u8>,
    written: usize,
    /// The answer's body, until it has been sent.
    answer: Option<Outgoing<B>>,
    /// The body of an answer that turns to another protocol.
    turning: Option<B>,
    is_draining: bool,
}

impl<S, A, F, B> Connection<S, A, F, B> {
    /// Takes no more requests than the one in hand.
    pub(crate) const fn drain(&mut self) {
        self.is_draining = true;
    }

    /// The stream, what has been read from it, and the body of the last answer, if that turned to another protocol.
    pub(crate) fn into_turned(self) -> Option<(S, Bytes, B)> {
        Some((self.stream, self.buffer.freeze(), self.turning?))
    }

    /// Waits for the next request, without holding memory for it.
    fn next(&mut self) -> Stage {
        // First of all this, since the rest of the body before it may have been awaited like a head.
        self.watch.awaits(Awaited::Request);
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        } else {
            self.watch.awaits(Awaited::Head);
        }
        Stage::Reading
    }

    /// Begins to close. Nobody waits for long for a peer that does not notice.
    fn close(&mut self) -> Stage {
        self.watch.awaits(Awaited::Head);
        Stage::Closing
    }
}

impl<S, A, F, B> Connection<S, A, F, B>
where
    S: AsyncRead + AsyncWrite + Leaves + Unpin,
    A: FnMut(Asked<'_, '_>) -> Begun<F, B>,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin,
{
    pub(crate) fn new(stream: S, limits: Limits, watch: Arc<Watch>, serve: A) -> Self {
        Self {
            stream,
            watch,
            limits,
            serve,
            serving: Box::pin(None),
            stage: Stage::Reading,
            manner: Manner::default(),
            buffer: BytesMut::new(),
            rest: Rest::Nothing,
            feeder: None,
            cleared: 0,
            out: Vec::new(),
            written: 0,
            answer: None,
            turning: None,
            is_draining: false,
        }
    }

    /// Serves until the connection has ended, or turned to another protocol.
    pub(crate) fn poll_served(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.stage = ready!(match self.stage {
                Stage::Reading => self.poll_head(cx),
                Stage::Serving => self.poll_serving(cx),
                Stage::Answering => self.poll_answer(cx),
                Stage::Clearing => self.poll_clear(cx),
                Stage::Closing => self.poll_close(cx),
                Stage::Lingering => self.poll_linger(cx),
                Stage::Ended => return Poll::Ready(()),
            });
        }
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Stage> {
        if !self.buffer.is_empty() {
            match find_head(&self.buffer, self.limits) {
                Ok(Some(span)) => {
                    let bytes = self.buffer.split_to(span.end);
                    return Poll::Ready(self.begin(&mut Head::read(&bytes, span)));
                }
                Ok(None) => self.watch.awaits(Awaited::Head),
                Err(unserved) => return Poll::Ready(self.refuse(unserved)),
            }
        }
        let mut input = Input::take();
        let came = match input.poll_read(&mut self.stream, cx) {
            Poll::Pending if self.is_draining && self.buffer.is_empty() => return Poll::Ready(self.close()),
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok([]) | Err(_)) => return Poll::Ready(Stage::Ended),
            Poll::Ready(Ok(came)) => came,
        };
        if !self.buffer.is_empty() {
            self.buffer.extend_from_slice(came);
            return Poll::Ready(Stage::Reading);
        }
        // Nearly always it is here as a whole.
        match find_head(came, self.limits) {
            Ok(Some(span)) => {
                if span.end < came.len() {
                    self.buffer.extend_from_slice(came.get(span.end..).unwrap_or_default());
                }
                Poll::Ready(self.begin(&mut Head::read(came, span)))
            }
            Ok(None) => {
                self.buffer.extend_from_slice(came);
                Poll::Ready(Stage::Reading)
            }
            Err(unserved) => Poll::Ready(self.refuse(unserved)),
        }
    }

    fn begin(&mut self, head: &mut Result<Head<'_>, Unserved>) -> Stage {
        let head = match head {
            Ok(head) => head,
            Err(unserved) => return self.refuse(*unserved),
        };
        self.manner = head.manner;
        self.rest = head.rest;
        let body = self.body();
        self.watch.awaits(if self.rest == Rest::Nothing { Awaited::Request } else { Awaited::Body });
        let begun = (self.serve)(Ok(RawRequest { head, body, host: SentHost::Written }));
        self.begun(begun)
    }

    fn begun(&mut self, begun: Begun<F, B>) -> Stage {
        match begun {
            Begun::Refused(page) => self.answer_page(&page),
            Begun::Answered(response) => self.answer(*response),
            Begun::Serving(serving) => {
                self.serving.set(Some(serving));
                Stage::Serving
            }
        }
    }

    /// The request's body, whole if it is here already.
    fn body(&mut self) -> CallerBody {
        let left = self.rest.size_hint().exact();
        match left.and_then(|left| usize::try_from(left).ok()) {
            Some(0) => CallerBody::Whole(Bytes::new()),
            Some(left) if left <= self.buffer.len() => {
                self.rest = Rest::Nothing;
                CallerBody::Whole(self.buffer.split_to(left).freeze())
            }
            Some(_) | None => {
                let (feeder, body) = pipe(left);
                self.feeder = Some(feeder);
                body
            }
        }
    }

    /// Answers what is no request; nothing behind it can be trusted.
    fn refuse(&mut self, why: Unserved) -> Stage {
        self.manner = Manner::default();
        self.feeder = None;
        self.rest = Rest::UntilClose;
        self.watch.awaits(Awaited::Request);
        let begun = (self.serve)(Err(why));
        self.begun(begun)
    }

    fn poll_serving(&mut self, cx: &mut Context<'_>) -> Poll<Stage> {
        loop {
            let Some(serving) = self.serving.as_mut().as_pin_mut() else { return Poll::Ready(Stage::Ended) };
            if let Poll::Ready(response) = serving.poll(cx) {
                self.serving.set(None);
                return Poll::Ready(self.answer(response));
            }
            match ready!(self.poll_feed(cx)) {
                Ok(()) => {}
                Err(Failed::Gone) => {
                    self.serving.set(None);
                    return Poll::Ready(Stage::Ended);
                }
                Err(Failed::Unclear(flaw)) => {
                    self.serving.set(None);
                    return Poll::Ready(self.refuse(Unserved::Unclear(flaw)));
                }
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Stage> {
        let closed = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
        let is_unread = self.rest != Rest::Nothing || !self.buffer.is_empty();
        Poll::Ready(if is_unread && closed.is_ok() { Stage::Lingering } else { Stage::Ended })
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<Stage> {
        self.buffer = BytesMut::new();
        let mut input = Input::take();
        loop {
            match input.poll_read(&mut self.stream, cx) {
                Poll::Pending if self.is_draining => return Poll::Ready(Stage::Ended),
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok([]) | Err(_)) => return Poll::Ready(Stage::Ended),
                Poll::Ready(Ok(_)) => {}
            }
        }
    }
}
