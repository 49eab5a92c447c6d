//! The signals that a gateway listens to.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// From now on these signals come here, instead of ending the process.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next order.
    pub(super) async fn next(&mut self) -> Order {
        tokio::select! {
            _ = self.terminate.recv() => Order::End,
            _ = self.interrupt.recv() => Order::End,
            _ = self.hang_up.recv() => Order::Reload,
        }
    }

    /// Waits for Ctrl-C.
    pub(super) async fn interrupted(&mut self) {
        self.interrupt.recv().await;
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// SIGTERM, or Ctrl-C.
    End,
    /// SIGHUP.
    Reload,
}
