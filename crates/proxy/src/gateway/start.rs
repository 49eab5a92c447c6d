//! From its parts to a running gateway.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tidegate_policy::policy::Listener;
use tidegate_policy::{Gate, Record};
use tidegate_tower::SystemClock;

use super::{Gateway, Shared, StartFailure, Stop};
use crate::degrade::Switches;
use crate::figures::{Overhead, Routes};
use crate::listen::tls::{self, Pem};
use crate::listen::{self, ListenerState};
use crate::settings;
use crate::signals::Signals;
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
                (Some(_), None) => return Err(StartFailure::tls(spec, "it was not given")),
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
            settings::upstreams(&policy, count, &[], parts.clock).map_err(StartFailure::Invalid)?.all;
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
