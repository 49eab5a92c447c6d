//! The word that a gateway is to end, and what did not end in time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Whether the gateway is to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    has_begun: AtomicBool,
    told: Notify,
    cut_off: AtomicUsize,
}

impl Stop {
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// So many more have not ended in time.
    pub(crate) fn cut_off(&self, count: usize) {
        self.cut_off.fetch_add(count, Ordering::SeqCst);
    }

    /// How many have not ended in time.
    pub(crate) fn were_cut_off(&self) -> usize {
        self.cut_off.load(Ordering::SeqCst)
    }

    /// Waits until it begins.
    pub(crate) async fn begun(&self) {
        let told = self.told.notified();
        // Only after asking to be told, so that nothing is missed between.
        if !self.has_begun() {
            told.await;
        }
    }
}
