//! An answer on its way out.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode, Version};
use http_body::Body;
use tidegate_tower::respond::Page;
use tokio::io::{AsyncRead, AsyncWrite};

use super::write::{is_bare, write_head, write_page};
use super::{Connection, Stage, scratch};
use crate::connection::watch::Awaited;
use crate::http1::outgoing::{Framing, Outgoing};
use crate::http1::rest::Rest;
use crate::listen::left::Leaves;

/// How much of an answer waits to be written before its body is asked for more.
const MOST_OUT: usize = 16 * 1024;

impl<S, A, F, B> Connection<S, A, F, B>
where
    S: AsyncRead + AsyncWrite + Leaves + Unpin,
    B: Body<Data = Bytes> + Unpin,
{
    /// Begins the answer.
    pub(super) fn answer(&mut self, response: Response<B>) -> Stage {
        let (parts, body) = response.into_parts();
        let framing = match Framing::of(&body) {
            Framing::Chunks if self.manner.version == Version::HTTP_10 => Framing::Close,
            framing => framing,
        };
        self.manner.is_kept &= framing != Framing::Close;
        self.prepare();
        write_head(&mut self.out, &parts, &mut self.manner, framing, self.watch.ticks());
        scratch::keep_fields(parts.headers);
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            self.turning = Some(body);
        } else if framing != Framing::Bare && !self.manner.is_bare && !is_bare(parts.status) {
            self.answer = Some(Outgoing::new(body, framing, self.manner.takes_trailers));
        }
        Stage::Answering
    }

    /// Answers with a page of ours.
    pub(super) fn answer_page(&mut self, page: &Page) -> Stage {
        self.prepare();
        write_page(&mut self.out, page, self.manner, self.watch.ticks());
        Stage::Answering
    }

    /// Makes room for an answer, and finds out what becomes of the connection behind it.
    fn prepare(&mut self) {
        self.manner.is_kept = self.manner.is_kept && !self.is_draining && self.is_clearable();
        if self.out.capacity() == 0 {
            self.out = scratch::take_output();
        }
    }

    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Stage> {
        loop {
            if let Some(answer) = &mut self.answer
                && answer.wants_more()
                && self.out.len() < MOST_OUT
                && let Poll::Ready(next) = answer.poll_next(cx, &mut self.out)
            {
                if next.is_err() {
                    // Its caller sees that the answer is not whole by the missing end. What there is may help it.
                    drop(self.poll_write(cx));
                    return Poll::Ready(Stage::Ended);
                }
                continue;
            }
            match ready!(self.poll_write(cx)) {
                Ok(0) => {}
                Ok(_) => continue,
                Err(_) => return Poll::Ready(Stage::Ended),
            }
            if self.answer.as_ref().is_none_or(Outgoing::has_ended) {
                self.answer = None;
                return Poll::Ready(self.answered());
            }
            if ready!(self.poll_feed(cx)).is_err() {
                return Poll::Ready(Stage::Ended);
            }
        }
    }

    /// Writes some of what waits to be written; nothing if nothing does.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        let waiting = self.out.get(self.written..).unwrap_or_default();
        let piece = self.answer.as_ref().map_or(&[][..], |answer| answer.piece());
        let wrote = match (waiting, piece) {
            ([], []) => stream.poll_flush(cx).map_ok(|()| None),
            ([], bytes) | (bytes, []) => stream.poll_write(cx, bytes).map_ok(Some),
            (first, second) => {
                stream.poll_write_vectored(cx, &[IoSlice::new(first), IoSlice::new(second)]).map_ok(Some)
            }
        };
        self.watch.wrote(wrote.is_ready());
        self.watch.holds_in_all(if wrote.is_ready() { 0 } else { waiting.len() + piece.len() });
        let count = match ready!(wrote)? {
            None => return Poll::Ready(Ok(0)),
            Some(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Some(count) => count,
        };
        let from_out = count.min(waiting.len());
        self.written += from_out;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
        if let Some(answer) = &mut self.answer
            && count > from_out
        {
            answer.wrote(count - from_out, &mut self.out);
        }
        Poll::Ready(Ok(count))
    }

    /// The answer is out.
    fn answered(&mut self) -> Stage {
        self.feeder = None;
        scratch::keep_output(std::mem::take(&mut self.out));
        if self.turning.is_some() {
            return Stage::Ended;
        }
        if !self.manner.is_kept {
            return self.close();
        }
        if self.rest != Rest::Nothing {
            self.cleared = 0;
            // Counted as a whole, so that a byte now and then does not keep the connection.
            self.watch.awaits(Awaited::Head);
            return Stage::Clearing;
        }
        self.next()
    }
}
