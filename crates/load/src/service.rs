//! A service of known capacity: an upstream for demonstrations, scenarios and tests.
//!
//! To say what overload does to a service, one must know what it can do. A handler that sleeps has no capacity at all:
//! a thousand of them sleep as well as one. Here a number of workers take requests from a queue, each for its
//! service time, so that the capacity is
//!
//! ```text
//! workers ÷ mean service time        4 workers, 20 ms:  200 requests a second
//! ```
//!
//! and it is exact: a worker takes the next request at the moment the last one *should* have ended, not when
//! somebody noticed. The workers are numbers, not threads, so they cost no processor time either.
//!
//! By default it is as naive as most services: its queue has no bound, and it does not notice when nobody waits for
//! an answer any more. This is how services collapse.

mod server;
mod workers;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidegate_scenario::Crowding;
use tokio::sync::Notify;

use crate::alarm::Alarm;
use crate::chance::Chance;

/// The most workers a service has.
pub const MAX_WORKERS: usize = 100_000;

/// The longest answer.
pub const MAX_ANSWER: usize = 16 << 20;

/// What a service is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// How many requests are worked on at a time.
    pub workers: usize,
    /// How long each takes.
    pub work: Work,
    /// How long each takes afterwards without a worker, while something behind the service is called.
    pub then: Option<Work>,
    /// What a crowd does to the work.
    pub crowding: Option<Crowding>,
    /// How many may wait.
    pub queue: Queue,
    /// How long the body of an answer is.
    pub answer_bytes: usize,
    /// Whether answers tell which share of the workers is busy, in the field that load balancers read.
    pub tells_utilisation: bool,
    /// Where it listens; port 0 is any that is free.
    pub bind: SocketAddr,
    /// Fixes service times and failures.
    pub seed: u64,
}

/// How long a request takes a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Always the same.
    Fixed(Duration),
    /// Without memory, with this mean: many short, few long.
    Exponential(Duration),
    /// Mostly `usual`, but this share of them `long`.
    Bimodal {
        /// What most take.
        usual: Duration,
        /// What the others take.
        long: Duration,
        /// The share of the others, from 0 to 1.
        share: f64,
    },
}

/// How many requests may wait for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// All that come, as in most services that nobody has thought about.
    Unbounded,
    /// This many; the next gets 503 at once.
    Bounded(usize),
}

/// What is wrong with a service at the moment. It can be changed at any time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Every request that is begun takes this many times as long; 1 is healthy.
    pub slow: f64,
    /// The share of answers that are 500, from 0 to 1.
    pub fail: f64,
    /// How much longer every answer takes, without holding a worker.
    pub delay: Duration,
    /// Whether the workers stand still. Requests are taken and wait; work goes on where it was afterwards.
    pub is_hung: bool,
    /// Whether the service is gone: its connections are closed, what they waited for is lost, and new ones are
    /// refused.
    pub is_stopped: bool,
}

/// What a service has done, and what it is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests that came.
    pub arrived: u64,
    /// Work that ended in a 200.
    pub ok: u64,
    /// Work that ended in a 500.
    pub failed: u64,
    /// Requests that found the queue full.
    pub refused: u64,
    /// Of the work that ended, how much nobody waited for any more.
    pub wasted: u64,
    /// Requests that wait for a worker.
    pub waiting: usize,
    /// Requests that are worked on.
    pub busy: usize,
}

impl Spec {
    /// A naive service on a free loopback port.
    #[must_use]
    pub fn new(workers: usize, work: Work) -> Self {
        Self {
            workers,
            work,
            then: None,
            crowding: None,
            queue: Queue::Unbounded,
            answer_bytes: 16,
            tells_utilisation: false,
            bind: (Ipv4Addr::LOCALHOST, 0).into(),
            seed: 0,
        }
    }

    /// Requests a second, while it is healthy.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.workers as f64 / self.work.mean().as_secs_f64()
    }

    fn problem(&self) -> Option<String> {
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            return Some(format!("a service has 1 to {MAX_WORKERS} workers, not {}", self.workers));
        }
        if self.answer_bytes > MAX_ANSWER {
            return Some(format!("an answer has up to {MAX_ANSWER} bytes, not {}", self.answer_bytes));
        }
        let problem = |work: Work| match work {
            Work::Bimodal { share, .. } if !(0.0..=1.0).contains(&share) => {
                Some(format!("a share is between 0 and 1, not {share}"))
            }
            Work::Fixed(_) | Work::Exponential(_) | Work::Bimodal { .. } => None,
        };
        problem(self.work).or_else(|| self.then.and_then(problem))
    }
}

impl Work {
    /// How long a request takes on average.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match *self {
            Self::Fixed(time) | Self::Exponential(time) => time,
            Self::Bimodal { usual, long, share } => usual.mul_f64(1.0 - share) + long.mul_f64(share),
        }
    }
}

impl Work {
    /// How long one request takes.
    fn draw(&self, chance: &mut Chance) -> Duration {
        match *self {
            Self::Fixed(time) => time,
            Self::Exponential(mean) => mean.mul_f64(chance.exponential()),
            Self::Bimodal { usual, long, share } => {
                if chance.share() < share {
                    long
                } else {
                    usual
                }
            }
        }
    }
}

impl Faults {
    /// Nothing is wrong.
    pub const NONE: Self =
        Self { slow: 1.0, fail: 0.0, delay: Duration::ZERO, is_hung: false, is_stopped: false };
}

impl Default for Faults {
    fn default() -> Self {
        Self::NONE
    }
}

/// A service that runs on a thread of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

/// What the service's thread and its owner share.
#[derive(Debug, Default)]
pub(crate) struct Control {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    faults: Faults,
    served: Served,
    is_over: bool,
}

impl Service {
    /// Listens and begins to serve.
    ///
    /// # Errors
    /// When the address cannot be had, the system has no thread left, or the specification is wrong
    /// ([`io::ErrorKind::InvalidInput`]).
    pub fn start(spec: &Spec) -> io::Result<Self> {
        if let Some(problem) = spec.problem() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let listener = std::net::TcpListener::bind(spec.bind)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let control = Arc::new(Control::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = server::Server::new(spec, address, Arc::clone(&control), Alarm::new()?);
        let thread = thread::Builder::new()
            .name("load-service".to_owned())
            .spawn(move || server.run(&runtime, listener))?;
        Ok(Self { address, control, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what is wrong with it, from this moment on.
    ///
    /// # Errors
    /// When `slow` is not above 0 or `fail` is not between 0 and 1 ([`io::ErrorKind::InvalidInput`]).
    pub fn set(&self, faults: Faults) -> io::Result<()> {
        let wrong = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        // A thousand times slower than any timeout is long enough, and no duration overflows.
        if !(1e-6..=1e6).contains(&faults.slow) {
            return wrong(format!(
                "a service is slower by a factor of 0.000001 to 1000000, not {}",
                faults.slow
            ));
        }
        if !(0.0..=1.0).contains(&faults.fail) {
            return wrong(format!("a share is between 0 and 1, not {}", faults.fail));
        }
        self.control.state().faults = faults;
        self.control.changed.notify_one();
        Ok(())
    }

    /// What it has done so far.
    #[must_use]
    pub fn served(&self) -> Served {
        self.control.state().served
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.control.state().is_over = true;
        self.control.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // If it panicked, whoever waited for its answers has seen them fail.
            drop(thread.join());
        }
    }
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
