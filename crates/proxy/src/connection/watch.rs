//! What is known of a connection while it is served, and who waits for whom.
//!
//! Three parties meet here: the bytes that pass (of HTTP/2 through [`Watched`]), the requests that are served, and the worker that looks
//! a few times a second whether somebody has kept everybody waiting for too long:
//!
//! | nothing moves, and the connection waits for | it is closed after |
//! |---------------------------------------------|--------------------|
//! | the rest of a head, or its first one        | `head_timeout`, counted from the head's first byte |
//! | the rest of a frame of HTTP/2, but of DATA  | `head_timeout`, counted from the frame's first byte |
//! | the rest of a frame of DATA                 | `body_idle_timeout`, counted likewise |
//! | the rest of a body, though its request is answered | `head_timeout`, counted from the answer's end |
//! | the rest of a body                          | `body_idle_timeout` |
//! | its peer to take what was sent              | `body_idle_timeout` |
//! | the next request                            | `idle_timeout`; one that stays though it was told to go, `head_timeout` later |
//! | the upstream                                | never; the upstream has its own limits |

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;
use tidegate_policy::policy::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{Frames, Unfinished};
use super::resets::{Resets, go_away};
use crate::ticks::{Ticks, millis};

/// No tick: nothing is waited for.
const NEVER: u64 = u64::MAX;

/// No frame has begun.
const NOTHING: u8 = u8::MAX;

/// What a connection is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Order {
    /// Go on.
    Serve,
    /// Finish what is in flight and take no more.
    Drain,
    /// End at once.
    Close,
}

/// What a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The first byte of a request.
    Request,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
}

/// One connection, as its three parties see it. All accesses are relaxed: they run on one thread, but for orders.
#[derive(Debug)]
pub(crate) struct Watch {
    ticks: Arc<Ticks>,
    /// When it was accepted.
    began: u64,
    order: AtomicU8,
    waker: OnceLock<Waker>,
    is_over: AtomicBool,
    /// Whether a request of it has been answered.
    has_served: AtomicBool,
    /// Whether everything before the first request is done, which has a limit of its own.
    is_prepared: AtomicBool,
    /// Requests that have been called and whose answer has not ended.
    in_flight: AtomicU32,
    awaited: AtomicU8,
    /// When it began to wait for what is awaited.
    since: AtomicU64,
    /// Whether it waits for bytes: it does not while the upstream is slower than the caller.
    is_reading: AtomicBool,
    /// Since when its peer takes nothing.
    stalled: AtomicU64,
    /// What of a frame has come, and since when; [`NOTHING`] if it is not within one.
    unfinished: AtomicU8,
    unfinished_since: AtomicU64,
    /// How much of answers waits for its peer to take it.
    held: AtomicUsize,
    /// When its peer last took something of that, or began to be waited for.
    taken: AtomicU64,
    /// Whether its end cannot be read, since other bytes come first.
    is_blind: AtomicBool,
    /// Whether it was ended because its peer resets streams too often.
    is_calmed: AtomicBool,
    /// Whether it is to look for its end.
    must_look: AtomicBool,
}

impl Watch {
    pub(crate) fn new(ticks: Arc<Ticks>) -> Self {
        let began = ticks.now();
        let since = AtomicU64::new(began);
        Self {
            ticks,
            began,
            order: AtomicU8::new(Order::Serve as u8),
            waker: OnceLock::new(),
            is_over: AtomicBool::new(false),
            has_served: AtomicBool::new(false),
            is_prepared: AtomicBool::new(false),
            in_flight: AtomicU32::new(0),
            awaited: AtomicU8::new(Awaited::Head as u8),
            since,
            is_reading: AtomicBool::new(false),
            stalled: AtomicU64::new(NEVER),
            unfinished: AtomicU8::new(NOTHING),
            unfinished_since: AtomicU64::new(NEVER),
            held: AtomicUsize::new(0),
            taken: AtomicU64::new(began),
            is_blind: AtomicBool::new(false),
            is_calmed: AtomicBool::new(false),
            must_look: AtomicBool::new(false),
        }
    }

