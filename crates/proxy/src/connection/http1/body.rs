//! The body of a request, between the connection that reads it and whoever sends it on.
//!
//! Both are nearly always the same task: whoever wants more of the body says so and is pending, the connection reads
//! one piece, puts it here, and polls again. So no more than a piece waits here, and a caller is never read faster
//! than its body is taken. Where another task has the body, the two wake each other.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// The body of a caller's request.
#[derive(Debug)]
pub(crate) enum CallerBody {
    /// All of it is here.
    Whole(Bytes),
    /// It is read piece by piece from an HTTP/1 connection.
    Piped(Piped),
    /// It comes over HTTP/2.
    H2(Incoming),
}

/// The longest body that is waited for before its request asks for a place at the upstream.
const LONGEST_GATHERED: u64 = 64 * 1024;

impl CallerBody {
    /// Whether it is short and has not come: better waited for here than at the upstream, where it would keep a place
    /// from others.
    pub(crate) fn is_short_and_coming(&self) -> bool {
        match self {
            Self::Piped(piped) => {
                piped.size_hint().exact().is_some_and(|left| (1..=LONGEST_GATHERED).contains(&left))
            }
            Self::Whole(_) | Self::H2(_) => false,
        }
    }

    /// Whether it has come to its end, or nothing more has to be waited for.
    pub(crate) fn has_come(&self) -> bool {
        matches!(self, Self::Whole(_)) || self.is_end_stream()
    }

    /// Waits until all of it is here.
    pub(crate) async fn gather(&mut self) -> Result<(), BrokenOff> {
        let Self::Piped(piped) = self else { return Ok(()) };
        let length = piped.size_hint().exact().and_then(|length| usize::try_from(length).ok());
        let mut whole = BytesMut::with_capacity(length.unwrap_or_default());
        while let Some(frame) = poll_fn(|cx| piped.poll_frame(cx)).await {
            if let Ok(data) = frame?.into_data() {
                whole.extend_from_slice(&data);
            }
        }
        *self = Self::Whole(whole.freeze());
        Ok(())
    }
}

/// Why there is no more of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection ended within the request")
    }
}

impl Error for BrokenOff {}

/// The end of a pipe that reads.
#[derive(Debug)]
pub(crate) struct Piped(Arc<Mutex<Pipe>>);

/// The end of a pipe that is fed by a connection. When it is dropped too soon, the body has broken off.
#[derive(Debug)]
pub(super) struct Feeder(Arc<Mutex<Pipe>>);

#[derive(Debug)]
struct Pipe {
    next: Option<Frame<Bytes>>,
    /// How much has not been taken yet, if that is known.
    left: Option<u64>,
    end: Option<Result<(), BrokenOff>>,
    is_wanted: bool,
    /// Whether nobody reads any more.
    is_left: bool,
    reader: Option<Waker>,
    feeder: Option<Waker>,
}

/// A body of so many bytes, if that is known, and its other end.
pub(super) fn pipe(left: Option<u64>) -> (Feeder, CallerBody) {
    let pipe =
        Pipe { next: None, left, end: None, is_wanted: false, is_left: false, reader: None, feeder: None };
    let pipe = Arc::new(Mutex::new(pipe));
    (Feeder(Arc::clone(&pipe)), CallerBody::Piped(Piped(pipe)))
}

fn lock(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes somebody, unless it is the one who is running.
fn wake(somebody: Option<&Waker>, running: Option<&Waker>) {
    if let Some(waker) = somebody
        && !running.is_some_and(|running| waker.will_wake(running))
    {
        waker.wake_by_ref();
    }
}

fn remember(place: &mut Option<Waker>, waker: &Waker) {
    if !place.as_ref().is_some_and(|known| known.will_wake(waker)) {
        *place = Some(waker.clone());
    }
}

impl Feeder {
    /// Whether the next piece is wanted.
    pub(super) fn is_wanted(&self, waker: &Waker) -> bool {
        let mut pipe = lock(&self.0);
        remember(&mut pipe.feeder, waker);
        pipe.is_wanted && !pipe.is_left
    }

    /// Whether nobody wants anything any more.
    pub(super) fn is_left(&self) -> bool {
        lock(&self.0).is_left
    }

    /// Gives the next piece.
    pub(super) fn put(&self, next: Frame<Bytes>) {
        let mut pipe = lock(&self.0);
        pipe.next = Some(next);
        pipe.is_wanted = false;
        wake(pipe.reader.as_ref(), pipe.feeder.as_ref());
    }

    /// The body has been given to its end.
    pub(super) fn end(self) {
        self.close(Ok(()));
    }

    fn close(&self, end: Result<(), BrokenOff>) {
        let mut pipe = lock(&self.0);
        if pipe.end.is_none() {
            pipe.end = Some(end);
            wake(pipe.reader.as_ref(), pipe.feeder.as_ref());
        }
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.close(Err(BrokenOff));
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let mut pipe = lock(&self.0);
        pipe.is_left = true;
        wake(pipe.feeder.as_ref(), pipe.reader.as_ref());
    }
}

impl Piped {
    fn poll_frame(&self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let mut pipe = lock(&self.0);
        if let Some(next) = pipe.next.take() {
            if let (Some(left), Some(data)) = (&mut pipe.left, next.data_ref()) {
                *left = left.saturating_sub(data.len() as u64);
            }
            return Poll::Ready(Some(Ok(next)));
        }
        match pipe.end {
            Some(Ok(())) => return Poll::Ready(None),
            Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
            None => {}
        }
        remember(&mut pipe.reader, cx.waker());
        if !std::mem::replace(&mut pipe.is_wanted, true) {
            wake(pipe.feeder.as_ref(), Some(cx.waker()));
        }
        Poll::Pending
    }

    fn has_ended(&self) -> bool {
        let pipe = lock(&self.0);
        pipe.next.is_none() && pipe.end == Some(Ok(()))
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0).left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Body for CallerBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Piped(piped) => piped.poll_frame(cx).map_err(Into::into),
            Self::H2(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Piped(piped) => piped.has_ended(),
            Self::H2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Piped(piped) => piped.size_hint(),
            Self::H2(body) => body.size_hint(),
        }
    }
}
