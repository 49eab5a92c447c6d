//! One request at a time, from the line to its answer.
//!
//! A lane is an HTTP/1.1 connection, or one of the streams of an HTTP/2 connection. There are as many as the plan
//! allows, and each takes the next request from the line as soon as it is free. The latency of a request counts
//! from the moment it was *due*, so the time it stood in line is part of it.
//!
//! This is what a closed loop leaves out. A server answers in 1 ms and stalls once, for a second. A closed loop that
//! wants 1000 requests a second has one connection waiting all that second: it reports one slow request in ten
//! thousand, and a p99.9 of 1 ms. But a thousand callers came in that second, and waited half a second on average. Gil
//! Tene named this *coordinated omission*.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::arrivals::Arrival;
use crate::connection::Connection;
use crate::line::{Line, Taken, Turn};
use crate::plan::{Persistence, Prepared};
use crate::tally::{Attempted, Tally};

/// What the lanes of a thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) line: Arc<Line>,
    pub(crate) classes: Vec<Prepared>,
    pub(crate) addresses: Vec<SocketAddr>,
    /// Set when all lanes are ready, before the first request can be taken.
    pub(crate) start: Cell<Instant>,
    /// How many lanes are.
    pub(crate) ready: Cell<usize>,
    pub(crate) timeout: Duration,
    pub(crate) persistence: Persistence,
    pub(crate) tally: RefCell<Tally>,
}

/// Sends until the line is closed and empty.
pub(crate) async fn drive(shared: Rc<Shared>, turn: Turn, mut connection: Connection) {
    shared.ready.set(shared.ready.get() + 1);
    while let Some(taken) = shared.line.take(turn).await {
        let waited = shared.start.get().elapsed();
        let arrival = match taken {
            Taken::AtOnce(arrival) => {
                shared.tally.borrow_mut().late(waited.saturating_sub(arrival.due));
                arrival
            }
            Taken::Waited(arrival) => arrival,
        };
        if waited.saturating_sub(arrival.due) >= shared.timeout {
            // Nobody would still wait, and the server could not help it: there are too few connections.
            shared.tally.borrow_mut().unsent(&arrival);
            continue;
        }
        shared.send(&arrival, &mut connection).await;
    }
}

impl Shared {
    async fn send(&self, arrival: &Arrival, connection: &mut Connection) {
        let Some(class) = self.classes.get(arrival.class) else { return };
        self.tally.borrow_mut().sent(arrival);
        let Persistence { attempts, pause, patience } = self.persistence;
        let gives_up = arrival.due.saturating_add(patience);
        for number in 1.. {
            let left = gives_up.saturating_sub(self.start.get().elapsed());
            // From now, not from the moment it was due: what stood in line nearly as long as its callers have patience
            // would time out at once, and a server that is never overloaded would seem to answer nothing.
            let deadline = Instant::now() + self.timeout.min(left);
            let how = connection.exchange(&self.addresses, class.request(arrival.key), deadline).await;
            let ended = self.start.get().elapsed();
            let is_well = how.is_ok_and(|status| status.is_success());
            let is_last = is_well || number >= attempts || ended.saturating_add(pause) >= gives_up;
            self.tally.borrow_mut().attempted(arrival, Attempted { number, ended, how, is_last });
            if is_last {
                return;
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }
}
