//! One connection from a caller, from its first byte to its last.
//!
//! ```text
//! accepted ──PROXY header──> TLS ──> which protocol? ──> requests, each through the ingress ──> closed
//! ```

mod frames;
mod held;
pub(crate) mod http1;
mod resets;
pub(crate) mod stream;
pub(crate) mod watch;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use self::held::HeldBody;
use self::http1::body::CallerBody;
use self::http1::{Asked, Begun, Limits};
use self::resets::Resets;
use self::stream::Streams;
use self::watch::{Order, Watch, Watched};
use crate::head::Hop;
use crate::ingress;
use crate::listen::breach_log::Breach;
use crate::listen::left::Leaves;
use crate::listen::peer::{Entry, KnownPeer};
use crate::listen::protocol_errors::ProtocolError;
use crate::listen::{Admittance, ListenerState, unencrypted};
use crate::upgrade;
use crate::worker::Worker;

/// How many requests an HTTP/2 connection may have at once: the least that RFC 9113 section 6.5.2 recommends, since each
/// may hold some memory.
const MOST_STREAMS: u32 = 100;

/// How much of one answer the server holds before it asks for more. What all of them hold is bounded in [`held`].
const MOST_SENT: usize = 64 * 1024;

/// How many streams that were reset may wait for us, and how many may be reset by our own refusals, before
/// the connection is taken for an attack and closed.
const MOST_RESETS: usize = 50;

/// How often a peer of an HTTP/2 connection is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(20);

/// What the requests of one connection have in common.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) worker: Arc<Worker>,
    pub(crate) listener: Arc<ListenerState>,
    /// The peer, or the caller whom a balancer's PROXY header names; trusted if its address is one of the trusted
    /// proxies.
    pub(crate) hop: Hop,
    pub(crate) watch: Arc<Watch>,
    /// Held as long as the connection.
    _admittance: Admittance,
}

/// Serves a connection to its end. What goes wrong ends it; there is nobody else to tell.
pub(crate) async fn serve(stream: TcpStream, entry: Entry, worker: Arc<Worker>) {
    let listener = Arc::clone(&entry.listener);
    let (head_timeout, client) = (listener.spec().head_timeout, entry.from());
    let breached = |worker: &Worker, error| {
        worker.breached(&listener, Breach { error, what: None, client, status: None, request: None });
    };
    // The first head is awaited from here on, whatever has to come before it.
    let watch = Arc::new(Watch::new(Arc::clone(worker.ticks())));
    let _over = Over(Arc::clone(&watch));
    worker.watch(&watch, &listener);
    let ended = poll_fn(|cx| match watch.ordered(cx.waker()) {
        Order::Serve | Order::Drain => Poll::Pending,
        Order::Close => Poll::Ready(()),
    });
    let prepare = prepare(stream, entry, Arc::clone(&worker), &listener, Arc::clone(&watch));
    let prepared = tokio::select! {
        () = ended => return,
        prepared = timeout(head_timeout, prepare) => prepared,
    };
    let (stream, caller) = match prepared {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(error)) => return error.into_iter().for_each(|error| breached(&worker, error)),
        Err(_) => return breached(&worker, ProtocolError::Late),
    };
    match stream {
        Prepared::Plain(stream, Spoken::Http1) => serve_http1(stream, caller).await,
        // Boxed, so that other connections do not hold the room for it.
        Prepared::Plain(stream, Spoken::H2) => Box::pin(serve_h2(stream, caller)).await,
        Prepared::Tls(stream, Spoken::Http1) => Box::pin(serve_http1(*stream, caller)).await,
        Prepared::Tls(stream, Spoken::H2) => Box::pin(serve_h2(*stream, caller)).await,
    }
}

enum Prepared {
    Plain(TcpStream, Spoken),
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>, Spoken),
}

#[derive(Clone, Copy)]
enum Spoken {
    Http1,
    H2,
}

/// Everything before the first request; or how the caller broke a protocol, if it did not just leave.
async fn prepare(
    mut stream: TcpStream,
    entry: Entry,
    worker: Arc<Worker>,
    listener: &Arc<ListenerState>,
    watch: Arc<Watch>,
) -> Result<(Prepared, Arc<Caller>), Option<ProtocolError>> {
    stream.set_nodelay(true).map_err(|_| None)?;
    let known = entry.known(&mut stream, &worker).await;
    let KnownPeer { admittance, address, is_trusted } =
        known.map_err(|failure| ProtocolError::of_proxy_header(&failure))?;
    let protocols = listener.spec().protocols;
    let (prepared, is_tls) = if let Some(tls) = listener.tls() {
        if unencrypted::is_so(&stream).await.map_err(|_| None)? {
            let error = ProtocolError::Tls;
            let breach = Breach { error, what: None, client: address, status: None, request: None };
            worker.breached(listener, breach);
            unencrypted::tell(stream).await.map_err(|_| None)?;
            return Err(None);
        }
        let accepted = tls.acceptor.accept(stream).await;
        let stream = accepted.map_err(|failure| ProtocolError::of_tls(&failure))?;
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2") || !protocols.http1;
        (Prepared::Tls(Box::new(stream), if is_h2 { Spoken::H2 } else { Spoken::Http1 }), true)
    } else {
        let spoken = match (protocols.http1, protocols.h2) {
            (true, false) => Spoken::Http1,
            (false, _) => Spoken::H2,
            (true, true) => spoken(&stream).await.map_err(|_| None)?,
        };
        (Prepared::Plain(stream, spoken), false)
    };
    let listener = Arc::clone(listener);
    let caller = Caller {
        worker,
        listener,
        hop: Hop::new(address, is_trusted, is_tls),
        watch,
        _admittance: admittance,
    };
    caller.watch.prepared();
    Ok((prepared, Arc::new(caller)))
}

