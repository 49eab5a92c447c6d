//! Connections that turn to another protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::sync::Notify;

use crate::connection::Caller;
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

/// Joins the two sides: bytes go both ways until one side ends.
pub(crate) async fn join<S>(mut from: Turned<S>, mut to: upstream::Turned, caller: &Arc<Caller>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let tunnel = Tunnel::begin(caller);
    let passing = async {
        from.stream.write_all(&to.unread).await?;
        to.stream.write_all(&from.unread).await?;
        copy_bidirectional(&mut from.stream, &mut to.stream).await
    };
    tokio::select! {
        // How it ends is the business of those who speak over it.
        _ended = passing => {}
        () = tunnel.0.worker.tunnels.closed() => {}
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
