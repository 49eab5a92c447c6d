//! Where callers connect to: sockets, and how many connections they may have.
//!
//! Every worker has a socket of its own on the same port (`SO_REUSEPORT`), so that the system spreads connections
//! over workers and none of them waits for another. At `max_connections` nobody accepts any more: newcomers wait in
//! the system's queue, which is bounded too. An address with too many is closed at once, for others wait behind it; of
//! IPv6 a network counts as one address, since a household has all of it.

mod bind;
pub(crate) mod breach_log;
mod expiry;
pub(crate) mod left;
pub(crate) mod peer;
pub(crate) mod protocol_errors;
pub(crate) mod proxy_protocol;
pub(crate) mod tls;
pub(crate) mod unencrypted;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_policy::policy::{Listener, Network};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use bind::bind;
pub use bind::can_bind;

use self::breach_log::BreachLines;
use self::protocol_errors::{ProtocolError, ProtocolErrors};
use self::tls::ShownCertificate;
use crate::figures::ListenerCounts;
use crate::files::File;

/// A listener, over all workers.
pub(crate) struct ListenerState {
    spec: Listener,
    /// Replaced when the certificate is renewed.
    tls: Option<ArcSwap<ShownCertificate>>,
    /// Its position among the listeners.
    pub(crate) number: usize,
    room: Arc<Semaphore>,
    /// How many connections each address has; no more addresses than connections.
    addresses: Mutex<HashMap<Network, usize>>,
    accepted: AtomicU64,
    turned_away: AtomicU64,
    left: AtomicU64,
    errors: ProtocolErrors,
    breach_lines: BreachLines,
}

impl ListenerState {
    pub(crate) fn new(number: usize, spec: Listener, tls: Option<ShownCertificate>) -> Self {
        let room = spec.max_connections.min(Semaphore::MAX_PERMITS);
        Self {
            spec,
            tls: tls.map(ArcSwap::from_pointee),
            number,
            room: Arc::new(Semaphore::new(room)),
            addresses: Mutex::default(),
            accepted: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            left: AtomicU64::new(0),
            errors: ProtocolErrors::default(),
            breach_lines: BreachLines::default(),
        }
    }

    pub(crate) const fn spec(&self) -> &Listener {
        &self.spec
    }

    /// What accepts its connections, where they are encrypted.
    pub(crate) fn tls(&self) -> Option<Arc<ShownCertificate>> {
        self.tls.as_ref().map(ArcSwap::load_full)
    }

    /// Accepts with another certificate from now on.
    pub(crate) fn renew(&self, shown: ShownCertificate) {
        if let Some(tls) = &self.tls {
            tls.store(Arc::new(shown));
        }
    }

    pub(crate) fn shortest_limit(&self) -> Duration {
        self.spec.head_timeout.min(self.spec.body_idle_timeout).min(self.spec.idle_timeout)
    }

    /// Waits until there is room for one more connection.
    pub(crate) async fn room(self: &Arc<Self>, file: File) -> Room {
        // The semaphore is never closed.
        let room = Arc::clone(&self.room).acquire_owned().await.ok();
        Room { _room: room, _file: file }
    }

    /// Takes a connection in, unless whoever it counts for has too many.
    fn admit(self: &Arc<Self>, room: Room, counted: Option<Network>) -> Option<Admittance> {
        if let Some(from) = counted {
            let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            let count = addresses.entry(from).or_default();
            if *count >= self.spec.max_connections_per_address {
                self.turn_away();
                return None;
            }
            *count += 1;
        }
        self.accepted.fetch_add(1, Ordering::Relaxed);
        Some(Admittance { listener: Arc::clone(self), counted, _room: room })
    }

    /// Counts a connection that is closed before anything is served on it.
    pub(crate) fn turn_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets a connection go whose caller has left already.
    pub(crate) fn missed(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    /// A caller has broken a protocol.
    fn count_breach(&self, error: ProtocolError) {
        self.errors.add(error);
    }

    /// What became of its connections, of which so many are open.
    pub(crate) fn counts(&self, open: usize) -> ListenerCounts {
        ListenerCounts {
            listener: self.spec.name.clone(),
            open,
            accepted: self.accepted.load(Ordering::Relaxed),
            turned_away: self.turned_away.load(Ordering::Relaxed),
            left: self.left.load(Ordering::Relaxed),
            errors: self.errors.counts(),
            certificate_expires: self.tls().and_then(|shown| shown.expires),
        }
    }
}

impl fmt::Debug for ListenerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerState").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Room for one connection.
#[derive(Debug, Default)]
pub(crate) struct Room {
    _room: Option<OwnedSemaphorePermit>,
    _file: File,
}

/// A connection that was taken in. It makes room when it is dropped.
#[derive(Debug)]
pub(crate) struct Admittance {
    listener: Arc<ListenerState>,
    counted: Option<Network>,
    _room: Room,
}

impl Drop for Admittance {
    fn drop(&mut self) {
        let Some(from) = self.counted else { return };
        let mut addresses = self.listener.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = addresses.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&from);
            }
        }
    }
}
