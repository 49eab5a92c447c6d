//! A message's body on its way out, piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};

use super::Flaw;
use super::chunks::drop_forbidden;

/// Pieces up to this length are copied, so that they leave together with what is written before them.
const COPIED: usize = 8 * 1024;

/// How the other side learns where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none.
    Bare,
    /// After so many bytes, which are still to come.
    Length(u64),
    /// By chunks.
    Chunks,
    /// With the connection.
    Close,
}

impl Framing {
    pub(crate) fn of<B: Body>(body: &B) -> Self {
        if body.is_end_stream() {
            return Self::Bare;
        }
        body.size_hint().exact().map_or(Self::Chunks, Self::Length)
    }
}

/// Writes one field.
#[inline]
pub(crate) fn write_field(out: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// What of a body is still to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing<B> {
    /// There until it has ended.
    body: Option<B>,
    framing: Framing,
    has_trailers: bool,
    /// A large piece that waits for those before it.
    piece: Bytes,
    is_untouched: bool,
    has_ended: bool,
}

impl<B> Outgoing<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    /// A body that goes out in this framing, with or without its trailers.
    pub(crate) const fn new(body: B, framing: Framing, has_trailers: bool) -> Self {
        let has_ended = matches!(framing, Framing::Length(0));
        let body = Some(body);
        Self { body, framing, has_trailers, piece: Bytes::new(), is_untouched: true, has_ended }
    }

    pub(crate) fn into_body(self) -> Option<B> {
        self.body
    }

    /// Whether nothing of the body has been taken yet.
    pub(crate) const fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    /// Whether nothing is left to be taken from the body, or from here.
    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended && self.piece.is_empty()
    }

    /// Whether the body is to be asked for its next piece.
    pub(crate) const fn wants_more(&self) -> bool {
        !self.has_ended && self.piece.is_empty()
    }

    /// A large piece that goes out as it is.
    pub(crate) fn piece(&self) -> &[u8] {
        &self.piece
    }

    /// A part of the large piece has been written; behind the whole follows what ends its chunk.
    pub(crate) fn wrote(&mut self, count: usize, out: &mut Vec<u8>) {
        self.piece.advance(count);
        if self.piece.is_empty() && self.framing == Framing::Chunks {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Takes the body's next piece, to be written from `out` or from here. Pending until the body has one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Result<(), Flaw>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
        let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) else { return Poll::Pending };
        self.is_untouched = false;
        let taken = match frame {
            Some(Ok(frame)) => self.take(frame, out),
            Some(Err(_)) => Err("the body broke off"),
            None => self.end(None, out),
        };
        if self.has_ended {
            self.body = None;
        }
        Poll::Ready(taken)
    }

    fn take(&mut self, frame: Frame<Bytes>, out: &mut Vec<u8>) -> Result<(), Flaw> {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => return self.end(frame.into_trailers().ok(), out),
        };
        match &mut self.framing {
            _ if data.is_empty() => return Ok(()),
            Framing::Bare => return Err("a message without a body has one"),
            Framing::Length(left) => {
                *left = left.checked_sub(data.len() as u64).ok_or("the body is longer than it says")?;
                self.has_ended = *left == 0;
            }
            Framing::Chunks => write_size(out, data.len()),
            Framing::Close => {}
        }
        if data.len() > COPIED {
            self.piece = data;
            return Ok(());
        }
        out.extend_from_slice(&data);
        if self.framing == Framing::Chunks {
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    fn end(&mut self, trailers: Option<HeaderMap>, out: &mut Vec<u8>) -> Result<(), Flaw> {
        self.has_ended = true;
        match self.framing {
            Framing::Bare | Framing::Length(0) | Framing::Close => Ok(()),
            Framing::Length(_) => Err("the body is shorter than it says"),
            Framing::Chunks => {
                out.extend_from_slice(b"0\r\n");
                let mut trailers = trailers.filter(|_| self.has_trailers).unwrap_or_default();
                drop_forbidden(&mut trailers);
                for (name, value) in &trailers {
                    write_field(out, name, value);
                }
                out.extend_from_slice(b"\r\n");
                Ok(())
            }
        }
    }
}

/// The line before a chunk.
fn write_size(out: &mut Vec<u8>, size: usize) {
    let mut digits = [0; 16];
    let (mut left, mut begin) = (size, digits.len());
    while left > 0 && begin > 0 {
        begin -= 1;
        digits[begin] = b"0123456789abcdef"[left % 16];
        left /= 16;
    }
    out.extend_from_slice(digits.get(begin..).unwrap_or_default());
    out.extend_from_slice(b"\r\n");
}
