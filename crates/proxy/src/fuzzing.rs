//! What a fuzzer may reach of what strangers' bytes reach. It is there only with the feature `fuzzing`.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_policy::policy::{ClientAddress, Network, Server};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::framing::Framing;
use crate::connection::http1_server;
use crate::connection::watch::{Watch, Watched};
use crate::listen::proxy_protocol;
use crate::ticks::Ticks;
use crate::upstream::UpstreamBody;
use crate::{client, head};

/// The peer for which [`client_address`] looks; it is trusted.
pub const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// For whom a request with these fields is sent, where 10.0.0.0/8 and fd00::/8 are trusted.
#[must_use]
pub fn client_address(is_forwarded: bool, headers: &HeaderMap) -> IpAddr {
    client::forwarded_for(&server(is_forwarded), PEER, headers)
}

/// Whether [`client_address`] trusts an address.
#[must_use]
pub fn trusts(address: IpAddr) -> bool {
    server(false).trusts(address)
}

fn server(is_forwarded: bool) -> Server {
    let client_address = if is_forwarded { ClientAddress::Forwarded } else { ClientAddress::XForwardedFor };
    let private = IpAddr::V6(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0));
    let trusted_proxies = vec![Network::of([10, 0, 0, 0].into(), 8), Network::of(private, 8)];
    Server { trusted_proxies, client_address, ..Server::default() }
}

/// What the PROXY protocol at the beginning of `bytes` says, and how many of them it took.
///
/// # Errors
/// When there is none, or not all of it.
pub fn proxy_protocol(bytes: &[u8]) -> io::Result<(Option<SocketAddr>, usize)> {
    let mut left = bytes;
    // All bytes are there, so it never waits.
    let found = match pin!(proxy_protocol::read(&mut left)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found?,
        Poll::Pending => return Err(io::ErrorKind::WouldBlock.into()),
    };
    Ok((found, bytes.len() - left.len()))
}

/// The protocol that fields ask to turn to.
#[must_use]
pub fn upgrade_of(headers: &HeaderMap) -> Option<String> {
    head::upgrade_of(headers)
}

/// Takes away what is meant for one hop only.
pub fn strip(headers: &mut HeaderMap, is_upgrade: bool) {
    head::strip(headers, is_upgrade);
}

/// What is known of the messages in some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// How many heads were seen whole.
    pub heads: u64,
    /// The first message that is unsound, counted from one.
    pub unsound: Option<u64>,
}

/// Follows bytes that come in pieces of a size.
#[must_use]
pub fn follow(bytes: &[u8], piece: usize) -> Followed {
    let mut framing = Framing::default();
    bytes.chunks(piece.max(1)).for_each(|piece| framing.follow(piece));
    Followed { heads: framing.heads(), unsound: framing.unsound().map(|(number, _)| number) }
}

/// How many requests are served of a connection on which these bytes come, in pieces of a size, and then nothing more.
/// The first that is found unsound is refused, and nothing behind it is served.
#[must_use]
pub fn served(bytes: &[u8], piece: usize) -> u64 {
    let watch = Arc::new(Watch::new(Arc::new(Ticks::new())));
    let served = AtomicU64::new(0);
    let service = service_fn(|request: Request<Incoming>| {
        let is_sound = watch.begin().is_none() && head::check(&request).is_ok();
        if is_sound {
            served.fetch_add(1, Ordering::Relaxed);
        }
        answer(request, !is_sound)
    });
    let given = Given { left: bytes, piece: piece.max(1) };
    let io = TokioIo::new(Watched::http1(given, Arc::clone(&watch), Framing::default()));
    let mut connection = pin!(http1_server(64 * 1024, 128).serve_connection(io, service));
    // What is read does not make it wait; a bound all the same, for nobody would wake it.
    for _ in 0..=bytes.len() {
        if connection.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            break;
        }
    }
    served.into_inner()
}

async fn answer(request: Request<Incoming>, must_close: bool) -> Result<Response<UpstreamBody>, Infallible> {
    let mut response = Response::new(UpstreamBody::text(Bytes::new()));
    if must_close {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return Ok(response);
    }
    let mut body = request.into_body();
    while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
    Ok(response)
}

/// Bytes that come in pieces; then nothing more comes. What is written to it is forgotten.
struct Given<'a> {
    left: &'a [u8],
    piece: usize,
}

impl AsyncRead for Given<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = self.piece.min(self.left.len()).min(buf.remaining());
        if count == 0 {
            return Poll::Pending;
        }
        let (now, later) = self.left.split_at(count);
        buf.put_slice(now);
        self.left = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Given<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
