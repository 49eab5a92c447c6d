//! Who has a connection to the admin API, and who loses it to a newcomer.
//!
//! There are 128 seats. Whoever takes all of them and does nothing, or asks and does not read, would keep operators out, and
//! the orchestrator that asks whether we live would end us for it. So a newcomer is never turned away: it gets the seat of the
//! connection on which nothing has moved for longest. One that is being worked for is left alone; if all were, a newcomer would get one of a few more seats, where only `/livez` and `/readyz` are answered.
//!
//! | taken                        | a newcomer gets                                            |
//! |------------------------------|------------------------------------------------------------|
//! | 96 by its own address        | the seat of that address that has rested longest           |
//! | 128                          | the seat that has rested longest                           |
//! | 128, all being worked for    | one of 16 seats for `/livez` and `/readyz`; the one among them that has rested longest |
//!
//! Addresses of IPv6 that share their first 64 bits count as one.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::task_local;
use tokio::time::{Sleep, sleep};

use super::answer::Refusal;

const MOST: usize = 128;
/// Three quarters, so that no address takes all of them.
const MOST_OF_ADDRESS: usize = 96;
/// More than the orchestrators and balancers that ask at the same instant.
const RESERVED: usize = 16;
/// How long a caller may take nothing of an answer.
const WRITE_TIME: Duration = Duration::from_secs(10);

task_local! {
    static SEAT: Arc<Seat>;
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Seats(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    seats: Vec<Arc<Seat>>,
    /// Grows with everything that moves.
    moves: Arc<AtomicU64>,
}

/// One connection's.
#[derive(Debug)]
pub(super) struct Seat {
    address: IpAddr,
    /// Whether only `/livez` and `/readyz` are answered.
    is_reserved: bool,
    moves: Arc<AtomicU64>,
    /// What had moved in all when something last moved here.
    last: AtomicU64,
    /// For how many requests of it somebody is at work.
    working: AtomicUsize,
    /// How many there have been.
    worked: AtomicU64,
    lost: Notify,
}

/// A seat that is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    seat: Arc<Seat>,
    seats: Seats,
}

impl Seats {
    /// A seat for a newcomer, whoever has to go for it.
    pub(super) fn take(&self, from: IpAddr) -> Held {
        let address = counted(from);
        let mut taken = self.lock();
        let is_usual = |seat: &Arc<Seat>| !seat.is_reserved;
        let of_address = |seat: &Arc<Seat>| is_usual(seat) && seat.address == address;
        let count =
            |which: &dyn Fn(&Arc<Seat>) -> bool| taken.seats.iter().filter(|seat| which(seat)).count();
        let is_there_room = if count(&of_address) >= MOST_OF_ADDRESS {
            taken.end_one(of_address)
        } else {
            count(&is_usual) < MOST || taken.end_one(is_usual)
        };
        if !is_there_room && taken.seats.iter().filter(|seat| seat.is_reserved).count() >= RESERVED {
            taken.end_one(|seat| seat.is_reserved);
        }
        let moves = Arc::clone(&taken.moves);
        let last = AtomicU64::new(moves.fetch_add(1, Ordering::Relaxed));
        let seat = Arc::new(Seat {
            address,
            is_reserved: !is_there_room,
            moves,
            last,
            working: AtomicUsize::new(0),
            worked: AtomicU64::new(0),
            lost: Notify::new(),
        });
        taken.seats.push(Arc::clone(&seat));
        Held { seat, seats: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Ends the one of these that has rested longest, unless all of them are being worked for.
    fn end_one(&mut self, is_one: impl Fn(&Arc<Seat>) -> bool) -> bool {
        let resting = self.seats.iter().enumerate().filter(|(_, seat)| is_one(seat) && seat.rests());
        let longest = resting.min_by_key(|(_, seat)| seat.last.load(Ordering::Relaxed));
        let Some(place) = longest.map(|(place, _)| place) else { return false };
        self.seats.swap_remove(place).lost.notify_one();
        true
    }
}

impl Seat {
    fn rests(&self) -> bool {
        self.working.load(Ordering::Relaxed) == 0
    }

    fn moved(&self) {
        self.last.store(self.moves.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Held {
    /// Serves its connection, until it has ended or somebody else has the seat.
    pub(super) async fn serve(self, connection: impl Future<Output = ()>) {
        tokio::select! {
            () = SEAT.scope(Arc::clone(&self.seat), connection) => {}
            () = self.seat.lost.notified() => {}
        }
    }

    /// The connection's stream, followed.
    pub(super) fn stream<S>(&self, stream: S) -> Followed<S> {
        Followed { stream, seat: Arc::clone(&self.seat), stalled: None }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.seats.lock().seats.retain(|seat| !Arc::ptr_eq(seat, &self.seat));
    }
}

/// What counts for the address.
fn counted(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// For whom a request is served, as addresses are counted.
pub(super) fn address() -> Option<IpAddr> {
    SEAT.try_with(|seat| seat.address).ok()
}

/// How much work has been done over the connection of the request that is served.
pub(super) fn worked() -> u64 {
    SEAT.try_with(|seat| seat.worked.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Somebody is at work for the request that is served, until this is dropped.
#[derive(Debug)]
pub(super) struct Working(Option<Arc<Seat>>);

impl Working {
    pub(super) fn begin() -> Self {
        let seat = SEAT.try_with(Arc::clone).ok();
        if let Some(seat) = &seat {
            seat.working.fetch_add(1, Ordering::Relaxed);
            seat.worked.fetch_add(1, Ordering::Relaxed);
        }
        Self(seat)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Some(seat) = &self.0 {
            seat.working.fetch_sub(1, Ordering::Relaxed);
            // It has not rested meanwhile.
            seat.moved();
        }
    }
}

/// Refuses what a reserved seat is not for.
pub(super) async fn reserve(request: Request, next: Next) -> Response {
    let is_reserved = SEAT.try_with(|seat| seat.is_reserved).unwrap_or(false);
    if !is_reserved || matches!(request.uri().path(), "/livez" | "/readyz") {
        return next.run(request).await;
    }
    let detail = "128 connections are being worked for already; only /livez and /readyz are answered now";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        .with(CONNECTION, HeaderValue::from_static("close"))
        .into_response()
}

/// A stream on which it is noted when something moves, and which fails when its peer takes nothing for too long.
#[derive(Debug)]
pub(super) struct Followed<S> {
    stream: S,
    seat: Arc<Seat>,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Followed<S> {
    /// What came of writing, unless it has been waited for too long.
    fn wrote(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if wrote.is_ready() {
            self.stalled = None;
            self.seat.moved();
            return wrote;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_TIME)));
        stalled.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Followed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.seat.moved();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Followed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.wrote(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
