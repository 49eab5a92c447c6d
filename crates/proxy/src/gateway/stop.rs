//! The word that a gateway is to end.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether the gateway is to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    has_begun: AtomicBool,
    told: Notify,
}

impl Stop {
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
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
