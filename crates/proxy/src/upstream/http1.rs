//! One HTTP/1.1 connection to an upstream, as the side that asks.
//!
//! No task drives it: whoever has a request writes it and reads the answer's head in its own future, and whoever has
//! the answer's body reads the rest when it is polled. So a request costs two turns of the caller's task and no
//! channel ([why](../../../../docs/adr/0007-our-own-http1-client.md)).
//!
//! ```text
//! idle ──ask──> request out, head in ──poll_frame──> body in ──> idle, if nothing is left over on either way
//!                    └ the request's body may still go out while the answer's comes in
//! ```
//!
//! A connection is used again only if both sides agree where the answer ended: it says so, everything that was read
//! belonged to it, and the request was sent to its last byte. Dropping it closes it.

mod read;
mod stream;
#[cfg(test)]
mod tests;
mod write;

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use self::read::{Ending, take_head};
pub(crate) use self::stream::Stream;
use self::write::write_head;
use crate::http1::Flaw;
use crate::http1::appetite;
use crate::http1::chunks::Found;
use crate::http1::outgoing::{Framing, Outgoing};
use crate::http1::rest::Rest;

/// How much is read at once as long as nothing is known: a head, with a small body behind it.
const READ: usize = 8 * 1024;

/// How much is read at once of a large body.
const READ_LARGE: usize = 64 * 1024;

/// How much of a request waits to be written before its body is asked for more.
const MOST_OUT: usize = 16 * 1024;

/// How much room for writing an idle connection keeps.
const KEPT_OUT: usize = 4 * 1024;

/// How many interim answers may come before the answer.
const MOST_INTERIM: usize = 16;

/// Why there is no answer, or no more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing of the request was sent; it is as it was.
    Unsent,
    /// The connection ended before anything of an answer came.
    Closed,
    /// The connection ended within an answer.
    BrokenOff,
    /// This is wrong with the answer, or with the request's body.
    Malformed(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsent => "the connection ended before the request was sent",
            Self::Closed => "the connection ended before an answer",
            Self::BrokenOff => "the connection ended within the answer",
            Self::Malformed(what) => what,
        })
    }
}

impl Error for Failure {}

impl From<Flaw> for Failure {
    fn from(what: Flaw) -> Self {
        Self::Malformed(what)
    }
}

/// A connection; `B` is the body of its requests.
#[derive(Debug)]
pub(crate) struct Connection<S, B> {
    stream: S,
    /// What was read and has not been given on.
    buffer: BytesMut,
    is_buffer_large: bool,
    /// How much is read at once of a body of unknown length: more as long as there is more.
    appetite: usize,
    /// What is to be written, of which so much has been.
    out: Vec<u8>,
    written: usize,
    /// The request's body, until it has been sent.
    upload: Option<Box<Outgoing<B>>>,
    rest: Rest,
    is_kept: bool,
}

/// How far the exchange of a request for its answer's head is.
struct Progress {
    is_head_request: bool,
    is_sending: bool,
    has_heard: bool,
    interim: usize,
}

