//! The thread, the runtime, the connections and their bounds.
//!
//! | bound | when it is reached |
//! |---|---|
//! | 128 connections, 96 of one address | the next one gets the place of one that [rests](super::seats) |
//! | 10 s for a request's head, idle connections included | the connection is closed |
//! | 10 s and 4 MiB for a body | 408, 413 |
//! | 10 s in which nothing of an answer is taken | the connection is closed |
//! | 4 threads for what takes long, 2 of them for policies | the next one waits its turn |
//! | 32 who listen to the stream, 24 of one address | 503 |

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::http::StatusCode;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{self, MissedTickBehavior};

use super::answer::Refusal;
use super::guard::{Asker, Token};
use super::pulse::{Pulse, Sample};
use super::routes;
use super::seats::{self, Held, Seats, Working};
use super::station::{Stage, Station};
use super::status;
use super::stream::Listeners;
use super::turns::{self, Turns};

const HEAD_TIME: Duration = Duration::from_secs(10);
/// Heads of requests; bodies do not lie here.
const HEAD_BYTES: usize = 64 << 10;
/// Half of them, so that others can ask while policies are read.
const MOST_POLICIES: usize = 2;
/// How long answers may take to leave once the API is told to stop.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Samples between two fadings of the lists of callers: a minute of them.
const FADE_EVERY: u32 = 60;

/// A running admin API. It stops when it is dropped.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    /// Dropped to stop.
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why the admin API could not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartFailure {
    /// It would listen where strangers are, without a token.
    NoToken {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The system gives no thread.
    Thread {
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken { address } => write!(
                f,
                "the admin API would listen on {address}, where strangers can ask: set `admin_token`, or listen on \
                 127.0.0.1"
            ),
            Self::Listen { address, source } => {
                write!(f, "the admin API cannot listen on {address}: {source}")
            }
            Self::Thread { source } => write!(f, "the admin API gets no thread: {source}"),
        }
    }
}

impl std::error::Error for StartFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoToken { .. } => None,
            Self::Listen { source, .. } | Self::Thread { source } => Some(source),
        }
    }
}

impl Admin {
    /// Listens on an address and answers from then on.
    ///
    /// # Errors
    /// When the address is not on loopback and there is no token, or it cannot be listened on.
    pub fn start(
        address: SocketAddr,
        token: Option<Token>,
        station: Arc<dyn Station>,
    ) -> Result<Self, StartFailure> {
        if token.is_none() && !address.ip().is_loopback() {
            return Err(StartFailure::NoToken { address });
        }
        let listen = |source| StartFailure::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (stop, stopped) = watch::channel(());
        let pulse = Pulse::default();
        pulse.take(Sample::of(&*station));
        let (listeners, policies) = (Listeners::default(), Semaphore::new(MOST_POLICIES));
        let turns = Turns::default();
        let shared = Shared(Arc::new(Inner { station, token, address, pulse, listeners, turns, policies }));
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(turns::MOST)
            .thread_name("tidegate-admin-aside")
            .build();
        let runtime = runtime.map_err(|source| StartFailure::Thread { source })?;
        let live = move || runtime.block_on(live(listener, shared, stopped));
        let thread = thread::Builder::new().name("tidegate-admin".to_owned()).spawn(live);
        let thread = thread.map_err(|source| StartFailure::Thread { source })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens, with the port that was given to it.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets the answers under way leave, for at most a second, and stops.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            drop(thread.join());
        }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.end();
    }
}

/// What all handlers share.
#[derive(Clone)]
pub(super) struct Shared(Arc<Inner>);

pub(super) struct Inner {
    pub(super) station: Arc<dyn Station>,
    pub(super) token: Option<Token>,
    pub(super) address: SocketAddr,
    pub(super) pulse: Pulse,
    pub(super) listeners: Listeners,
    turns: Turns,
    /// Policies that are read at once: files they name may lie on slow disks, and others want to ask meanwhile.
    policies: Semaphore,
}

impl Deref for Shared {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Shared {
    /// Does something that may take long, beside the runtime.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = self.turns.wait(seats::worked()).await;
        let working = Working::begin();
        let shared = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            // Both last as long as the work, whoever goes away.
            let _both = (turn, working);
            work(&shared)
        })
        .await;
        done.map_err(|_| {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be made; this is a bug")
        })
    }
}

impl Shared {
    /// Reads a policy, beside the runtime, when few enough are being read.
    pub(super) async fn read_policy<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        // It is never closed; if it were, a policy could still be read.
        let _turn = self.policies.acquire().await.ok();
        self.aside(work).await
    }
}

async fn live(listener: TcpListener, shared: Shared, stopped: watch::Receiver<()>) {
    // Its parts are there already; what could fail has failed before.
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let router = routes::router(shared.clone());
    let beat = tokio::spawn(beat(shared.clone(), stopped.clone()));
    let seats = Seats::default();
    let mut conversations = JoinSet::new();
    let mut until = stopped.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = until.changed() => break,
            Some(_) = conversations.join_next() => continue,
        };
        match accepted {
            Ok((stream, from)) => {
                let seat = seats.take(from.ip());
                let router = router.clone().layer(Extension(Asker(from)));
                conversations.spawn(converse(stream, router, stopped.clone(), seat));
                // It is served before the next newcomer could take its seat.
                tokio::task::yield_now().await;
            }
            // Without file descriptors accepting fails again at once: give others time to return theirs.
            Err(_) => time::sleep(Duration::from_millis(50)).await,
        }
    }
    shared.listeners.close();
    beat.abort();
    let all_ended = async { while conversations.join_next().await.is_some() {} };
    drop(time::timeout(LAST_WORDS, all_ended).await);
}

async fn converse(stream: TcpStream, router: Router, mut stopped: watch::Receiver<()>, seat: Held) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    let io = TokioIo::new(seat.stream(stream));
    let connection = builder.serve_connection(io, TowerToHyperService::new(router));
    let conversation = async move {
        let mut connection = pin!(connection);
        // How a connection ends is its peer's business.
        tokio::select! {
            ended = connection.as_mut() => return drop(ended),
            _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
        }
        drop(connection.await);
    };
    seat.serve(conversation).await;
}

/// Takes a sample every second and tells whoever listens.
async fn beat(shared: Shared, mut stopped: watch::Receiver<()>) {
    let mut ticks = time::interval(Duration::from_secs(1));
    // After a pause there is no use in samples that come all at once.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    for count in 1_u32.. {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.changed() => return,
        }
        let is_minute = count % FADE_EVERY == 0;
        let sampled = shared.aside(move |shared| {
            // Asked first, so that the last frame says so.
            let is_draining = shared.station.stage() == Stage::Draining;
            shared.pulse.take(Sample::of(&*shared.station));
            if is_minute {
                shared.station.gate().fade_callers();
            }
            if shared.listeners.has_any() {
                shared.listeners.tell(&status::picture(shared));
            }
            if is_draining {
                shared.listeners.close();
            }
        });
        // A sample that could not be taken is one less.
        drop(sampled.await);
    }
}
