//! The bodies on both sides of the gate.
//!
//! [`GuardedBody`] is what callers get: the service's own body, with the permit riding on it to the last byte,
//! or the short text of a refusal. [`CountedBody`] is what the service gets: the caller's body, whose bytes
//! are counted where a rule is settled by them. Neither changes a byte.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::guard::Guard;

pin_project! {
    /// The body of an answer: of the service with its permit, or of a refusal.
    #[derive(Debug)]
    pub struct GuardedBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProjection]
    #[derive(Debug)]
    enum Kind<B> {
        /// The guard is gone once the answer has ended.
        Served { #[pin] body: B, guard: Option<Guard> },
        Refused { text: Bytes },
    }
}

impl<B: Body> GuardedBody<B> {
    /// The service's body. A server need not ask a body without content for anything, so there the answer
    /// has ended with its head.
    pub(crate) fn served(body: B, guard: Guard) -> Self {
        let guard = if body.is_end_stream() {
            guard.end();
            None
        } else {
            Some(guard)
        };
        Self { kind: Kind::Served { body, guard } }
    }

    /// The service's body where nothing of it goes out, whatever it holds: the answer to HEAD.
    pub(crate) fn unsent(body: B, guard: Guard) -> Self {
        guard.end();
        Self { kind: Kind::Served { body, guard: None } }
    }
}

impl<B> GuardedBody<B> {
    /// The short text of a refusal.
    #[must_use]
    pub const fn refused(text: Bytes) -> Self {
        Self { kind: Kind::Refused { text } }
    }

    /// Whether the answer has not ended, so that what was admitted is still held.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self.kind, Kind::Served { guard: Some(_), .. })
    }
}

impl<B> Body for GuardedBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let (mut body, guard) = match self.project().kind.project() {
            KindProjection::Served { body, guard } => (body, guard),
            KindProjection::Refused { text } if text.is_empty() => return Poll::Ready(None),
            KindProjection::Refused { text } => {
                return Poll::Ready(Some(Ok(Frame::data(std::mem::take(text).into()))));
            }
        };
        let frame = ready!(body.as_mut().poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(guard) = guard {
                    observe(guard, frame);
                }
                // After the last frame a server may drop the body without asking again.
                if body.is_end_stream() {
                    guard.take().into_iter().for_each(Guard::end);
                }
            }
            Some(Err(_)) => guard.take().into_iter().for_each(Guard::fail),
            None => guard.take().into_iter().for_each(Guard::end),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Served { body, .. } => body.is_end_stream(),
            Kind::Refused { text } => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Served { body, .. } => body.size_hint(),
            Kind::Refused { text } => SizeHint::with_exact(text.len() as u64),
        }
    }
}

fn observe<D: Buf>(guard: &mut Guard, frame: &Frame<D>) {
    if let Some(data) = frame.data_ref() {
        guard.sent(data.remaining());
    } else if let Some(trailers) = frame.trailers_ref() {
        guard.trailers(trailers);
    }
}

pin_project! {
    /// The body of a request, on its way to the service.
    #[derive(Debug)]
    pub struct CountedBody<B> {
        #[pin]
        body: B,
        count: Option<Arc<AtomicU64>>,
    }
}

impl<B> CountedBody<B> {
    /// A body whose bytes nobody needs to know.
    pub const fn uncounted(body: B) -> Self {
        Self::new(body, None)
    }

    pub(crate) const fn new(body: B, count: Option<Arc<AtomicU64>>) -> Self {
        Self { body, count }
    }
}

impl<B: Body> Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(cx));
        if let (Some(count), Some(Ok(frame))) = (this.count, &frame)
            && let Some(data) = frame.data_ref()
        {
            // Relaxed: the count is read for its own sake, once the answer has ended.
            count.fetch_add(data.remaining() as u64, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
