//! The gateway as its process sees it: started, given policies, drained.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tidegate_core::Invalid;
use tidegate_policy::policy::{Listener, Policy};
use tidegate_policy::{Gate, Record};
use tidegate_tower::{Clock, SystemClock};
use tokio::sync::Notify;

use crate::degrade::Switches;
use crate::figures::{Figures, ListenerCounts, Overhead, Routes};
use crate::listen::tls::{self, Pem};
use crate::listen::{self, ListenerState};
use crate::settings::{self, Settings};
use crate::signals::Signals;
use crate::upstream::Upstream;
use crate::worker::Worker;

/// What a gateway is made of.
#[derive(Debug)]
pub struct Parts {
    /// Decides. It has the policy that says everything else.
    pub gate: Arc<Gate>,
    /// Tells the time.
    pub clock: SystemClock,
    /// Certificates, by the names of the listeners that have some.
    pub tls: BTreeMap<String, Pem>,
    /// Sockets that somebody has bound already, as a service manager does; they are matched by their address.
    pub sockets: Vec<TcpListener>,
    /// Where the lines of the access log go. One that is full loses lines, and they are counted.
    pub log: Option<SyncSender<Record>>,
}

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
    /// Binds all listeners, then serves them with a thread for each worker.
    ///
    /// # Errors
    /// When an address cannot be bound, a certificate is missing or wrong, or a thread cannot be started; then
    /// nothing is served.
    pub fn start(parts: Parts) -> Result<Self, StartFailure> {
        let policy = parts.gate.policy();
        let count = policy.server.workers.unwrap_or_else(cores);
        let mut listeners = Vec::new();
        let mut sockets: Vec<Vec<(TcpListener, Arc<ListenerState>)>> =
            (0..count).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        let mut given = parts.sockets;
        for (number, spec) in policy.listeners.iter().enumerate() {
            let acceptor = match (&spec.tls, parts.tls.get(&spec.name)) {
                (None, _) => None,
                (Some(_), Some(pem)) => {
                    Some(tls::acceptor(pem, spec.protocols).map_err(|why| StartFailure::tls(spec, why))?)
                }
                (Some(_), None) => return Err(StartFailure::tls(spec, "it was not given".to_owned())),
            };
            let listener = Arc::new(ListenerState::new(number, spec.clone(), acceptor));
            let bound = bound(spec, count, &mut given)?;
            addresses.extend(bound.first().and_then(|socket| socket.local_addr().ok()));
            for (worker, socket) in sockets.iter_mut().zip(bound) {
                worker.push((socket, Arc::clone(&listener)));
            }
            listeners.push(listener);
        }
        let routes = Routes::new(listeners.len(), count);
        let upstreams =
            settings::upstreams(&policy, count, &[], parts.clock).map_err(StartFailure::Invalid)?;
        let shared = Arc::new(Shared {
            gate: parts.gate,
            clock: parts.clock,
            listeners,
            stop: Stop::default(),
            overhead: Overhead::new(count),
            switches: Switches::default(),
            signals: Signals::new(count),
            routes,
            log: parts.log,
            unlogged: AtomicU64::new(0),
        });
        let (mut workers, mut threads) = (Vec::new(), Vec::new());
        for (number, sockets) in sockets.into_iter().enumerate() {
            let settings = shared.settings(&policy, &upstreams, number);
            let worker = Arc::new(Worker::new(number, settings, Arc::clone(&shared)));
            threads.push(start_worker(&worker, sockets)?);
            workers.push(worker);
        }
        Ok(Self {
            shared,
            workers: workers.into(),
            threads: Arc::new(Mutex::new(threads)),
            addresses: addresses.into(),
        })
    }

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
        let after: Vec<Arc<Settings>> =
            (0..before.len()).map(|worker| Arc::new(shared.settings(&policy, &upstreams, worker))).collect();
        // A decision by either policy must find its upstream, so those that are gone stay until the gate has moved.
        let between = before.iter().zip(&after).map(|(before, after)| Arc::new(after.joined(before)));
        self.settle(between);
        match shared.gate.swap(policy, shared.clock.now()) {
            Ok(version) => {
                self.settle(after);
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
        let listeners = self.shared.listeners.iter().map(|listener| {
            let (accepted, turned_away) = listener.counts();
            ListenerCounts {
                listener: listener.spec().name.clone(),
                open: open(listener),
                accepted,
                turned_away,
            }
        });
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

    /// Waits until it has been drained and everything has ended.
    pub fn wait(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A worker that panicked has ended too.
            thread.join().ok();
        }
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

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn bound(
    spec: &Listener,
    count: usize,
    given: &mut Vec<TcpListener>,
) -> Result<Vec<TcpListener>, StartFailure> {
    let failure = |problem| StartFailure::Bind { listener: spec.name.clone(), address: spec.bind, problem };
    let matching = |socket: &TcpListener| socket.local_addr().is_ok_and(|address| address == spec.bind);
    let Some(position) = given.iter().position(matching) else {
        return listen::bind(spec.bind, count).map_err(failure);
    };
    // Workers share the one socket they were given.
    let socket = given.swap_remove(position);
    socket.set_nonblocking(true).map_err(failure)?;
    (0..count).map(|_| socket.try_clone()).collect::<Result<_, _>>().map_err(failure)
}

fn start_worker(
    worker: &Arc<Worker>,
    sockets: Vec<(TcpListener, Arc<ListenerState>)>,
) -> Result<JoinHandle<()>, StartFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartFailure::Thread)?;
    let name = format!("worker-{}", worker.number);
    let worker = Arc::clone(worker);
    let serve = move || runtime.block_on(worker.run(sockets));
    std::thread::Builder::new().name(name).spawn(serve).map_err(StartFailure::Thread)
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
    } else {
        None
    }
}

/// Why a gateway cannot start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartFailure {
    /// An address cannot be listened on.
    Bind {
        /// The listener's name.
        listener: String,
        /// The address.
        address: SocketAddr,
        /// Why.
        problem: std::io::Error,
    },
    /// Certificate or key cannot be used.
    Tls {
        /// The listener's name.
        listener: String,
        /// Why.
        why: String,
    },
    /// A thread or its runtime cannot be made.
    Thread(std::io::Error),
    /// The policy exceeds a bound.
    Invalid(Invalid),
}

impl StartFailure {
    fn tls(listener: &Listener, why: String) -> Self {
        Self::Tls { listener: listener.name.clone(), why }
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { listener, address, problem } if problem.kind() == std::io::ErrorKind::AddrInUse => {
                write!(f, "listener `{listener}` cannot bind {address}: another process listens there")
            }
            Self::Bind { listener, address, problem } => {
                write!(f, "listener `{listener}` cannot bind {address}: {problem}")
            }
            Self::Tls { listener, why } => {
                write!(f, "listener `{listener}` cannot use its certificate: {why}")
            }
            Self::Thread(problem) => write!(f, "a worker cannot be started: {problem}"),
            Self::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl Error for StartFailure {}

/// Why a policy was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakeFailure {
    /// It changes something that stays as long as the process.
    NeedsRestart(&'static str),
    /// It exceeds a bound of the gate.
    Invalid(Invalid),
}

impl fmt::Display for TakeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsRestart(what) => write!(f, "{what}, which takes a restart"),
            Self::Invalid(invalid) => invalid.fmt(f),
        }
    }
}

impl Error for TakeFailure {}

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
