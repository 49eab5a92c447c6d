//! One worker's connections to one endpoint.
//!
//! HTTP/1 connections carry one request at a time and are kept idle between; HTTP/2 connections carry many. A request
//! takes the connection that was used last, so that those that are too many grow old and are closed.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tidegate_policy::policy::UpstreamProtocol;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::body::{UpstreamBody, nothing};
use super::connect::{Connected, Spoken};
use super::endpoint::{Endpoint, InFlight};
use super::http1::{Connection, Failure, Stream};
use super::places::{ClientShare, Place, Turn, Waiting};
use super::{Call, CallFailure, Lend, RequestBody, UpstreamError};
use crate::head;
use crate::ticks::{Ticks, millis};

/// How many requests are sent over one HTTP/2 connection before another one is made; fewer if the service says so.
const MOST_STREAMS: u32 = 64;

/// How much of an answer may wait on an HTTP/2 connection for its caller to take it, in bytes. 128 KiB let 128 MB a
/// second through at a round trip of a millisecond.
const STREAM_WINDOW: u32 = 128 * 1024;

/// How much may wait of all of them, 8 MiB. No answer that waits takes room from another: callers who read nothing would
/// stop all others on the connection.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MOST_STREAMS;

/// How much of a request may wait there for the service to take it, in bytes.
const MOST_UNSENT: usize = 128 * 1024;

/// How often a request that waits for a connection looks whether somebody keeps one for nothing.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// After so many milliseconds without use, a connection lets go of its buffers.
const BARE_AFTER: u64 = 1_000;

/// How often the peer of an HTTP/2 connection is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(crate) struct Lane {
    idle: Mutex<Vec<Idle>>,
    many: Mutex<Vec<Many>>,
}

/// An HTTP/1 connection and its place among those an endpoint may have.
#[derive(Debug)]
pub(crate) struct Held {
    pub(super) connection: Connection<Stream, RequestBody>,
    pub(super) place: Place,
}

#[derive(Debug)]
struct Idle {
    // Boxed, because it goes through many hands.
    held: Box<Held>,
    /// When it was first seen idle.
    since: Option<u64>,
}

/// An HTTP/2 connection, with its requests in flight as references to the same count.
#[derive(Clone, Debug)]
pub(crate) struct Many {
    sender: http2::SendRequest<RequestBody>,
    /// How many requests the service allows on it at once.
    streams: Arc<AtomicUsize>,
    used: u64,
}

/// A connection over which one request can be sent.
#[derive(Debug)]
pub(crate) struct Line {
    sender: Sender,
    is_fresh: bool,
}

#[derive(Debug)]
enum Sender {
    One(Box<Held>),
    Many(Many),
}

/// Which connection a request is sent over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// One that is free, or else a new one.
    Any,
    /// A new one, as long as there may be more.
    Fresh,
}

/// Why a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendFailure {
    /// Nothing of it was sent; it is as it was.
    Unsent,
    /// The connection had been used before, and ended before anything of an answer came: perhaps the other side
    /// closed it in the moment in which the request was sent.
    Stale,
    /// Anything else.
    Broken(UpstreamError),
}

impl Lane {
    /// A free connection if any will do, a new one, or the next that is given back.
    pub(super) async fn line(
        endpoint: &Endpoint,
        call: &Call<'_>,
        wanted: Wanted,
    ) -> Result<Line, CallFailure> {
        let places = &endpoint.places;
        let client = Self::held_to(endpoint, call);
        if let Some(turn) = places.turn(client) {
            if wanted == Wanted::Any
                && let Some(sender) = endpoint.lane(call.worker).take(call.ticks.now())
            {
                return Ok(Line { sender: sender.held_by(turn), is_fresh: false });
            }
            if let Some(place) = Place::take(places) {
                // Boxed, because few requests make a connection and all of them would be larger.
                let sender = Box::pin(Self::open(endpoint, call.worker, place, call.ticks)).await?;
                return Ok(Line { sender: sender.held_by(turn), is_fresh: true });
            }
        }
        let connect_timeout = endpoint.upstream.connect_timeout;
        // The service is not at work on it. Were its place held, those who wait for connections that are kept from them
        // would keep the places from others.
        call.place.into_iter().for_each(Lend::lend);
        let line = Box::pin(timeout(connect_timeout, Self::wait(endpoint, call))).await;
        let line = line.unwrap_or(Err(CallFailure::Busy))?;
        call.place.into_iter().for_each(Lend::take_again);
        Ok(line)
    }

