//! One worker's connections to one endpoint.
//!
//! HTTP/1 connections carry one request at a time and are kept idle between; HTTP/2 connections carry many. A request
//! takes the connection that was used last, so that those that are too many grow old and are closed.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::connect::{Connected, Spoken};
use super::endpoint::Endpoint;
use super::{CallFailure, RequestBody};
use crate::head;
use crate::ticks::millis;

/// How many requests are sent over one HTTP/2 connection before another one is made.
const MOST_STREAMS: usize = 100;

/// How many requests wait for a connection to one endpoint; the next ones are refused at once.
const MOST_WAITING: usize = 1024;

/// After so many milliseconds without use, a connection may have been closed by the other side in this moment.
const STALE_AFTER: u64 = 250;

/// How often the peer of an HTTP/2 connection is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(crate) struct Lane {
    idle: Mutex<Vec<Idle>>,
    many: Mutex<Vec<Many>>,
}

/// Requests that wait for a connection, over all lanes to an endpoint.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Told whenever a connection is free or has ended.
    freed: Notify,
    count: AtomicUsize,
}

impl Waiters {
    fn tell(&self) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.freed.notify_waiters();
        }
    }
}

#[derive(Debug)]
struct Idle {
    sender: http1::SendRequest<RequestBody>,
    since: u64,
}

/// An HTTP/2 connection, with its requests in flight as references to the same count.
#[derive(Clone, Debug)]
struct Many {
    sender: http2::SendRequest<RequestBody>,
    streams: Arc<()>,
    used: u64,
}

/// Where a connection belongs.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) worker: usize,
}

impl Reach {
    fn lane(&self) -> &Lane {
        self.endpoint.lane(self.worker)
    }
}

/// A connection over which one request can be sent.
#[derive(Debug)]
pub(crate) struct Line {
    reach: Reach,
    sender: Sender,
    /// When it was last used; none if never.
    used: Option<u64>,
    now: u64,
}

#[derive(Debug)]
enum Sender {
    One(http1::SendRequest<RequestBody>),
    Many(Many),
}

impl Lane {
    /// A free connection, a new one, or the next that is given back.
    pub(super) async fn line(reach: Reach, now: u64) -> Result<Line, CallFailure> {
        if let Some((sender, used)) = reach.lane().take(now) {
            return Ok(Line { reach, sender, used: Some(used), now });
        }
        let connect_timeout = reach.endpoint.upstream.connect_timeout;
        let Some(place) = Place::take(&reach.endpoint) else {
            let waited = Box::pin(timeout(connect_timeout, Self::wait(reach, now))).await;
            return waited.unwrap_or(Err(CallFailure::Busy));
        };
        // Boxed, because few requests make a connection and all of them would be larger.
        match Box::pin(timeout(connect_timeout, Self::open(&reach, place, now))).await {
            Ok(Some(sender)) => Ok(Line { reach, sender, used: None, now }),
            Ok(None) | Err(_) => Err(CallFailure::Unconnected),
        }
    }

