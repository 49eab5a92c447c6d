//! A request on its way out: its head as bytes, then its body piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body::{Body, Frame};

use super::Failure;
use super::chunks::drop_forbidden;

/// Pieces up to this length are copied, so that they leave together with what is written before them.
const COPIED: usize = 8 * 1024;

/// How the upstream learns where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    Bare,
    /// After so many bytes, which are still to come.
    Length(u64),
    /// By chunks.
    Chunks,
}

impl Framing {
    pub(super) fn of<B: Body>(body: &B) -> Self {
        if body.is_end_stream() {
            return Self::Bare;
        }
        body.size_hint().exact().map_or(Self::Chunks, Self::Length)
    }
}

/// Writes a request's head. The fields that frame the body are ours, whatever the request had; a host must be there,
/// even if the caller spoke a version that needs none.
pub(super) fn write_head<B>(out: &mut Vec<u8>, request: &Request<B>, host: &str, framing: Framing) {
    out.extend_from_slice(request.method().as_str().as_bytes());
    out.push(b' ');
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    if !target.starts_with(['/', '*']) {
        out.push(b'/');
    }
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let (mut had_length, mut had_host) = (false, false);
    for (name, value) in request.headers() {
        match *name {
            header::CONTENT_LENGTH => had_length = true,
            header::TRANSFER_ENCODING => {}
            _ => {
                had_host |= *name == header::HOST;
                write_field(out, name, value);
            }
        }
    }
    if !had_host {
        let host = request.uri().authority().map_or(host, |authority| authority.as_str());
        out.extend_from_slice(b"host: ");
        out.extend_from_slice(host.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Bare if had_length || expects_body(request.method()) => {
            out.extend_from_slice(b"content-length: 0\r\n");
        }
        Framing::Bare => {}
        Framing::Length(length) => write_field(out, &header::CONTENT_LENGTH, &length.into()),
        Framing::Chunks => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether a service may wonder about a request of this method without a length (RFC 9110 §8.6).
fn expects_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

fn write_field(out: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// What of a request's body is still to be sent.
#[derive(Debug)]
pub(super) struct Upload<B> {
    body: B,
    framing: Framing,
    /// A large piece that waits for those before it.
    piece: Bytes,
    is_untouched: bool,
    has_ended: bool,
}

impl<B> Upload<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    pub(super) const fn new(body: B, framing: Framing) -> Self {
        let has_ended = matches!(framing, Framing::Length(0));
        Self { body, framing, piece: Bytes::new(), is_untouched: true, has_ended }
    }

    pub(super) fn into_body(self) -> B {
        self.body
    }

    /// Whether nothing of the body has been taken yet.
    pub(super) const fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    /// Whether nothing is left to be taken from the body, or from here.
    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended && self.piece.is_empty()
    }

    /// Whether the body is to be asked for its next piece.
    pub(super) const fn wants_more(&self) -> bool {
        !self.has_ended && self.piece.is_empty()
    }

    pub(super) const fn piece(&mut self) -> &mut Bytes {
        &mut self.piece
    }

    /// A part of the large piece has been written; behind the whole follows what ends its chunk.
    pub(super) fn wrote(&mut self, count: usize, out: &mut Vec<u8>) {
        self.piece.advance(count);
        if self.piece.is_empty() && self.framing == Framing::Chunks {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Takes the body's next piece, to be written from `out` or from here. Pending until the body has one.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Result<(), Failure>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else { return Poll::Pending };
        self.is_untouched = false;
        Poll::Ready(match frame {
            Some(Ok(frame)) => self.take(frame, out),
            Some(Err(_)) => Err(Failure::Malformed("the request's body broke off")),
            None => self.end(None, out),
        })
    }

    fn take(&mut self, frame: Frame<Bytes>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => return self.end(frame.into_trailers().ok(), out),
        };
        match &mut self.framing {
            _ if data.is_empty() => return Ok(()),
            Framing::Bare => return Err(Failure::Malformed("a request without a body has one")),
            Framing::Length(left) => {
                *left = left
                    .checked_sub(data.len() as u64)
                    .ok_or(Failure::Malformed("the request's body is longer than it says"))?;
                self.has_ended = *left == 0;
            }
            Framing::Chunks => out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes()),
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

    fn end(&mut self, trailers: Option<HeaderMap>, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.has_ended = true;
        match self.framing {
            Framing::Bare | Framing::Length(0) => Ok(()),
            Framing::Length(_) => Err(Failure::Malformed("the request's body is shorter than it says")),
            Framing::Chunks => {
                out.extend_from_slice(b"0\r\n");
                let mut trailers = trailers.unwrap_or_default();
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