    /// Whose share it counts for. What carries many requests at once is not held by one.
    fn held_to(endpoint: &Endpoint, call: &Call<'_>) -> ClientShare {
        match endpoint.upstream.protocol {
            UpstreamProtocol::H2 => ClientShare::FREE,
            UpstreamProtocol::Http1 | UpstreamProtocol::Auto => call.client,
        }
    }

    async fn wait(endpoint: &Endpoint, call: &Call<'_>) -> Result<Line, CallFailure> {
        let (places, client) = (&endpoint.places, Self::held_to(endpoint, call));
        let mut waiting = None;
        loop {
            let turn = places.turn(client);
            let is_at_share = turn.is_none();
            if waiting.is_none() {
                waiting = Some(Waiting::begin(places, is_at_share).ok_or(CallFailure::Busy)?);
            }
            let freed = places.freed(is_at_share).notified();
            if let Some(turn) = turn {
                // A connection can be used from any worker; it only stays where it was made as long as all have enough.
                let now = call.ticks.now();
                if let Some(sender) = endpoint.lanes().iter().find_map(|lane| lane.take(now)) {
                    return Ok(Line { sender: sender.held_by(turn), is_fresh: false });
                }
                if let Some(place) = Place::take(places) {
                    let sender = Self::open(endpoint, call.worker, place, call.ticks).await?;
                    return Ok(Line { sender: sender.held_by(turn), is_fresh: true });
                }
            }
            places.exchanges.end_most_stalled(is_at_share.then_some(client), call.ticks.now());
            timeout(LOOK_AGAIN, freed).await.ok();
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn many(&self) -> MutexGuard<'_, Vec<Many>> {
        self.many.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A free connection.
    fn take(&self, now: u64) -> Option<Sender> {
        let mut idle = self.idle();
        while let Some(Idle { mut held, .. }) = idle.pop() {
            // Whatever came while nobody asked for anything is no answer to the next request.
            if held.connection.stream().is_quiet() {
                return Some(Sender::One(held));
            }
        }
        drop(idle);
        let mut many = self.many();
        many.retain(|many| !many.sender.is_closed());
        let free = many.iter_mut().find(|many| many.has_room())?;
        free.used = now;
        Some(Sender::Many(free.clone()))
    }

    /// Makes a connection, in time.
    async fn open(
        endpoint: &Endpoint,
        worker: usize,
        place: Place,
        ticks: &Ticks,
    ) -> Result<Sender, CallFailure> {
        let connect_timeout = endpoint.upstream.connect_timeout;
        let attempt = endpoint.reach.attempt(ticks, connect_timeout);
        let connecting = Self::connect(endpoint, worker, place, ticks);
        let connected = timeout(connect_timeout, connecting).await;
        match connected.unwrap_or(Err(UpstreamError::ConnectTimeout)) {
            Ok(sender) => {
                attempt.succeeded();
                Ok(sender)
            }
            Err(error) => {
                attempt.failed();
                endpoint.failures.fetch_add(1, Ordering::Relaxed);
                Err(CallFailure::Unconnected(error))
            }
        }
    }

    async fn connect(
        endpoint: &Endpoint,
        worker: usize,
        place: Place,
        ticks: &Ticks,
    ) -> Result<Sender, UpstreamError> {
        let connected = endpoint.connector.connect(&endpoint.spec, endpoint.upstream.protocol).await?;
        let (stream, spoken) = match connected {
            Connected::Plain(stream, spoken) => (Stream::Plain(stream), spoken),
            Connected::Tls(stream, spoken) => (Stream::Tls(stream), spoken),
        };
        match spoken {
            Spoken::Http1 => Ok(Sender::One(Box::new(Held { connection: Connection::new(stream), place }))),
            Spoken::H2 => {
                let many = Many::greet(stream, place, ticks).await?;
                endpoint.lane(worker).many().push(many.clone());
                endpoint.places.tell_all();
                Ok(Sender::Many(many))
            }
        }
    }

    /// Connects for no request; what comes of it is there for the next.
    pub(super) async fn try_again(endpoint: Arc<Endpoint>, worker: usize, place: Place, ticks: Arc<Ticks>) {
        // One that carries many requests is in its list already.
        if let Ok(Sender::One(held)) = Self::open(&endpoint, worker, place, &ticks).await {
            endpoint.lane(worker).idle().push(Idle { held, since: None });
            endpoint.places.tell();
        }
    }

    /// Closes what has been idle for too long, and what the other side has closed.
    pub(super) fn look_after(&self, now: u64, idle_timeout: Duration) {
        let longest = millis(idle_timeout);
        self.idle().retain_mut(|Idle { held, since }| {
            let idle_for = now.saturating_sub(*since.get_or_insert(now));
            if idle_for >= BARE_AFTER {
                held.connection.drop_buffers();
            }
            idle_for <= longest && held.connection.stream().is_quiet()
        });
        self.many().retain(|many| {
            let is_young = now.saturating_sub(many.used) <= longest;
            (is_young || Arc::strong_count(&many.streams) > 1) && !many.sender.is_closed()
        });
    }
}

impl Sender {
    /// The same, in use for whoever has the turn.
    fn held_by(mut self, turn: Turn<'_>) -> Self {
        if let Self::One(held) = &mut self {
            held.place.hold(turn);
        }
        self
    }
}

impl Many {
    async fn greet<S>(stream: S, place: Place, ticks: &Ticks) -> Result<Self, UpstreamError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut client = http2::Builder::new(TokioExecutor::new());
        client
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_EVERY)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(MOST_UNSENT);
        let connected = client.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = connected.map_err(|failure| UpstreamError::of_h2(&failure))?;
        let streams = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        drive(connection, place, Arc::downgrade(&streams));
        Ok(Self { sender, streams, used: ticks.now() })
    }

