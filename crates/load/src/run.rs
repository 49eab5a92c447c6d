//! Carries a plan out, on threads of its own.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Mutex;
use tokio::task::LocalSet;

use crate::connection::Connection;
use crate::files;
use crate::lane::{self, Shared};
use crate::line::{Line, Turn};
use crate::live::{Live, SoFar};
use crate::pacer::{Paced, Pacer};
use crate::plan::{Plan, Prepared, Protocol, StartFailure};
use crate::report::Report;
use crate::stop::Stop;
use crate::tally::Tally;

/// How long after all lanes are ready the schedule begins, so that its first moment is not over already.
const LEAD: Duration = Duration::from_millis(10);

/// Open files beside connections: runtimes, and what else the process has.
const OTHER_FILES: usize = 100;

/// A plan that is being carried out. Dropping it stops it.
#[derive(Debug)]
pub struct Run {
    plan: Plan,
    line: Arc<Line>,
    stop: Arc<Stop>,
    live: Live,
    start: Instant,
    pacer: Option<JoinHandle<Paced>>,
    senders: Vec<JoinHandle<Tally>>,
}

/// Stops a run from elsewhere.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Stop>);

impl Stopper {
    /// Sends nothing more and waits for no answer.
    pub fn stop(&self) {
        self.0.set();
    }
}

impl Plan {
    /// Begins to carry it out, as soon as everything that sends is ready.
    ///
    /// # Errors
    /// When the plan is wrong, or the system has no thread left.
    pub fn start(&self) -> Result<Run, StartFailure> {
        let arrivals = self.arrivals()?;
        // As many again for a service in the same process.
        files::make_room(2 * (self.connections + self.relief) + OTHER_FILES);
        let classes: Result<Vec<Prepared>, _> =
            self.classes.iter().map(|class| Prepared::new(self, class)).collect();
        let classes = classes?;
        let (line, stop) = (Arc::new(Line::new(self.waiting)), Arc::new(Stop::default()));
        let length = self.length();
        let tally = Tally::new(self);
        // Made before the threads: what has begun when a thread cannot be had is stopped by its drop.
        let mut run = Run {
            plan: self.clone(),
            line: Arc::clone(&line),
            stop: Arc::clone(&stop),
            live: tally.live.clone(),
            start: Instant::now(),
            pacer: None,
            senders: Vec::new(),
        };
        let (ready, are_ready) = mpsc::channel();
        let mut starts = Vec::new();
        for index in 0..self.threads {
            let (start, starts_at) = mpsc::channel();
            starts.push(start);
            let sender = Sender {
                connections: share(self.connections, self.threads, index),
                relief: share(self.relief, self.threads, index),
                classes: classes.clone(),
                plan: self.clone(),
                line: Arc::clone(&line),
                stop: Arc::clone(&stop),
                ready: ready.clone(),
                starts_at,
                tally: tally.clone(),
            };
            let runtime = Builder::new_current_thread().enable_all().build().map_err(StartFailure::Thread)?;
            run.senders.push(spawn("load-sender", move || sender.run(&runtime))?);
        }
        drop(ready);
        // A thread that is lost is noticed when it is joined.
        are_ready.iter().take(self.threads).for_each(drop);
        let start = Instant::now() + LEAD;
        run.start = start;
        starts.iter().for_each(|thread| thread.send(start).unwrap_or_default());
        let pacer = Pacer { arrivals, line, stop, start, length, tally };
        run.pacer = Some(spawn("load-pacer", move || pacer.run())?);
        Ok(run)
    }
}

impl Run {
    /// The moment from which everything is counted; it may be some milliseconds ahead.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.start
    }

    /// What has become of each class so far, in the order of the plan.
    #[must_use]
    pub fn so_far(&self) -> Vec<SoFar> {
        self.live.so_far()
    }

    /// Stops this run from elsewhere: from a signal handler, say, while [`wait`](Self::wait) blocks.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// Blocks until everything is answered, timed out or stopped, and says what was seen.
    ///
    /// # Panics
    /// When one of the run's own threads did.
    #[must_use]
    pub fn wait(mut self) -> Report {
        let mut tally = Tally::new(&self.plan);
        let mut stopped = None;
        if let Some(pacer) = self.pacer.take() {
            let paced = joined(pacer);
            tally.absorb(&paced.tally);
            stopped = paced.stopped;
        }
        for sender in self.senders.drain(..) {
            tally.absorb(&joined(sender));
        }
        for arrival in self.line.clear() {
            tally.unsent(&arrival);
        }
        Report::new(&self.plan, stopped, tally)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// One thread that sends.
struct Sender {
    connections: usize,
    relief: usize,
    classes: Vec<Prepared>,
    plan: Plan,
    line: Arc<Line>,
    stop: Arc<Stop>,
    ready: mpsc::Sender<()>,
    starts_at: mpsc::Receiver<Instant>,
    tally: Tally,
}

impl Sender {
    fn run(self, runtime: &Runtime) -> Tally {
        let shared = Rc::new(Shared {
            line: self.line,
            classes: self.classes,
            addresses: self.plan.target.addresses().to_vec(),
            start: Cell::new(Instant::now()),
            ready: Cell::new(0),
            timeout: self.plan.timeout,
            persistence: self.plan.persistence,
            tally: RefCell::new(self.tally),
        });
        let tasks = LocalSet::new();
        let lanes_of = |turn, count| connections(self.plan.protocol, count).map(move |lane| (turn, lane));
        let lanes: Vec<_> = lanes_of(Turn::Regular, self.connections)
            .chain(lanes_of(Turn::Relief, self.relief))
            .map(|(turn, connection)| tasks.spawn_local(lane::drive(Rc::clone(&shared), turn, connection)))
            .collect();
        let finished = async {
            while shared.ready.get() < lanes.len() {
                tokio::task::yield_now().await;
            }
            self.ready.send(()).unwrap_or_default();
            // Nothing can happen on this thread before that. Without an answer the run was given up.
            let Ok(start) = self.starts_at.recv() else { return };
            shared.start.set(start);
            for lane in lanes {
                drop(lane.await);
            }
        };
        runtime.block_on(tasks.run_until(async {
            tokio::select! {
                () = finished => {}
                () = self.stop.wait() => {}
            }
        }));
        // With the tasks ends whatever was under way.
        drop(tasks);
        shared.tally.borrow().clone()
    }
}

/// One for each lane.
fn connections(protocol: Protocol, count: usize) -> impl Iterator<Item = Connection> {
    let lanes = match protocol {
        Protocol::Http1 => 1,
        Protocol::H2 { streams } => streams,
    };
    let shared: Vec<_> = (0..count).map(|_| Rc::new(Mutex::new(None))).collect();
    // One lane of each connection after another, so that connections take turns.
    (0..lanes).flat_map(move |_| shared.clone()).map(move |shared| match protocol {
        Protocol::Http1 => Connection::Http1(None),
        Protocol::H2 { .. } => Connection::H2(shared),
    })
}

/// What the thread with this index gets of `whole`.
fn share(whole: usize, threads: usize, index: usize) -> usize {
    whole / threads + usize::from(index < whole % threads)
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartFailure> {
    let spawned: io::Result<_> = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(StartFailure::Thread)
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
}