    async fn wait(reach: Reach, now: u64) -> Result<Line, CallFailure> {
        let endpoint = Arc::clone(&reach.endpoint);
        let _waiting = Waiting::begin(&endpoint.waiters).ok_or(CallFailure::Busy)?;
        loop {
            let freed = endpoint.waiters.freed.notified();
            // A connection can be used from any worker; it only stays where it was made as long as all have enough.
            if let Some((sender, used)) = endpoint.lanes().iter().find_map(|lane| lane.take(now)) {
                return Ok(Line { reach, sender, used: Some(used), now });
            }
            if let Some(place) = Place::take(&endpoint) {
                let opened = Self::open(&reach, place, now).await;
                let sender = opened.ok_or(CallFailure::Unconnected)?;
                return Ok(Line { reach, sender, used: None, now });
            }
            freed.await;
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn many(&self) -> MutexGuard<'_, Vec<Many>> {
        self.many.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A free connection, and when it was last used.
    fn take(&self, now: u64) -> Option<(Sender, u64)> {
        let mut idle = self.idle();
        while let Some(Idle { sender, since }) = idle.pop() {
            if sender.is_ready() {
                return Some((Sender::One(sender), since));
            }
        }
        drop(idle);
        let mut many = self.many();
        many.retain(|many| !many.sender.is_closed());
        // One reference is the list's own.
        let free = many.iter_mut().find(|many| Arc::strong_count(&many.streams) <= MOST_STREAMS)?;
        let used = std::mem::replace(&mut free.used, now);
        Some((Sender::Many(free.clone()), used))
    }

    /// Makes a connection.
    async fn open(reach: &Reach, place: Place, now: u64) -> Option<Sender> {
        let endpoint = &reach.endpoint;
        let connected = endpoint.connector.connect(&endpoint.spec, endpoint.upstream.protocol).await.ok()?;
        match connected {
            Connected::Plain(stream, spoken) => Self::greet(reach, stream, spoken, place, now).await,
            Connected::Tls(stream, spoken) => Self::greet(reach, *stream, spoken, place, now).await,
        }
    }

    async fn greet<S>(reach: &Reach, stream: S, spoken: Spoken, place: Place, now: u64) -> Option<Sender>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        match spoken {
            Spoken::Http1 => {
                let (sender, connection) = http1::Builder::new().handshake(io).await.ok()?;
                drive(connection.with_upgrades(), place);
                Some(Sender::One(sender))
            }
            Spoken::H2 => {
                let mut client = http2::Builder::new(TokioExecutor::new());
                client
                    .timer(TokioTimer::new())
                    .keep_alive_interval(PING_EVERY)
                    .keep_alive_timeout(PING_EVERY);
                let (sender, connection) = client.handshake(io).await.ok()?;
                drive(connection, place);
                let many = Many { sender, streams: Arc::new(()), used: now };
                reach.lane().many().push(many.clone());
                reach.endpoint.waiters.tell();
                Some(Sender::Many(many))
            }
        }
    }

    /// Closes what has been idle for too long.
    pub(super) fn look_after(&self, now: u64, idle_timeout: Duration) {
        let is_young = |since: u64| now.saturating_sub(since) <= millis(idle_timeout);
        self.idle().retain(|idle| is_young(idle.since) && !idle.sender.is_closed());
        self.many().retain(|many| {
            (is_young(many.used) || Arc::strong_count(&many.streams) > 1) && !many.sender.is_closed()
        });
    }
}

/// Drives a connection until it ends, and gives its place back then.
fn drive<F: Future<Output = hyper::Result<()>> + Send + 'static>(connection: F, place: Place) {
    tokio::spawn(async move {
        // Whoever waits for an answer over it is told by its sender.
        connection.await.ok();
        drop(place);
    });
}

impl Line {
    pub(super) const fn is_fresh(&self) -> bool {
        self.used.is_none()
    }

    pub(super) fn may_be_stale(&self, now: u64) -> bool {
        self.used.is_some_and(|used| now.saturating_sub(used) >= STALE_AFTER)
    }

    /// Sends a request. One of which nothing was sent is given back.
    pub(super) async fn send(
        &mut self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, (Option<Box<Request<RequestBody>>>, CallFailure)> {
        let sent = match &mut self.sender {
            Sender::One(sender) => {
                head::name_host(&mut request, &self.reach.endpoint.spec);
                sender.try_send_request(request).await
            }
            Sender::Many(many) => {
                head::name_authority(&mut request, &self.reach.endpoint.spec);
                many.sender.try_send_request(request).await
            }
        };
        sent.map_err(|mut error| (error.take_message().map(Box::new), CallFailure::Broken))
    }

    /// Lets others use it, now that its answer has been read to the end.
    pub(crate) fn give_back(self) {
        let Self { reach, sender, now, .. } = self;
        let Sender::One(mut sender) = sender else { return };
        if sender.is_ready() {
            reach.put(sender, now);
        } else if !sender.is_closed() {
            // The request's body is still on its way out.
            tokio::spawn(async move {
                if sender.ready().await.is_ok() {
                    reach.put(sender, now);
                }
            });
        }
    }
}

impl Reach {
    fn put(&self, sender: http1::SendRequest<RequestBody>, now: u64) {
        self.lane().idle().push(Idle { sender, since: now });
        self.endpoint.waiters.tell();
    }
}

/// A connection among those an endpoint may have.
struct Place(Arc<Endpoint>);

impl Place {
    fn take(endpoint: &Arc<Endpoint>) -> Option<Self> {
        let most = endpoint.upstream.max_connections;
        let taken = endpoint
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < most).then_some(open + 1));
        taken.ok().map(|_| Self(Arc::clone(endpoint)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.waiters.tell();
    }
}

/// A request that waits for a connection.
struct Waiting<'a>(&'a Waiters);

impl<'a> Waiting<'a> {
    fn begin(waiters: &'a Waiters) -> Option<Self> {
        if waiters.count.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
            waiters.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(waiters))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
