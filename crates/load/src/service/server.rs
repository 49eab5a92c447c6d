//! The workers behind HTTP: connections are taken, requests put to work, answers sent when they are due.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};

use super::workers::{Outcome, Workers};
use super::{Control, Faults, Spec};
use crate::alarm::Alarm;
use crate::chance::Chance;
use crate::connection::LocalExecutor;

/// How long to wait before trying again when no connection can be taken: descriptors do not come back at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Where an answer tells how busy its server is.
const LOAD_METRICS: HeaderName = HeaderName::from_static("endpoint-load-metrics");

/// What becomes a service on a thread of its own.
pub(super) struct Server {
    spec: Spec,
    address: SocketAddr,
    control: Arc<Control>,
    alarm: Alarm,
}

impl Server {
    pub(super) fn new(spec: &Spec, address: SocketAddr, control: Arc<Control>, alarm: Alarm) -> Self {
        Self { spec: *spec, address, control, alarm }
    }

    pub(super) fn run(self, runtime: &Runtime, listener: std::net::TcpListener) {
        let floor = Rc::new(Floor {
            workers: RefCell::new(Workers::new(&self.spec)),
            chance: RefCell::new(Chance::stream(self.spec.seed, 1)),
            spec: self.spec,
            clock: RefCell::new(Clock { start: Instant::now(), lost: Duration::ZERO, stands_since: None }),
            control: self.control,
            alarm: self.alarm,
            answer: Bytes::from(vec![b'x'; self.spec.answer_bytes]),
        });
        runtime.block_on(LocalSet::new().run_until(serve(floor, listener, self.address)));
    }
}

async fn serve(floor: Rc<Floor>, listener: std::net::TcpListener, address: SocketAddr) {
    let mut listener = TcpListener::from_std(listener).ok();
    let mut connections = JoinSet::new();
    loop {
        let (faults, is_over) = {
            let state = floor.control.state();
            (state.faults, state.is_over)
        };
        if is_over {
            return;
        }
        if faults.is_stopped {
            listener = None;
            connections.abort_all();
            floor.workers.borrow_mut().clear();
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
        }
        floor.suffer(faults);
        floor.finish();
        let is_closed = listener.is_none();
        tokio::select! {
            () = floor.control.changed.notified() => {}
            () = floor.alarm.rung() => {}
            stream = accept(listener.as_ref()) => {
                connections.spawn_local(converse(Rc::clone(&floor), stream));
            }
            Some(_) = connections.join_next() => {}
            // Somebody else may still hold the address for a moment.
            () = tokio::time::sleep(ACCEPT_PAUSE), if is_closed && !faults.is_stopped => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection to its end; how it ends is the caller's business.
async fn converse(floor: Rc<Floor>, stream: TcpStream) {
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| answer(Rc::clone(&floor), request));
    drop(auto::Builder::new(LocalExecutor).serve_connection(TokioIo::new(stream), service).await);
}

async fn answer(
    floor: Rc<Floor>,
    mut request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    while let Some(Ok(_)) = request.body_mut().frame().await {}
    let (status, body) = match floor.work().await {
        Some(Outcome::Ok) => (StatusCode::OK, floor.answer.clone()),
        Some(Outcome::Failed) => (StatusCode::INTERNAL_SERVER_ERROR, Bytes::from_static(b"failed\n")),
        None => (StatusCode::SERVICE_UNAVAILABLE, Bytes::from_static(b"the queue is full\n")),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    if let Some(told) = floor.utilisation() {
        response.headers_mut().insert(LOAD_METRICS, told);
    }
    Ok(response)
}

/// Where the work is done.
struct Floor {
    spec: Spec,
    chance: RefCell<Chance>,
    workers: RefCell<Workers<oneshot::Sender<Outcome>>>,
    clock: RefCell<Clock>,
    control: Arc<Control>,
    alarm: Alarm,
    answer: Bytes,
}

impl Floor {
    /// Waits until a worker has done it; none when the queue is full.
    async fn work(&self) -> Option<Outcome> {
        self.finish();
        let (job, done) = oneshot::channel();
        let arrived = self.workers.borrow_mut().arrive(self.clock.borrow().now(), job);
        {
            let mut state = self.control.state();
            state.served.arrived += 1;
            state.served.refused += u64::from(arrived.is_err());
        }
        arrived.ok()?;
        self.finish();
        // The service stops: its connections are closed before anybody could read an answer.
        let outcome = done.await.unwrap_or(Outcome::Failed);
        let delay = self.control.state().faults.delay;
        let then = self.spec.then.map_or(Duration::ZERO, |then| then.draw(&mut self.chance.borrow_mut()));
        if !(delay + then).is_zero() {
            tokio::time::sleep(delay + then).await;
        }
        Some(outcome)
    }

    /// Which share of the workers is busy, as load balancers are told it (ORCA).
    fn utilisation(&self) -> Option<HeaderValue> {
        if !self.spec.tells_utilisation {
            return None;
        }
        let busy = self.workers.borrow().busy() as f64 / self.spec.workers as f64;
        HeaderValue::from_str(&format!("TEXT cpu_utilization={busy:.3}")).ok()
    }

    /// Gives out what has ended, and sets the alarm for what ends next.
    fn finish(&self) {
        let (mut workers, clock) = (self.workers.borrow_mut(), self.clock.borrow());
        let mut state = self.control.state();
        while let Some((job, outcome)) = workers.ended(clock.now()) {
            match outcome {
                Outcome::Ok => state.served.ok += 1,
                Outcome::Failed => state.served.failed += 1,
            }
            state.served.wasted += u64::from(job.send(outcome).is_err());
        }
        (state.served.waiting, state.served.busy) = (workers.waiting(), workers.busy());
        drop(state);
        self.alarm.set(workers.next_end().and_then(|end| clock.moment(end)));
    }

    fn suffer(&self, faults: Faults) {
        self.workers.borrow_mut().set_faults(faults.slow, faults.fail);
        self.clock.borrow_mut().stand(faults.is_hung);
    }
}

/// The workers' time, which stands still while they hang.
#[derive(Debug)]
struct Clock {
    start: Instant,
    /// How long it has stood still, up to the last time it went on.
    lost: Duration,
    stands_since: Option<Instant>,
}

impl Clock {
    fn now(&self) -> Duration {
        let until = self.stands_since.unwrap_or_else(Instant::now);
        until.saturating_duration_since(self.start).saturating_sub(self.lost)
    }

    /// When the workers' time will be `at`; none while it stands still.
    fn moment(&self, at: Duration) -> Option<Instant> {
        if self.stands_since.is_some() { None } else { self.start.checked_add(self.lost.saturating_add(at)) }
    }

    fn stand(&mut self, is_hung: bool) {
        match (self.stands_since, is_hung) {
            (None, true) => self.stands_since = Some(Instant::now()),
            (Some(since), false) => {
                self.lost += since.elapsed();
                self.stands_since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
}
