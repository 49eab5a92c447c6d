//! What waits of answers for a peer of HTTP/2, and how much of it may.
//!
//! Over HTTP/1 an answer is not read from its upstream before its caller has taken what came before. Over HTTP/2 the
//! server takes a part of each answer at once, whether its peer reads or not, and a hundred answers at a time. So every
//! part is counted from the moment it is given out until it has been written, and how much comes next depends on what
//! waits already:
//!
//! | waits on the connection | the next part of an answer is                                             |
//! |-------------------------|---------------------------------------------------------------------------|
//! | less than [`PLENTY`]    | as large as it comes, and may be asked for before the last one has gone, up to [`AHEAD`] |
//! | less than [`MUCH`]      | of [`SMALL`] at most, when the last one has gone                          |
//! | more                    | of [`SMALLEST`] at most, when the last one has gone                       |
//!
//! A stream that is read never waits for one that is not. At worst, with a hundred that are not, that is 64 KiB beyond
//! `PLENTY`, 64 KiB in parts of 16, and 90 parts of 8, since a part comes in the memory that its answer's head was read
//! into: a little more than a megabyte.

use std::error::Error;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::watch::Watch;
use crate::http1::appetite;

/// How much of one answer may wait, as long as there is room.
const AHEAD: usize = 32 * 1024;
const PLENTY: usize = 128 * 1024;
const MUCH: usize = 256 * 1024;
const SMALL: usize = 16 * 1024;
const SMALLEST: usize = 4 * 1024;

/// What keeping a part costs beside its bytes, with a margin: small ones would be free otherwise, and come by the thousand.
const OVERHEAD: usize = 1024;

/// What waits of one answer.
#[derive(Debug)]
struct Share {
    watch: Arc<Watch>,
    held: AtomicUsize,
    /// What keeps what was read for it and not given out: a service may send a word at a time.
    unread: AtomicUsize,
    /// Who waits for a part to go.
    waiting: Mutex<Option<Waker>>,
}

impl Share {
    /// How large the next part may be; none before another one has gone.
    fn room(&self, waker: &Waker) -> Option<usize> {
        let (held, all) = (self.held.load(Ordering::Relaxed), self.watch.held());
        if held > 0 && (held >= AHEAD || all >= PLENTY) {
            *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
            return None;
        }
        Some(match all {
            all if all < PLENTY => usize::MAX,
            all if all < MUCH => SMALL,
            _ => SMALLEST,
        })
    }

    fn take(self: &Arc<Self>, bytes: Bytes) -> Piece {
        let size = bytes.len() + OVERHEAD;
        self.held.fetch_add(size, Ordering::Relaxed);
        self.watch.holds(size);
        Piece { bytes, size, share: Arc::clone(self) }
    }

    /// So much is kept for what was read and not given out.
    fn keeps(&self, unread: usize) {
        let before = self.unread.swap(unread, Ordering::Relaxed);
        self.watch.holds_instead(before, unread);
    }

    fn lose(&self, size: usize) {
        self.held.fetch_sub(size, Ordering::Relaxed);
        self.watch.lets_go(size);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// A part of an answer that counts until it is dropped.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    size: usize,
    share: Arc<Share>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.share.lose(self.size);
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

pin_project! {
    /// The body of an answer over HTTP/2.
    pub(super) struct HeldBody<B> {
        #[pin]
        body: B,
        share: Giver,
    }
}

/// The body's end of its share: what it has not given out goes with it.
#[derive(Debug)]
struct Giver(Arc<Share>);

impl Drop for Giver {
    fn drop(&mut self) {
        self.0.keeps(0);
    }
}

impl<B> HeldBody<B> {
    /// On the connection that is watched.
    pub(super) fn new(body: B, watch: &Arc<Watch>) -> Self {
        let share = Share {
            watch: Arc::clone(watch),
            held: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            waiting: Mutex::default(),
        };
        Self { body, share: Giver(Arc::new(share)) }
    }
}

impl<B> Body for HeldBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Piece;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, B::Error>>> {
        let this = self.project();
        let share = &this.share.0;
        let Some(room) = share.room(cx.waker()) else { return Poll::Pending };
        let frame = appetite::limited(room, || this.body.poll_frame(cx));
        share.keeps(appetite::left());
        frame.map_ok(|frame| frame.map_data(|bytes| share.take(bytes)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