/// Tells the protocols apart by their first bytes: no HTTP/1 method begins with `PRI`.
async fn spoken(stream: &TcpStream) -> io::Result<Spoken> {
    const PREFACE: &[u8] = b"PRI";
    let mut begin = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut begin).await?;
        let came = begin.get(..count).unwrap_or_default();
        if count == 0 || !PREFACE.starts_with(came) {
            return Ok(Spoken::Http1);
        }
        if came == PREFACE {
            return Ok(Spoken::H2);
        }
        // Looking does not take the bytes, so the socket stays readable: only time tells.
        sleep(Duration::from_millis(5)).await;
    }
}

async fn serve_http1<S>(stream: S, caller: Arc<Caller>)
where
    S: AsyncRead + AsyncWrite + Leaves + Unpin + Send + 'static,
{
    let watch = Arc::clone(&caller.watch);
    let spec = caller.listener.spec();
    let limits = Limits { max_header_bytes: spec.max_header_bytes, max_headers: spec.max_headers };
    let serve = |asked: Asked<'_, '_>| ingress::serve(&caller, asked);
    let mut connection = http1::Connection::new(stream, limits, Arc::clone(&watch), serve);
    Served { connection: &mut connection, watch: Over(watch), is_draining: false }.await;
    if let Some((stream, unread, mut answer)) = connection.into_turned()
        && let Some(to) = answer.take_turned()
    {
        drop(answer);
        Box::pin(upgrade::join(upgrade::Turned { stream, unread }, to, &caller)).await;
    }
}

async fn serve_h2<S>(stream: S, caller: Arc<Caller>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let watch = Arc::clone(&caller.watch);
    let (worker, client) = (Arc::clone(&caller.worker), caller.hop.address);
    let listener = Arc::clone(&caller.listener);
    let spec = listener.spec();
    let mut server = http2::Builder::new(Streams::new(spec.body_idle_timeout));
    server
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_send_buf_size(MOST_SENT)
        .max_pending_accept_reset_streams(MOST_RESETS)
        .max_local_error_reset_streams(MOST_RESETS)
        .max_header_list_size(u32::try_from(spec.max_header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    let resets = if caller.hop.is_trusted { Resets::uncounted() } else { Resets::counted() };
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&watch), resets));
    let service = service_fn(move |request: Request<Incoming>| {
        let begun = ingress::serve_whole(&caller, request.map(CallerBody::H2));
        let watch = Arc::clone(&caller.watch);
        async move {
            let response = match begun {
                Begun::Refused(never) => match never {},
                Begun::Answered(response) => *response,
                Begun::Serving(serving) => serving.await,
            };
            Ok::<_, Infallible>(response.map(|body| HeldBody::new(body, &watch)))
        }
    });
    let connection = server.serve_connection(io, service);
    let served = Served { connection, watch: Over(Arc::clone(&watch)), is_draining: false };
    if let Some(error) = served.await.or_else(|| watch.is_calmed().then_some(ProtocolError::Http2)) {
        let breach = Breach { error, what: None, client, status: None, request: None };
        worker.breached(&listener, breach);
    }
}

/// Marks the end of a connection, however it ends.
struct Over(Arc<Watch>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over();
    }
}

pin_project! {
    /// A connection that does what it is ordered.
    struct Served<C> {
        #[pin]
        connection: C,
        watch: Over,
        is_draining: bool,
    }
}

impl<C: Drain> Future for Served<C> {
    /// What its caller did to end it, if that was against the protocol.
    type Output = Option<ProtocolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        match this.watch.0.ordered(cx.waker()) {
            Order::Serve => {}
            Order::Drain if *this.is_draining => {}
            Order::Drain => {
                *this.is_draining = true;
                this.connection.as_mut().drain();
            }
            Order::Close => return Poll::Ready(None),
        }
        this.connection.poll_served(cx)
    }
}

/// A connection that can be asked to finish.
trait Drain {
    fn drain(self: Pin<&mut Self>);
    /// Ready at its end; with what its caller did to end it, if that was against the protocol.
    fn poll_served(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ProtocolError>>;
}

impl<S, A, F, B> Drain for &mut http1::Connection<S, A, F, B>
where
    S: AsyncRead + AsyncWrite + Leaves + Unpin,
    A: FnMut(Asked<'_, '_>) -> Begun<F, B>,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin,
{
    fn drain(self: Pin<&mut Self>) {
        self.get_mut().drain();
    }

    fn poll_served(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ProtocolError>> {
        // What is no request is answered, and counted there.
        self.get_mut().poll_served(cx).map(|()| None)
    }
}

impl<I, S> Drain for http2::Connection<I, S, Streams>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    S: hyper::service::HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::ResBody: Send + 'static,
    <S::ResBody as Body>::Data: Send,
    <S::ResBody as Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    fn drain(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }

    fn poll_served(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ProtocolError>> {
        self.poll(cx).map(|ended| ended.err().and_then(|failure| ProtocolError::of_h2(&failure)))
    }
}
