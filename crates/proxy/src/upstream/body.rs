//! Bodies on their way between caller and upstream.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use super::Line;
use super::endpoint::InFlight;

pin_project! {
    /// A body that may not pause for longer than its patience.
    #[derive(Debug)]
    pub(crate) struct Patient<B> {
        #[pin]
        body: Option<B>,
        patience: Option<Duration>,
        // There only while nothing comes: most bodies are here at once, and need no timer.
        pause: Option<Pin<Box<Sleep>>>,
    }
}

impl<B> Patient<B> {
    pub(crate) const fn new(body: B, patience: Option<Duration>) -> Self {
        Self { body: Some(body), patience, pause: None }
    }

    /// Nothing.
    pub(crate) const fn empty() -> Self {
        Self { body: None, patience: None, pause: None }
    }
}

impl<B> Body for Patient<B>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = B::Data;
    type Error = BodyFailure;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BodyFailure>>> {
        let this = self.project();
        let Some(body) = this.body.as_pin_mut() else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = body.poll_frame(cx) {
            *this.pause = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyFailure::Broken(error.into()))));
        }
        let Some(patience) = *this.patience else { return Poll::Pending };
        let pause = this.pause.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(pause.as_mut().poll(cx));
        Poll::Ready(Some(Err(BodyFailure::Paused)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// Why a body ended too soon.
#[derive(Debug)]
pub(crate) enum BodyFailure {
    Broken(Box<dyn Error + Send + Sync>),
    Paused,
}

impl fmt::Display for BodyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => write!(f, "the body broke off: {error}"),
            Self::Paused => f.write_str("the body paused for too long"),
        }
    }
}

impl Error for BodyFailure {}

pin_project! {
    /// The body of an answer: an upstream's, with the connection it comes over, or a text of ours.
    #[derive(Debug)]
    pub(crate) struct UpstreamBody {
        #[pin]
        body: Patient<Incoming>,
        text: Bytes,
        // Given back once everything was read; a connection with half an answer in it is closed instead.
        line: Option<Line>,
        in_flight: Option<InFlight>,
    }
}

impl UpstreamBody {
    pub(super) fn new(body: Incoming, line: Line, patience: Option<Duration>) -> Self {
        let mut body = Self {
            body: Patient::new(body, patience),
            text: Bytes::new(),
            line: Some(line),
            in_flight: None,
        };
        if body.body.is_end_stream() {
            body.line.take().into_iter().for_each(Line::give_back);
        }
        body
    }

    /// A text of ours.
    pub(crate) const fn text(text: Bytes) -> Self {
        Self { body: Patient::empty(), text, line: None, in_flight: None }
    }

    pub(super) fn counted(self, in_flight: InFlight) -> Self {
        let in_flight = if self.line.is_some() { Some(in_flight) } else { None };
        Self { in_flight, ..self }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BodyFailure;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailure>>> {
        let mut this = self.project();
        if !this.text.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(this.text)))));
        }
        let frame = ready!(this.body.as_mut().poll_frame(cx));
        let has_ended = match &frame {
            None => true,
            Some(Ok(_)) => this.body.is_end_stream(),
            Some(Err(_)) => {
                *this.line = None;
                false
            }
        };
        if has_ended {
            this.line.take().into_iter().for_each(Line::give_back);
            *this.in_flight = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.text.is_empty() {
            self.body.size_hint()
        } else {
            SizeHint::with_exact(self.text.len() as u64)
        }
    }
}
