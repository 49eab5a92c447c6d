//! The thread that keeps the schedule.
//!
//! It sleeps until the next request is due and puts it in the line, whatever became of those before: this is what
//! makes the loop open. It touches no socket, so no server can slow it down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::arrivals::Arrivals;
use crate::line::Line;
use crate::stop::Stop;
use crate::tally::Tally;

pub(crate) struct Pacer {
    pub(crate) arrivals: Arrivals,
    pub(crate) line: Arc<Line>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) start: Instant,
    pub(crate) length: Duration,
    pub(crate) tally: Tally,
}

/// What the pacer saw.
pub(crate) struct Paced {
    /// With the requests that found no room.
    pub(crate) tally: Tally,
    /// When it was told to stop, if it was.
    pub(crate) stopped: Option<Duration>,
}

impl Pacer {
    pub(crate) fn run(mut self) -> Paced {
        let is_stopped = self.keep_schedule() || self.stop.sleep_until(self.start + self.length);
        let stopped = is_stopped.then(|| self.start.elapsed().min(self.length));
        self.line.close();
        Paced { tally: self.tally, stopped }
    }

    /// Says whether it was stopped.
    fn keep_schedule(&mut self) -> bool {
        for arrival in self.arrivals.by_ref() {
            if self.stop.sleep_until(self.start + arrival.due) {
                return true;
            }
            if let Err(arrival) = self.line.join(arrival) {
                self.tally.unsent(&arrival);
            }
        }
        false
    }
}