impl<S, B> Connection<S, B>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: Body<Data = Bytes> + Unpin,
{
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            is_buffer_large: false,
            appetite: READ,
            out: Vec::new(),
            written: 0,
            upload: None,
            rest: Rest::Nothing,
            is_kept: true,
        }
    }

    pub(crate) const fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Sends a request and waits for the head of its answer. `host` is for requests that name none. The request
    /// loses its body, which is replaced by nothing, unless the failure is that nothing was sent; it loses its
    /// fields, whose memory the answer's take, once something of an answer has come.
    pub(crate) async fn ask(
        &mut self,
        request: &mut Request<B>,
        host: &str,
        nothing: impl FnOnce() -> B,
    ) -> Result<Response<()>, Failure> {
        let framing = Framing::of(request.body());
        self.out.clear();
        self.written = 0;
        write_head(&mut self.out, request, host, framing);
        if framing != Framing::Bare {
            let body = std::mem::replace(request.body_mut(), nothing());
            self.upload = Some(Box::new(Outgoing::new(body, framing, true)));
        }
        self.is_kept = true;
        let mut progress = Progress {
            is_head_request: request.method() == Method::HEAD,
            is_sending: true,
            has_heard: false,
            interim: 0,
        };
        let answered = poll_fn(|cx| self.poll_answer(cx, &mut progress, request.headers_mut())).await;
        if matches!(answered, Err(Failure::Unsent))
            && let Some(body) = self.upload.take().and_then(|upload| upload.into_body())
        {
            *request.body_mut() = body;
        }
        answered
    }

    /// The request goes out and the answer comes in at the same time: whoever answers early need not take it all.
    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        progress: &mut Progress,
        room: &mut HeaderMap,
    ) -> Poll<Result<Response<()>, Failure>> {
        if progress.is_sending {
            progress.is_sending = self.poll_send(cx)?.is_pending();
        }
        loop {
            if !self.buffer.is_empty()
                && let Some(head) = take_head(&mut self.buffer, room, progress.is_head_request)?
            {
                let status = head.response.status();
                if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
                    progress.interim += 1;
                    if progress.interim > MOST_INTERIM {
                        return Poll::Ready(Err(Failure::Malformed("too many interim answers")));
                    }
                    continue;
                }
                self.is_kept &= head.is_kept;
                self.rest = match head.ending {
                    Ending::Head => Rest::Nothing,
                    Ending::Length(length) => Rest::length(length),
                    Ending::Chunks => Rest::chunks(),
                    Ending::Close => Rest::UntilClose,
                };
                return Poll::Ready(Ok(head.response));
            }
            match ready!(self.poll_read(cx, READ)) {
                Ok(count) if count > 0 => progress.has_heard = true,
                Ok(_) | Err(_) if progress.has_heard => return Poll::Ready(Err(Failure::BrokenOff)),
                Ok(_) | Err(_) => return Poll::Ready(Err(Failure::Closed)),
            }
        }
    }

    /// Sends what there is to send. An upstream that takes no more may have answered all the same, so that is no
    /// failure, unless it took nothing at all; but it is the connection's last request.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        loop {
            if let Some(upload) = &mut self.upload
                && upload.wants_more()
                && self.out.len() < MOST_OUT
                && let Poll::Ready(next) = upload.poll_next(cx, &mut self.out)
            {
                next.map_err(Failure::from)?;
                continue;
            }
            match ready!(self.poll_write(cx)) {
                Ok(0) => {}
                Ok(_) => continue,
                Err(_) => {
                    let is_untouched = self.upload.as_ref().is_none_or(|upload| upload.is_untouched());
                    if is_untouched && self.written == 0 && !self.out.is_empty() {
                        return Poll::Ready(Err(Failure::Unsent));
                    }
                    self.is_kept = false;
                    self.upload = None;
                    return Poll::Ready(Ok(()));
                }
            }
            if self.upload.as_ref().is_some_and(|upload| !upload.has_ended()) {
                return Poll::Pending;
            }
            self.upload = None;
            return Poll::Ready(Ok(()));
        }
    }

    /// Writes some of what waits to be written; nothing if nothing does.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        let waiting = self.out.get(self.written..).unwrap_or_default();
        if !waiting.is_empty() {
            let count = some(ready!(stream.poll_write(cx, waiting))?)?;
            self.written += count;
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
            }
            return Poll::Ready(Ok(count));
        }
        if let Some(upload) = &mut self.upload
            && !upload.piece().is_empty()
        {
            let count = some(ready!(stream.poll_write(cx, upload.piece()))?)?;
            upload.wrote(count, &mut self.out);
            return Poll::Ready(Ok(count));
        }
        stream.poll_flush(cx).map_ok(|()| 0)
    }

    /// Reads once, into room for as much as is wanted.
    fn poll_read(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<io::Result<usize>> {
        if wanted < READ && self.buffer.is_empty() {
            // There is little room where it goes, and what a buffer is a part of has as much as it began with.
            self.buffer = BytesMut::with_capacity(wanted);
        } else if self.buffer.capacity() - self.buffer.len() < wanted / 4 {
            self.is_buffer_large |= self.buffer.len() + wanted > READ;
            self.buffer.reserve(wanted);
        }
        let read = ready!(pin!(self.stream.read_buf(&mut self.buffer)).poll(cx));
        if self.buffer.len() == self.buffer.capacity() {
            self.appetite = READ_LARGE;
        }
        Poll::Ready(read)
    }

    /// The whole body, if there is none or all of it has been read.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        let length = match self.rest {
            Rest::Nothing => 0,
            Rest::Length(length) => {
                usize::try_from(length).ok().filter(|length| *length <= self.buffer.len())?
            }
            Rest::Chunks(_) | Rest::UntilClose => return None,
        };
        self.rest = Rest::Nothing;
        Some(if length == 0 { Bytes::new() } else { self.buffer.split_to(length).freeze() })
    }

    /// The next piece of the answer's body, or its trailers.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        if self.upload.is_some()
            && let Poll::Ready(Err(failure)) = self.poll_send(cx)
        {
            return Poll::Ready(Some(Err(failure)));
        }
        loop {
            if self.rest == Rest::Nothing {
                return Poll::Ready(None);
            }
            let found = self.rest.take(&mut self.buffer).map_err(Failure::from)?;
            match found {
                Found::Data(data) => {
                    appetite::leave(self.kept());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Found::Trailers(trailers) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                Found::End => return Poll::Ready(None),
                Found::Nothing => {}
            }
            match ready!(self.poll_read(cx, self.wanted())) {
                Ok(count) if count > 0 => {}
                Ok(_) if self.rest == Rest::UntilClose => self.rest = Rest::Nothing,
                Ok(_) | Err(_) => return Poll::Ready(Some(Err(Failure::BrokenOff))),
            }
        }
    }

    /// How much memory what was read and not given on keeps: a word that is left keeps all that it was read into.
    fn kept(&self) -> usize {
        match self.buffer.len() {
            0 => 0,
            left if self.is_buffer_large => left.max(READ_LARGE),
            left => left.max(READ),
        }
    }

    /// How much to read at once of what is still to come. One byte more than that: a read that leaves room tells
    /// the runtime that there is no more.
    fn wanted(&self) -> usize {
        let wanted = self.rest.known().map_or(self.appetite, |left| {
            usize::try_from(left.saturating_add(1)).unwrap_or(READ_LARGE).clamp(READ, READ_LARGE)
        });
        wanted.min(appetite::room())
    }

    /// Whether the whole answer has been read.
    pub(crate) fn has_ended(&self) -> bool {
        self.rest == Rest::Nothing
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.rest.size_hint()
    }

    /// Whether another request may be sent over it.
    pub(crate) fn is_reusable(&self) -> bool {
        self.has_ended()
            && self.is_kept
            && self.buffer.is_empty()
            && self.upload.is_none()
            && self.out.is_empty()
    }

    /// Lets go of large buffers, before it is idle.
    pub(crate) fn tidy(&mut self) {
        if self.is_buffer_large {
            self.buffer = BytesMut::new();
            self.is_buffer_large = false;
        }
        self.appetite = READ;
        if self.out.capacity() > KEPT_OUT {
            self.out = Vec::new();
        }
    }

    /// Lets go of all buffers, because it has been idle for a while.
    pub(crate) fn drop_buffers(&mut self) {
        self.buffer = BytesMut::new();
        self.out = Vec::new();
    }

    /// The stream and what has been read from it, once it speaks another protocol.
    pub(crate) fn into_parts(self) -> (S, Bytes) {
        (self.stream, self.buffer.freeze())
    }
}

/// The head of a request without a body as it is sent.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn written<B>(request: &Request<B>) -> Vec<u8> {
    let mut out = Vec::new();
    write_head(&mut out, request, "endpoint", Framing::Bare);
    out
}

/// A stream that takes nothing will take nothing more.
fn some(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}
