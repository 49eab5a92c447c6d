//! Connections that turn to another protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::sync::Notify;

use crate::connection::Caller;
use crate::upstream::Turned;

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

/// Joins the two sides once the caller's has turned as well. From then on bytes go both ways until one side ends.
pub(crate) fn join(from: OnUpgrade, mut to: Turned, caller: &Arc<Caller>) {
    caller.watch.leave();
    let tunnel = Tunnel::begin(caller);
    tokio::spawn(async move {
        let Ok(from) = from.await else { return };
        let mut from = TokioIo::new(from);
        let passing = async {
            from.write_all(&to.unread).await?;
            copy_bidirectional(&mut from, &mut to.stream).await
        };
        tokio::select! {
            // How it ends is the business of those who speak over it.
            _ended = passing => {}
            () = tunnel.0.worker.tunnels.closed() => {}
        }
    });
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