    /// A request is called.
    pub(crate) fn begin(&self) {
        self.in_flight.store(self.in_flight.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Its answer has ended.
    pub(crate) fn end(&self) {
        self.in_flight.store(self.in_flight.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
        self.since.store(self.ticks.now(), Ordering::Relaxed);
        self.has_served.store(true, Ordering::Relaxed);
    }

    /// Requests whose answer has not ended.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed) as usize
    }

    /// Requests can come from now on.
    pub(super) fn prepared(&self) {
        self.is_prepared.store(true, Ordering::Relaxed);
    }

    /// Whether requests can come.
    pub(crate) fn is_open(&self) -> bool {
        self.is_prepared.load(Ordering::Relaxed) && !self.is_over()
    }

    /// The connection has ended.
    pub(crate) fn over(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Tells the connection what to do. What it was told before stands if it was more.
    pub(crate) fn order(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::Release);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// What the connection was told; remembers how to wake it.
    pub(crate) fn ordered(&self, waker: &Waker) -> Order {
        if self.waker.get().is_none() {
            self.waker.get_or_init(|| waker.clone());
        }
        match self.order.load(Ordering::Acquire) {
            order if order == Order::Serve as u8 => Order::Serve,
            order if order == Order::Drain as u8 => Order::Drain,
            _ => Order::Close,
        }
    }

    /// Whether it has ever served a request, and since when it serves none or its peer takes nothing, if so. One that was
    /// told to end is not told again.
    pub(crate) fn rests_since(&self) -> Option<(bool, u64)> {
        if self.is_over() || self.order.load(Ordering::Relaxed) == Order::Close as u8 {
            return None;
        }
        let has_served = self.has_served.load(Ordering::Relaxed);
        match self.stalled.load(Ordering::Relaxed) {
            NEVER => (self.in_flight() == 0).then(|| (has_served, self.since.load(Ordering::Relaxed))),
            stalled => Some((has_served, stalled)),
        }
    }

    /// What to order when somebody has kept it waiting for too long.
    pub(crate) fn overdue(&self, now: u64, listener: &Listener) -> Option<Order> {
        let waited = |since: &AtomicU64| now.saturating_sub(since.load(Ordering::Relaxed));
        if waited(&self.stalled) > millis(listener.body_idle_timeout) {
            return Some(Order::Close);
        }
        if self.is_frame_overdue(now, listener) {
            return Some(Order::Close);
        }
        let awaited = self.awaited.load(Ordering::Relaxed);
        let is_serving = self.in_flight.load(Ordering::Relaxed) > 0;
        let (limit, order) = if awaited == Awaited::Head as u8 {
            (listener.head_timeout, Order::Close)
        } else if awaited == Awaited::Body as u8 {
            if !self.is_reading.load(Ordering::Relaxed) {
                return None;
            }
            (listener.body_idle_timeout, Order::Close)
        } else if is_serving {
            return None;
        } else {
            (listener.idle_timeout, Order::Drain)
        };
        let waited = waited(&self.since);
        if order == Order::Drain && waited > millis(limit).saturating_add(millis(listener.head_timeout)) {
            return Some(Order::Close);
        }
        (waited > millis(limit)).then_some(order)
    }

    /// Whether a frame takes too long to come. What is there and is not read keeps nobody waiting.
    fn is_frame_overdue(&self, now: u64, listener: &Listener) -> bool {
        let unfinished = self.unfinished.load(Ordering::Relaxed);
        if unfinished == NOTHING || !self.is_reading.load(Ordering::Relaxed) {
            return false;
        }
        let is_data = unfinished == Unfinished::Data as u8;
        let limit = if is_data { listener.body_idle_timeout } else { listener.head_timeout };
        now.saturating_sub(self.unfinished_since.load(Ordering::Relaxed)) > millis(limit)
    }

    pub(crate) fn ticks(&self) -> &Ticks {
        &self.ticks
    }

    /// The end of the connection cannot be read; ready if it is time to look for it.
    pub(super) fn is_to_look(&self) -> bool {
        self.is_blind.store(true, Ordering::Relaxed);
        self.must_look.load(Ordering::Relaxed) && self.must_look.swap(false, Ordering::Relaxed)
    }

    /// Has a connection look whether its caller has left, if it cannot see that by reading.
    pub(crate) fn look_if_blind(&self) {
        if !self.is_blind.swap(false, Ordering::Relaxed) {
            return;
        }
        self.must_look.store(true, Ordering::Relaxed);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Some bytes came, and what follows the last frame that has come as a whole is this.
    fn read_frames(&self, unfinished: Option<Unfinished>, has_passed: bool) {
        let Some(unfinished) = unfinished else {
            return self.unfinished.store(NOTHING, Ordering::Relaxed);
        };
        if has_passed || self.unfinished.load(Ordering::Relaxed) == NOTHING {
            self.unfinished_since.store(self.ticks.now(), Ordering::Relaxed);
        }
        self.unfinished.store(unfinished as u8, Ordering::Relaxed);
    }

    /// Says what it waits for from now on. A head is counted from its first byte, so that a byte a second does not
    /// keep a connection.
    pub(crate) fn awaits(&self, awaited: Awaited) {
        let was = self.awaited.load(Ordering::Relaxed);
        if was != awaited as u8 || awaited != Awaited::Head {
            self.since.store(self.ticks.now(), Ordering::Relaxed);
            self.awaited.store(awaited as u8, Ordering::Relaxed);
            self.is_reading.store(false, Ordering::Relaxed);
        }
    }

    /// A part of the body came. Where it is read away, because its request is answered, that keeps no connection.
    pub(crate) fn came(&self) {
        if self.awaited.load(Ordering::Relaxed) == Awaited::Body as u8 {
            self.since.store(self.ticks.now(), Ordering::Relaxed);
        }
        self.is_reading.store(false, Ordering::Relaxed);
    }

    /// There is nothing to read yet.
    pub(crate) fn waits(&self) {
        if !self.is_reading.swap(true, Ordering::Relaxed)
            && self.awaited.load(Ordering::Relaxed) == Awaited::Body as u8
        {
            self.since.store(self.ticks.now(), Ordering::Relaxed);
        }
    }

    /// How much of answers waits for its peer.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// More of an answer waits for its peer.
    pub(crate) fn holds(&self, size: usize) {
        if self.held.fetch_add(size, Ordering::Relaxed) == 0 {
            self.taken.store(self.ticks.now(), Ordering::Relaxed);
        }
    }

    /// Its peer took some of what waited.
    pub(crate) fn lets_go(&self, size: usize) {
        self.held.fetch_sub(size, Ordering::Relaxed);
        self.taken.store(self.ticks.now(), Ordering::Relaxed);
    }

    /// Something that waits has another size now.
    pub(super) fn holds_instead(&self, before: usize, now: usize) {
        if now > before {
            self.held.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.held.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// So much waits, of which nothing is taken now.
    pub(super) fn holds_in_all(&self, size: usize) {
        self.held.store(size, Ordering::Relaxed);
    }

    /// How long its peer has taken nothing of what waits for it.
    pub(crate) fn untaken_for(&self, now: u64) -> u64 {
        let since = match self.stalled.load(Ordering::Relaxed) {
            NEVER => self.taken.load(Ordering::Relaxed),
            stalled => stalled,
        };
        now.saturating_sub(since)
    }

    /// It is ended, because its peer resets streams too often.
    fn calmed(&self) {
        self.is_calmed.store(true, Ordering::Relaxed);
    }

    /// Whether its peer has reset streams too often.
    pub(crate) fn is_calmed(&self) -> bool {
        self.is_calmed.load(Ordering::Relaxed)
    }

    /// Whether the peer took what was sent.
    pub(crate) fn wrote(&self, is_taken: bool) {
        if is_taken {
            self.stalled.store(NEVER, Ordering::Relaxed);
        } else if self.stalled.load(Ordering::Relaxed) == NEVER {
            self.stalled.store(self.ticks.now(), Ordering::Relaxed);
        }
    }
}

pin_project! {
    /// An HTTP/2 connection whose bytes are watched. Its requests share it, so it is only idle or not. Frames alone
    /// keep no connection: a peer could send them for ever, and never a request.
    pub(crate) struct Watched<S> {
        #[pin]
        stream: S,
        watch: Arc<Watch>,
        frames: Frames,
        answered: Frames,
        resets: Resets,
    }
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, watch: Arc<Watch>, resets: Resets) -> Self {
        watch.awaits(Awaited::Request);
        // What its first bytes are to be is awaited since it was accepted.
        watch.unfinished.store(Unfinished::Head as u8, Ordering::Relaxed);
        watch.unfinished_since.store(watch.began, Ordering::Relaxed);
        Self { stream, watch, frames: Frames::default(), answered: Frames::answering(), resets }
    }

    /// Follows what was written of some pieces.
    fn wrote<'a>(
        self: Pin<&mut Self>,
        wrote: &Poll<io::Result<usize>>,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) {
        let this = self.project();
        this.watch.wrote(wrote.is_ready());
        let Poll::Ready(Ok(count)) = wrote else { return };
        let mut left = *count;
        for piece in pieces {
            let here = left.min(piece.len());
            left -= here;
            this.answered.take(piece.get(..here).unwrap_or_default());
        }
        let ended = this.answered.counts().ended;
        if ended > 0 {
            this.resets.paid(ended);
        }
    }
}

impl<S: AsyncWrite> Watched<S> {
    /// Ends a connection that resets too much. It is told so where that does not fall into the middle of a frame.
    fn calm(self: Pin<&mut Self>, cx: &mut Context<'_>) -> io::Error {
        let mut this = self.project();
        this.watch.calmed();
        if this.answered.unfinished().is_none() {
            let told = go_away(this.frames);
            if this.stream.as_mut().poll_write(cx, &told).is_ready() {
                // What the system does not take now it will not take later: nobody is left to write it.
                drop(this.stream.poll_flush(cx));
            }
        }
        io::Error::other("streams are reset too often")
    }
}

impl<S: AsyncRead + AsyncWrite> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.as_mut().project();
        let before = buf.filled().len();
        let read = this.stream.poll_read(cx, buf);
        this.watch.is_reading.store(read.is_pending(), Ordering::Relaxed);
        let came = buf.filled().get(before..).unwrap_or_default();
        if !came.is_empty() {
            let has_passed = this.frames.take(came);
            this.watch.read_frames(this.frames.unfinished(), has_passed);
            let reset = this.frames.counts().reset;
            if reset > 0 {
                let now = this.watch.ticks.now();
                this.resets.came(now, reset);
                if this.resets.are_too_many(now) {
                    return Poll::Ready(Err(self.calm(cx)));
                }
            }
        }
        read
    }
}

impl<S: AsyncWrite> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = self.as_mut().project().stream.poll_write(cx, buf);
        self.wrote(&wrote, std::iter::once(buf));
        wrote
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = self.as_mut().project().stream.poll_write_vectored(cx, bufs);
        self.wrote(&wrote, bufs.iter().map(|piece| &**piece));
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }
}
