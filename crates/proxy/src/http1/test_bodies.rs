//! Bodies that the tests of both sides send.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

pub(crate) type TestBody = UnsyncBoxBody<Bytes, Infallible>;

/// A body of known length.
pub(crate) fn full(text: impl Into<Bytes>) -> TestBody {
    Full::new(text.into()).boxed_unsync()
}

/// A body that comes as frames, so that nobody knows its length.
pub(crate) fn frames(frames: Vec<Frame<Bytes>>) -> TestBody {
    BodyExt::boxed_unsync(Frames(frames.into_iter()))
}

struct Frames(std::vec::IntoIter<Frame<Bytes>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}
