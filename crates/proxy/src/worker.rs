//! One worker: a thread with a runtime of its own, its own listening sockets and its own upstream connections.
//!
//! Workers share the gate and the upstreams' bounds and nothing else, so what one does costs the others nothing.

mod untaken;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use tidegate_policy::Now;
use tidegate_tower::Clock;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::connection;
use crate::connection::watch::{Order, Watch};
use crate::files::{self, File};
use crate::gateway::Shared;
use crate::listen::ListenerState;
use crate::listen::left::has_left;
use crate::listen::peer::{Entry, PeerKind};
use crate::settings::Settings;
use crate::signals::LATE_EVERY;
use crate::stay::Stays;
use crate::ticks::Ticks;
use crate::upgrade::Tunnels;

/// How often a worker looks after its connections, unless a limit is shorter.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long accepting rests when the system has no more files to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a worker waits for an open file before it looks again which connection rests.
const FILE_PAUSE: Duration = Duration::from_millis(50);

/// What a worker's connections share.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its position among the workers.
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: ArcSwap<Settings>,
    ticks: Arc<Ticks>,
    /// The connections it serves, and some that have ended since it last looked.
    connections: Mutex<Vec<(Arc<Watch>, Arc<ListenerState>)>>,
    pub(crate) tunnels: Tunnels,
    /// The places of answers whose end has not come.
    pub(crate) stays: Stays,
    /// Whether the time to drain is over, and what has not ended is cut off.
    is_cutting_off: AtomicBool,
}

impl Worker {
    pub(crate) fn new(number: usize, settings: Settings, shared: Arc<Shared>) -> Self {
        let ticks = Arc::new(Ticks::new(shared.clock.now()));
        Self {
            number,
            shared,
            settings: ArcSwap::from_pointee(settings),
            ticks,
            connections: Mutex::default(),
            tunnels: Tunnels::default(),
            stays: Stays::default(),
            is_cutting_off: AtomicBool::new(false),
        }
    }

    pub(crate) fn settings(&self) -> Guard<Arc<Settings>> {
        self.settings.load()
    }

    pub(crate) fn ticks(&self) -> &Arc<Ticks> {
        &self.ticks
    }

    /// The time at this moment.
    pub(crate) fn now(&self) -> Now {
        self.ticks.dated(self.shared.clock.moment())
    }

    /// Looks after a connection from now on.
    pub(crate) fn watch(&self, watch: &Arc<Watch>, listener: &Arc<ListenerState>) {
        if self.shared.stop.has_begun() {
            watch.order(Order::Drain);
        }
        self.connections().push((Arc::clone(watch), Arc::clone(listener)));
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<(Arc<Watch>, Arc<ListenerState>)>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many connections of a listener it serves.
    pub(crate) fn count_of(&self, listener: &Arc<ListenerState>) -> usize {
        let is_its =
            |(watch, its): &&(Arc<Watch>, Arc<ListenerState>)| watch.is_open() && Arc::ptr_eq(its, listener);
        self.connections().iter().filter(is_its).count()
    }

    fn is_idle(&self) -> bool {
        self.tunnels.count() == 0 && !self.connections().iter().any(|(watch, _)| watch.is_open())
    }

    /// Requests that have not ended, and connections that have turned to another protocol.
    fn in_flight(&self) -> usize {
        let requests = self.connections().iter().map(|(watch, _)| watch.in_flight()).sum::<usize>();
        requests + self.tunnels.count()
    }

    /// Whether what ends now is cut off by us.
    pub(crate) fn is_cutting_off(&self) -> bool {
        self.is_cutting_off.load(Ordering::Relaxed)
    }

    fn order_all(&self, order: Order) {
        for (watch, _) in self.connections().iter() {
            watch.order(order);
        }
    }

    /// Serves until the gateway stops and the last connection has ended.
    pub(crate) async fn run(self: Arc<Self>, sockets: Vec<(std::net::TcpListener, Arc<ListenerState>)>) {
        let accepting: Vec<_> = sockets
            .into_iter()
            .filter_map(|(socket, listener)| Some((TcpListener::from_std(socket).ok()?, listener)))
            .map(|(socket, listener)| tokio::spawn(Arc::clone(&self).accept(socket, listener)))
            .collect();
        let looking = tokio::spawn(Arc::clone(&self).look_after());
        let timing = tokio::spawn(Arc::clone(&self).look_whether_late());
        self.shared.stop.begun().await;
        for task in &accepting {
            task.abort();
        }
        self.order_all(Order::Drain);
        self.drained().await;
        looking.abort();
        timing.abort();
        drop(timing.await);
        self.shared.signals.ended(self.number);
    }

    /// Waits until nothing is in flight, or the time for it is over.
    async fn drained(&self) {
        let patience = self.settings().server.drain;
        let all_ended = async {
            let mut look = interval(Duration::from_millis(10));
            loop {
                look.tick().await;
                if self.is_idle() {
                    return;
                }
            }
        };
        if timeout(patience, all_ended).await.is_err() {
            self.shared.stop.cut_off(self.in_flight());
            self.is_cutting_off.store(true, Ordering::Relaxed);
            self.order_all(Order::Close);
            self.tunnels.close();
            tokio::task::yield_now().await;
        }
    }

    async fn accept(self: Arc<Self>, socket: TcpListener, listener: Arc<ListenerState>) {
        loop {
            let (stream, from) = match socket.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // A caller that went away at once is its own business; the rest is a shortage.
                    if error.kind() != io::ErrorKind::ConnectionAborted {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                    continue;
                }
            };
            let peer = PeerKind::of(&self.settings().server, from.ip());
            if peer == PeerKind::Uninvited {
                listener.turn_away();
                continue;
            }
            // One that was accepted waits here for room, and behind it nobody is accepted. Were room asked for first,
            // a worker that nobody connects to would keep the last of it from the others.
            let room = listener.room(self.file().await).await;
            if has_left(&stream) {
                listener.missed();
                continue;
            }
            if let Some(entry) = Entry::of(&listener, room, (peer, from.ip()), &self.settings().server) {
                tokio::spawn(connection::serve(stream, entry, Arc::clone(&self)));
            }
        }
    }

