//! The gateway as its process sees it: started, given policies, drained.

mod failure;
mod start;
mod stop;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tidegate_policy::policy::Policy;
use tidegate_policy::{Gate, Record};
use tidegate_tower::{Clock, SystemClock};

pub use self::failure::{StartFailure, TakeFailure};
pub use self::start::Parts;
use self::stop::Stop;
use crate::degrade::Switches;
use crate::figures::{Figures, Overhead, Routes};
use crate::listen::ListenerState;
use crate::listen::tls::{self, Pem};
use crate::settings::{self, Settings};
use crate::signals::Signals;
use crate::upstream::Upstream;
use crate::worker::Worker;

/// A running gateway. Clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Arc<[Arc<Worker>]>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
    addresses: Arc<[SocketAddr]>,
}

/// What workers share.
pub(crate) struct Shared {
    pub(crate) gate: Arc<Gate>,
    pub(crate) clock: SystemClock,
    pub(crate) listeners: Vec<Arc<ListenerState>>,
    pub(crate) stop: Stop,
    pub(crate) overhead: Overhead,
    /// Which routes give their cheaper answer to everybody.
    pub(crate) switches: Switches,
    pub(crate) signals: Signals,
    routes: Routes,
    log: Option<SyncSender<Record>>,
    unlogged: AtomicU64,
}

impl Gateway {
    /// Where it listens, in the order of the policy's listeners, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes a new policy: decisions, routes, upstreams and answers change at once; requests on their way end as
    /// they began. Returns its version.
    ///
    /// # Errors
    /// When it changes what only a restart can change, or exceeds a bound of the gate; then nothing changes.
    pub fn take(&self, policy: Policy) -> Result<u64, TakeFailure> {
        let shared = &self.shared;
        let running = shared.gate.policy();
        if let Some(what) = needs_restart(&running, &policy) {
            return Err(TakeFailure::NeedsRestart(what));
        }
        let before: Vec<Arc<Settings>> =
            self.workers.iter().map(|worker| worker.settings.load_full()).collect();
        let had = before.first().map_or(&[][..], |settings| &settings.upstreams);
        let upstreams = settings::upstreams(&policy, self.workers.len(), had, shared.clock)
            .map_err(TakeFailure::Invalid)?;
        let after: Vec<Arc<Settings>> = (0..before.len())
            .map(|worker| Arc::new(shared.settings(&policy, &upstreams.all, worker)))
            .collect();
        // A decision by either policy must find its upstream, so those that are gone stay until the gate has moved.
        let between = before.iter().zip(&after).map(|(before, after)| Arc::new(after.joined(before)));
        self.settle(between);
        match shared.gate.swap(policy, shared.clock.now()) {
            Ok(version) => {
                self.settle(after);
                upstreams.change();
                let policy = shared.gate.policy();
                shared.signals.keep(&policy);
                shared.switches.keep(|route| policy.routes.iter().any(|known| known.name == route));
                Ok(version)
            }
            Err(invalid) => {
                self.settle(before);
                Err(TakeFailure::Invalid(invalid))
            }
        }
    }

    /// Gives every worker its settings.
    fn settle(&self, settings: impl IntoIterator<Item = Arc<Settings>>) {
        for (worker, settings) in self.workers.iter().zip(settings) {
            worker.settings.store(settings);
        }
    }

    /// Shows the callers of a listener another certificate from now on; connections that are there stay.
    ///
    /// # Errors
    /// When certificate and key cannot be used; then the ones before stay.
    pub fn renew(&self, listener: &str, pem: &Pem) -> Result<(), StartFailure> {
        let named = |state: &&Arc<ListenerState>| state.spec().name == listener;
        let Some(state) = self.shared.listeners.iter().find(named) else { return Ok(()) };
        let acceptor = tls::acceptor(pem, state.spec().protocols);
        state.renew(acceptor.map_err(|why| StartFailure::tls(state.spec(), why))?);
        Ok(())
    }

    /// What it decides with.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// The version of the policy it serves with.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.gate.version()
    }

    /// What it has counted.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let open = |listener: &Arc<ListenerState>| {
            self.workers.iter().map(|worker| worker.count_of(listener)).sum::<usize>()
        };
        let listeners = self.shared.listeners.iter().map(|listener| listener.counts(open(listener)));
        Figures {
            listeners: listeners.collect(),
            routes: self.shared.routes.figures(),
            decide: self.shared.overhead.figures(),
            unlogged: self.shared.unlogged.load(Ordering::Relaxed),
        }
    }

    /// Accepts nothing more; what is in flight may end within the policy's `drain`.
    pub fn drain(&self) {
        self.shared.stop.begin();
    }

    /// Whether it is being drained.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.stop.has_begun()
    }

    /// Waits until it has been drained and everything has ended; returns how many requests had to be cut off, those
    /// that had turned to another protocol among them.
    pub fn wait(&self) -> usize {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A worker that panicked has ended too.
            thread.join().ok();
        }
        self.shared.stop.were_cut_off()
    }
}

impl Shared {
    fn settings(&self, policy: &Policy, upstreams: &[Arc<Upstream>], worker: usize) -> Settings {
        Settings::new(policy, &self.gate, self.clock, upstreams, (&self.routes, worker))
    }

    /// Hands a line to the access log.
    pub(crate) fn log(&self, record: Record) {
        if let Some(log) = &self.log
            && log.try_send(record).is_err()
        {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// What of a policy only a restart can change.
fn needs_restart(running: &Policy, wanted: &Policy) -> Option<&'static str> {
    if running.listeners != wanted.listeners {
        Some("its listeners differ")
    } else if running.server.workers != wanted.server.workers {
        Some("`workers` of `server` differs")
    } else if running.server.admin != wanted.server.admin
        || running.server.admin_token != wanted.server.admin_token
    {
        Some("`admin` of `server` differs")
    } else if running.access_log.as_ref().map(|log| &log.to) != wanted.access_log.as_ref().map(|log| &log.to)
    {
        Some("the access log goes elsewhere")
    } else if running.fingerprint_key != wanted.fingerprint_key {
        Some("`fingerprint_key` of `telemetry` differs")
    } else {
        None
    }
}