    /// Whether one more request can be sent over it at once: beyond what the service allows it would wait for others.
    fn has_room(&self) -> bool {
        // One reference is the list's own.
        let most = self.streams.load(Ordering::Relaxed).min(MOST_STREAMS as usize);
        Arc::strong_count(&self.streams) <= most
    }
}

/// Drives a connection until it ends, and gives its place back then.
fn drive<S>(
    mut connection: http2::Connection<TokioIo<S>, RequestBody, TokioExecutor>,
    place: Place,
    streams: Weak<AtomicUsize>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        // Whoever waits for an answer over it is told by its sender.
        poll_fn(|cx| {
            let polled = Pin::new(&mut connection).poll(cx);
            if let Some(streams) = streams.upgrade() {
                streams.store(connection.current_max_send_streams(), Ordering::Relaxed);
            }
            polled
        })
        .await
        .ok();
        drop(place);
    });
}

impl Line {
    pub(super) const fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        self,
        request: &mut Request<RequestBody>,
        in_flight: InFlight,
        call: &Call<'_>,
    ) -> Result<Response<UpstreamBody>, SendFailure> {
        match self.sender {
            Sender::One(mut held) => {
                if let Some(upload) = call.upload {
                    in_flight.endpoint.places.exchanges.add(upload);
                }
                let host = &in_flight.endpoint.spec.authority;
                match held.connection.ask(request, host, nothing).await {
                    Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                        Ok(response.map(|()| UpstreamBody::turned(held)))
                    }
                    Ok(response) => Ok(response.map(|()| UpstreamBody::one(held, in_flight, call))),
                    Err(Failure::Unsent) => Err(SendFailure::Unsent),
                    Err(Failure::Closed) if !self.is_fresh => Err(SendFailure::Stale),
                    Err(Failure::Malformed(_)) => Err(SendFailure::Broken(UpstreamError::BadAnswer)),
                    Err(_) => Err(SendFailure::Broken(UpstreamError::Reset)),
                }
            }
            Sender::Many(mut many) => {
                head::name_authority(request, &in_flight.endpoint.spec);
                let sent = std::mem::replace(request, Request::new(nothing()));
                match many.sender.try_send_request(sent).await {
                    Ok(response) => Ok(response.map(|body| UpstreamBody::many(body, many, in_flight))),
                    Err(mut error) => match error.take_message() {
                        Some(unsent) => {
                            *request = unsent;
                            Err(SendFailure::Unsent)
                        }
                        None => Err(SendFailure::Broken(UpstreamError::of_h2(error.error()))),
                    },
                }
            }
        }
    }
}

impl InFlight {
    /// The answer has been read to its end: if nothing speaks against it, others may use the connection.
    pub(super) fn give_back(self, mut held: Box<Held>) {
        held.place.release();
        if held.connection.is_reusable() {
            held.connection.tidy();
            self.lane().idle().push(Idle { held, since: None });
            self.endpoint.places.tell();
        }
    }
}
