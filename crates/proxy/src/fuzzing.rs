//! What a fuzzer may reach of what strangers' bytes reach. It is there only with the feature `fuzzing`, and in tests.

mod heads;

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_policy::Now;
use tidegate_policy::policy::{ClientAddress, Network, Server};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::http1::{self, Asked, Limits};
use crate::connection::watch::Watch;
use crate::listen::left::Leaves;
use crate::listen::proxy_protocol;
use crate::ticks::Ticks;
use crate::upstream::UpstreamBody;
use crate::{client, head};

pub use self::heads::{Looked, Sight, seen_over_http1, seen_over_http2};

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

/// A request as whoever served it saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its method and target.
    pub first_line: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// The requests that are served whole of a connection on which these bytes come, in pieces of a size, and then nothing
/// more. The first that is unclear is refused, and nothing behind it is served.
#[must_use]
pub fn served(bytes: &[u8], piece: usize) -> Vec<Seen> {
    let seen = RefCell::default();
    let watch = Arc::new(Watch::new(Arc::new(Ticks::new(Now::default()))));
    let limits = Limits { max_header_bytes: 64 * 1024, max_headers: 128 };
    let serve = |asked: Asked<'_, '_>| {
        let request = asked.ok().and_then(|request| request.whole().ok()).map(|(request, _)| request);
        http1::Begun::Serving(answer(request, &seen))
    };
    let mut connection = http1::Connection::new(Given::new(bytes, piece), limits, watch, serve);
    until_ended(bytes, |cx| connection.poll_served(cx));
    drop(connection);
    seen.into_inner()
}

/// The same as a server sees it that is lenient in places.
#[must_use]
pub fn served_leniently(bytes: &[u8], piece: usize) -> Vec<Seen> {
    let seen = RefCell::default();
    let service = service_fn(|request: Request<Incoming>| async {
        Ok::<_, Infallible>(answer(Some(request), &seen).await)
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.half_close(false).max_headers(128);
    {
        let mut connection = pin!(server.serve_connection(TokioIo::new(Given::new(bytes, piece)), service));
        until_ended(bytes, |cx| connection.as_mut().poll(cx).map(drop));
    }
    seen.into_inner()
}

/// What is read does not make it wait; a bound all the same, for nobody would wake it.
fn until_ended(bytes: &[u8], mut poll: impl FnMut(&mut Context<'_>) -> Poll<()>) {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..=bytes.len() {
        if poll(&mut cx).is_ready() {
            return;
        }
    }
}

/// Answers a request when it has come whole; whatever else with the end of the connection.
async fn answer<B>(asked: Option<Request<B>>, seen: &RefCell<Vec<Seen>>) -> Response<UpstreamBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut response = Response::new(UpstreamBody::text(Bytes::new()));
    let Some(mut request) = asked.filter(|request| head::check(request).is_ok()) else {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    };
    let mut body = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(request.body_mut()).poll_frame(cx)).await {
        let Ok(frame) = frame else { return response };
        body.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }
    let first_line = format!("{} {}", request.method(), request.uri());
    seen.borrow_mut().push(Seen { first_line, body });
    response
}

/// Bytes that come in pieces; then nothing more comes. What is written to it is forgotten.
struct Given<'a> {
    left: &'a [u8],
    piece: usize,
}

impl<'a> Given<'a> {
    fn new(bytes: &'a [u8], piece: usize) -> Self {
        Self { left: bytes, piece: piece.max(1) }
    }
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

impl Leaves for Given<'_> {
    fn has_left(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What messages are made of, and what they should not be made of.
    const PARTS: &[&str] = &[
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /c HTTP/1.1\r\n",
        "GET /old HTTP/1.0\r\n",
        "Host: a\r\n",
        "Content-Length: 3\r\n",
        "content-length:0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "Connection: keep-alive\r\n",
        "Expect: 100-continue\r\n",
        "X: y",
        " folded\r\n",
        "\r\n",
        "\n",
        "\r",
        "3\r\nabc\r\n",
        "3;x=y\r\nabc\r\n",
        "3 \r\n",
        "abc",
        "0\r\n\r\n",
        "0\r\nT: 1\r\n\r\n",
        "0\n",
    ];

    proptest! {
        #[test]
        fn what_is_served_does_not_depend_on_cuts_and_is_what_others_see(
            parts in prop::collection::vec(0..PARTS.len(), 1..12),
            piece in 1_usize..40,
        ) {
            let bytes: String = parts.into_iter().map(|part| PARTS[part]).collect();
            let seen = served(bytes.as_bytes(), bytes.len());
            prop_assert_eq!(&served(bytes.as_bytes(), piece), &seen, "{:?}", bytes);
            let leniently = served_leniently(bytes.as_bytes(), bytes.len());
            prop_assert!(leniently.starts_with(&seen), "{:?}: {:?}, others see {:?}", bytes, seen, leniently);
        }
    }
}
