//! Connections that turn to another protocol.
//!
//! What is said over them is not looked at. One over which nothing goes either way for `idle_timeout` is ended, since
//! nobody can tell it from one whose caller is gone; who needs it for longer sends pings, as WebSocket has them. What one
//! side does not take does not go, so a caller that does not read is ended by the same rule.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::connection::Caller;
use crate::ticks::{Ticks, millis};
use crate::upstream;

/// A worker's connections that have turned to another protocol.
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    count: AtomicUsize,
    must_close: AtomicBool,
    closing: Notify,
}

impl Tunnels {
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn close(&self) {
        self.must_close.store(true, Ordering::Relaxed);
        self.closing.notify_waiters();
    }

    async fn closed(&self) {
        let closing = self.closing.notified();
        if !self.must_close.load(Ordering::Relaxed) {
            closing.await;
        }
    }
}

/// A caller's connection that has turned to another protocol.
#[derive(Debug)]
pub(crate) struct Turned<S> {
    pub(crate) stream: S,
    /// What has been read already.
    pub(crate) unread: Bytes,
}

/// Joins the two sides: bytes go both ways until one side ends, or nothing goes for too long.
pub(crate) async fn join<S>(from: Turned<S>, to: upstream::Turned, caller: &Arc<Caller>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let tunnel = Tunnel::begin(caller);
    let moved = Moved::new(caller.worker.ticks());
    let passing = async {
        let mut caller = Moving { stream: from.stream, moved: &moved };
        let mut upstream = Moving { stream: to.stream, moved: &moved };
        caller.write_all(&to.unread).await?;
        upstream.write_all(&from.unread).await?;
        copy_bidirectional(&mut caller, &mut upstream).await
    };
    tokio::select! {
        // How it ends is the business of those who speak over it.
        _ended = passing => {}
        () = moved.rests_for(caller.listener.spec().idle_timeout) => {}
        () = tunnel.0.worker.tunnels.closed() => {}
    }
}

/// When bytes were last taken by either side.
#[derive(Debug)]
struct Moved<'a> {
    ticks: &'a Ticks,
    last: AtomicU64,
}

impl<'a> Moved<'a> {
    fn new(ticks: &'a Ticks) -> Self {
        Self { ticks, last: AtomicU64::new(ticks.now()) }
    }

    /// Waits until nothing has moved for so long.
    async fn rests_for(&self, limit: Duration) {
        let mut left = limit;
        while !left.is_zero() {
            sleep(left).await;
            let rested = self.ticks.now().saturating_sub(self.last.load(Ordering::Relaxed));
            left = Duration::from_millis(millis(limit).saturating_sub(rested));
        }
    }
}

/// A stream that notes when it takes something.
#[derive(Debug)]
struct Moving<'a, S> {
    stream: S,
    moved: &'a Moved<'a>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<'_, S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.moved.last.store(self.moved.ticks.now(), Ordering::Relaxed);
        Poll::Ready(wrote)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// One of them. It holds the connection's place among those a listener may have.
struct Tunnel(Arc<Caller>);

impl Tunnel {
    fn begin(caller: &Arc<Caller>) -> Self {
        caller.worker.tunnels.count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(caller))
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.0.worker.tunnels.count.fetch_sub(1, Ordering::Relaxed);
    }
}
