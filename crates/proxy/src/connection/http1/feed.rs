//! The body of a request on its way in: given to whoever wants it, or read away.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::body::Feeder;
use super::scratch::Input;
use super::{Connection, Stage};
use crate::connection::watch::Awaited;
use crate::http1::Flaw;
use crate::http1::chunks::Found;
use crate::http1::rest::Rest;
use crate::listen::left::Leaves;

/// How much is read at once of a body.
const READ: usize = 8 * 1024;

/// How much is read at once of a large body.
pub(super) const READ_LARGE: usize = 64 * 1024;

/// How much is read of a body that nobody wants, so that the connection can be kept. A new connection costs less than
/// to read more than this.
const MOST_CLEARED: u64 = 64 * 1024;

/// What is said to a caller who waits to be told before it sends the body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a request is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Its caller went away.
    Gone,
    /// Its body could be read in two ways, or in none.
    Unclear(Flaw),
}

impl<S, A, F, B> Connection<S, A, F, B>
where
    S: AsyncRead + AsyncWrite + Leaves + Unpin,
    B: Body<Data = Bytes> + Unpin,
{
    /// Gives whoever serves the request what it waits for; ready if it may go on. Where it waits for nothing of the
    /// caller's, looks whether the caller is still there.
    pub(super) fn poll_feed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        if self.feeder.is_none() {
            return self.poll_presence(cx);
        }
        if !self.feeder.as_ref().is_some_and(|feeder| feeder.is_wanted(cx.waker())) {
            return self.look_for_end();
        }
        self.say_continue(cx)?;
        let next = loop {
            match self.rest.take(&mut self.buffer).map_err(Failed::Unclear)? {
                Found::Data(data) => break Some(Frame::data(data)),
                Found::Trailers(trailers) => break Some(Frame::trailers(trailers)),
                Found::End => break None,
                Found::Nothing => ready!(self.poll_body(cx))?,
            }
        };
        if let (Some(next), Some(feeder)) = (next, &self.feeder) {
            feeder.put(next);
        }
        if self.rest == Rest::Nothing {
            self.feeder.take().into_iter().for_each(Feeder::end);
            self.watch.awaits(Awaited::Request);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads more of the body.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let wanted = self.rest.known().map_or(READ, |left| {
            // One byte more: a read that leaves room tells the runtime that there is no more.
            usize::try_from(left.saturating_add(1)).unwrap_or(READ_LARGE).clamp(READ, READ_LARGE)
        });
        if self.buffer.capacity() - self.buffer.len() < wanted / 4 {
            self.buffer.reserve(wanted);
        }
        match pin!(self.stream.read_buf(&mut self.buffer)).poll(cx) {
            Poll::Pending => {
                self.watch.waits();
                Poll::Pending
            }
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Err(Failed::Gone)),
            Poll::Ready(Ok(_)) => {
                self.watch.came();
                Poll::Ready(Ok(()))
            }
        }
    }

    fn poll_presence(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        if self.rest != Rest::Nothing || !self.buffer.is_empty() {
            return self.look_for_end();
        }
        let mut input = Input::take();
        match ready!(input.poll_read(&mut self.stream, cx)) {
            Ok([]) | Err(_) => Poll::Ready(Err(Failed::Gone)),
            Ok(early) => {
                self.buffer.extend_from_slice(early);
                Poll::Pending
            }
        }
    }

    /// Looks whether the caller has left where that cannot be read: behind what nobody wants yet. The worker wakes the
    /// connection for it, a few times a second.
    fn look_for_end(&self) -> Poll<Result<(), Failed>> {
        if self.watch.is_to_look() && self.stream.has_left() {
            return Poll::Ready(Err(Failed::Gone));
        }
        Poll::Pending
    }

    /// Tells the caller that its body is wanted, if it waits for that.
    fn say_continue(&mut self, cx: &mut Context<'_>) -> Result<(), Failed> {
        if self.stage != Stage::Serving {
            return Ok(());
        }
        if std::mem::take(&mut self.manner.expects_continue) && self.buffer.is_empty() {
            self.out.extend_from_slice(CONTINUE);
        }
        while !self.out.is_empty() {
            match self.poll_write(cx) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return Err(Failed::Gone),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Whether the rest of the request is short enough to be read away, or still wanted.
    pub(super) fn is_clearable(&self) -> bool {
        let is_wanted = || self.feeder.as_ref().is_some_and(|feeder| !feeder.is_left());
        match self.rest {
            Rest::Nothing => true,
            Rest::UntilClose => false,
            // Nobody knows whether the body comes.
            _ if self.manner.expects_continue => false,
            Rest::Length(left) => left <= MOST_CLEARED || is_wanted(),
            Rest::Chunks(_) => true,
        }
    }

    /// Reads the rest of a request away whose answer is out.
    pub(super) fn poll_clear(&mut self, cx: &mut Context<'_>) -> Poll<Stage> {
        while self.rest != Rest::Nothing {
            let left = if let Rest::Length(left) = self.rest { left } else { 0 };
            if self.cleared.saturating_add(left) > MOST_CLEARED {
                return Poll::Ready(self.close());
            }
            match self.rest.take(&mut self.buffer) {
                Ok(Found::Data(data)) => self.cleared += data.len() as u64,
                Ok(Found::Trailers(_) | Found::End) => {}
                Ok(Found::Nothing) => {
                    if ready!(self.poll_body(cx)).is_err() {
                        return Poll::Ready(Stage::Ended);
                    }
                }
                Err(_) => return Poll::Ready(self.close()),
            }
        }
        Poll::Ready(self.next())
    }
}