    /// An open file for a caller. Where there is none left, the connection that has rested longest is ended for it, of those
    /// that never asked for anything first; where none rests, nobody is accepted meanwhile.
    async fn file(&self) -> File {
        loop {
            if let Some(file) = files::try_caller() {
                return file;
            }
            if !self.end_longest_resting() {
                files::want();
            }
            // None may rest now, and many a moment later, when nothing else would look again.
            if let Ok(file) = timeout(FILE_PAUSE, files::caller()).await {
                return file;
            }
        }
    }

    /// Whether there is one.
    fn end_longest_resting(&self) -> bool {
        let connections = self.connections();
        let resting = connections.iter().filter_map(|(watch, _)| Some((watch.rests_since()?, watch)));
        let longest = resting.min_by_key(|(since, _)| *since);
        if let Some((_, watch)) = &longest {
            watch.order(Order::Close);
        }
        longest.is_some()
    }

    /// Renews the tick, and ends what has been waited for too long.
    async fn look_after(self: Arc<Self>) {
        let shortest = self.shared.listeners.iter().map(|listener| listener.shortest_limit()).min();
        let every = (shortest.unwrap_or(LOOK_EVERY) / 8).clamp(Duration::from_millis(5), LOOK_EVERY);
        let mut look = interval(every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            let now = self.shared.clock.now();
            let tick = self.ticks.renew(now);
            self.connections().retain(|(watch, listener)| {
                if watch.is_over() {
                    return false;
                }
                if watch.is_open()
                    && let Some(order) = watch.overdue(tick, listener.spec())
                {
                    watch.order(order);
                }
                watch.look_if_blind();
                true
            });
            self.end_in_vain(tick);
            if files::take_want() && !self.end_longest_resting() {
                files::want();
            }
            for upstream in &self.settings().upstreams {
                upstream.look_after(self.number, &self.ticks, now.moment);
            }
            self.stays.end_old(tick);
            if self.shared.signals.steers(now.moment) {
                self.shared.steer(&self.settings().upstreams);
            }
        }
    }

    /// Ends connections that hold answers in vain, where all of its connections hold too much.
    fn end_in_vain(&self, tick: u64) {
        let most = untaken::MOST / self.shared.overhead.workers();
        let connections = self.connections();
        for watch in untaken::in_vain(connections.iter().map(|(watch, _)| watch), most, tick) {
            watch.order(Order::Close);
        }
    }

    /// Measures how late its loop is: by how much longer than asked for a sleep takes.
    async fn look_whether_late(self: Arc<Self>) {
        loop {
            let due = tokio::time::Instant::now() + LATE_EVERY;
            tokio::time::sleep_until(due).await;
            self.shared.signals.late(self.number, self.shared.clock.moment(), due.elapsed());
        }
    }
}
